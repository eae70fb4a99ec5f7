// Elastic trainings in a simulated world: each worker goes from epoch to epoch of the membership, as in
// apps/epoch.cc and apps/launch/epochs.cc between processes; the world replaces sockets, doors and hosts.
#pragma once
#include <random>

#include "apps/config/algorithm_values.h"
#include "apps/launch/elastic/crossing.h"
#include "apps/launch/elastic/role.h"
#include "apps/serving.h"
#include "apps/train/trainer.h"
#include "tests/support/elastic/record.h"
#include "tests/support/parts.h"
#include "tests/support/sim.h"

namespace skein::apps {

class ElasticJob {
 public:
  using Id = comm::sim::Id;
  using Death = comm::sim::World::Death;

  ElasticJob(comm::sim::World& world, const Config& c, std::string directory, uint64_t seed)
      : world_(world), config_(c), directory_(std::move(directory)), random_(seed) {}

  // ---- what happens to workers. Each does nothing, and returns false, if more would be lost by it than a
  // quorum that is still needed can do without.
  void found(int workers) {  // and, with --servers dedicated, their server
    const int n = workers + config_.of_algorithm.contains("servers");
    if (n > workers) servers_.insert(Id(workers));
    for (Id id : comm::sim::ids(n)) decided_.members.push_back({id, card(id), false});
    for (Id id : comm::sim::ids(n)) world_.begin(id, [this, first = decided_] { begin_first(first); });
    next_id_ = founders_ = Id(n);
  }
  // A fresh worker, which knocks at some member; or a server that replaces a lost one.
  void join() {
    const Id id = next_id_++;
    if (!servers_.empty() && std::none_of(servers_.begin(), servers_.end(), [&](Id s) { return works(s); }))
      servers_.insert(id);
    world_.begin(id, [this, id] { begin_late(id); });
  }
  bool kill(Id victim, Death how) {
    if (!may_lose({victim}, how)) return false;
    note_taken(victim);
    world_.kill(victim, how);
    (how == Death::kHangUp ? over_ : silent_).insert(victim);
    ++record.deaths;
    return true;
  }
  // It is stopped for so long, or cut off with others. The others may give it up meanwhile.
  bool hang(Id victim, double seconds) {
    if (away_.count(victim) || !may_lose({victim}, Death::kSilence)) return false;
    go_away({victim});
    world_.hang(victim);
    world_.at(world_.now() + seconds, [this, victim] { away_.erase(victim), world_.wake(victim); });
    return true;
  }
  bool cut(const std::set<Id>& side, double seconds) {
    if (!cut_off_.empty() || !may_lose(side, Death::kSilence)) return false;
    go_away(side);
    cut_off_ = side;
    world_.cut({side.begin(), side.end()});
    world_.at(world_.now() + seconds, [this, side] {
      for (Id id : std::exchange(cut_off_, {})) away_.erase(id);
      world_.mend({side.begin(), side.end()});
    });
    return true;
  }
  // As by SIGTERM.
  bool leave(Id victim) {
    if (members().size() < 2 || servers_.count(victim) || !may_lose({victim}, Death::kHangUp)) return false;
    leaving_.insert(victim);
    return true;
  }

  // Members, in the order of their ranks in the latest epoch that any of them has reached.
  std::vector<Id> members() const {
    const Connection* latest = nullptr;
    for (const auto& [id, at] : desks_)
      if (works(id) && (!latest || at->view.epoch > latest->view.epoch)) latest = at;
    std::vector<Id> out;
    if (latest)
      for (const comm::View::Member& m : latest->view.members)
        if (works(m.id) && desks_.count(m.id)) out.push_back(m.id);
    return out;
  }
  // Some worker has come so far that the run will soon end.
  bool is_ending() const { return record.last > 0 && furthest_ >= record.last - 2; }
  // Some worker has completed the run, so that the others need no quorum to end; or something is wrong.
  bool is_over() const { return !record.ends.empty() || !record.troubles.empty(); }
  int64_t furthest() const { return furthest_; }

  ElasticRecord record;

 private:
  using Tie = std::unique_ptr<Connection>;
  static constexpr double kAssembling = 10, kDeadline = 120, kLongestStep = 0.1;

  std::string card(Id id) const { return std::to_string(id) + (servers_.count(id) ? kServesMark : ""); }
  bool works(Id id) const { return !over_.count(id) && !silent_.count(id); }
  double draw(double most) { return std::uniform_real_distribution<double>(0, most)(random_); }
  void go_away(const std::set<Id>& who) {
    for (Id id : who) away_.insert(id), was_away_.insert(id);
  }

  void begin_first(const comm::View& first) {
    Tie now = connect(first);
    now->communicator->barrier();
    live(std::move(now));
  }

  // A worker that does not get in, or whose host is lost, is replaced by another, unless the run is over.
  void begin_late(Id me) {
    for (std::vector<Id> hosts = members(); !is_over(); comm::nap(std::chrono::milliseconds(200))) {
      hosts = members();
      if (hosts.empty()) continue;
      const Id host = hosts[random_() % hosts.size()];
      desks_.at(host)->council->admit({me, card(me), false});
      host_of_[me] = host;
      while (!told_.count(me) && works(host) && !is_over()) comm::nap(std::chrono::milliseconds(50));
      break;
    }
    if (is_over()) return void(over_.insert(me));
    if (!told_.count(me)) return leave_it_to_another(me);
    Tie now;
    try {
      now = connect(told_.at(me));
      now->communicator->barrier();
    } catch (const Error&) { return leave_it_to_another(me); }
    live(std::move(now));
  }
  void leave_it_to_another(Id me) {
    over_.insert(me);
    join();
  }

  Tie connect(const comm::View& v) {
    world_.note(text(world_.me(), " connects for epoch ", v.epoch));
    auto c = std::make_unique<Connection>();
    c->view = v;
    c->transport = world_.connect(v, kAssembling, [&, me = world_.me()] {
      return desks_.contains(me) && desks_.at(me)->council->is_past(v);
    });
    c->communicator =
        std::make_unique<comm::Communicator>(*c->transport, comm::CommunicatorOptions{.deadline = kDeadline});
    return c;
  }
  void begin(Connection& c, std::unique_ptr<comm::Succession> begun) {
    const Id me = world_.me();
    c.council = std::make_unique<comm::Council>(
        *c.transport,
        comm::CouncilOptions{.me = me,
                             .now = c.view,
                             .card = card(me),
                             .is_gone = [this, me](const std::string& card) { return is_gone(me, card); },
                             .decided = [this, me](const comm::View& v) { tell(me, v); }},
        std::move(begun));
    desks_[me] = &c;
    world_.note(text(me, " begins epoch ", c.view.epoch));
  }
  bool is_gone(Id asks, const std::string& card) const {
    const Id id = Id(std::stoull(card));
    return over_.count(id) && cut_off_.count(id) == cut_off_.count(asks);
  }
  void tell(Id host, const comm::View& v) {
    world_.note(text(host, " knows epoch ", v.epoch, ": ", words(v)));
    if (v.epoch > decided_.epoch) decided_ = v;
    for (const comm::View::Member& m : v.members)
      if (const auto h = host_of_.find(m.id); h != host_of_.end() && h->second == host)
        told_.emplace(m.id, v);
  }

  void live(Tie now) {
    const Id me = world_.me();
    struct Present {
      ElasticJob& job;
      const Id me;
      ~Present() { job.desks_.erase(me); }
    } present{*this, me};
    omp_set_num_threads(1);
    const Crossing crossing{
        .connect = [this](const comm::View& v) { return connect(v); },
        .begin = [this](Connection& c, std::unique_ptr<comm::Succession> s) { begin(c, std::move(s)); },
        .patience = kDeadline};
    begin(*now, {});
    try {
      Legacy legacy;
      optim::Served served;
      std::optional<Outcome> out;
      for (; !(out = take_part(*now, legacy, served)); now = cross(*now, crossing)) {}
      if (!out->bereaved) is_untold(me, now->view) ? void(++record.given_up) : void(record.ends[me] = *out);
      if (out->bereaved) note_end_apart(me, *now, out->why);
    } catch (const comm::RunEnded& e) {
      record.ends[me].step = e.end.step, record.ends[me].interrupted = e.end.interrupted;
    } catch (const std::exception& e) { note_end_apart(me, *now, e.what()); }
    over_.insert(me);
  }
  // Who slept while the others went on without it, and ended, cannot be told, and ends as if with them.
  bool is_untold(Id me, const comm::View& v) const { return was_away_.count(me) && v.epoch < decided_.epoch; }
  // Who was stopped or cut off may have been given up, and is replaced.
  void note_end_apart(Id me, const Connection& now, const std::string& why) {
    if (leaving_.count(me)) return void(++record.left);
    if (was_away_.count(me)) {
      ++record.given_up;
      if (!is_over()) join();
      return;
    }
    record.troubles.push_back(
        text("worker ", me, " at ", world_.now(), " s, epoch ", now.view.epoch, ": ", why));
  }

  struct AtWork {
    AtWork(ElasticJob& j, Trainer& t) : job(j), me(j.world_.me()) { job.trainers_[me] = &t; }
    ~AtWork() { job.note_taken(me), job.trainers_.erase(me); }
    ElasticJob& job;
    const Id me;
  };
  // Nothing: the membership changes. As train_imagenet does.
  std::optional<Outcome> take_part(Connection& d, Legacy& legacy, optim::Served& served) try {
    std::optional<Outcome> out;
    work_among(*d.communicator, server_in(d.view), place_of(*d.communicator, d.council.get()),
               [&](const Member& m) {
                 out = m.serves() ? serve(m, served) : train(d, m, legacy);
                 return 0;
               });
    return out;
  } catch (const comm::EpochEnds&) { return {}; } catch (const comm::PeerLost&) {
    return {};
  }
  std::optional<Outcome> serve(const Member& m, optim::Served& served) {
    const int status = apps::serve(config_, m, served);
    if (status == kNextEpoch) return {};
    CHECK(status == 0, "a server that ended with status", status);
    Outcome out;
    out.step = record.last;
    return out;
  }
  std::optional<Outcome> train(Connection& d, const Member& m, Legacy& legacy) {
    comm::Communicator& all = m.comm;
    legacy.founder = legacy.founder || d.view.epoch == 1;
    const bool later = d.view.epoch > 1 && legacy.goes_on(all, d.view.step);
    Config c = config_;
    if (later) legacy.share(all, d.view);
    if (d.view.epoch > 1) {
      share_batch(c, later ? legacy.global_batch : config_.batch_size * config_.workers, all.size());
      if (!m.has_server && !servers_.empty()) c.of_algorithm["servers"] = "inline";
      adapt_algorithm(c, all.size());
    }
    c.workers = all.size();
    Survivors survivors(all, m.hub, false);
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> nowhere(std::fopen("/dev/null", "w"), std::fclose);
    Progress progress(nowhere.get());
    Setup setup = open_setup(c, m, legacy.data);
    record.last = setup.total_steps;
    const std::shared_ptr<const data::Portions> portions = setup.portions;
    Trainer trainer(c, std::move(setup), directory_, progress, survivors);
    if (later)
      trainer.inherit(legacy);
    else if (d.view.epoch > 1)
      trainer.begin_again();
    const Id me = world_.me();
    with_state_.insert(me);
    record.views.emplace(d.view.epoch, d.view);
    ElasticRecord::Period& period = record.begin(d.view.epoch, all, trainer.step_number(), portions);
    const AtWork at_work(*this, trainer);
    Outcome out = trainer.run([&] { return work(trainer, period, all.meter()); },
                              [&] { return leaving_.count(me) > 0; });
    if (out.bereaved || (!out.legacy && is_untold(me, d.view))) return out;
    record.end(d.view.epoch, out);
    if (!out.legacy) return out;
    legacy = std::move(*out.legacy);
    return {};
  }
  // Takes the time of a gradient, in which what a server beside this worker sends counts; stops no worker.
  bool work(Trainer& trainer, ElasticRecord::Period& period, comm::Meter& meter) {
    const comm::Counted counting(meter);
    furthest_ = std::max(furthest_, trainer.step_number()), record.note_step(world_.me());
    if (!optim::strategy_row(config_.algorithm).asynchronous()) note_weight(trainer, period);
    return comm::sim::spend(draw(kLongestStep)), false;
  }
  static void note_weight(Trainer& trainer, ElasticRecord::Period& period) {
    optim::Snapshot state;
    state.take([&](Archive& a) { trainer.algorithm().visit(a); });
    if (const auto w = state.fields().find("w"); w != state.fields().end())
      period.weights[trainer.step_number()].push_back(std::get<double>(w->second));
  }
  void note_taken(Id id) {
    const auto t = trainers_.find(id);
    if (t == trainers_.end()) return;
    const comm::View& v = desks_.at(id)->view;
    const int rank = v.rank(id), server = server_in(v);
    record.periods.at(v.epoch).taken[size_t(rank - (server >= 0 && server < rank))] =
        t->second->step_number();
  }

  // ---- whom the others can do without: in every epoch that is not over for all, more than half remain or,
  // where all lost ones are known to have ended, half. A newcomer that has not come yet is of no help.
  bool may_lose(const std::set<Id>& victims, Death how) const {
    for (Id v : victims)
      if (!works(v) || leaving_.count(v)) return false;
    if (is_over()) return true;
    if (!is_spare(decided_, victims, how)) return false;
    for (const auto& [id, at] : desks_)
      if (works(id) && !is_out(id, *at) && !is_spare(at->view, victims, how)) return false;
    return is_known_without(victims);
  }
  // A worker is left that has the state or, before the first step, can make it.
  bool is_known_without(const std::set<Id>& victims) const {
    const bool begun = std::any_of(trainers_.begin(), trainers_.end(),
                                   [](const auto& t) { return t.second->step_number() > 0; });
    return std::any_of(desks_.begin(), desks_.end(), [&](const auto& desk) {
      const Id id = desk.first;
      return is_there(id) && !victims.count(id) &&
             (with_state_.count(id) || (!begun && id < founders_ && !servers_.count(id)));
    });
  }
  bool is_out(Id id, const Connection& at) const {
    return at.view.epoch < decided_.epoch && !decided_.has(id);
  }
  bool is_there(Id id) const {
    const auto at = desks_.find(id);
    return works(id) && !away_.count(id) && !leaving_.count(id) && at != desks_.end() &&
           !is_out(id, *at->second);
  }
  bool is_spare(const comm::View& v, const std::set<Id>& victims, Death how) const {
    size_t lost = 0;
    bool silence = how == Death::kSilence;
    for (const comm::View::Member& m : v.members) {
      const bool absent = works(m.id) && !desks_.count(m.id), away = away_.count(m.id) || silent_.count(m.id);
      lost += !is_there(m.id) || victims.count(m.id);
      silence = silence || absent || away;
    }
    return silence ? 2 * lost < v.members.size() : 2 * lost <= v.members.size();
  }

  comm::sim::World& world_;
  const Config config_;
  const std::string directory_;
  std::mt19937_64 random_;
  Id next_id_ = 0, founders_ = 0;
  int64_t furthest_ = 0;
  comm::View decided_;          // the latest
  std::set<Id> over_, silent_;  // its process has ended; its machine has
  std::set<Id> servers_, away_, was_away_, cut_off_, leaving_, with_state_;
  std::map<Id, Connection*> desks_;
  std::map<Id, Trainer*> trainers_;
  std::map<Id, Id> host_of_;  // at whose door a newcomer waits
  std::map<Id, comm::View> told_;
};

}  // namespace skein::apps
