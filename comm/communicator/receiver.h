// Receiver: takes messages, moves pending collectives along, and ends waits that would never end.
#pragma once
#include <list>

#include "comm/communicator/op.h"

namespace skein::comm {

// What a message has to be like. A hash alone could be true of a message that is shorter or longer.
struct Expected {
  uint32_t layout = 0;    // 0: anything is right
  int64_t elements = -1;  // -1: any number of them
  DType dtype = kU8;
  Expected() = default;
  Expected(uint32_t layout, int64_t elements, DType t) : layout(layout), elements(elements), dtype(t) {}
  bool is(const Message&) const;
};

// Belongs to the communicator's thread, except unpack().
class Receiver {
 public:
  explicit Receiver(Group& g) : g_(g) {}
  // The message of this key as it traveled, if it has come. One that is not as expected is a Disagreement,
  // here and at the sender's end.
  std::optional<Message> poll(const Key&, const Expected& = {});
  Message wait(const Key&, const Expected& = {}, Precision = Precision::kPushed);
  std::optional<Message> wait_until(Clock::time_point, const Key&, const Expected& = {},
                                    Precision = Precision::kPushed, const Key* other = nullptr);
  // The same, but nothing also when a message of the other key waits here.
  std::optional<Message> wait_unless(const Key& other, Clock::time_point, const Key&);
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
