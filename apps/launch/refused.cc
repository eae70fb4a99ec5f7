// Counts travel as doubles, which are exact up to 2^53.
#include "apps/launch/refused.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "comm/communicator/numbers.h"
#include "comm/communicator/words.h"

namespace skein::apps {
namespace {

using comm::Refused;

constexpr comm::Tag kRefused = comm::kOwnTags - 6;
constexpr double kToAnswer = 5;  // seconds; a run does not fail for want of these counts

constexpr std::pair<const char*, int64_t Refused::*> kCounts[] = {{"refused_callers", &Refused::callers},
                                                                  {"refused_messages", &Refused::messages},
                                                                  {"forged_messages", &Refused::forged},
                                                                  {"truncated_messages", &Refused::truncated},
                                                                  {"refused_datagrams", &Refused::datagrams}};

std::vector<double> numbers_in(const comm::Refusals* mine) {
  const Refused counts = mine ? mine->counts() : Refused();
  std::vector<double> all;
  for (const auto& [name, count] : kCounts) all.push_back(double(counts.*count));
  return all;
}

Refused refused_of(const std::vector<double>& numbers) {
  Refused r;
  size_t i = 0;
  for (const auto& [name, count] : kCounts) r.*count = int64_t(numbers.at(i++));
  return r;
}

}  // namespace

Refused refused_by_all(const comm::Refusals* mine, comm::Communicator& workers) {
  Refused all;
  for (const auto& one : comm::gather_numbers(workers, numbers_in(mine))) all += refused_of(one);
  return all;
}

Refused refused_by_server(comm::Communicator& hub) {
  const auto pair = hub.twin(false);  // a worker that is lost does not matter
  const comm::Rank server = hub.size() - 1;
  pair->push(server, kRefused, 0, 1, comm::bits_of({0}));
  const auto counts = pair->take_within(kToAnswer, server, kRefused, 0);
  return counts ? refused_of(comm::numbers_of(counts->payload)) : Refused();
}

void answer_refused(const Member& server) {
  if (const auto asked = server.hub.poll(comm::kAnyone, kRefused))
    server.hub.push(asked->from, kRefused, 0, 1, comm::bits_of(numbers_in(server.refusals)));
}

Json to_json(const Refused& r) {
  Json j = Json::object();
  for (const auto& [name, count] : kCounts) j[name] = r.*count;
  return j;
}

Refused refused_in(const Json& object) {
  Refused r;
  for (const auto& [name, count] : kCounts)
    if (const auto at = object.find(name); at != object.end() && at->is_number_integer())
      r.*count = at->get<int64_t>();
  return r;
}

}  // namespace skein::apps
