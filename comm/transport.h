// The waist: Header, Message, Endpoint, Transport. What lies above knows nothing of UCX, what lies below
// nothing of SGD.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/members.h"
#include "comm/ports.h"
#include "comm/secret.h"
#include "comm/silence.h"
#include "engine/tensor.h"

namespace skein::comm {

using Tag = uint32_t;
inline constexpr Tag kOwnTags = 0xF0000000;  // tags from here on belong to the communicator itself
inline constexpr int64_t kAnyStep = -1;
// Tags with this bit are of messages that belong to rounds, and their step is the round. Where such messages
// share a cable, those of an older round may go first: whoever waits for one waits for nothing else.
inline constexpr Tag kRounds = 0x01000000;

enum class Kind : uint16_t { kData = 1, kRefusal = 2, kGoodbye = 3, kGivenUp = 4, kLetter = 5 };
inline constexpr int64_t kFailed = 1;  // step of the goodbye of a rank that an error has ended

// What precedes every payload on the wire, little endian: docs/wire_format.md.
// Large class: the fields of the wire format.
struct Header {
  static constexpr uint32_t kMagic = 0x4E454B53;  // "SKEN"
  static constexpr uint16_t kVersion = 1;
  uint32_t magic = kMagic;
  uint16_t version = kVersion;
  Kind kind = Kind::kData;
  uint32_t communicator = 0;
  uint32_t epoch = 0;  // of the membership; messages of different epochs are never mixed
  Rank from = 0;       // rank in the world
  Tag tag = 0;
  int64_t step = 0;
  uint32_t piece = 0, pieces = 1;
  int64_t bytes = 0;       // of the whole payload, all pieces together
  uint8_t codec = 0;       // DType on the wire
  uint8_t dtype = 0;       // DType of what was pushed
  uint16_t on_device = 0;  // 1: the payload was sent from a device's memory
  uint32_t layout = 0;     // see layout_of()
  double weight = 1;       // push-sum weight, mixing weight, or 1
};
static_assert(sizeof(Header) == 64, "the header is 64 bytes on the wire");

// A transport that copies payloads sends them in pieces of this size, the last one shorter
// (Transport::in_pieces).
inline constexpr int64_t kPieceBytes = 1 << 20;
struct Piece {
  int64_t begin, end;
};
Piece piece_of(const Header&);                   // which bytes of the payload this header's piece holds
std::optional<int64_t> round_of(const Header&);  // of the message, if it belongs to one
// What in a header of data contradicts itself or is unknown, in words; "" if nothing does.
std::string contradiction(const Header&);

// A hash of element count, type and purpose: ranks that mean different things have different hashes.
uint32_t layout_of(int64_t elements, DType, uint32_t purpose = 0);

struct Message : Header {
  Tensor payload;       // one axis; empty tensors have a payload of zero elements
  double arrived = -1;  // Transport::now() of its arrival; the mailbox stamps it where the transport has not
};
// A message outside all communicators, by which ranks tell each other about themselves.
Message notice(Kind, Rank from, uint32_t epoch, const Tensor& payload);

// The way to one peer.
class Endpoint {
 public:
  virtual ~Endpoint() = default;
  // Sends one message, or one piece of it, whose bytes are `payload` (its memory is handed over and not
  // written again). Returns at once, unless too much is on its way to that peer already: then it waits for
  // room until the deadline. A payload on a device sets out when the calling thread's stream has done its
  // work so far; send() does not wait for that. Thread-safe. Throws PeerLost, Timeout.
  virtual void send(const Header&, Tensor payload, Clock::time_point deadline) = 0;
  virtual const char* name() const = 0;  // "local", "shared", "tcp", "ucx": for the log
};

// Memory that the ranks of one host share. The base class is the transport without any: every
// allocation is private.
class SharedMemory {
 public:
  virtual ~SharedMemory() = default;
  // Ranks with the same number see each other's memory; a rank with -1 shares none.
  virtual int domain(Rank) const { return -1; }
  bool joins(Rank a, Rank b) const { return domain(a) >= 0 && domain(a) == domain(b); }
  // For outgoing payloads, and for tensors that peers are to see (x and g themselves).
  virtual Allocator& allocator() { return skein::allocator(kCpu); }
  // Where ranks of the same domain find this tensor in the memory of its owner. Empty: it lies elsewhere.
  virtual std::optional<int64_t> offset_of(const Tensor&) const { return {}; }
  // The memory of `peer` at this offset. It lives as long as the transport.
  virtual Tensor window(Rank peer, int64_t offset, int64_t elements, DType) const;
};

// Payloads that travel from one device's memory to another's. The base class is the transport
// that moves none.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  // Why payloads of this device cannot be moved, the same on all ranks; empty: they can.
  virtual std::string trouble(Device) const { return "this transport moves the host's memory only"; }
  // From now on payloads of this device are moved as they lie, and what peers send from theirs lands on it,
  // complete for every stream when it is taken. With kCpu this ends: payloads land on the host.
  virtual void land_on(Device) {}
  // Whether a payload of this device may be given to endpoint(rank) as it lies, never in pieces.
  virtual bool carries(Rank, Device) const { return false; }
  virtual Endpoint& endpoint(Rank) const;
};

// Collectives that are carried out as a whole, in place of their messages: a simulated world does so with
// those of many members. Called by the members' threads.
class Collectives {
 public:
  enum class Kind : uint8_t { kSum, kAllGather, kBroadcast, kGather, kBarrier };
  struct Call {
    Kind kind;
    uint32_t communicator;
    int64_t sequence;      // of the collective, the same at all members
    Members group;         // of the communicator
    Rank me, root;         // there; 0 where there is no root
    Tensor x;              // what this member brings; the sum's may not change before it is there
    double bytes;          // of it, on the network
    uint32_t layout;       // the same at all members
    bool one_hop = false;  // a sum so small that each member sends all to all
  };
  struct Result {
    bool there = false;  // the member's mailbox is woken when it is
    std::vector<Tensor>
        all;  // what the members have brought, or what `combine` has made of it; not to be written
  };
  using Combine = std::function<std::vector<Tensor>(const std::vector<Tensor>& brought)>;
  virtual ~Collectives() = default;
  // `combine` is called once, with what all have brought, in the order of their ranks. Throws Disagreement if
  // another member has called another collective.
  virtual std::shared_ptr<const Result> begin(const Call&, const Combine& combine) = 0;
};

class Mailbox;
struct Key;

// One rank's endpoints and its mailbox. progress() and wait() may be called by any thread.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual Rank rank() const = 0;
  virtual int size() const = 0;
  virtual Endpoint& to(Rank) = 0;
  virtual Mailbox& mailbox() = 0;
  virtual SharedMemory& memory();
  virtual DeviceMemory& devices();
  // Ranks with the same number are on one host; -1: nobody knows which one a rank is on.
  virtual int host(Rank r) { return memory().domain(r); }
  // The clock by which this rank's messages are timed, in seconds. A simulated network
  // returns simulated time.
  virtual double now() const { return clock_seconds(); }

  // Does without waiting what can be done: arrivals go into the mailbox, deaths into its membership.
  virtual void progress() {}
  // Returns when a message of this key is there, anything else may have changed, or at `until`.
  virtual void wait(const Key&, Clock::time_point until) = 0;

  // Whether payloads longer than kPieceBytes are given to send() in pieces, because they are copied
  // on the way.
  virtual bool in_pieces(Rank) const { return false; }
  // Whether the messages of one sender arrive in the order they were sent.
  virtual bool ordered() const { return true; }
  // Numbers on the network for which each number of such a payload counts. More than 1 only in a simulated
  // run whose vectors stand for longer ones (comm/sim).
  virtual double stands_for(DType /*pushed*/, int64_t /*elements*/) const { return 1; }
  // What carries out collectives among so many members as a whole; null: their messages are sent.
  virtual Collectives* collectives(int /*members*/) { return nullptr; }
  // One line a peer with the way by which it is reached. For the log, and for tests of the lanes chosen.
  virtual std::string describe() const { return {}; }
  // The address of this host at which other ranks reach what this one listens with.
  virtual std::string address() const { return "127.0.0.1"; }
  // An error ends this rank, and only this one: the others will find it lost at once, instead of gone.
  virtual void fail() {}
};

// How ranks tell each other their addresses before any transport exists. All calls are collective, and every
// rank makes them in the same order.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual Rank rank() const = 0;
  virtual int size() const = 0;
  // Returns what each rank gave, in rank order. Throws Timeout, which names the missing rank.
  virtual std::vector<std::string> all_gather(const std::string& mine) = 0;
};

// Returns the transports of `size` ranks that are threads of this process. They may be destroyed
// in any order.
std::vector<std::unique_ptr<Transport>> local_world(int size);

// How messages travel. kAuto decides per pair: shared memory between ranks of one host and user; between
// hosts RDMA by UCX where all have it, else TCP. kLocal is local_world().
enum class Way : uint8_t { kAuto, kLocal, kShared, kTcp, kUcx };
Way parse_way(const std::string&);  // the value of --transport; throws BadOption

// What is encrypted of all that leaves a host: kAuto everything but RDMA; kOn everything, so RDMA is not
// used; kOff nothing. Even then strangers stay out, because every message is authenticated.
enum class Sealing : uint8_t { kAuto, kOn, kOff };
Sealing parse_sealing(const std::string&);  // the value of --seal; throws BadOption

struct TransportOptions {
  Way way = Way::kAuto;
  Sealing sealing = Sealing::kAuto;
  Secret key = {};                       // the job's, kJobKeyBytes
  double deadline = 60;                  // seconds within which all ranks must have connected
  SilenceBounds silence = {};            // for how long without a heartbeat a peer does not count as lost
  int64_t in_flight = int64_t(1) << 29;  // bytes on their way to one peer before send() waits
  PortRange ports = {};                  // that may be listened at
  std::string tls = "";                  // UCX transports to allow; empty: all but TCP
  std::string interface = "";            // to use between hosts; empty: the fastest of all
  uint32_t epoch = 1;                    // of the membership; ranks of another epoch are strangers
  bool gpu = false;             // this rank wants payloads in GPU memory moved by UCX, also within its host
  bool outlives_peers = false;  // peers may be killed while the others go on; as `tls`, equal on all ranks
  std::function<bool()> in_vain = {};  // asked while ranks are missing: then connecting throws Timeout
};
// Connects this process with all others of the exchange. Collective. kShared throws BadOption if a rank is on
// another host, and names it; kUcx leaves UCX's shared memory to payloads on GPUs if this transport outlives
// peers. describe() says what was chosen for each pair.
std::unique_ptr<Transport> connect(Exchange&, const TransportOptions&);

}  // namespace skein::comm
