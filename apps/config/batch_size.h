// BatchSize: the value of --batch-size: one number for every worker, one for each of them, or auto.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace skein::apps {

struct BatchSize {
  int64_t most = 64;                 // images that the worker with the largest share has in a step
  std::vector<int64_t> shares = {};  // of the workers in the order of ranks; empty: as even as can be
  bool automatic = false;            // the shares follow from the workers' measured speeds

  BatchSize(int64_t each) : most(each) {}
  explicit BatchSize(std::vector<int64_t> shares);
  operator int64_t() const { return most; }

  // Of what is given: "64", "64,64,32" or "auto". Throws BadOption, which begins with `place`.
  static BatchSize parse(const std::string& given, const std::string& place);
  std::string words() const;  // as it is given
  bool is_number() const { return !automatic && shares.empty(); }
};

}  // namespace skein::apps
