// SimTransport: one worker's transport in one epoch of a simulated world.
#pragma once
#include <map>
#include <set>
#include <unordered_map>

#include "comm/mailbox.h"
#include "comm/sim/collective_times.h"
#include "comm/sim/sim_collectives.h"

namespace skein::comm::sim {

// The members of an epoch, and their mailboxes.
struct World::Round {
  Round(uint32_t epoch, const std::vector<Id>& members, std::vector<Worker> workers, const WorldOptions&);
  size_t place_of(Worker) const;  // members.size(): it is none
  static void say_goodbye(World&, const std::shared_ptr<Round>&, Rank from, Rank to);  // once

  const uint32_t epoch;
  const std::vector<Id> members;
  const std::vector<Worker> workers;
  std::vector<std::unique_ptr<Mailbox>> boxes;
  std::vector<std::unordered_map<Rank, int64_t>> flying;  // bytes on their way: flying[from][to]
  std::vector<bool> open;                                 // whose transport is, or is about to be
  struct Meeting {
    std::set<Rank> waiting, come;  // before it is formed: who waits, and who ever did
    bool formed = false;
    Mutex mutex;
    Condition complete;
  } meeting;
  // Of many members, who leaves says goodbye only to those that wait for it: others have nothing to
  // hear of it.
  const bool large;
  std::map<std::pair<uint32_t, int64_t>, Gathering> gatherings;  // by communicator and sequence
  std::map<uint32_t, std::unique_ptr<CollectiveTimes>> times;    // of communicators
  std::vector<bool> left;
  std::vector<std::vector<Rank>> waiting;  // by member: whose threads wait for its messages
  std::map<Rank, std::set<Rank>> told;     // to whom who has left has said so
};

class SimTransport final : public Transport {
 public:
  SimTransport(World&, std::shared_ptr<World::Round>, Rank);
  ~SimTransport() override;

  Rank rank() const override { return rank_; }
  int size() const override { return int(round_->members.size()); }
  Endpoint& to(Rank) override;
  Mailbox& mailbox() override { return box(rank_); }
  void wait(const Key&, Clock::time_point until) override;
  bool ordered() const override { return !world_.network_.weather().overtaking; }
  std::string describe() const override { return text("simulated: ", size(), " workers\n"); }
  std::string address() const override;
  int host(Rank) override;
  double stands_for(DType pushed, int64_t elements) const override {
    return pushed == kF32 && elements > 1 ? world_.options_.stands_for : 1;
  }
  Collectives* collectives(int members) override;
  void fail() override { failed_ = true; }

 private:
  class Way final : public Endpoint {
   public:
    Way(SimTransport& t, Rank peer) : t_(t), peer_(peer), flying_(t.round_->flying[size_t(t.rank_)][peer]) {}
    const char* name() const override { return "simulated"; }
    void send(const Header& h, Tensor payload, Clock::time_point deadline) override {
      t_.send(peer_, flying_, h, std::move(payload), deadline);
    }

   private:
    SimTransport& t_;
    const Rank peer_;
    int64_t& flying_;  // the round's: messages may be on their way for longer than this lives
  };
  friend struct World::Round;
  Mailbox& box(Rank r) const { return *round_->boxes[size_t(r)]; }
  void send(Rank to, int64_t& flying, const Header&, Tensor payload, Clock::time_point deadline);
  void await_room(Rank to, const int64_t& flying, int64_t bytes, Clock::time_point deadline);
  void leave();
  static void put(World&, const std::shared_ptr<World::Round>&, Rank to, Message);

  World& world_;
  const std::shared_ptr<World::Round> round_;
  const Rank rank_;
  std::unordered_map<Rank, Way> ways_;
  SimCollectives collectives_;
  bool failed_ = false;
};

}  // namespace skein::comm::sim
