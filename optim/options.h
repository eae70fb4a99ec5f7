// Options: the flags that an algorithm or an optimizer reads, and readers for flags that several share.
#pragma once
#include <limits>
#include <map>
#include <string>

#include "engine/vectors/codec.h"

namespace skein::optim {

using Values = std::map<std::string, std::string>;  // of options, as text

// Flags by name, without dashes. `otherwise` is the default. It stands nowhere else: values_in_force()
// reports it to --print and --help.
class Options {
 public:
  void set(const std::string& key, std::string value) { values_[key] = std::move(value); }
  // Both throw BadOption unless it is a number from `low` to `high`, inclusive.
  double number(const std::string& key, double otherwise, double low = -kNoLimit,
                double high = kNoLimit) const;
  int64_t integer(const std::string& key, int64_t otherwise, int64_t low = INT64_MIN) const;
  bool flag(const std::string& key, bool otherwise) const;
  std::string word(const std::string& key, std::string otherwise) const;
  // A default that is known only after the option was read as empty.
  void chosen(const std::string& key, const std::string& value) const;
  // From now on every option that is read is written to `in_force` with its value. It must outlive this.
  void report_to(Values& in_force) { in_force_ = &in_force; }

 private:
  static constexpr double kNoLimit = std::numeric_limits<double>::infinity();
  const std::string* find(const std::string& key) const;
  Values values_;
  Values* in_force_ = nullptr;
};

// --servers: whether the algorithm's server is a process of its own. BadOption if neither
// inline nor dedicated.
bool has_dedicated_server(const Options&);
// For algorithms that prescribe the momentum: throws BadOption if another optimizer than SGD is given. `why`
// is the reason.
void needs_plain_sgd(const Options&, const std::string& algorithm, const std::string& why);
// Throws BadOption if parameters have different rates (--layer-decay, --head-rate, --norm-rate).
void needs_one_rate(const Options&, const std::string& algorithm);
// --wire: the codec; none for fp32 and bf16, which the communicator handles. Throws BadOption
// for another word.
Codec codec_of(const Options&);
// --bn-policy: running statistics are left alone, averaged as x is, or estimated again by the trainer.
enum class BufferPolicy : uint8_t { kLocal, kMix, kRecompute };
BufferPolicy buffer_policy(const Options&);

}  // namespace skein::optim
