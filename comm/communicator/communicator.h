// Communicator: tensors between ranks. One-sided pushes, takes by sender, tag and step, and collectives.
//
//   comm.push(next, kShare, step, 0.5f, x);              // sends 0.5 x; x may be written again at once
//   const Message m = comm.take(last, kShare, step, x);  // waits for what `last` pushed, laid out like x
//   comm.mean(x).wait();                                 // x <- the mean of x over all ranks
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator/coding.h"
#include "comm/communicator/pending.h"
#include "comm/mailbox.h"
#include "comm/meter.h"
#include "comm/transport.h"
#include "engine/vectors/vec.h"

namespace skein::comm {

enum class DeviceWish : uint8_t;  // device_way.h
struct DeviceOffer;

struct CommunicatorOptions {
  double deadline = 60;    // seconds that any single wait may take; kForever: as long as the peer lives
  DType wire = kF32;       // kBF16: f32 payloads travel rounded to bf16, but not sums over shared memory
  bool all_needed = true;  // a lost member ends every wait that would block; false: only waits for itself
  Secret key = {};         // the job's secret, for servers that the job opens beside the transport,
  PortRange ports = {};    // and where these may listen
};

// What one peer gets of a push.
struct Share {
  Rank to;
  float factor = 1;   // the payload is factor * x
  double weight = 1;  // the header carries this
};

// The type of a payload that is taken: as it was pushed, or as it traveled (Message::codec).
enum class Precision : uint8_t { kPushed, kWire };

// Ranks count within the communicator. One thread uses it, except that push and the handlers may run on
// others. Senders push the steps of a tag in increasing order; take() relies on that to notice a lost step.
class Communicator {
 public:
  explicit Communicator(Transport&, CommunicatorOptions = {});  // of all ranks; the transport must outlive it
  ~Communicator();

  Rank rank() const;
  int size() const;
  Rank world_rank(Rank) const;
  const CommunicatorOptions& options() const;
  // The deadline of later waits; returns the one before. Patience (patience.h) sets it for a scope.
  double set_deadline(double seconds);
  // The type in which f32 payloads travel from here on; returns the one before. Unrounded (unrounded.h) sets
  // it for a scope.
  DType set_wire(DType);
  Transport& transport() const;
  Membership& membership() const;
  // Tensors made from here are visible to peers of the same host, if the transport shares memory.
  Allocator& allocator() const;
  Meter& meter() const;  // one for this communicator, its groups and its twins

  // A communicator over these members: ranks of this one, all distinct, in the given order, this rank
  // among them. Every member calls it with the same list; other ranks need not. It shares no tags with
  // any other communicator.
  std::unique_ptr<Communicator> group(const std::vector<Rank>& members);
  // The same members and tags for another thread of this rank, such as a server's: for messages,
  // not for collectives.
  std::unique_ptr<Communicator> twin(bool all_needed = true) const;

  // ---- messages -------------------------------------------------------------------------------------------
  // Sends factor * x. The caller may write x when push returns. Tags are below kOwnTags, steps >= 0.
  void push(Rank to, Tag, int64_t step, float factor, const Tensor& x, double weight = 1);
  // To several peers; packs once per distinct factor.
  void push(const std::vector<Share>&, Tag, int64_t step, const Tensor& x);
  // A push of f32 numbers without a copy: the caller fills a wire_buffer() and does not write it after
  // push_buffer(). It has the size and device of `like`, and the type in which f32 numbers travel.
  Tensor wire_buffer(const Tensor& like) const;
  void push_buffer(Rank to, Tag, int64_t step, const Tensor& filled, double weight = 1);
  // Waits for the message of this sender, tag and step. The payload has one axis and the type that was
  // pushed; the taker may keep it, but not write it. It lies on the host, or on a device if it was pushed
  // from one and the transport carries it (DeviceMemory::carries). Throws PeerLost, Timeout, and Disagreement
  // if a later step came.
  Message take(Rank from, Tag, int64_t step);
  // The same, on the device of `like`. Throws Disagreement, on both ends, if it is not laid out like `like`.
  Message take(Rank from, Tag, int64_t step, const Tensor& like, Precision = Precision::kPushed);
  // The same, but returns nothing if the message has not come after so many seconds.
  std::optional<Message> take_within(double seconds, Rank from, Tag, int64_t step);
  // The same, but returns nothing also as soon as any rank's message of the other tag and step waits here.
  struct Other {
    Tag tag;
    int64_t step;
  };
  std::optional<Message> take_unless(Other, double seconds, Rank from, Tag, int64_t step);
  // The message if it has come. `from` may be kAnyone. Throws PeerLost, Disagreement.
  std::optional<Message> poll(Rank from, Tag, int64_t step = kAnyStep);
  // The same message with its payload on the device of `like`, which has as many elements.
  Message beside(const Tensor& like, Message) const;
  // Calls f with every message of this tag, on a thread of its own. f may push. What f throws ends
  // the next wait.
  void on(Tag, std::function<void(const Message&)> f);

  // ---- collectives: every member calls them in the same order ---------------------------------------------
  // In a world of one they return at once, and x stays on its device.

  // x <- the sum over all ranks, in rank order, so that every rank and every run gets the same bits. f32,
  // bf16, f16, i32, i64. x belongs to the operation until wait(). Several may be under way at the same time.
  [[nodiscard]] Pending all_reduce(const Tensor& x);
  // x <- the mean over all ranks: that sum, divided by their number when it has been waited for. With a
  // codec, f32 numbers travel coded, always as messages, and are rounded twice; the residual belongs to the
  // operation, as x does.
  [[nodiscard]] Pending mean(const Tensor& x, const Coding& = {});
  void broadcast(const Tensor& x, Rank root);
  // Returns what f makes of every rank's x, in rank order, on the device of x; it is not to be written. All
  // are laid out alike and travel unrounded. f is a pure function, the same at all ranks, which may be called
  // once for several of them.
  using Combination = std::function<Tensor(const std::vector<Tensor>& all)>;
  Tensor combine(const Tensor& x, const Combination& f);
  // Returns every rank's x, in rank order, in host memory, on the root; elsewhere {}. Sizes may
  // differ, types not.
  std::vector<Tensor> gather(const Tensor& x, Rank root);
  void barrier();
  // Moves messages and pending collectives along. It is cheap: call it between pieces of work.
  void progress();
  // Decides how all_reduce and broadcast of tensors on GPUs travel, here and in groups made later
  // (device_way.h). To be called once, before any of them. Returns a line for the log, empty if no rank has a
  // GPU. Throws BadOption, on all ranks, for a wish that cannot be granted.
  std::string use_devices(DeviceWish, DeviceOffer);

 private:
  struct State;  // state.h
  explicit Communicator(std::unique_ptr<State>);
  const std::unique_ptr<State> state_;
};

}  // namespace skein::comm
