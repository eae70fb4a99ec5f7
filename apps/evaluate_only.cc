// Opens the model and the data, and prints the scores.
#include "apps/evaluate_only.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/base/printable.h"
#include "apps/evaluation/evaluate.h"
#include "apps/launch/interrupt.h"
#include "apps/model/saved_model.h"
#include "comm/communicator/world_of_one.h"
#include "engine/words/json.h"

namespace skein::apps {
namespace {

void print_json(const Config& c, const Score& s, const Tally& t, const Setup& setup) {
  Json j = {{"model", c.model}, {"weights", c.weights}, {"data", c.data}, {"top1", s.top1}};
  if (s.top5) j["top5"] = *s.top5;
  j["loss"] = s.loss, j["images"] = s.images;
  j.update(to_json(t, setup.data.test->classes()));
  if (Json odd = setup.odd_files->to_json(); !odd.empty()) j["odd_files"] = std::move(odd);
  fmt::print("{}\n", json_text(j));
}

}  // namespace

bool evaluate_only(Config c, bool json) {
  c.workers = 1;
  const TensorFile file = read_safetensors(c.weights);
  const ModelInfo info = info_of(c.weights, file);
  take_over(c, c.weights, info);
  Setup setup = open_setup(c);
  const std::vector<std::string>& classes = setup.data.train->classes();
  import_model(c.weights, file, *setup.model, classes);
  const auto trained = read_preparation(c.weights, info.more);
  if (trained && trained->image.channels == setup.image.channels)
    setup.mean = trained->mean, setup.deviation = trained->deviation;
  nn::flatten(*setup.model, allocator(setup.device));
  std::vector<Verdict> verdicts;
  comm::WorldOfOne alone;
  const auto score = evaluate(setup, alone, *setup.model, c.batch_size, interrupted, &verdicts);
  if (!score) return false;
  const Tally by_class = tally(verdicts, classes.size());
  if (json) {
    print_json(c, *score, by_class, setup);
    return true;
  }
  fmt::print("{} of {} on {}\n{}\n", c.model, printable(c.weights), printable(c.data), describe(*score));
  if (const std::string odd = setup.odd_files->to_line(); !odd.empty()) fmt::print("{}\n", odd);
  fmt::print("\n{}", class_table(by_class, classes));
  return true;
}

}  // namespace skein::apps
