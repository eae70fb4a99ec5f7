// Planned: what --plan predicts of a run, in the words of --planned, which the command it prints has.
#pragma once
#include <optional>
#include <string>

namespace skein::apps {

struct Config;

struct Planned {
  double images_per_second = 0;             // of all workers
  double bytes_per_step = 0;                // sent by a worker
  std::optional<double> hidden_share = {};  // of the time of transfers

  // Of "512:1083000:0.62", or of "512:1083000". Throws BadOption, which begins with `place`.
  static Planned parse(const std::string& given, const std::string& place);
  std::string words() const;  // as it is given
};

// What --planned says, if it is given.
std::optional<Planned> planned_of(const Config&);

}  // namespace skein::apps
