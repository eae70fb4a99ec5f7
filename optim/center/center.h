// Center: the vector that asynchronous workers share, and the server that gives them turns at it.
#pragma once
#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <memory>

#include "comm/communicator/communicator.h"
#include "comm/inbox/inbox.h"
#include "optim/order_log.h"

namespace skein::optim {

// What moves between a worker and the center; steps are the sequences of the inbox.
namespace center {
enum Kind : uint16_t { kTurn = 1, kPull = 2, kPut = 3 };
// A tag a direction: worker 0 and an inline server are one rank.
inline constexpr comm::Tag kInvitation = 0x5C000, kToCenter = 0x5C001, kFromCenter = 0x5C002,
                           kStateToCenter = 0x5C003, kStateFromCenter = 0x5C004;
}  // namespace center

// One worker's turn, as the center sees it. No other turn begins before it ends. It counts as soon as its
// last take() has returned; a worker that is lost before that leaves the center as it was.
class Turn {
 public:
  // `brought`: what the worker has given already.
  Turn(comm::Communicator& c, const comm::Request& r, const Tensor& theta, const Tensor& kept,
       int64_t version, std::optional<comm::Message> brought)
      : worker(r.worker),
        theta(theta),
        version(version),
        comm_(c),
        sequence_(r.sequence),
        kept_(kept),
        brought_(std::move(brought)) {}
  const int worker;
  const Tensor theta;     // the center; to be changed after the last take()
  const int64_t version;  // turns before this one that have changed it
  // The i-th vector that the algorithm keeps with the center, laid out as theta; zeros at first.
  Tensor kept(int64_t i) const { return kept_.view(theta.shape(), i * theta.size()); }

  // What the worker gives, laid out as theta, perhaps in the type it traveled in. Waits as long as the lease
  // lasts. Throws PeerLost, Timeout.
  comm::Message take();
  void give(const Tensor&, int64_t version);  // to the worker; the version is the message's weight
  bool taken() const { return taken_; }
  bool given() const { return given_; }
  void leave_as_it_is() { changes_ = false; }  // this turn changes nothing
  bool changes() const { return changes_; }

 private:
  comm::Communicator& comm_;
  const int64_t sequence_;
  const Tensor kept_;
  std::optional<comm::Message> brought_;
  bool taken_ = false, given_ = false, changes_ = true;
};

// Serves until told not to. One thread, but for leases_lost().
class Center {
 public:
  // The algorithm's column of the figure: what happens in one turn.
  using Column = std::function<void(Turn&)>;

  // `all`: the server's own twin, in which workers are ranks 0 .. workers-1. Its deadline is how long a
  // worker may hold its turn. If what it gives first has not come by then, because its link is slow, its turn
  // is put off until that has come; if it has the center and does not give, its turn is lost, the first of
  // which is said on stderr. The first put makes the center, and with it as many vectors as the algorithm
  // keeps for itself.
  Center(const Options&, std::unique_ptr<comm::Communicator> all, int workers, Column, int64_t kept = 0);
  comm::Invitation invitation() const { return inbox_.invitation(); }

  // Serves until `go_on` returns false. Never throws: workers hear what goes wrong, and their waits throw.
  void serve(const std::function<bool()>& go_on);
  void wake() { inbox_.wake(); }  // makes serve() ask go_on; any thread may call it
  // Before it serves: the center as another one has left it, which puts of earlier versions do not change.
  void inherit(const Tensor& all, int64_t version);
  // all <- the center and what is kept with it, once it is no longer served.
  void read(const Tensor& all, int64_t& version) const;
  const Tensor& all() const { return all_; }  // the same; empty if there was none
  int64_t version() const { return version_; }

  int64_t leases_lost() const { return lost_.leases; }

 private:
  struct Due {
    comm::Request request;
    std::optional<comm::Message> brought = {};
  };
  std::optional<Due> due();
  std::optional<Due> put_off_before();
  void serve(Due);
  void turn(const comm::Request&, std::optional<comm::Message> brought);
  void pull(const comm::Request&);
  void put(const comm::Request&);
  void go_to_position();
  void say_late(int worker);  // once

  std::unique_ptr<comm::Communicator> comm_;
  const int workers_;
  const Column column_;
  OrderLog log_;
  std::map<int, comm::Request> early_;  // replaying: those whose turn has not come
  std::list<comm::Request> put_off_;    // in the order in which they were asked for
  comm::Clock::time_point turned_{};    // when the last turn ended, or a worker began to wait
  std::optional<int64_t> log_to_;       // where the log is to go on
  const int64_t kept_;
  Tensor all_, theta_;  // the center and what is kept with it, and of these the center
  int64_t version_ = 0;
  bool inherited_ = false;
  struct {
    std::atomic<int64_t> leases{0};
    bool late_one_said = false;
  } lost_;
  comm::Inbox inbox_;
};

}  // namespace skein::optim
