// TwoLevelSum: sums inside the nodes, between their heads, and down again.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator/communicator.h"

namespace skein::optim {

// What a node is: there are none, or it is the ranks of one host, which see each other's memory, or so
// many consecutive ranks.
struct Nodes {
  enum Kind : uint8_t { kNone, kHost, kRanks } kind = kNone;
  int64_t ranks = 0;
};
Nodes parse_hierarchy(const std::string&);  // none, host, or a number; BadOption otherwise

// Sums of several tensors under way at once. Inside a node ranks are summed in their order, then
// nodes in theirs, so every rank and every run gets the same bits; with one node, or nodes of one
// rank, they are all_reduce()'s.
class TwoLevelSum {
 public:
  TwoLevelSum(comm::Communicator&, const Nodes&);  // collective
  void begin(const Tensor& x);  // x <- sum over all ranks of x; x belongs to the sum until wait()
  void wait();                  // for all of them; throws as Pending::wait does

 private:
  struct Sum {
    Tensor x;
    comm::Pending level[3];
  };
  void advance(bool wait);
  void enter(int level, Sum&);
  std::unique_ptr<comm::Communicator> up_, across_, down_;  // of this rank alone if it has no part in them
  bool head_ = true;
  std::vector<Sum> sums_;
  size_t done_[3] = {};  // how many sums of each level are done, which is in the order they were begun
};

}  // namespace skein::optim
