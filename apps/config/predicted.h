// Predicted: what --plan foretold of a run, as the run's command line carries it (docs/plan.md).
#pragma once
#include <optional>
#include <string>

namespace skein::apps {

struct Predicted {
  double images_per_second = 0;               // of all workers
  std::optional<double> hidden_share = {};    // of the time of transfers, 0..1
  std::optional<double> bytes_per_step = {};  // sent by a worker

  // Of what is given: "images/s=512,hidden=0.93,bytes/step=4.2e6", the first of them at least. Nothing of "".
  // Throws BadOption, which begins with `place`.
  static std::optional<Predicted> parse(const std::string& given, const std::string& place = "--predicted");
  std::string words() const;  // as it is given, in six digits
};

}  // namespace skein::apps
