// OddFiles: which image files of a run were converted or left out, over all workers.
#pragma once
#include <string>
#include <vector>

#include "apps/base/json.h"
#include "comm/communicator/communicator.h"
#include "data/odd.h"
#include "data/source.h"

namespace skein::apps {

struct OddFiles {
  data::Census train, test;

  // Gives every worker the files of all workers. Collective.
  void unite(comm::Communicator&);
  void add(const OddFiles&);
  int64_t left_out() const { return train.left_out() + test.left_out(); }
  std::string pack() const;
  static OddFiles unpack(const std::string&);  // BadFile if it is not what pack() makes

  // The first `most` of the files left out, in the order of the sources.
  std::vector<std::string> names_left_out(const data::Split&, size_t most) const;
  // {"train": {"converted": {"files": 3, "cmyk": 1, ...}, "left_out": {...}}, "test":
  // ...}: zeros are omitted.
  Json to_json() const;
  // "unusual files: 3 converted (1 cmyk, 2 gray), 1 skipped (1 empty)"; "" if there are none.
  std::string to_line() const;
};

}  // namespace skein::apps
