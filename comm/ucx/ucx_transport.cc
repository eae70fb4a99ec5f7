// UCX transport: how ranks learn each other's addresses, and how they wait.
#include "comm/ucx/ucx_transport.h"

#include <poll.h>

#include <cstdio>
#include <set>

#include "comm/join/handshake.h"
#include "comm/ucx/ucx_peer.h"

namespace skein::comm {
namespace {

constexpr auto kLongestSleep = std::chrono::milliseconds(5);
constexpr auto kPolling = std::chrono::microseconds(60);  // before sleeping
constexpr auto kGlance = std::chrono::microseconds(20);   // between looks at a device, which wakes no thread

struct Address {  // what ranks exchange: secret, TCP port, own addresses, worker address
  std::string secret, worker;
  int port = 0;
  std::vector<std::string> hosts;

  std::string write() const {
    std::ostringstream s;
    s << secret << port << ' ' << hosts.size() << ' ';
    for (const std::string& h : hosts) s << h << ' ';
    return s.str() + worker;
  }
  static Address read(const std::string& words) {
    CHECK(words.size() > 32, "a rank gave no address");
    Address a;
    a.secret = words.substr(0, 32);
    std::istringstream s(words.substr(32));
    size_t n = 0;
    s >> a.port >> n;
    for (std::string h; n > 0 && s >> h; --n) a.hosts.push_back(h);
    s.get();
    a.worker.assign(std::istreambuf_iterator<char>(s), {});
    return a;
  }
};

}  // namespace

UcxEndpoints::UcxEndpoints(Exchange& exchange, const Peers& peers, Mailbox& box, Liveness& live,
                           const TransportOptions& o, const NetworkChoice& network)
    : worker_(std::make_unique<Worker>(box, live, o, network.devices, exchange.size())) {
  Address mine;
  mine.secret = random_bytes(32);
  const Fd listener = listen_tcp(exchange.size(), mine.port);
  mine.hosts = network.addresses;
  mine.worker = worker_->address();
  std::vector<Address> all;
  HandshakeOptions m;
  for (const std::string& words : exchange.all_gather(mine.write())) {
    all.push_back(Address::read(words));
    m.secrets.push_back(all.back().secret);
  }
  m.me = exchange.rank();
  m.peers = peers.far;
  m.deadline = after(o.deadline);
  m.dial = [&](Rank r) { return connect_tcp(all[size_t(r)].hosts, all[size_t(r)].port, m.deadline); };
  m.welcome = [](const Fd&) { return true; };
  for (auto& [r, socket] : handshake(m, listener, worker_->strangers_)) live.watch(r, std::move(socket));
  for (const auto& ranks : {peers.far, peers.near})
    for (Rank r : ranks) worker_->connect(r, all[size_t(r)].worker);
}

UcxEndpoints::~UcxEndpoints() { flush(); }

void UcxEndpoints::flush() {
  progress_until(std::chrono::seconds(60), [this] { return worker_->flushed(); });
}

void UcxEndpoints::await_confirmation() {
  progress_until(std::chrono::seconds(5), [this] { return worker_->goodbyes_confirmed(); });
}

void UcxEndpoints::progress_until(Clock::duration at_most, const std::function<bool()>& done) try {
  const auto deadline = Clock::now() + at_most;
  while (!done() && Clock::now() < deadline) {
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
int64_t UcxEndpoints::strangers() const { return worker_->strangers_; }

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
