// A worker begins an epoch when it knows that all members are connected, since one that is not could never
// reach those that have begun. A member that is connected, but does not know whether the others are, keeps
// both connections: the epoch may have begun without it, or never will.
#include "apps/launch/elastic/crossing.h"

namespace skein::apps {
namespace {

// Null: the members did not come together, or have been replaced by others meanwhile.
std::unique_ptr<Connection> attempt(Connection& now, const comm::View& v, const Crossing& c) {
  comm::Council& council = *now.council;
  std::unique_ptr<Connection> next;
  try {
    if (council.has_abandoned(v)) return nullptr;
    next = c.connect(v);
    council.connected(*next->transport, v);
    next->communicator->barrier();
    if (std::unique_ptr<comm::Succession> begun = council.release(v)) {
      c.begin(*next, std::move(begun));
      return next;
    }
  } catch (const Error&) {}
  if (next) now.attempts.push_back(std::move(next));
  return nullptr;
}

}  // namespace

std::unique_ptr<Connection> cross(Connection& now, const Crossing& c) {
  comm::Council& council = *now.council;
  comm::View v = council.next(c.patience);
  if (now.door) now.door->close();  // who calls there is for the meeting, until the next council stands
  for (const auto deadline = comm::after(c.patience); comm::Clock::now() <= deadline;) {
    if (!council.was_connected(v))
      if (std::unique_ptr<Connection> next = attempt(now, v, c)) return next;
    v = council.after(v, c.regrouping).value_or(v);
  }
  throw comm::Timeout(
      -1, text("the ", v.members.size(), " workers that are left could not connect with each other within ",
               c.patience, " s"));
}

}  // namespace skein::apps
