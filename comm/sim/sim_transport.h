// SimTransport: one worker's transport in one epoch of a simulated world.
#pragma once
#include <set>

#include "comm/mailbox.h"
#include "comm/sim/world.h"

namespace skein::comm::sim {

// The members of an epoch, and their mailboxes.
struct World::Round {
  Round(uint32_t epoch, const std::vector<Id>& members, std::vector<Worker> workers, int64_t room);
  size_t place_of(Worker) const;  // members.size(): it is none

  const std::vector<Id> members;
  const std::vector<Worker> workers;
  std::vector<std::unique_ptr<Mailbox>> boxes;
  std::vector<std::vector<int64_t>> flying;  // bytes on their way: flying[from][to]
  std::vector<bool> open;                    // whose transport is, or is about to be
  std::set<Rank> come;                       // before it is formed
  bool formed = false;
  Mutex mutex;
  Condition complete;
};

class SimTransport final : public Transport {
 public:
  SimTransport(World&, std::shared_ptr<World::Round>, Rank);
  ~SimTransport() override;

  Rank rank() const override { return rank_; }
  int size() const override { return int(round_->members.size()); }
  Endpoint& to(Rank) override;
  Mailbox& mailbox() override { return box(rank_); }
  void wait(const Key& k, Clock::time_point until) override { mailbox().wait(k, until); }
  bool ordered() const override { return !world_.network_.weather().overtaking; }
  std::string describe() const override { return text("simulated: ", size(), " workers\n"); }
  std::string address() const override;
  void fail() override { failed_ = true; }

 private:
  class Way;
  Mailbox& box(Rank r) const { return *round_->boxes[size_t(r)]; }
  void send(Rank to, const Header&, Tensor payload, Clock::time_point deadline);
  void await_room(Rank to, int64_t bytes, Clock::time_point deadline);
  static void put(World&, const std::shared_ptr<World::Round>&, Rank to, Message);

  World& world_;
  const std::shared_ptr<World::Round> round_;
  const Rank rank_;
  std::vector<std::unique_ptr<Endpoint>> ways_;
  bool failed_ = false;
};

}  // namespace skein::comm::sim
