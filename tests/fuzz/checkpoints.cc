// Checkpoints: all who can write into a run's directory may have written them.
#include "apps/checkpoint/checkpoint.h"

#include <filesystem>

#include "apps/base/digest.h"
#include "apps/base/json.h"
#include "apps/checkpoint/manifest.h"
#include "apps/checkpoint/pool_table.h"
#include "apps/checkpoint/reshare.h"
#include "engine/words/json.h"
#include "tests/fuzz/fuzz.h"

namespace skein::fuzz {
namespace {

std::string sum_of(const std::string& bytes) {
  apps::Digest d;
  d.add(bytes.data(), bytes.size());
  return d.hex();
}

std::string with_sum(const std::string& manifest) {
  apps::Json j = parse_json<apps::Json>(manifest);
  if (!j.is_object()) return manifest;
  j.erase("blake2b");
  j["blake2b"] = sum_of(json_text(j));
  return json_text(j);
}

std::string run_of(const char* name) {
  const std::string checkpoint = scratch() + '/' + name + "/checkpoints/step-00000010";
  std::filesystem::create_directories(checkpoint);
  return checkpoint;
}
std::string below(const std::string& path) { return path.substr(scratch().size() + 1); }

// The header as a line, then the data.
std::string rank_file_of(Input& in) {
  const std::string header = in.line();
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + in.rest();
}

struct Fields {
  Tensor x = Tensor::zeros({8}), v = Tensor::zeros({2, 2}), n = Tensor::zeros({3}, kI64);
  int64_t k = 0, images = 0;
  double r = 0;
  std::string words;
  void visit(Archive& a) {
    a("x", x), a("rule.v", v), a("n", n), a("k", k), a("meters.images", images), a("r", r), a("words", words);
  }
};

}  // namespace

void manifest(Input in) {
  static const std::string checkpoint = run_of("manifest");
  static const std::string file = put(below(checkpoint) + "/rank-0000.safetensors", "abc");
  const bool mended = in.byte() & 1;
  const std::string bytes = in.rest();
  put(below(checkpoint) + "/manifest.json", mended ? with_sum(bytes) : bytes);
  may_refuse([&] {
    const apps::Manifest m = apps::read_manifest(checkpoint);
    may_refuse([&] { apps::check_identity(checkpoint, m, {}); });
    may_refuse([&] { apps::verify_checkpoint(checkpoint); });
    apps::Config c;
    apps::keep_global_batch(c, m, 3);
  });
}

void state(Input in) {
  const std::string path = put("r.safetensors", rank_file_of(in));
  may_refuse([&] {
    Fields f;
    apps::load_state(path, "", [&](Archive& a) { f.visit(a); });
  });
}

// Both workers of before have left the same file. Its manifest is another harness.
void reshared_state(Input in) {
  const std::string name = "half.safetensors", half = rank_file_of(in);
  put(name, half);
  apps::Manifest m;
  m.files = {name, name}, m.sums = {"", ""};
  may_refuse([&] {
    Fields f;
    apps::load_pooled(apps::Pool(scratch(), m), "sgp", 0, apps::Differing::kAllEqual,
                      [&](Archive& a) { f.visit(a); });
  });
}

void pool_table(Input in) {
  const std::string said = in.rest();
  may_refuse([&] {
    const std::string once = apps::to_text(apps::table_of(said));
    require(apps::to_text(apps::table_of(once)) == once, "a table reads back as another");
  });
}

}  // namespace skein::fuzz
