// Council: the ranks of a transport agree about who goes on, by Succession, on a thread of each.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/membership/failure_detector.h"
#include "comm/membership/routes.h"
#include "comm/membership/succession_chain.h"
#include "comm/threads.h"
#include "comm/transport.h"

namespace skein::comm {

struct CouncilOptions {
  MemberId me = 0;
  View now;          // this epoch's members, in the order of their ranks
  std::string card;  // how the others reach this process in the next epoch
  // Whether the process of this card has certainly ended: its host refuses connections. The
  // council's thread asks.
  std::function<bool(const std::string& card)> is_gone;
  // Whether that may be asked about a member of this view that has not connected yet; empty: always.
  std::function<bool(const View&, const std::string& card)> can_be_asked = {};
  // Where a register decides (succession.h): whether it does in the epoch of this view, which its members
  // must all answer alike; and the claim of the view that follows it, which returns the one that the register
  // keeps, or nothing if it does not answer soon. The council's thread claims, again and again.
  std::function<bool(const View&)> has_register = {};
  std::function<std::optional<View>(const View& now, const View& next)> claim = {};
  // Whether waits on the transport throw EpochEnds once the membership changes.
  bool ends_waits = true;
  // Told of every view that is decided, before next() returns it. Called on the council's thread.
  std::function<void(const View&)> decided = {};
  // Told that the run has ended, once, on any thread.
  std::function<void(const End&)> ended = {};
};

// It sees what the transport sees of losses, and exchanges letters over it. As soon as this rank has promised
// to complete no step of this epoch any more, all its waits throw EpochEnds. Thread-safe.
//
// While its members connect for the next epoch, some may be connected and others not, and some may have
// begun it already, to whom letters find their way by the new connection only. So it takes letters and
// losses from both (connected()).
class Council {
 public:
  // The transport must outlive it. `begun`: what another council has released.
  Council(Transport&, CouncilOptions, std::unique_ptr<Succession> begun = {});
  ~Council();
  Council(const Council&) = delete;

  const View& now() const { return o_.now; }
  MemberId me() const { return o_.me; }
  // Before a step counts as taken: k steps then are. `oldest`: the earliest of the states, named by the
  // number of their steps, to which this rank can go back. Throws EpochEnds if the step is not to be
  // completed any more.
  void complete_step(int64_t k, int64_t oldest);
  // Throws EpochEnds if a change of membership has begun, as far as this process knows.
  void require_unchanged() const;
  // The same, if it is known within so many seconds.
  void require_unchanged(double patience);
  // A process that wants to become a member; it has hung up, and will not be heard of under this name again.
  void admit(const View::Member&);
  void forget(MemberId);
  // This process has the state with which the epoch begins. Returns the number of steps after which it is.
  int64_t restored();

  // This process wants to be in no later epoch: next() will throw GivenUp.
  void leave();
  // Another member has told this one so.
  void leaves(MemberId);

  // This process has completed the run, so no further epoch is needed: members that wait for one are told.
  void end_run(const End&);
  std::optional<End> ended() const;  // the end that this process or another member has announced

  // Waits for the view of the next epoch. Throws RunEnded if there is none to be, GivenUp if this process is
  // not in it, and Timeout if none is decided within so many seconds; then waits of this epoch wait again.
  View next(double patience);
  // This process is connected with the members of a view that has been decided. The transport must
  // outlive this council, or be what release() gives its letters to. When a later view is decided, waits
  // on it throw EpochEnds.
  void connected(Transport&, const View&);
  // The view after `failed`, whose members have not come together. Empty if none is decided within so many
  // seconds. If this process was not connected(), no member has begun that view: then its newcomers are left
  // out, who are not needed for a quorum, this process abandons it if it has any, and otherwise the same
  // members may try again. Throws RunEnded and GivenUp as next().
  std::optional<View> after(const View& failed, double patience);
  bool was_connected(const View&) const;
  bool has_abandoned(const View&) const;
  // Ends this council: that of the epoch of `v`, which has been decided, continues with what this process has
  // promised in it. Null, and nothing ends, if a later view has been decided already.
  std::unique_ptr<Succession> release(const View& v);
  // Whether a later view than this one has been decided.
  bool is_past(const View&) const;

 private:
  using Letters = std::vector<Letter>;
  using Finding = FailureDetector::Finding;
  void work();
  void stop();
  void see_losses();
  std::vector<View::Member> expected() const;
  Routes routes() const;
  bool heeds_letters() const;
  void hear(Letters& out);
  void claim();
  void conclude();

  Transport& transport_;
  const CouncilOptions o_;
  FailureDetector detector_;  // of the council's thread
  mutable Mutex mutex_;
  Condition changed_;
  SuccessionChain chain_;
  Routes routes_;           // the first is that of this epoch
  uint32_t abandoned_ = 0;  // the latest epoch that this process never begins
  bool epoch_ends_ = false, stop_ = false, end_is_told_ = false;  // told: CouncilOptions::ended was called
  Thread thread_;
};

}  // namespace skein::comm
