// SimCollectives: collectives of many members of a simulated world, each one event a member.
#pragma once
#include "comm/sim/world.h"

namespace skein::comm::sim {

struct World::Gathering {
  Collectives::Call first{};
  size_t present = 0;
  std::vector<Tensor> brought;
  std::vector<double> bytes, came;
  std::vector<std::shared_ptr<Collectives::Result>> results;
};

// A member's, in one round. What its members bring is combined when the last has come, and each has it at the
// time that CollectiveTimes gives; a member that is lost before it came leaves the others waiting, who then
// hear of the loss.
class SimCollectives final : public Collectives {
 public:
  SimCollectives(World& w, std::shared_ptr<World::Round> r) : world_(w), round_(std::move(r)) {}
  std::shared_ptr<const Result> begin(const Call&, const Combine&) override;

 private:
  [[noreturn]] void disagree(const World::Gathering&, const Call&) const;
  void complete(const World::Gathering&, const Combine&) const;
  std::vector<double> ends(const World::Gathering&) const;
  World& world_;
  const std::shared_ptr<World::Round> round_;
};

}  // namespace skein::comm::sim
