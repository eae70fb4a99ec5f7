// Two kinds of messages: a worker has come, and another one waits for its gossip.
#include "optim/gossip/calls.h"

#include <algorithm>

namespace skein::optim {
namespace {

constexpr comm::Tag kCome = 4, kWanted = 5;

}  // namespace

void Calls::come(comm::Communicator& c, const std::set<comm::Rank>& out_peers) {
  for (const comm::Rank r : out_peers) c.push(r, kCome, meetings_, 1, Tensor::zeros({1}));
}

void Calls::ask(comm::Communicator& c, comm::Rank peer, int64_t q) {
  if (!has_come(c, peer)) return;
  if (const auto asked = asked_.find(peer); asked != asked_.end() && asked->second >= q) return;
  c.push(peer, kWanted, q, 1, Tensor::zeros({1}));
  asked_[peer] = q;
}

// It hears all that have come since, or one of them would end every wait of take().
bool Calls::has_come(comm::Communicator& c, comm::Rank r) {
  while (const auto m = c.poll(comm::kAnyone, kCome, meetings_)) here_.insert(m->from);
  return here_.count(r) > 0;
}

std::optional<comm::Message> Calls::take(comm::Communicator& c, double seconds, comm::Rank from,
                                         comm::Tag tag, int64_t q) {
  return c.take_unless({kCome, meetings_}, seconds, from, tag, q);
}

int64_t Calls::wanted(comm::Communicator& c) {
  while (const auto m = c.poll(comm::kAnyone, kWanted)) wanted_ = std::max(wanted_, m->step);
  return wanted_;
}

void Calls::met(comm::Communicator& c) {
  while (c.poll(comm::kAnyone, kCome)) continue;  // from those about which this worker did not ask
  here_.clear();
  ++meetings_;
}

}  // namespace skein::optim
