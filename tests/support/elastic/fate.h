// Random faults of an elastic training.
#pragma once
#include "tests/support/elastic/job.h"

namespace skein::apps {

struct FateCounts {
  int kills = 0, silences = 0, hangs = 0, cuts = 0, leaves = 0, joins = 0;
  std::string words() const {
    return text(kills, " kills, ", silences, " silent deaths, ", hangs, " hangs, ", cuts, " cuts, ", leaves,
                " leaves, ", joins, " joins");
  }
  FateCounts& operator+=(const FateCounts& o) {
    kills += o.kills, silences += o.silences, hangs += o.hangs, cuts += o.cuts, leaves += o.leaves,
        joins += o.joins;
    return *this;
  }
};

// Events at random times, or when so many messages more have arrived, so that they also hit what takes no
// time: meetings, evaluations, checkpoints, the last exchanges. Some come while the last one is dealt with,
// and some while the run ends.
class Fate {
 public:
  Fate(comm::sim::World& world, ElasticJob& job, uint64_t seed) : world_(world), job_(job), random_(seed) {
    events_ = 2 + int(below(5));
    below(2) ? after_messages(below(400)) : after(0.05 + draw(1));
    if (below(2)) await_the_end();
  }
  FateCounts counts;

 private:
  using Id = comm::sim::Id;
  static constexpr double kLongestHang = 2, kLongestCut = 2;
  static constexpr size_t kMostWorkers = 9;

  size_t below(size_t n) { return random_() % n; }
  double draw(double most) { return std::uniform_real_distribution<double>(0, most)(random_); }
  void after(double seconds) {
    world_.at(world_.now() + seconds, [this] { strike(); });
  }
  void after_messages(uint64_t n) {
    world_.at_message(world_.messages() + n, [this] { strike(); });
  }
  void await_the_end() {
    const bool ends = job_.is_ending();
    if (ends) events_ += 1 + int(below(2));
    if (ends && below(2)) return after_messages(below(300));
    world_.at(world_.now() + (ends ? draw(0.2) : 0.02), [this, ends] { ends ? strike() : await_the_end(); });
  }
  void strike() {
    if (events_ <= 0) return;
    if (const std::vector<Id> members = job_.members(); !members.empty()) befall(members);
    if (--events_ <= 0) return;
    below(3) ? after(below(2) ? draw(0.3) : draw(1.5)) : after_messages(below(300));
  }
  void befall(const std::vector<Id>& members) {
    const Id victim = members[below(3) ? below(members.size()) : 0];  // the first is the proposer
    const size_t kind = below(20);
    if (kind < 6 && members.size() < kMostWorkers)
      job_.join(), ++counts.joins;
    else if (kind < 12)
      counts.kills += job_.kill(victim, ElasticJob::Death::kHangUp);
    else if (kind < 14)
      counts.silences += job_.kill(victim, ElasticJob::Death::kSilence);
    else if (kind < 16)
      counts.hangs += job_.hang(victim, draw(kLongestHang));
    else if (kind < 18)
      counts.leaves += job_.leave(victim);
    else
      counts.cuts += job_.cut(some(members), draw(kLongestCut));
  }
  std::set<Id> some(const std::vector<Id>& members) {
    std::set<Id> side;
    for (size_t i = 0; i < 1 + members.size() / 4; ++i) side.insert(members[below(members.size())]);
    return side;
  }

  comm::sim::World& world_;
  ElasticJob& job_;
  std::mt19937_64 random_;
  int events_;
};

}  // namespace skein::apps
