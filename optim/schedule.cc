// The schedules' formulas, and their names on the command line.
#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <sstream>

#include "engine/words/find_row.h"
#include "engine/words/number.h"
#include "engine/words/split.h"

namespace skein::optim {
namespace {

struct Kind {
  const char* name;
  Schedule::Kind kind;
  size_t most_parts;
};
constexpr Kind kKinds[] = {{"constant", Schedule::kConstant, 1},
                           {"cosine", Schedule::kCosine, 1},
                           {"poly", Schedule::kPoly, 2},
                           {"step", Schedule::kStep, 3}};
constexpr const char* kForms = "constant, cosine, poly[:POWER], step[:EPOCH,EPOCH,...[:GAMMA]]";

[[noreturn]] void refuse(const std::string& given, const std::string& why) {
  throw BadOption(text("--lr-schedule ", given, ": ", why, "; allowed are ", kForms));
}

double to_number(const std::string& given, const std::string& part) {
  const double v = number_in<double>(part).value_or(NAN);
  if (!std::isfinite(v)) refuse(given, text("'", part, "' is not a number"));
  return v;
}

// Goyal et al. drop the rate at epochs 30, 60 and 80 of 90; other lengths keep the proportions.
std::vector<double> usual_milestones(double epochs) {
  return {epochs * 30 / 90, epochs * 60 / 90, epochs * 80 / 90};
}

void parse_steps(Schedule& s, const std::string& text, const std::vector<std::string>& parts,
                 double per_epoch, double epochs) {
  std::vector<double> at = usual_milestones(epochs);
  if (parts.size() > 1 && !parts[1].empty()) {
    at.clear();
    for (const std::string& e : split(parts[1], ',')) at.push_back(to_number(text, e));
  }
  if (parts.size() > 2) s.gamma = to_number(text, parts[2]);
  if (!(s.gamma > 0 && s.gamma <= 1)) refuse(text, "GAMMA must be above 0 and at most 1");
  constexpr double kMostSteps = 0x1p52;
  if (!std::is_sorted(at.begin(), at.end()) || at.front() < 0 || at.back() * per_epoch > kMostSteps)
    refuse(text, "epochs must ascend from 0");
  for (double e : at) s.milestones.push_back(std::llround(e * per_epoch));
}

}  // namespace

// Warm-up: a straight line through (-1, from) and (warmup, rate). Step 0 already moves, and step `warmup`,
// where the curve begins with t = 0, continues the line without a jump or a repeated value.
double Schedule::at(int64_t k) const {
  CHECK(k >= 0 && warmup >= 0, k, warmup);
  if (k < warmup) return warmup_from + (rate - warmup_from) * (double(k + 1) / double(warmup + 1));
  const double t = std::min(1.0, double(k - warmup) / double(std::max<int64_t>(1, total - warmup)));
  switch (kind) {
    case kConstant:
      return rate;
    case kStep: {
      const auto passed = std::upper_bound(milestones.begin(), milestones.end(), k) - milestones.begin();
      return rate * std::pow(gamma, double(passed));
    }
    case kCosine:
      return rate * 0.5 * (1 + std::cos(std::numbers::pi * t));
    case kPoly:
      return rate * std::pow(1 - t, power);
  }
  CHECK(false, "no such schedule", int(kind));
  return 0;
}

Schedule parse_schedule(const std::string& given, double rate, int64_t steps_per_epoch, double epochs,
                        double warmup_epochs) {
  const std::vector<std::string> parts = split(given, ':');
  Schedule s;
  s.rate = rate;
  s.total = std::max<int64_t>(1, std::llround(epochs * double(steps_per_epoch)));
  s.warmup = std::llround(warmup_epochs * double(steps_per_epoch));
  if (!(rate >= 0) || !std::isfinite(rate))
    throw BadOption(text("--lr ", rate, ": must be a number not below 0"));
  if (warmup_epochs < 0 || s.warmup > s.total)
    throw BadOption(
        text("--warmup-epochs ", warmup_epochs, ": allowed are 0 to ", epochs, ", the length of the run"));
  const Kind* kind = find_row(kKinds, parts[0]);
  if (!kind) refuse(given, "there is no such schedule" + did_you_mean(parts[0], names_of(kKinds)));
  s.kind = kind->kind;
  if (s.kind == Schedule::kPoly && parts.size() > 1) s.power = to_number(given, parts[1]);
  if (!(s.power > 0)) refuse(given, "POWER must be above 0");
  if (s.kind == Schedule::kStep) parse_steps(s, given, parts, double(steps_per_epoch), epochs);
  if (parts.size() > kind->most_parts) refuse(given, "too many parts");
  return s;
}

double scale_rate(double rate, int64_t global_batch, int64_t reference_batch, double growth) {
  CHECK(global_batch > 0 && reference_batch > 0, global_batch, reference_batch);
  if (growth == 1) return rate * double(global_batch) / double(reference_batch);
  return rate * std::pow(double(global_batch) / double(reference_batch), growth);
}

std::string scaled_rate_in_words(double rate, int64_t global_batch, int64_t reference_batch, double growth) {
  const auto [open, close] = growth == 1     ? std::pair("", "")
                             : growth == 0.5 ? std::pair("sqrt(", ")")
                                             : std::pair("(", ")^");
  std::ostringstream words;
  words.precision(4);
  words << scale_rate(rate, global_batch, reference_batch, growth) << " = " << rate << " x " << open
        << global_batch << '/' << reference_batch << close;
  if (growth != 1 && growth != 0.5) words << growth;
  return words.str();
}

}  // namespace skein::optim
