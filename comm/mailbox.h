// Mailbox: where a rank's messages wait until they are taken, and who waits for them.
#pragma once
#include "comm/assemblies.h"
#include "comm/refusals.h"
#include "comm/threads.h"

namespace skein::comm {

// Transports put, communicators take. It is bounded: a sender waits for room() before it
// sends more. Thread-safe.
// Large class: one wait looks at messages, letters and all that ends it, so they are under one lock.
class Mailbox {
 public:
  // Holds up to `bound` bytes of each sender; one message always fits.
  Mailbox(Rank owner, int size, int64_t bound = int64_t(1) << 29);
  Rank owner() const { return owner_; }
  Membership& membership() { return membership_; }
  Refusals& refusals() { return refusals_; }  // of all that brings messages to this rank

  // ---- for transports -------------------------------------------------------------------------------------
  // Takes in a whole message. A message of another epoch, or one that contradicts itself, is refused: put()
  // returns the reason, which is to be sent to the sender as a refusal, and later waits here throw it as
  // Disagreement. A message that does not even begin like one of ours is counted as a stranger's and dropped,
  // and "" is returned.
  std::string put(Message);
  // Where the bytes of this piece are to be written, in memory of the allocator. An empty tensor refuses the
  // piece; put() then says why.
  Tensor landing(const Header&, Allocator& from);
  // To be called when the bytes of landing(header) are written. With the last piece the message can be taken.
  void landed(const Header&, const Tensor& landing);
  bool room(Rank from, int64_t bytes) const;
  bool wait_room(Rank from, int64_t bytes, Clock::time_point until);  // false: there still is none
  // As Membership::lose(); wakes all waits.
  void lose(Rank, const std::string& why, bool ended = false, std::optional<double> silent = {});
  void leave(Rank);
  void fail(Rank);
  void poison(const std::string& why);  // every later wait throws Error(why)
  // A change of membership has begun: every later wait throws EpochEnds(why). Empty: it goes on after all.
  void end_epoch(const std::string& why);
  bool epoch_ends() const;
  // A message that makes the waits of another rank throw Disagreement(why).
  Message refusal(const std::string& why) const;

  // ---- for takers -----------------------------------------------------------------------------------------
  // The oldest message that matches, if there is one.
  std::optional<Message> poll(const Key&);
  // Returns when a message matches, something goes wrong, wake() is called, or at `until`.
  void wait(const Key&, Clock::time_point until);
  void wake();
  // While it lives, a message of this key ends all waits here, whatever they wait for.
  class Heed {
   public:
    Heed(Mailbox&, const Key&);
    Heed(const Heed&) = delete;
    ~Heed();

   private:
    Mailbox& box_;
    const std::list<Key>::iterator mine_;
  };
  bool has(const Key&);  // whether a message that matches waits here
  // Throws if a message of this key can never come: after poison() or a refusal, when another rank has given
  // this one up, or when the sender is lost or gone.
  void check(const Key&) const;
  // The smallest step after `key.step` that waits under the same communicator, sender and tag.
  std::optional<int64_t> later_step(const Key&) const;
  // Lists, for the message of a Timeout, what waits here from a sender.
  std::string holds(uint32_t communicator, Rank from) const;
  int64_t arrivals() const { return parcels_.arrivals(); }
  // The letters by which members agree about the next epoch (Kind::kLetter), in the order of their arrival.
  std::vector<Message> take_letters();
  // Returns when a letter is there, a rank is lost or has left, wake() is called, or at `until`.
  void wait_for_letters(Clock::time_point until);

 private:
  struct Waiter {
    const Key& key;
    Condition woken;
    bool wake = false;
  };

  void deliver(Message);
  void wake_all();
  void lose_named(const Message&, const std::string& why);
  std::string refuse(const std::string& why);

  const Rank owner_;
  Membership membership_;
  mutable Mutex mutex_;
  Parcels parcels_;
  Assemblies assemblies_;
  std::list<Waiter*> waiters_;
  std::list<Key> heeded_;
  Condition room_, news_;  // news_: for the thread that waits for letters
  std::string refused_, poisoned_, given_up_, epoch_ends_;
  std::vector<Message> letters_;
  int64_t wakings_ = 0;
  Refusals refusals_;
};

}  // namespace skein::comm
