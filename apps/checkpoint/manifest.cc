// Finds, checks and loads checkpoints.
#include "apps/checkpoint/manifest.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "apps/base/digest.h"
#include "apps/base/json.h"
#include "apps/base/printable.h"
#include "data/sources/split.h"
#include "engine/words/file.h"
#include "engine/words/json.h"
#include "engine/words/number.h"

namespace skein::apps {
namespace fs = std::filesystem;
namespace {

constexpr int kFormat = 1;
constexpr int64_t kMostBytes = 1 << 26;  // of a manifest; a worker takes about a hundred
constexpr int64_t kMostSteps = int64_t(1) << 52;

struct DamagedManifest {};

// A member that must be a whole number in this range: a forged manifest may have a valid checksum.
int64_t whole(const Json& of, const char* key, int64_t least, int64_t most) {
  const Json& j = of.at(key);
  if (!j.is_number_integer() || (j.is_number_unsigned() && j.get<uint64_t>() > uint64_t(most)))
    throw DamagedManifest();
  const int64_t n = j.get<int64_t>();
  if (n < least || n > most) throw DamagedManifest();
  return n;
}

// The files are those of ranks 0, 1, ..., beside the manifest and nowhere else.
void add_file(Manifest& m, const Json& file) {
  m.files.push_back(file.at("name"));
  m.sums.push_back(file.at("blake2b"));
  if (m.files.back() != rank_file(int(m.files.size()) - 1)) throw DamagedManifest();
}

std::string leftover_of(const Json& manifest) try {
  const std::string words = manifest.value("leftover", "");
  (void)data::Leftover::read(words);
  return words;
} catch (const Error&) { throw DamagedManifest(); }

// One for each worker, and together the global batch.
void read_shares(Manifest& m, const Json& shares) {
  int64_t left = m.identity.global_batch;
  if (!shares.is_array() || shares.size() != size_t(m.identity.world)) throw DamagedManifest();
  for (const Json& share : shares) {
    const int64_t n = share.is_number_integer() ? share.get<int64_t>() : 0;
    if (n < 1 || n > left) throw DamagedManifest();
    m.shares.push_back(n);
    left -= n;
  }
  if (left != 0) throw DamagedManifest();
}

std::string manifest_file(const std::string& checkpoint) { return checkpoint + "/manifest.json"; }

std::string sum_of(const std::string& bytes) {
  Digest d;
  d.add(bytes.data(), bytes.size());
  return d.hex();
}

// What is wrong with a checkpoint, naming the file; empty if it is good.
std::string fault_of(const std::string& checkpoint) {
  try {
    const Manifest m = read_manifest(checkpoint);
    for (size_t i = 0; i < m.files.size(); ++i) {
      const std::string file = checkpoint + '/' + m.files[i];
      if (digest_of_file(file) != m.sums[i])
        return text(file, ": damaged: its checksum is not the one it was written with");
    }
  } catch (const BadFile& e) { return e.what(); }
  return "";
}

// "; the newest good checkpoint is ...", looking at the neighbors of a damaged one.
std::string newest_good(const std::string& damaged) {
  std::vector<std::string> all = list_checkpoints(fs::path(damaged).parent_path().string());
  std::reverse(all.begin(), all.end());
  for (const std::string& path : all)
    if (checkpoint_step(path) != checkpoint_step(damaged) && fault_of(path).empty())
      return text("; the newest good checkpoint is ", path, ", continue from it with --resume ",
                  shell_word(path));
  return "; there is no other good checkpoint beside it, start a new run without --resume";
}

std::string without_trailing_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

std::string checkpoint_name(int64_t step) {
  char name[32];
  std::snprintf(name, sizeof name, "step-%08lld", static_cast<long long>(step));
  return name;
}

int64_t checkpoint_step(const std::string& path) {
  const std::string name = fs::path(without_trailing_slash(path)).filename().string();
  if (!name.starts_with("step-") || name.size() < 13) return -1;
  return number_in<int64_t>(name.substr(5)).value_or(-1);
}

std::string rank_file(int rank) {
  char name[40];
  std::snprintf(name, sizeof name, "rank-%04d.safetensors", rank);
  return name;
}

void write_manifest(const std::string& checkpoint, const Manifest& m) {
  Json j = {{"format", kFormat},
            {"version", SKEIN_VERSION},
            {"step", m.step},
            {"model", m.identity.model},
            {"layout", m.identity.layout},
            {"algorithm", m.identity.algorithm},
            {"world", m.identity.world},
            {"data", m.identity.data},
            {"seed", m.identity.seed},
            {"global_batch", m.identity.global_batch},
            {"files", Json::array()}};
  if (!m.images.train.hash.empty())
    for (const auto& [name, part] : {std::pair{"train", &m.images.train}, {"test", &m.images.test}})
      j["images"][name] = {{"count", part->images}, {"blake2b", part->hash}};
  if (!m.leftover.empty()) j["leftover"] = m.leftover;
  if (!m.shares.empty()) j["shares"] = m.shares;
  for (size_t i = 0; i < m.files.size(); ++i)
    j["files"].push_back({{"name", m.files[i]}, {"blake2b", m.sums[i]}});
  j["blake2b"] = sum_of(json_text(j));
  write_file(manifest_file(checkpoint), json_text(j, 2) + '\n');
}

Manifest read_manifest(const std::string& checkpoint) {
  const std::string path = manifest_file(checkpoint);
  Json j = parse_json<Json>(read_file(path, kMostBytes));
  const auto damaged = [&] { return BadFile(path + ": damaged: not a whole manifest of a checkpoint"); };
  if (!j.is_object() || !j.contains("blake2b")) throw damaged();
  const Json sum = j["blake2b"];
  j.erase("blake2b");
  if (sum != sum_of(json_text(j))) throw damaged();
  try {
    if (j.at("format") != kFormat)
      throw BadFile(
          text(path, ": of format ", brief(j.at("format")), ", this version reads format ", kFormat));
    Manifest m;
    m.step = whole(j, "step", 0, kMostSteps);
    if (!j.at("seed").is_number_unsigned()) throw DamagedManifest();
    m.identity = {.model = j.at("model"),
                  .layout = j.at("layout"),
                  .algorithm = j.at("algorithm"),
                  .world = int(whole(j, "world", 1, INT32_MAX)),
                  .data = j.at("data"),
                  .seed = j.at("seed").get<uint64_t>(),
                  .global_batch = whole(j, "global_batch", 0, INT64_MAX)};
    for (const Json& f : j.at("files")) add_file(m, f);
    if (m.files.size() != size_t(m.identity.world)) throw DamagedManifest();
    if (j.contains("images"))
      for (const auto& [name, part] : {std::pair{"train", &m.images.train}, {"test", &m.images.test}}) {
        const Json& said = j.at("images").at(name);
        *part = {whole(said, "count", 0, INT64_MAX), said.at("blake2b")};
      }
    m.leftover = leftover_of(j);
    if (j.contains("shares")) read_shares(m, j.at("shares"));
    return m;
  } catch (const nlohmann::json::exception&) {
  } catch (const DamagedManifest&) {}
  throw damaged();
}

std::vector<std::string> list_checkpoints(const std::string& output) {
  std::vector<std::string> found;
  for (const std::string& dir : {output + "/checkpoints", output}) {
    std::error_code error, none;
    for (fs::directory_iterator at(dir, error), end; !error && at != end; at.increment(error))
      if (checkpoint_step(at->path().string()) >= 0 && fs::exists(manifest_file(at->path().string()), none))
        found.push_back(at->path().string());
    if (!found.empty()) break;
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return checkpoint_step(a) < checkpoint_step(b); });
  return found;
}

std::string find_checkpoint(const std::string& given) {
  const std::string path = without_trailing_slash(given);
  if (!is_directory(path))
    throw BadFile(text(path,
                       ": no such directory; --resume takes the --output of an earlier run, or one of its ",
                       "checkpoints"));
  if (checkpoint_step(path) >= 0 || fs::exists(manifest_file(path))) return path;
  const std::vector<std::string> all = list_checkpoints(path);
  if (all.empty())
    throw BadFile(text(
        path,
        ": there is no run in it (no checkpoint, and no config.toml); name the --output of an earlier run, ",
        "or give --resume alone for the newest below runs/"));
  return all.back();
}

void verify_checkpoint(const std::string& checkpoint) {
  const std::string fault = fault_of(checkpoint);
  if (!fault.empty()) throw BadFile(fault + newest_good(checkpoint));
}

void check_identity(const std::string& checkpoint, const Manifest& m, const Identity& run) {
  const auto compare = [&](const char* what, const char* flag, const auto& there, const auto& here) {
    if (there != here)
      throw BadFile(text(checkpoint, ": was written with ", what, ' ', there, ", this run has ", here,
                         "; resume with ", flag, ' ', there, ", or start a new run without --resume"));
  };
  compare("the model", "--model", m.identity.model, run.model);
  compare("the algorithm", "--algorithm", m.identity.algorithm, run.algorithm);
  compare("a number of workers of", "--workers", m.identity.world, run.world);
  compare("the data", "--data", m.identity.data, run.data);
  compare("the seed", "--seed", m.identity.seed, run.seed);
  if (m.identity.layout != run.layout)
    throw BadFile(text(
        checkpoint, ": its model '", m.identity.model, "' has other parameters than this run's: another ",
        "image size, number of channels or of classes, or another version; resume with the same data ",
        "and options, or start a new run without --resume"));
  if (m.identity.global_batch != run.global_batch)
    throw BadFile(text(checkpoint, ": was written with ", m.identity.global_batch,
                       " images a step over all workers, ", "this run has ", run.global_batch,
                       "; resume with --batch-size ", m.identity.global_batch / std::max(1, m.identity.world),
                       ", or start a new run without --resume"));
}

Manifest read_sound_manifest(const std::string& checkpoint) {
  try {
    return read_manifest(checkpoint);
  } catch (const BadFile&) {
    verify_checkpoint(checkpoint);
    throw;
  }
}

Manifest load_checkpoint(const std::string& checkpoint, int rank, const Identity& run, const Walk& walk) {
  try {
    const Manifest m = read_manifest(checkpoint);
    check_identity(checkpoint, m, run);
    CHECK(rank >= 0 && size_t(rank) < m.files.size(), rank, m.files.size());
    load_state(checkpoint + '/' + m.files[size_t(rank)], m.sums[size_t(rank)], walk);
    return m;
  } catch (const BadFile&) {
    verify_checkpoint(checkpoint);  // gives a better message if the checkpoint is damaged
    throw;
  }
}

}  // namespace skein::apps
