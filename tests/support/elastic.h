// Elastic trainings in a simulated world: each worker goes from epoch to epoch of the membership, as apps/launch/epochs.cc
// does between processes, with the world in the place of sockets, doors and hosts.
#pragma once
#include <random>

#include "apps/train/trainer.h"
#include "comm/membership/council.h"
#include "tests/support/parts.h"
#include "tests/support/sim.h"

namespace skein::apps {

class ElasticJob {
 public:
  using Id = comm::sim::Id;
  using Death = comm::sim::World::Death;

  ElasticJob(comm::sim::World& world, const Config& c, std::string directory, uint64_t seed)
      : world_(world), config_(c), directory_(std::move(directory)), random_(seed) {}

  void found(int n) {
    for (Id id : comm::sim::ids(n)) world_.begin(id, [this, n] { begin_first(n); });
    next_id_ = Id(n);
  }
  // A fresh worker, which knocks at some member.
  void join() {
    const Id id = next_id_++;
    world_.begin(id, [this, id] { begin_late(id); });
  }
  // Kills this worker unless more would be lost then than a quorum can do without that is still needed.
  bool kill(Id victim, Death how) {
    if (!may_lose(victim, how)) return false;
    world_.kill(victim, how);
    (how == Death::kHangUp ? gone_ : silent_).insert(victim);
    return true;
  }
  // Members, in the order of their ranks in the latest epoch that any of them has reached.
  std::vector<Id> members() const {
    const Desk* latest = nullptr;
    for (const auto& [id, desk] : desks_)
      if (works(id) && (!latest || desk->view.epoch > latest->view.epoch)) latest = desk;
    std::vector<Id> out;
    if (latest)
      for (const comm::View::Member& m : latest->view.members)
        if (works(m.id) && desks_.count(m.id)) out.push_back(m.id);
    return out;
  }
  // Some worker has come so far that the run will soon end.
  bool is_ending() const { return furthest_ >= kLast - 2; }
  // Some worker has completed the run, so that the others need no quorum to end; or something is wrong.
  bool is_over() const { return !ends.empty() || !troubles.empty(); }
  static constexpr int64_t kLast = 25;  // the steps of the run

  std::map<Id, Outcome> ends;
  std::vector<std::string> troubles;  // why workers ended that should not have
  // What all who left an epoch of the membership took along: its members, and the weights w of push-sum.
  struct Left {
    size_t members = 0;
    std::vector<double> weights;
  };
  std::map<uint32_t, Left> left;
  // The ledger: in which epoch of the membership a step was taken that was not taken back.
  struct Stretch {
    int64_t from = 0, to = 0;  // steps
    int workers = 0;
    std::shared_ptr<const data::Portions> portions;
  };
  std::map<uint32_t, Stretch> ledger;

 private:
  // What belongs to one epoch of a worker, in the order in which it is made.
  struct Desk {
    comm::View view;
    std::unique_ptr<comm::Transport> transport;
    std::unique_ptr<comm::Communicator> communicator;
    std::unique_ptr<comm::Council> council;
  };
  using Connection = std::unique_ptr<Desk>;
  static constexpr double kAssembling = 10, kDeadline = 120, kRegrouping = 0.5;

  bool works(Id id) const { return !gone_.count(id) && !silent_.count(id) && !ends.count(id); }
  double draw(double most) { return std::uniform_real_distribution<double>(0, most)(random_); }

  void begin_first(int n) {
    comm::View first;
    for (Id id : comm::sim::ids(n)) first.members.push_back({id, std::to_string(id), true});
    live(meet(first));
  }

  // Whoever does not get in, or whose host is lost, is replaced by somebody else, unless the run is over.
  void begin_late(Id me) {
    for (std::vector<Id> hosts = members(); !is_over(); comm::nap(std::chrono::milliseconds(200))) {
      hosts = members();
      if (hosts.empty()) continue;
      const Id host = hosts[random_() % hosts.size()];
      desks_.at(host)->council->admit({me, std::to_string(me), false});
      host_of_[me] = host;
      while (!told_.count(me) && works(host)) comm::nap(std::chrono::milliseconds(50));
      break;
    }
    if (is_over()) return void(gone_.insert(me));
    if (!told_.count(me)) return leave_it_to_another(me);
    Connection c;
    try {
      c = meet(told_.at(me));
    } catch (const Error&) { return leave_it_to_another(me); }
    live(std::move(c));
  }
  void leave_it_to_another(Id me) {
    gone_.insert(me);
    join();
  }

  // `connected`: so the others may begin the epoch.
  Connection meet(const comm::View& v, bool* connected = nullptr) {
    auto c = std::make_unique<Desk>();
    c->view = v;
    c->transport = world_.connect(v, kAssembling);
    c->communicator =
        std::make_unique<comm::Communicator>(*c->transport, comm::CommunicatorOptions{.deadline = kDeadline});
    if (connected) *connected = true;
    c->communicator->barrier();
    return c;
  }
  void open_council(Desk& c, std::unique_ptr<comm::Succession> begun) {
    const Id me = world_.me();
    c.council = std::make_unique<comm::Council>(
        *c.transport,
        comm::CouncilOptions{.me = me,
                             .now = c.view,
                             .card = std::to_string(me),
                             .is_gone =
                                 [this](const std::string& card) {
                                   const Id id = Id(std::stoull(card));
                                   return gone_.count(id) || ends.count(id);
                                 },
                             .decided = [this, me](const comm::View& v) { tell(me, v); }},
        std::move(begun));
  }
  void tell(Id host, const comm::View& v) {
    if (v.epoch > decided_.epoch) decided_ = v;
    for (const comm::View::Member& m : v.members)
      if (const auto h = host_of_.find(m.id); h != host_of_.end() && h->second == host)
        told_.emplace(m.id, v);
  }

  // The loop over epochs; as Epochs::advance().
  Connection advance(Connection now) {
    comm::Council& council = *now->council;
    comm::View v = council.next(kDeadline);
    for (;;) {
      bool connected = false;
      try {
        if (!council.has_abandoned(v)) {
          Connection next = meet(v, &connected);
          if (std::unique_ptr<comm::Succession> begun = council.release(v)) {
            open_council(*next, std::move(begun));
            desks_[world_.me()] = next.get();
            return next;
          }
        }
      } catch (const Error&) {}
      v = council.after(v, kRegrouping, connected).value_or(v);
    }
  }
  void live(Connection now) {
    const Id me = world_.me();
    struct Present {
      ElasticJob& job;
      const Id me;
      ~Present() { job.desks_.erase(me); }
    } present{*this, me};
    omp_set_num_threads(1);
    open_council(*now, {});
    desks_[me] = now.get();
    try {
      Legacy legacy;
      for (;;) {
        if (std::optional<Outcome> out = train(*now, legacy)) {
          ends[me] = *out;
          return;
        }
        now = advance(std::move(now));
      }
    } catch (const comm::RunEnded& e) {
      ends[me].step = e.end.step, ends[me].interrupted = e.end.interrupted;
    } catch (const std::exception& e) {
      troubles.push_back(text("worker ", me, " at ", world_.now(), " s, epoch ",
                              now ? int(now->view.epoch) : -1, ": ", e.what()));
    }
  }

  // Nothing: the membership changes. As train_imagenet does.
  std::optional<Outcome> train(Desk& d, Legacy& legacy) try {
    comm::Communicator& all = *d.communicator;
    const bool later = d.view.epoch > 1;
    Config c = config_;
    if (later) {
      legacy.share(all);
      share_batch(c, legacy.global_batch, all.size());
    }
    c.workers = all.size();
    Place place = place_of(all);
    place.council = d.council.get();
    Survivors survivors(all, false);
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> nowhere(std::fopen("/dev/null", "w"), std::fclose);
    Progress progress(nowhere.get());
    Setup setup = open_setup(c, place, legacy.data);
    const std::shared_ptr<const data::Portions> portions = setup.portions;
    Trainer trainer(c, std::move(setup), directory_, progress, survivors);
    if (later) trainer.inherit(legacy);
    with_state_.insert(world_.me());
    const int64_t from = trainer.step_number();
    Outcome out = trainer.run([&] { return work(trainer.step_number()); });
    note_steps(d, {from, out.step, all.size(), portions});
    if (!out.legacy) return out;
    legacy = std::move(*out.legacy);
    note_leaving(d, legacy);
    return {};
  } catch (const comm::EpochEnds&) {
    if (d.view.epoch == 1) throw;
    return {};
  } catch (const comm::PeerLost&) {
    if (d.view.epoch == 1) throw;
    return {};
  }
  // Between two steps: takes time, and stops nobody.
  bool work(int64_t step) {
    furthest_ = std::max(furthest_, step);
    comm::sim::spend(draw(0.3));
    return false;
  }
  void note_steps(const Desk& d, const Stretch& s) {
    if (optim::strategy_row(config_.algorithm).asynchronous()) return;  // each is at a step of its own
    Stretch& known = ledger.emplace(d.view.epoch, s).first->second;
    if (known.to == kLast || s.to == kLast)
      known.to = kLast;  // the run ended, while others went back
    else if (known.from != s.from || known.to != s.to)
      troubles.push_back(text("epoch ", d.view.epoch, " has steps ", known.from, " to ", known.to,
                              " for one worker and ", s.from, " to ", s.to, " for another"));
  }
  void note_leaving(const Desk& d, const Legacy& legacy) {
    Left& l = left[d.view.epoch];
    l.members = d.view.members.size();
    const auto w = legacy.state.fields().find("strategy.w");
    if (legacy.has_state && w != legacy.state.fields().end())
      l.weights.push_back(std::get<double>(w->second));
  }

  // ---- whom the others can do without: in every epoch that is not over for all, more than half remain or, where all
  // lost ones are known to have ended, half. A newcomer that has not come yet is of no help.
  bool may_lose(Id victim, Death how) const {
    if (works(victim) && is_over()) return true;
    if (!works(victim) || !is_spare(decided_, victim, how)) return false;
    size_t with_state = 0;
    for (Id id : with_state_) with_state += works(id) && id != victim;
    for (const auto& [id, desk] : desks_)
      if (works(id) && !is_spare(desk->view, victim, how)) return false;
    return with_state > 0;
  }
  bool is_spare(const comm::View& v, Id victim, Death how) const {
    size_t lost = 0;
    bool silence = how == Death::kSilence;
    for (const comm::View::Member& m : v.members) {
      const bool absent = works(m.id) && !desks_.count(m.id);
      lost += absent || !works(m.id) || m.id == victim;
      silence = silence || absent || silent_.count(m.id);
    }
    return silence ? 2 * lost < v.members.size() : 2 * lost <= v.members.size();
  }

  comm::sim::World& world_;
  const Config config_;
  const std::string directory_;
  std::mt19937_64 random_;
  Id next_id_ = 0;
  int64_t furthest_ = 0;
  comm::View decided_;  // the latest
  std::set<Id> gone_, silent_, with_state_;
  std::map<Id, Desk*> desks_;
  std::map<Id, Id> host_of_;  // at whose door a newcomer waits
  std::map<Id, comm::View> told_;
};

}  // namespace skein::apps
