// Receiver: takes messages, moves pending collectives along, and ends waits that would never end.
#pragma once
#include <list>

#include "comm/communicator/op.h"

namespace skein::comm {

// Belongs to the communicator's thread, except unpack().
class Receiver {
 public:
  explicit Receiver(Group& g) : g_(g) {}
  // The message of this key as it travelled, if it has come. A `layout` other than 0 is required of it: else
  // Disagreement, on both ends.
  std::optional<Message> poll(const Key&, uint32_t layout = 0);
  Message wait(const Key&, uint32_t layout = 0, Precision = Precision::kPushed);
  std::optional<Message> wait_until(Clock::time_point, const Key&, uint32_t layout = 0,
                                    Precision = Precision::kPushed);
  // The message with its payload in the type that was pushed and its sender's rank in this group.
  Message unpack(Message) const;
  // Throws what keeps a message of this key from ever coming.
  void check(const Key&) const;

  Pending begin(std::shared_ptr<Pending::Op>, double began);
  void progress();
  void wait(Pending::Op&);
  // One short nap of a wait that began then, for a collective between devices.
  void nap_for_device(Clock::time_point began);

 private:
  class Blocked;
  // One nap, until then at most; throws what makes waiting pointless.
  void nap(const Key&, Clock::time_point began, Clock::time_point until = Clock::time_point::max());
  bool advance(Pending::Op&);  // true: it is done
  [[noreturn]] void disagree(Rank world, const std::string& why);

  Group& g_;
  std::list<std::shared_ptr<Pending::Op>> ops_;
};

}  // namespace skein::comm
