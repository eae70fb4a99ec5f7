// Work that either succeeds on all workers or fails on all. All calls are collective.
#pragma once
#include <functional>
#include <string>

#include "comm/communicator/words.h"

namespace skein::apps {

// An error that all workers throw, so that a worker that ends by it is not missed by the others.
struct OfAll {
  virtual ~OfAll() = default;
};
template <class E>
struct Agreed final : E, OfAll {
  using E::E;
};
// Whether all workers throw this error.
inline bool is_of_all(const std::exception& e, const comm::Communicator& comm) {
  return comm.size() == 1 || dynamic_cast<const OfAll*>(&e);
}

// Runs f on every worker. If it throws an Error on any, every worker throws what the lowest such worker threw
// (Agreed, and of the same kind: BadOption, BadFile or Error), so that one fault is one message.
void together(comm::Communicator&, const std::function<void()>& f);

// The text of the lowest rank whose text is not empty, on every rank.
std::string first_said(comm::Communicator&, const std::string& mine);
// The text of rank 0, on every rank.
inline std::string from_rank_zero(comm::Communicator& comm, const std::string& mine) {
  return comm::broadcast_text(comm, mine, 0);
}

}  // namespace skein::apps
