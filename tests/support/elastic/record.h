// What a test sees of an elastic training, and what must be true of it whatever happened to its workers.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "apps/checkpoint/pool_table.h"
#include "apps/train/outcome.h"
#include "comm/membership/view.h"
#include "optim/strategy.h"

namespace skein::apps {

inline std::string words(const comm::View& v) {
  std::string all;
  for (const comm::View::Member& m : v.members) all += text(all.empty() ? "" : " ", m.id);
  return text(all, " from step ", v.step);
}

struct ElasticRecord {
  // An epoch of the membership, by the worker's rank where one is meant.
  struct Period {
    explicit Period(int n) : workers(n), begun(size_t(n), -1), taken(size_t(n), -1) {}
    const int workers;
    std::shared_ptr<const data::Portions> portions;
    std::vector<int64_t> begun, taken;  // the steps from `begun` on, before `taken`; -1: it never began
    int64_t from = -1, to = -1;         // of workers in step: the steps that were not taken back
    bool is_last = false;               // some worker has completed the run in it
    std::map<int64_t, std::vector<double>> weights;  // w of push-sum: of those who had taken so many steps
    std::vector<double> left_with;                   // the same, of those who left
    std::set<std::string> models;                    // x of those who left with a state
  };

  std::map<comm::MemberId, Outcome> ends;
  std::vector<std::string> troubles;  // why workers ended that should not have, and what they disagree about
  std::map<uint32_t, Period> periods;
  std::map<uint32_t, comm::View> views;  // of the same epochs
  int64_t last = 0;                      // the steps of the run
  int deaths = 0, given_up = 0, left = 0;
  int64_t longest_alone = 0;  // steps that one worker took between two steps of others

  void note_step(comm::MemberId who) {
    alone_ = who == latest_ ? alone_ + 1 : 1, latest_ = who;
    longest_alone = std::max(longest_alone, alone_);
  }

  Period& begin(uint32_t epoch, const comm::Communicator& all, int64_t step,
                std::shared_ptr<const data::Portions> portions) {
    Period& p = periods.try_emplace(epoch, all.size()).first->second;
    if (p.portions && step != p.from)
      troubles.push_back(
          text("in epoch ", epoch, " one worker begins with step ", p.from, ", another with ", step));
    if (!p.portions) p.portions = std::move(portions), p.from = step;
    p.begun[size_t(all.rank())] = p.taken[size_t(all.rank())] = step;
    return p;
  }
  int64_t largest_share() const {
    int64_t most = 0;
    for (const auto& [epoch, p] : periods)
      for (int64_t k = p.from; k < last; ++k) most = std::max(most, p.portions->samples(k, 0));
    return most;
  }
  // Some may have completed the run while others go back.
  void end(uint32_t epoch, const Outcome& out) {
    Period& p = periods.at(epoch);
    p.is_last = p.is_last || !out.legacy;
    if (p.to >= 0 && p.to != out.step && !p.is_last)
      troubles.push_back(
          text("epoch ", epoch, " ends with step ", p.to, " for one worker, ", out.step, " for another"));
    p.to = p.is_last ? std::max(p.to, out.step) : out.step;
    if (!out.legacy || !out.legacy->has_state) return;
    const optim::Snapshot::Fields& fields = out.legacy->state.fields();
    if (const auto w = fields.find("strategy.w"); w != fields.end())
      p.left_with.push_back(std::get<double>(w->second));
    if (const auto x = fields.find("x"); x != fields.end())
      p.models.insert(hash_of(std::get<Tensor>(x->second)));
  }

 private:
  comm::MemberId latest_ = 0;
  int64_t alone_ = 0;
};

// ---- the ledger: how often each sample was taken
// ---------------------------------------------------------------

using Samples = std::map<std::pair<int64_t, int64_t>, int>;  // by epoch of the data and index

inline void count_samples(Samples& ledger, const ElasticRecord::Period& p, int rank, int64_t from,
                          int64_t to) {
  for (int64_t k = from; k < to; ++k)
    for (int64_t i = 0; i < p.portions->samples(k, rank); ++i)
      ++ledger[{k / p.portions->steps_per_epoch(), p.portions->index(k, rank, i)}];
}

// Of workers in step: the steps that were not taken back, by any of them, the lost ones included.
inline void expect_each_sample_once(const ElasticRecord& r) {
  Samples ledger;
  int64_t at = 0, epochs = 0, samples = 0;
  for (const auto& [epoch, p] : r.periods) {
    ASSERT_EQ(p.from, at) << "epoch " << epoch << " of the membership";
    for (int rank = 0; rank < p.workers; ++rank) count_samples(ledger, p, rank, at, p.to);
    at = std::max(at, p.to), epochs = at / p.portions->steps_per_epoch();
  }
  EXPECT_EQ(at, r.last);
  for (const auto& [which, times] : ledger) {
    EXPECT_EQ(times, 1) << "sample " << which.second << " of epoch " << which.first;
    samples += which.first == 0;
  }
  EXPECT_EQ(int64_t(ledger.size()), epochs * samples);
}

// Of asynchronous workers: whatever they have taken, the lost until their end. Returns how many samples were
// taken once more than needed.
inline int64_t expect_no_sample_lost(const ElasticRecord& r) {
  Samples ledger;
  int64_t epochs = 0, samples = 0, doubled = 0;
  for (const auto& [epoch, p] : r.periods)
    for (int rank = 0; rank < p.workers; ++rank) {
      count_samples(ledger, p, rank, p.begun[size_t(rank)], p.taken[size_t(rank)]);
      epochs = std::max(epochs, p.taken[size_t(rank)] / p.portions->steps_per_epoch());
    }
  for (const auto& [which, times] : ledger) samples += which.first == 0, doubled += times - 1;
  EXPECT_EQ(int64_t(ledger.size()), epochs * samples) << "samples are lost";
  return doubled;
}

// ---- what workers hold
// -----------------------------------------------------------------------------------------

// The sum of w over the workers of an epoch is their number: after every step, and of all who leave it if
// none is lost.
inline void expect_whole_weight(const ElasticRecord& r) {
  const auto expect_whole = [](const std::vector<double>& w, const ElasticRecord::Period& p, uint32_t epoch) {
    if (int(w.size()) == p.workers) {
      EXPECT_NEAR(std::accumulate(w.begin(), w.end(), 0.0), double(p.workers), 1e-9) << "epoch " << epoch;
    }
  };
  for (const auto& [epoch, p] : r.periods) {
    expect_whole(p.left_with, p, epoch);
    for (const auto& [step, w] : p.weights) expect_whole(w, p, epoch);
  }
}

// The bits of x are the same on all who leave an epoch of the membership together.
inline void expect_one_model(const ElasticRecord& r) {
  for (const auto& [epoch, p] : r.periods) EXPECT_LE(p.models.size(), 1u) << "epoch " << epoch;
}

// All who have completed the run have evaluated the same model. Who was told of its end has no hash.
inline void expect_one_end(const ElasticRecord& r) {
  std::set<std::string> hashes;
  for (const std::string& why : r.troubles) ADD_FAILURE() << why;
  ASSERT_FALSE(r.ends.empty());
  for (const auto& [id, out] : r.ends) {
    EXPECT_FALSE(out.interrupted) << "worker " << id << ": " << out.why;
    EXPECT_EQ(out.step, r.last) << "worker " << id;
    if (!out.hash.empty()) hashes.insert(out.hash);
  }
  EXPECT_EQ(hashes.size(), 1u);
}

}  // namespace skein::apps
