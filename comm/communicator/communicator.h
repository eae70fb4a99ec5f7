// Communicator: tensors between ranks. One-sided pushes, takes by name, and the collectives algorithms name.
#pragma once
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <thread>

#include "comm/mailbox.h"
#include "comm/meter.h"
#include "comm/transport.h"
#include "engine/vectors/vec.h"

namespace skein::comm {

class Communicator;
class DeviceWay;
class Staging;
enum class DeviceWish : uint8_t;
struct DeviceOffer;

// A collective on its way. Copyable; wait() twice is harmless. Dropping it does not cancel it: the tensor it
// works on stays in use until it is done. Belongs to its communicator's thread.
class Pending {
 public:
  Pending() = default;  // of nothing: done
  void wait();          // throws PeerLost, Timeout, Disagreement
  bool done();          // makes progress, never waits
  struct Op;            // pending.h

 private:
  friend class Communicator;
  Pending(Communicator& c, std::shared_ptr<Op> op) : comm_(&c), op_(std::move(op)) {}
  bool finished();
  Communicator* comm_ = nullptr;
  std::shared_ptr<Op> op_;
};

// Several, waited for in the order they were begun.
class Pendings {
 public:
  void operator+=(Pending p) { all_.push_back(std::move(p)); }
  void wait() {
    for (Pending& p : all_) p.wait();
    all_.clear();
  }

 private:
  std::vector<Pending> all_;
};

struct CommunicatorOptions {
  double deadline = 60;    // seconds any single wait may take; kForever: as long as the peer lives
  DType wire = kF32;       // kBF16: f32 payloads travel rounded to bf16 (not where memory is shared)
  bool all_needed = true;  // a lost member ends every wait that would block, not only waits for it
  std::string key = {};    // the job's, from which keys of what goes beside the transport are derived
};

// What one peer gets of a push.
struct Share {
  Rank to;
  float factor = 1;   // it gets factor * x
  double weight = 1;  // and this in the header
};

// Ranks count within the communicator. One thread uses it, except that push, answer and handlers may run on
// others. Senders push each tag's steps in increasing order; take() relies on it to notice a lost step.
class Communicator {
 public:
  explicit Communicator(Transport&, CommunicatorOptions = {});  // all ranks; the transport must outlive it
  ~Communicator();
  Communicator(const Communicator&) = delete;

  Rank rank() const { return rank_; }
  int size() const { return int(members_.size()); }
  const CommunicatorOptions& options() const { return options_; }
  Membership& membership();
  Transport& transport() { return transport_; }
  Rank world_rank(Rank r) const { return members_.at(size_t(r)); }
  double now() const { return transport_.now(); }
  // Shared with the groups and twins made from this one.
  Meter& meter() { return *meter_; }
  Traffic traffic() const { return meter_->traffic(); }

  // A communicator over these members (ranks of this one, all distinct, in the given order, me among them).
  // Called by each member with the same list; others need not know. Shares no tags with any other.
  std::unique_ptr<Communicator> group(const std::vector<Rank>& members);
  // The same members and tags for another thread of this rank, say a server's: for messages only, not for
  // collectives. Without all_needed only the loss of whom it waits for ends a wait.
  std::unique_ptr<Communicator> twin() const { return twin(options_.all_needed); }
  std::unique_ptr<Communicator> twin(bool all_needed) const;
  // Tells these members that ranks of the world are given up: for each they are lost from then on, and whoever is
  // named itself ends with GivenUp, should it ever hear it.
  void give_up(const std::vector<Rank>& of_the_world, const std::vector<Rank>& members);
  // Ends the waits of these members, now and later: they throw Disagreement(why). I may be one of them.
  void refuse(const std::string& why, const std::vector<Rank>& members);
  // Another deadline for what is waited for from now on; returns the one before.
  double set_deadline(double seconds);

  // ---- messages -------------------------------------------------------------------------------------------
  // Sends factor * x. x is yours again when push returns. Tags below kOwnTags, steps >= 0.
  void push(Rank to, Tag, int64_t step, float factor, const Tensor& x, double weight = 1);
  // To several peers; packs once per distinct factor.
  void push(const std::vector<Share>&, Tag, int64_t step, const Tensor& x);
  // The same without a copy: memory for as many f32 numbers as `like` has, where that is and of the type they travel
  // in; filled by the caller, handed over and not written again.
  Tensor blank(const Tensor& like) const;
  void hand_over(Rank to, Tag, int64_t step, const Tensor& filled, double weight = 1);
  // Waits for the message of this sender, tag and step. The payload has the type that was pushed, one axis,
  // and is the taker's to keep, not to write. It lies on the host; or, if it was pushed from a device, perhaps
  // on one (DeviceMemory::carries): beside() puts it where it is wanted. Throws PeerLost, Timeout, Disagreement
  // (a later step came instead).
  Message take(Rank from, Tag, int64_t step);
  // Likewise, and the payload must be laid out like `like`, else Disagreement on both ends; it lies on the
  // device of `like`.
  Message take(Rank from, Tag, int64_t step, const Tensor& like);
  // Likewise, but in the type it travelled in, which `codec` says: for those who can read that.
  Message take_narrow(Rank from, Tag, int64_t step, const Tensor& like);
  // Likewise, but waits so many seconds at most; nothing if it has not come. Throws PeerLost, Timeout,
  // Disagreement.
  std::optional<Message> take_within(double seconds, Rank from, Tag, int64_t step);
  // The payload on the device of `like`, which it is laid out like; copied there where it is not. For what
  // came by other ways than the take() above.
  Message beside(const Tensor& like, Message);
  std::optional<Message> poll(Rank from, Tag, int64_t step = kAnyStep);
  std::optional<Message> poll_any(Tag);
  Message ask(Rank, Tag, int64_t step, const Tensor& x, double weight = 1);  // push, then wait for the answer
  void answer(const Message&, const Tensor& x, double weight = 1);
  // Calls f with every message of this tag, on a thread of this communicator's own. f may push and answer.
  // What f throws is thrown by the next wait.
  void on(Tag, std::function<void(const Message&)> f);

  // ---- collectives: every member calls them in the same order ---------------------------------------------
  // In a world of one they return at once, and x stays on its device.

  // x <- sum over ranks, in rank order, so every rank and every run gets the same bits. f32, bf16, f16, i32, i64.
  // x belongs to the operation until wait(). Pendings may overlap; they make progress in progress() and in
  // waits.
  [[nodiscard]] Pending all_reduce(const Tensor& x);
  // x <- mean over ranks: that sum, divided by their number where it has been waited for.
  [[nodiscard]] Pending mean(const Tensor& x);
  void broadcast(const Tensor& x, Rank root);
  // Root gets every rank's x, in rank order, in host memory; the others get {}. Sizes may differ, types not.
  std::vector<Tensor> gather(const Tensor& x, Rank root);
  void barrier();
  // x <- (x + x of peer) / 2 on both, who must call it with each other; the same bits on both.
  void average_with(Rank peer, const Tensor& x, Tag, int64_t step);

  // Collective, once, before tensors on GPUs are given to collectives: device_way.h. From then on all_reduce
  // and broadcast of tensors on GPUs go as it was decided, here and in groups made later. Returns a line for
  // the log, empty if nobody has a GPU. Throws BadOption, on all, for a wish that cannot be.
  std::string use_devices(DeviceWish, DeviceOffer);

  // Moves messages and pending collectives along; cheap; call it between pieces of work.
  void progress();

  // ---- shared memory --------------------------------------------------------------------------------------
  // Tensors made from here can be seen by peers of the same host; elsewhere it is plain memory.
  Allocator& allocator() { return transport_.memory().allocator(); }
  // Collective. Each member's own x as this rank can see it in shared memory; empty tensors where it cannot.
  // The caller orders reads and writes by messages or barriers.
  std::vector<Tensor> windows(const Tensor& x);

 private:
  friend class Pending;
  friend class Reduction;
  Communicator(Transport&, CommunicatorOptions, std::vector<Rank> members, uint32_t id,
               std::shared_ptr<Meter>);
  Key key(Rank from, Tag, int64_t step) const;
  Header header(Tag, int64_t step, const Tensor& x, DType wire, uint32_t layout) const;
  void send_packed(const std::vector<Share>&, Tag, int64_t step, const Tensor& x, uint32_t layout,
                   bool must_pack);
  void send_same(const std::vector<Share>&, const Header&, const Tensor& source, bool as_it_is);
  void send_from_host(const std::vector<Share>&, Header, const Tensor& source, bool as_it_is);
  struct Packed;
  Packed packed_for(const Header&, const Tensor& source, float factor, bool as_it_is);
  void send_one(const Share&, Header, const Tensor& payload);
  std::optional<Message> poll(const Key&, uint32_t layout);  // layout 0: any
  Message wait_for(const Key&, uint32_t layout, bool widen = true);
  std::optional<Message> wait_until(Clock::time_point, const Key&, uint32_t layout, bool widen = true);
  // One nap, until then at most; throws what makes waiting pointless.
  void wait_once(const Key&, Clock::time_point began, Clock::time_point until = Clock::time_point::max());
  void check(const Key&);
  void require_members();
  [[noreturn]] void disagree(Rank world, const std::string& why);
  void tell(const std::vector<Rank>& members, const Message&, double patience);
  Message unpack(Message) const;
  Pending begin(std::shared_ptr<Pending::Op>, double began);
  std::shared_ptr<Pending::Op> device_reduction(const Tensor& x);  // null: it goes by way of the host
  bool device_broadcast(const Tensor& x, Rank root);               // likewise false
  void wait_for_device(Clock::time_point began);
  bool advance(Pending::Op&);                            // true: it is done
  int64_t next_sequence() { return sequence_++ << 24; }  // steps of one collective: 16 M messages a peer

  struct Handlers;
  class Blocked;
  Transport& transport_;
  CommunicatorOptions options_;
  std::vector<Rank> members_;  // world ranks
  Rank rank_ = 0;
  uint32_t id_ = 0;
  int64_t sequence_ = 0;        // of collectives
  bool shares_memory_ = false;  // all members in one domain
  std::list<std::shared_ptr<Pending::Op>> ops_;
  std::map<std::vector<Rank>, int> groups_;
  std::unique_ptr<Handlers> handlers_;
  const std::shared_ptr<Meter> meter_;
  std::shared_ptr<DeviceWay> devices_;  // null: by way of the host
  const std::unique_ptr<Staging> staging_;
};

// While it lives, waits of this communicator have another deadline.
class Patience {
 public:
  explicit Patience(Communicator& c, double seconds = kForever)
      : comm_(c), before_(c.set_deadline(seconds)) {}
  ~Patience() { comm_.set_deadline(before_); }
  Patience(const Patience&) = delete;

 private:
  Communicator& comm_;
  const double before_;
};

}  // namespace skein::comm
