// Asking, measuring, deciding.
#include "comm/communicator/device_messages.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "comm/communicator/words.h"
#include "engine/clock.h"
#include "engine/words/find_row.h"

namespace skein::comm {
namespace {

constexpr Tag kThere = 1, kBack = 2;
constexpr int kTrips = 5;                             // after a first one that does not count
constexpr int64_t kMostElements = int64_t(16) << 20;  // 64 MB are enough to tell the two apart

// The median round trip with `peer`. It ends when the answer lies on the device.
double round_trip(Communicator& c, Rank peer, const Tensor& x, int64_t& step) {
  std::vector<double> times;
  for (int i = 0; i <= kTrips; ++i, ++step) {
    const double began = steady_seconds();
    if (c.rank() < peer) c.push(peer, kThere, step, 1, x);
    const Tensor came = c.take(peer, c.rank() < peer ? kBack : kThere, step, x).payload;
    if (c.rank() > peer) c.push(peer, kBack, step, 1, came);
    current_stream(x.device()).sync();
    if (i > 0) times.push_back(steady_seconds() - began);
  }
  std::nth_element(times.begin(), times.begin() + kTrips / 2, times.end());
  return times[kTrips / 2];
}

// All pairs of neighbors at the same time, as in a gossip.
RoundTrips measure(Communicator& c, Device mine, int64_t elements) {
  const Rank peer = c.rank() ^ 1;
  const bool paired = peer < c.size();
  const Tensor x = paired ? Tensor::zeros({elements}, kF32, mine) : Tensor();
  RoundTrips t;
  int64_t step = 0;
  for (const bool direct : {false, true}) {
    c.transport().devices().land_on(direct ? mine : kCpu);
    c.barrier();
    if (paired) (direct ? t.direct : t.by_host) = round_trip(c, peer, x, step);
  }
  return t;
}

std::string ms(double seconds) { return text(std::round(seconds * 1e5) / 100, " ms"); }

}  // namespace

DeviceMessages parse_device_messages(const std::string& word) {
  return one_of<DeviceMessages>(
      "--device-messages", word,
      {{"auto", DeviceMessages::kAuto}, {"on", DeviceMessages::kOn}, {"off", DeviceMessages::kOff}});
}

MessageVerdict decide(DeviceMessages wish, const std::vector<bool>& gpus, const std::string& trouble) {
  const bool on = wish == DeviceMessages::kOn;
  const auto none = std::find(gpus.begin(), gpus.end(), false);
  if (std::find(gpus.begin(), gpus.end(), true) == gpus.end())
    return {false, "", on ? "the workers compute on CPUs" : ""};
  const std::string way = "messages between GPUs go by way of the host";
  if (wish == DeviceMessages::kOff) return {false, way + ", as asked", ""};
  const std::string why = none != gpus.end() ? text("worker ", none - gpus.begin(), " has no GPU") : trouble;
  if (!why.empty()) return {false, way + ": " + why, on ? why : ""};
  return {true, "messages between GPUs go by UCX from GPU to GPU, as asked", ""};
}

MessageVerdict decide(const std::vector<RoundTrips>& all, int64_t bytes) {
  RoundTrips worst;
  for (const RoundTrips& t : all) {
    worst.by_host = std::max(worst.by_host, t.by_host);
    worst.direct = std::max(worst.direct, t.direct);
  }
  const bool direct = worst.direct < worst.by_host;
  const std::string figures =
      text(" (", bytes >> 10, " KiB there and back between neighbors: ", ms(worst.direct),
           " from GPU to GPU, ", ms(worst.by_host), " by way of the host)");
  return {direct,
          (direct ? "messages between GPUs go by UCX from GPU to GPU, which is faster"
                  : "messages between GPUs go by way of the host, which is faster") +
              figures,
          ""};
}

std::string choose_device_messages(Communicator& comm, DeviceMessages wish, Device mine, int64_t elements) {
  if (comm.size() == 1) return "";
  std::vector<Rank> all(static_cast<size_t>(comm.size()));
  std::iota(all.begin(), all.end(), 0);
  const auto c = comm.group(all);  // shares no tags with others
  const int64_t least = std::clamp<int64_t>(elements, 1, kMostElements);
  std::vector<bool> gpus;
  const auto said = gather_numbers(*c, {double(!mine.is_host()), double(wish)});
  for (const auto& of : said) gpus.push_back(of[0] != 0);
  wish = DeviceMessages(int(said[0][1]));  // rank 0 decides
  MessageVerdict v = decide(wish, gpus, c->transport().devices().trouble(mine));
  if (!v.refused.empty()) throw BadOption("--device-messages on: " + v.refused);
  if (v.direct && wish == DeviceMessages::kAuto) {
    const RoundTrips t = measure(*c, mine, least);
    std::vector<RoundTrips> trips;
    for (const auto& of : gather_numbers(*c, {t.by_host, t.direct})) trips.push_back({of[0], of[1]});
    v = decide(trips, 4 * least);
  }
  c->transport().devices().land_on(v.direct ? mine : kCpu);
  c->barrier();
  return v.why;
}

}  // namespace skein::comm
