// The waist: Header, Message, Endpoint, Transport. Nothing above knows UCX, nothing below knows SGD.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/membership.h"
#include "engine/clock.h"
#include "engine/tensor.h"

namespace skein::comm {

using Tag = uint32_t;
inline constexpr Tag kOwnTags = 0xF0000000;  // tags from here on belong to the communicator itself
inline constexpr int64_t kAnyStep = -1;

enum class Kind : uint16_t { kData = 1, kRefusal = 2, kGoodbye = 3, kGivenUp = 4 };
inline constexpr int64_t kFailed = 1;  // step of the goodbye of a rank that an error has ended

// What precedes every payload on the wire, little endian: docs/wire_format.md.
struct Header {
  static constexpr uint32_t kMagic = 0x4E454B53;  // "SKEN"
  static constexpr uint16_t kVersion = 1;
  uint32_t magic = kMagic;
  uint16_t version = kVersion;
  Kind kind = Kind::kData;
  uint32_t communicator = 0;
  uint32_t epoch = 0;  // membership; another than one's own is never mixed in
  Rank from = 0;       // rank in the world
  Tag tag = 0;
  int64_t step = 0;
  uint32_t piece = 0, pieces = 1;
  int64_t bytes = 0;       // of the whole payload, all pieces together
  uint8_t codec = 0;       // DType on the wire
  uint8_t dtype = 0;       // DType of what was pushed
  uint16_t on_device = 0;  // 1: the payload comes from a device's memory as it lay there
  uint32_t layout = 0;     // hash of what the payload is; see layout_of()
  double weight = 1;       // push-sum weight, mixing weight, or 1
};
static_assert(sizeof(Header) == 64, "the header is 64 bytes on the wire");

// Payload in pieces of this size, the last one shorter, where a transport copies (Transport::in_pieces).
inline constexpr int64_t kPieceBytes = 1 << 20;
struct Piece {
  int64_t begin, end;
};
Piece piece_of(const Header&);  // which bytes of the payload this header's piece holds

// Of element count, type and purpose: ranks that mean different things have different hashes.
uint32_t layout_of(int64_t elements, DType, uint32_t purpose = 0);

struct Message : Header {
  Tensor payload;  // one axis; empty tensors have a payload of zero elements
  double arrived =
      -1;  // Transport::now() of its coming in; the mailbox stamps it where the transport has not
};
// A message of no communicator: what ranks tell each other about themselves.
Message notice(Kind, Rank from, uint32_t epoch, const Tensor& payload);

// A one-way door to one peer.
class Endpoint {
 public:
  virtual ~Endpoint() = default;
  // Sends one message, or one piece of it, whose bytes are `payload` (its memory is handed over and not
  // written again). Returns at once unless too much is on its way to that peer already; then waits for room
  // until the deadline. Thread-safe. Throws PeerLost, Timeout. A payload on a device, where
  // Transport::carries() it, sets out when the calling thread's stream has done what it was asked so far;
  // nobody waits for that here.
  virtual void send(const Header&, Tensor payload, Clock::time_point deadline) = 0;
  virtual const char* name() const = 0;  // "local", "shared", "ucx": for the log
};

class Mailbox;
struct Key;

// One rank's doors and its mailbox. progress() and wait() may be called by any thread.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual Rank rank() const = 0;
  virtual int size() const = 0;
  virtual Endpoint& to(Rank) = 0;
  virtual Mailbox& mailbox() = 0;
  // What this rank's messages are timed by, in seconds; of simulated networks the simulated time.
  virtual double now() const { return steady_seconds(); }

  // Moves what can be moved without waiting: arrivals into the mailbox, deaths into its membership.
  virtual void progress() {}
  // Returns when a message of this key is there, anything else may have changed, or at `until`.
  virtual void wait(const Key&, Clock::time_point until) = 0;

  // True where payloads longer than kPieceBytes are handed to send() in pieces, because they are copied on
  // the way.
  virtual bool in_pieces(Rank) const { return false; }
  // Memory to pack outgoing payloads in, and memory of tensors that peers are to see (x and g themselves).
  virtual Allocator& allocator() { return skein::allocator(kCpu); }
  // Ranks with the same number see each other's memory; -1 sees nobody's.
  virtual int domain(Rank) const { return -1; }
  // A name of the tensor's memory by which ranks of the same domain find it; none if it lies elsewhere.
  virtual std::optional<int64_t> place_of(const Tensor&) const { return {}; }
  // The memory that `peer` calls `place`. Alive as long as the transport is.
  virtual Tensor window(Rank peer, int64_t place, int64_t elements, DType) const;
  // ---- payloads in a device's memory, sent from there and to there ----------------------------------------
  // Why there can be none, the same on all ranks; empty: there can.
  virtual std::string device_trouble(Device) const { return "this transport moves the host's memory only"; }
  // From now on payloads of this device are carried, and what peers send from theirs lands on it, complete
  // for every stream when it is taken. kCpu: no more; it lands on the host.
  virtual void land_on(Device) {}
  // True where a payload of this device may be handed as it lies to carrier(rank), never in pieces.
  virtual bool carries(Rank, Device) const { return false; }
  virtual Endpoint& carrier(Rank r) { return to(r); }
  // True where messages of one sender arrive in the order they were sent.
  virtual bool ordered() const { return true; }
  // One line a peer: by which way it is reached. For the log and for tests of the lanes chosen.
  virtual std::string describe() const { return {}; }
  // Callers and messages so far that were not of this job: dropped and counted.
  virtual int64_t strangers() const { return 0; }
  // An error ends this rank, and only this one: the others will find it lost at once, instead of gone.
  virtual void fail() {}
};

// How ranks tell each other their addresses before any transport exists. Every call is collective, in the
// same order.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual Rank rank() const = 0;
  virtual int size() const = 0;
  // What each rank gave, in rank order. Throws Timeout naming who is missing.
  virtual std::vector<std::string> all_gather(const std::string& mine) = 0;
};

// `size` ranks as threads of this process. Each transport is one rank's; they may die in any order.
std::vector<std::unique_ptr<Transport>> local_world(int size);

// Which way messages go. kAuto: shared between ranks of one host and user, UCX between hosts, decided per
// pair. kLocal: local_world().
enum class Way : uint8_t { kAuto, kLocal, kShared, kUcx };
Way parse_way(const std::string&);  // of --transport; BadOption

struct TransportOptions {
  Way way = Way::kAuto;
  double deadline = 60;                  // seconds for all to meet
  double silence = 10;                   // seconds without a heartbeat after which a peer counts as lost
  int64_t in_flight = int64_t(1) << 29;  // bytes on their way to one peer before send() waits
  std::string tls = "";                  // UCX transports to allow ("tcp"); empty: all it finds
  std::string interface = "";            // between hosts; empty: all are tried, the fastest is taken
  bool gpu = false;  // this rank would have payloads in a GPU's memory carried, to ranks of its host too
};
// Collective. Connects this process with all others of the exchange. kShared fails with BadOption naming a
// rank on another host. What was chosen per pair is in describe().
std::unique_ptr<Transport> connect(Exchange&, const TransportOptions&);

}  // namespace skein::comm
