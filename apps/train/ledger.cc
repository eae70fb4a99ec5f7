// Every worker tells all others, in messages of their own. Their weight is the count, and their step is
// always the same: so those that have come are one queue a sender, and a worker that is behind takes each in
// no time, however many wait.
#include "apps/train/ledger.h"

#include <algorithm>

namespace skein::apps {
namespace {

constexpr comm::Tag kTaken = comm::kOwnTags - 3;

}  // namespace

bool Ledger::begin_step() {
  comm::Communicator& comm = run_.comm();
  const bool told = sent_ >= 0 && sent() > sent_ && run_.k > 0;
  const bool counts = comm.meter().turn(false);
  if (told)
    for (int r = 0; r < comm.size(); ++r)
      if (r != comm.rank()) comm.push(r, kTaken, 0, 1, Tensor::zeros({1}), double(run_.k - 1));
  comm.meter().turn(counts);
  hear();
  sent_ = sent();
  return told;
}

void Ledger::hear() try {
  taken_.resize(size_t(run_.comm().size()), run_.k);  // all begin at one step
  while (const auto m = run_.comm().poll(comm::kAnyone, kTaken))
    taken_[size_t(m->from)] = std::max(taken_[size_t(m->from)], int64_t(m->weight));
} catch (const comm::EpochEnds&) {  // what has come by now is heard
} catch (const comm::PeerLost&) {}

std::vector<int64_t> Ledger::taken() {
  hear();
  taken_[size_t(run_.comm().rank())] = run_.k;
  return taken_;
}

}  // namespace skein::apps
