// Collects the members of archives into samples, and caches their index.
#include "data/sources/shards.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <exception>
#include <filesystem>
#include <thread>

#include "data/pictures/encoded.h"
#include "data/sources/tar.h"
#include "engine/words/json.h"

namespace skein::data {
namespace {

constexpr int64_t kLargestLabelFile = 1 << 20, kLargestLabel = (1 << 24) - 1;

// A sample whose members are still being collected.
struct Gathered {
  TarMember image;
  bool has_image = false, has_label = false, label_is_cls = false;
  int32_t label = -1;
};

int32_t parse_label(std::string digits, const std::string& where) {
  while (!digits.empty() && (std::isspace(static_cast<unsigned char>(digits.back())) || digits.back() == 0))
    digits.pop_back();
  const size_t first = digits.find_first_not_of(" \t\r\n");
  digits = first == std::string::npos ? "" : digits.substr(first);
  int64_t n = -1;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
  if (code == std::errc::invalid_argument || digits.empty() || end != digits.data() + digits.size())
    throw BadFile(where + ": \"" + digits.substr(0, 40) +
                  "\" is not a label; expected the number of a class");
  if (code != std::errc() || n < 0 || n > kLargestLabel)
    throw BadFile(where + ": label " + digits.substr(0, 40) +
                  " is out of range: classes are numbered from 0");
  return int32_t(n);
}

std::string label_in_json(const std::string& bytes, const std::string& where) {
  const auto j = parse_json(bytes);
  if (j.is_discarded())
    throw BadFile(text(where, ": is not JSON, or nested deeper than ", kMostLevels, " levels"));
  if (!j.is_object() || !j.contains("label")) return "";
  return j["label"].is_string() ? j["label"].get<std::string>() : brief(j["label"]);
}

// WebDataset's rule: the key is everything before the first dot of the last part of the name.
std::pair<std::string, std::string> key_and_kind(const std::string& name) {
  const size_t slash = name.rfind('/'), dot = name.find('.', slash == std::string::npos ? 0 : slash + 1);
  if (dot == std::string::npos) return {name, ""};
  std::string kind = name.substr(dot);
  for (char& c : kind) c = char(std::tolower(static_cast<unsigned char>(c)));
  return {name.substr(0, dot), kind};
}

void take_member(Tar& tar, const TarMember& m, const std::string& kind, const std::string& where,
                 Gathered& g) {
  if (is_jpeg_suffix(kind) || kind == ".png") {
    if (g.has_image) throw BadFile(where + ": a second image of this key; keys must differ within a shard");
    g.image = m, g.has_image = true;
  } else if (kind == ".cls" || kind == ".json") {
    if (m.size > kLargestLabelFile) throw BadFile(text(where, ": a label of ", m.size, " bytes"));
    const bool cls = kind == ".cls";
    const std::string digits = cls ? tar.read(m) : label_in_json(tar.read(m), where);
    if ((!cls && digits.empty()) || (g.has_label && g.label_is_cls && !cls)) return;
    g.label = parse_label(digits, where);
    g.has_label = true, g.label_is_cls = cls;
  }
}

Shard look_through(const std::string& path) {
  Tar tar(path);
  std::map<std::string, size_t> places;
  std::vector<std::pair<std::string, Gathered>> all;
  for (TarMember m; tar.next(m);) {
    const auto [key, kind] = key_and_kind(m.name);
    const auto [place, fresh] = places.emplace(key, all.size());
    if (fresh) all.emplace_back(key, Gathered{});
    take_member(tar, m, kind, path + ": " + m.name, all[place->second].second);
  }
  Shard s{path, {}};
  for (auto& [key, g] : all) {
    if (!g.has_image && !g.has_label) continue;  // not a sample, for example a note or a list
    if (!g.has_label)
      throw BadFile(path + ": sample " + key + " has no label: expected " + key + ".cls, or " + key +
                    ".json with \"label\"");
    if (!g.has_image) throw BadFile(path + ": sample " + key + " has a label but no .jpg, .jpeg or .png");
    s.samples.push_back({g.image.name, g.image.offset, g.image.size, g.label});
  }
  return s;
}

std::string pack(const std::vector<KnownShard>& all) {
  Record r;
  r.put(int64_t(all.size()));
  for (const auto& [times, shard] : all) {
    r.put(std::filesystem::path(shard.path).filename().string());
    r.put(times.modified), r.put(times.changed), r.put(times.size), r.put(int64_t(shard.samples.size()));
    for (const ShardSample& s : shard.samples)
      r.put(s.name), r.put(s.offset), r.put(s.size), r.put(int64_t(s.label));
  }
  return r.bytes();
}

// f(i) for each i below n on a few threads; throws what the lowest i threw.
template <class F>
void in_parallel(size_t n, F&& f) {
  std::vector<std::exception_ptr> errors(n);
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i; (i = next++) < n;) try {
        f(i);
      } catch (...) { errors[i] = std::current_exception(); }
  };
  std::vector<std::jthread> threads;
  for (size_t t = 1; t < std::min<size_t>(n, 8); ++t) threads.emplace_back(work);
  work();
  threads.clear();
  for (const std::exception_ptr& e : errors)
    if (e) std::rethrow_exception(e);
}

}  // namespace

std::multimap<std::string, KnownShard> parse_shard_index(const std::string& bytes) {
  std::multimap<std::string, KnownShard> all;
  try {
    RecordReader r(bytes);
    for (int64_t n = r.number(); n > 0; --n) {
      const std::string name = r.word();
      KnownShard k;
      k.times.modified = r.number(), k.times.changed = r.number(), k.times.size = r.number(0);
      for (int64_t samples = r.number(); samples > 0; --samples) {
        ShardSample& s = k.shard.samples.emplace_back();
        s.name = r.word();
        s.offset = r.number(0, k.times.size), s.size = r.number(0, k.times.size - s.offset);
        s.label = int32_t(r.number(0, kLargestLabel));
      }
      all.emplace(name, std::move(k));
    }
  } catch (const BadFile&) { return {}; }
  return all;
}

std::vector<Shard> index_shards(const std::string& pattern, const std::vector<std::string>& paths,
                                std::vector<std::string>* notes) {
  const std::string directory = std::filesystem::path(paths.at(0)).parent_path().string();
  const IndexCache cache("shards 1", pattern, directory.empty() ? "." : directory, pattern);
  const auto found = cache.load();
  const auto before = found ? parse_shard_index(found->bytes) : std::multimap<std::string, KnownShard>();
  std::vector<KnownShard> all(paths.size());
  std::atomic<size_t> read{0};
  in_parallel(paths.size(), [&](size_t i) {
    all[i].times = times_of(paths[i]);  // read first, so that a later change is noticed
    const auto [first, last] = before.equal_range(std::filesystem::path(paths[i]).filename().string());
    const auto same =
        std::find_if(first, last, [&](const auto& k) { return k.second.times == all[i].times; });
    if (same != last)
      all[i].shard = {paths[i], same->second.shard.samples};
    else
      all[i].shard = look_through(paths[i]), ++read;
  });
  int64_t samples = 0;
  for (const KnownShard& k : all) samples += int64_t(k.shard.samples.size());
  if (samples == 0)
    throw BadFile(pattern + ": no samples in " + text(paths.size()) +
                  " shards; expected members KEY.jpg and KEY.cls");
  std::string how = found ? "that of " + found->file : "";
  if (read > 0) {
    std::vector<KnownShard> kept;
    std::copy_if(all.begin(), all.end(), std::back_inserter(kept),
                 [](const KnownShard& k) { return !is_recent(k.times); });
    const std::string file = kept.empty() ? "" : cache.store(pack(kept));
    how = text("made by reading ", read.load(), file.empty() ? " and not kept" : " and kept in " + file);
    if (kept.empty()) how += ": they have changed within the last two seconds";
  }
  if (notes)
    notes->push_back(
        text(pattern, ": ", samples, " samples in ", paths.size(), " shards; the index is ", how));
  std::vector<Shard> shards;
  for (KnownShard& k : all) shards.push_back(std::move(k.shard));
  return shards;
}

}  // namespace skein::data
