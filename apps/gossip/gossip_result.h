// The results of gossip_avg: measured and theoretical contraction and the mass law, as text and as JSON.
#pragma once
#include <string>
#include <vector>

#include "apps/base/json.h"
#include "apps/gossip/gossip_flags.h"
#include "comm/average/link_test.h"
#include "comm/refusals.h"

namespace skein::apps {

// One membership epoch, compared with its theory.
struct EpochStory {
  comm::AveragingEpoch epoch;
  std::vector<comm::AveragingResult::Point> points;  // measured; the first is the epoch's start
  std::vector<double> theory;            // factor of the distance after 0, 1, ... gossips of this epoch
  int64_t gossips = 0;                   // how many are compared: those before only rounding is left
  double measured = 0, theoretical = 0;  // contraction per gossip over them; 0: exactly the mean
  bool doubtful = false;                 // it began, but was interrupted before its start was known
};

struct GossipStory {
  int workers = 1;
  int64_t elements = 0;
  bool doubles = false;  // float64, rather than fp32
  int64_t bytes_sent = 0;
  const comm::AveragingResult* result = nullptr;
  std::vector<double> weights;  // those of the living
  int64_t skipped = 0;          // shares that never arrived
  std::vector<comm::Rank> living;
  std::vector<EpochStory> epochs;
  std::string ways;
  comm::Refused refused;  // by the living
};

// The epochs of a result, compared with what their graphs promise.
std::vector<EpochStory> epoch_stories(const GossipFlags&, const comm::AveragingResult&, bool doubles);

std::string in_words(const GossipFlags&, const GossipStory&);
Json in_json(const GossipFlags&, const GossipStory&);

std::string in_words(const std::vector<comm::LinkTimes>&, int workers, const std::string& ways);
Json in_json(const std::vector<comm::LinkTimes>&, int workers, const std::string& ways);

}  // namespace skein::apps
