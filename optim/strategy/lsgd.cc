// Leader stochastic gradient descent.  Teng, Gao, Chalus, Choromanska, Goldfarb & Weller, NeurIPS 2019,
// Algorithm 1.
//
//   x                   a worker's model
//   z_group, z_global   the x of the worker with the smallest recent loss
//   c1, c2              strength of the pulls
//   p1, p2              of the proximal pulls
//   tau_l, tau_g        steps per worker between two pulls, on average: a cycle is W tau_l steps, which go to
//                       workers as they ask
//
// Servers say whose turn it is (optim/leaders/lease_servers.h, docs/leaders.md).
#include <cstdio>

#include "comm/communicator/words.h"
#include "optim/gossip/gossip.h"
#include "optim/leaders/leaders.h"
#include "optim/leaders/lease_servers.h"

namespace skein::optim {
namespace {

using lease::Next;

class Lsgd final : public Strategy, public WithServer {
 public:
  Lsgd(const Options& o, int world)
      : options_(o),
        world_(world),
        tau_l_(o.integer("tau-local", 4, 1)),
        tau_g_(o.integer("tau-global", 16, 1)),
        window_length_(o.integer("loss-window", tau_l_, 1)),
        groups_(o.word("groups", "hosts") == "hosts" ? 0 : o.integer("groups", 1, 1)),
        local_{o.number("c-local", 0.1), o.number("prox-local", 0)},
        global_{o.number("c-global", 0.1), o.number("prox-global", 0)} {
    if (tau_g_ % tau_l_ != 0)
      throw BadOption(text("--tau-global ", tau_g_, ": a multiple of --tau-local ", tau_l_, " is needed"));
    if (groups_ > 0) split_groups(world, groups_);
    has_dedicated_server(o);
  }

  void start(Worker& me) override {
    const lease::Plan p = plan(me.comm);
    const int rank = me.comm.rank();
    for (const std::vector<int>& members : p.groups)
      if (std::find(members.begin(), members.end(), rank) != members.end()) members_ = members;
    window_.emplace(window_length_, me.x.device());
    two_levels_ = two_levels(p.groups);
    const bool mixes = buffer_policy(options_) == BufferPolicy::kMix;
    all_.emplace(me.comm, me, global_.c, global_.p / double(tau_g_), mixes);
    if (two_levels_) {
      near_ = me.comm.group(members_);
      group_.emplace(*near_, me, local_.c, local_.p / double(tau_l_), mixes);
    }
    leases_ = std::make_unique<Leases>(options_, me.comm, hub_of(me), p);
  }

  Tensor iterate(Worker& me, int64_t) override {
    for (Next t; (t = leases_->next()) != Next::kSteps;) round(me, t);
    const Tensor loss = me.gradient();  // g at x
    if (me.share > 0) window_->see(loss);
    me.local_step(me.x);                           // x <- x - eta u
    all_->pull_proximally(me);                     // x <- x + p2/tau_g (A_g - x)
    if (two_levels_) group_->pull_proximally(me);  // x <- x + p1/tau_l (A_l - x)
    return loss;
  }

  void settle(Worker& me) override {
    for (Next t; (t = leases_->meet()) != Next::kMet;) round(me, t);
  }

  void serve(comm::Communicator& hub, Served& kept) override { lease::serve(options_, hub, plan(hub), kept); }

  void visit(Archive& a) override {
    window_->visit(a);
    Under all(a, "global."), group(a, "local."), leases(a, "leases.");
    all_->visit(all);
    if (two_levels_) group_->visit(group);
    leases_->visit(leases);
  }

 private:
  bool two_levels(const std::vector<std::vector<int>>& groups) const {
    return groups.size() > 1 && tau_g_ != tau_l_;
  }
  // `comm`: the workers, others after them.
  lease::Plan plan(comm::Communicator& comm) const {
    auto groups = groups_ > 0 ? split_groups(world_, groups_) : split_by_host(world_, comm);
    const int64_t tau = two_levels(groups) ? tau_l_ : tau_g_;
    return {std::move(groups), world_ * tau, tau_g_ / tau};
  }

  void round(Worker& me, Next t) {
    const bool global = t == Next::kGlobalRound;
    const std::vector<double> losses = table(global ? me.comm : *near_);
    std::vector<double> own = losses;
    if (global && two_levels_) {
      own.clear();
      for (int r : members_) own.push_back(losses[size_t(r)]);
    }
    if (two_levels_ && !group_->pull(me, own))
      say_nobody(me, members_[0], text("worker ", members_[0], "'s group"));  // x <- x + c1 (z_group - x)
    if (global && !all_->pull(me, losses)) say_nobody(me, 0, "any group");    // x <- x + c2 (z_global - x)
  }

  // The mean losses of late, of the workers of `comm`.
  std::vector<double> table(comm::Communicator& comm) const {
    std::vector<double> losses;
    for (const auto& theirs : comm::gather_numbers(comm, {window_->mean()})) losses.push_back(theirs[0]);
    return losses;
  }

  static void say_nobody(const Worker& me, int speaker, const std::string& where) {
    if (me.comm.rank() != speaker) return;
    std::fputs(text("lsgd: no worker of ", where, " has a finite loss: a round without a leader\n").c_str(),
               stderr);
  }

  const Options options_;
  const int world_;
  const int64_t tau_l_, tau_g_;
  const int64_t window_length_;
  const int64_t groups_;  // 0: one per host
  struct Strength {
    double c, p;  // of the pulls, and of the proximal ones
  };
  const Strength local_, global_;
  std::optional<LossWindow> window_;
  bool two_levels_ = false;
  std::vector<int> members_;  // of the own group, by world rank
  std::unique_ptr<comm::Communicator> near_;
  std::optional<Leader> group_, all_;
  std::unique_ptr<Leases> leases_;
};

}  // namespace

std::unique_ptr<Strategy> make_lsgd(const Options& o, int world) { return std::make_unique<Lsgd>(o, world); }

}  // namespace skein::optim
