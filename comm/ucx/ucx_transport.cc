// UCX transport: how ranks learn each other's addresses, and how they wait.
#include "comm/ucx/ucx_transport.h"

#include <poll.h>

#include <cstdio>
#include <set>

#include "comm/ucx/ucx_peer.h"

namespace skein::comm {
namespace {

constexpr auto kLongestSleep = std::chrono::milliseconds(5);
constexpr auto kPolling = std::chrono::microseconds(60);  // before sleeping
constexpr auto kAfterLoss = std::chrono::seconds(1);     // until what living peers have not taken is given up
constexpr auto kGlance = std::chrono::microseconds(20);  // between looks at a device, which wakes no thread

}  // namespace

UcxEndpoints::UcxEndpoints(Exchange& exchange, const std::vector<Rank>& peers, Mailbox& box, Liveness& live,
                           const TransportOptions& o)
    : worker_(std::make_unique<Worker>(box, live, o, exchange.size())) {
  const std::vector<std::string> addresses = exchange.all_gather(address_of(worker_->worker_));
  for (Rank r : peers) worker_->connect(r, addresses[size_t(r)]);
}

UcxEndpoints::~UcxEndpoints() { flush(); }

void UcxEndpoints::flush() {
  progress_until(std::chrono::seconds(60), [this] { return worker_->flushed(); });
}

void UcxEndpoints::await_confirmation() {
  progress_until(std::chrono::seconds(5), [this] { return worker_->goodbyes_confirmed(); });
}

// What a peer has not taken after another one was lost may never be taken (comm/transports/ways.cc).
void UcxEndpoints::progress_until(Clock::duration at_most, const std::function<bool()>& done) try {
  const auto began = Clock::now();
  const auto limit = [&] {
    return worker_->box_.membership().dead().empty() ? at_most
                                                     : std::min<Clock::duration>(at_most, kAfterLoss);
  };
  while (!done() && Clock::now() - began < limit()) {
    worker_->progress();
    worker_->live_.check();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
} catch (const Error&) {  // a lost device: what waits for it is never sent
}

Endpoint& UcxEndpoints::to(Rank r) {
  CHECK(worker_->peers_.at(size_t(r)), "rank", r, "is not reached by UCX");
  return *worker_->peers_[size_t(r)];
}
bool UcxEndpoints::reaches(Rank r) const { return worker_->peers_.at(size_t(r)) != nullptr; }
void UcxEndpoints::land_on(Device d) { worker_->land_on(d); }
Device UcxEndpoints::landing() const { return worker_->landing_; }
void UcxEndpoints::progress() { worker_->progress(); }

void UcxEndpoints::wake() { ucx().ucp_worker_signal(worker_->worker_); }

void UcxEndpoints::nap(const Key& k, Clock::time_point until) {
  const int64_t before = worker_->box_.arrivals();
  const auto began = Clock::now();
  for (int i = 0; Clock::now() - began < kPolling; ++i) {
    worker_->progress();
    if (worker_->box_.arrivals() != before || worker_->box_.has(k)) return;
    if (i % 4 == 3) std::this_thread::yield();
  }
  if (worker_->awaits_device()) return std::this_thread::sleep_for(kGlance);
  {
    const std::lock_guard lock(worker_->mutex_);
    if (ucx().ucp_worker_arm(worker_->worker_) != UCS_OK) return;  // there is something to progress
  }
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::min<Clock::duration>(until - Clock::now(), kLongestSleep));
  pollfd p{worker_->event_, POLLIN, 0};
  poll(&p, 1, int(std::max<int64_t>(0, left.count())));
}

std::string UcxEndpoints::lanes(Rank r) const {
  const std::lock_guard lock(worker_->mutex_);
  char* words = nullptr;
  size_t n = 0;
  FILE* f = open_memstream(&words, &n);
  ucx().ucp_ep_print_info(worker_->peers_.at(size_t(r))->ep_, f);
  fclose(f);
  // In lines like "#  lane[1]:  3:posix/memory.0 md[3]  -> md[3]/posix/sysdev[255] am am_bw#0" the second
  // word is the transport.
  std::set<std::string> ways;
  std::istringstream all(std::string(words, n));
  free(words);
  for (std::string line; std::getline(all, line);) {
    const size_t lane = line.find("lane[");
    if (lane == std::string::npos) continue;
    std::istringstream s(line.substr(line.find(':', lane) + 1));
    std::string way;
    s >> way;
    ways.insert(way.substr(way.find(':') + 1));
  }
  std::string s = "ucx";
  for (const std::string& w : ways) s += " " + w;
  return s;
}

}  // namespace skein::comm
