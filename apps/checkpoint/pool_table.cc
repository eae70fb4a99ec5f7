// Writes and reads tables as JSON.
#include "apps/checkpoint/pool_table.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "apps/base/digest.h"
#include "apps/base/json.h"
#include "engine/words/json.h"

namespace skein::apps {
namespace {

constexpr int64_t kPiece = int64_t(1) << 22;         // bytes that are hashed by one thread
constexpr int64_t kMostElements = int64_t(1) << 48;  // more is not a tensor but a damaged table

struct DamagedTable {};

Shape shape_of(const Json& j) {
  std::vector<int64_t> extents;
  int64_t volume = 1;
  for (const Json& e : j) {
    if (!e.is_number_unsigned()) throw DamagedTable();
    extents.push_back(int64_t(e.get<uint64_t>()));
    if (extents.back() < 0 || __builtin_mul_overflow(volume, extents.back(), &volume)) throw DamagedTable();
  }
  if (int(extents.size()) > Shape::kMaxRank || volume > kMostElements) throw DamagedTable();
  return Shape(extents);
}

PoolTable::Field field_of(const Json& j) {
  const Json& type = j.at(0);
  if (!type.is_number_unsigned() || type.get<uint64_t>() >= kDTypes) throw DamagedTable();
  return {DType(type.get<uint64_t>()), shape_of(j.at(1)), j.at(2).get<std::string>()};
}

}  // namespace

std::string hash_of(const Tensor& t) {
  const int64_t bytes = t.bytes(), pieces = (bytes + kPiece - 1) / kPiece;
  std::vector<std::string> hashes(static_cast<size_t>(pieces));
#pragma omp parallel for schedule(dynamic) if (pieces > 1)
  for (int64_t i = 0; i < pieces; ++i) {
    Digest d;
    d.add(static_cast<const char*>(t.address()) + i * kPiece, size_t(std::min(kPiece, bytes - i * kPiece)));
    hashes[size_t(i)] = d.hex();
  }
  Digest all;
  for (const std::string& h : hashes) all.add(h.data(), h.size());
  return all.hex();
}

// Real numbers are written as their bits, because JSON has no infinity.
std::string to_text(const PoolTable& t) {
  Json j = {{"has_state", t.has_state},
            {"tensors", Json::object()},
            {"wholes", Json::object()},
            {"reals", Json::object()}};
  for (const auto& [name, f] : t.tensors)
    j["tensors"][name] = {int(f.type), std::vector<uint64_t>(f.shape.begin(), f.shape.end()), f.hash};
  for (const auto& [name, v] : t.wholes) j["wholes"][name] = v;
  for (const auto& [name, v] : t.reals) j["reals"][name] = std::bit_cast<uint64_t>(v);
  return json_text(j);
}

PoolTable table_of(const std::string& said) {
  const Json j = parse_json<Json>(said);
  try {
    PoolTable t;
    t.has_state = j.at("has_state").get<bool>();
    for (const auto& [name, f] : j.at("tensors").items()) t.tensors[name] = field_of(f);
    for (const auto& [name, v] : j.at("wholes").items()) {
      if (!v.is_number_integer()) throw DamagedTable();
      t.wholes[name] = v.get<int64_t>();
    }
    for (const auto& [name, v] : j.at("reals").items()) {
      if (!v.is_number_unsigned()) throw DamagedTable();
      t.reals[name] = std::bit_cast<double>(v.get<uint64_t>());
    }
    return t;
  } catch (const Json::exception&) {
  } catch (const DamagedTable&) {}
  throw Error(text("not what a worker says of its state, which another version may have sent: ", brief(j)));
}

}  // namespace skein::apps
