// Files of weights and vectors from elsewhere.
#include "apps/model/weights.h"

#include <cmath>

#include "apps/model/preparation.h"
#include "apps/model/vectors.h"
#include "nn/models.h"
#include "tests/fuzz/fuzz.h"

namespace skein::fuzz {
namespace {

// A header that is a line of text gets the length before it.
std::string file_of(Input& in) {
  if (!(in.byte() & 1)) return in.rest();
  const std::string header = in.line();
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + in.rest();
}

}  // namespace

void safetensors(Input in) {
  static const auto model = nn::make_model("mlp", nn::Input{4, 4, 1, 3});
  const std::string bytes = file_of(in), path = put("m.safetensors", bytes);
  may_refuse([&] {
    const apps::TensorFile f = apps::read_safetensors(path);
    int64_t all = 0;
    uint8_t sum = 0;
    for (const auto& [name, t] : f.tensors) {
      all += t.bytes();
      for (int64_t i = 0; i < t.bytes(); ++i) sum ^= static_cast<const uint8_t*>(t.raw())[i];
    }
    require(all <= int64_t(bytes.size()), sum ? "tensors overlap" : "tensors overlap, in zeros");
    may_refuse([&] { apps::write_safetensors(scratch() + "/again.safetensors", f); });
    may_refuse([&] { (void)apps::info_of(path, f); });
    may_refuse([&] {
      if (const auto p = apps::read_preparation(path, f.metadata))
        for (size_t c = 0; c < p->mean.size(); ++c)
          require(std::isfinite(p->mean[c]) && std::isfinite(1 / p->deviation[c]),
                  "pixels would become infinite");
    });
    may_refuse([&] { (void)apps::import_model(path, f, *model); });
    (void)apps::import_for_tuning(path, *model, {"a", "b", "c"});
  });
  may_refuse([&] { (void)apps::read_vectors(path); });
}

void npy(Input in) {
  std::string bytes;
  if (in.byte() & 1) {
    const std::string header = in.line().substr(0, UINT16_MAX);
    const auto length = uint16_t(header.size());
    bytes = std::string("\x93NUMPY\1\0", 8) + char(length & 255) + char(length >> 8) + header;
  }
  bytes += in.rest();
  const std::string path = put("v.npy", bytes);
  may_refuse([&] {
    const apps::Vectors v = apps::read_vectors(path);
    require(v.flat.bytes() <= int64_t(2 * bytes.size()), "more numbers than the file has: " + v.layout());
    apps::write_vectors(scratch() + "/w.npy", v, "{}");
    require(apps::read_vectors(scratch() + "/w.npy").layout() == v.layout(), "it reads back as another one");
  });
}

}  // namespace skein::fuzz
