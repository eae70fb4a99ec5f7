// Connect: one process's transport, which reaches each peer through shared memory or by UCX.
#include <algorithm>
#include <map>

#include "comm/join/choose_network.h"
#include "comm/join/liveness.h"
#include "comm/join/sockets.h"
#include "comm/mailbox.h"
#include "comm/transport.h"
#include "comm/transports/shared_transport.h"
#include "comm/ucx/ucx_look.h"
#include "comm/ucx/ucx_transport.h"

namespace skein::comm {
namespace {

// Why payloads in GPU memory cannot go by UCX: the reason of the first rank that has one. Collective.
std::string gpu_trouble(Exchange& e, const TransportOptions& o) {
  const bool wanted = o.gpu && o.way != Way::kShared;
  const std::string mine = wanted ? text("+", ucx_cuda_trouble()) : "-";
  const std::vector<std::string> all = e.all_gather(mine);
  for (size_t r = 0; r < all.size(); ++r)
    if (all[r].size() > 1) return text("worker ", r, ": ", all[r].substr(1));
  if (std::find(all.begin(), all.end(), "+") == all.end())
    return o.way == Way::kShared ? "--transport shared leaves UCX out" : "no worker asked for it";
  return "";
}

// Payloads in a GPU's memory go by UCX. Without `gpu_trouble` there is a UCX endpoint for every peer.
class UcxDevices final : public DeviceMemory {
 public:
  UcxDevices(UcxEndpoints* ucx, std::string gpu_trouble) : ucx_(ucx), gpu_trouble_(std::move(gpu_trouble)) {}
  std::string trouble(Device d) const override {
    if (d.is_cuda()) return gpu_trouble_;
    return ucx_ ? "" : "shared memory is the host's";
  }
  void land_on(Device d) override {
    if (ucx_) ucx_->land_on(d);
  }
  bool carries(Rank r, Device d) const override {
    return !d.is_host() && ucx_ && ucx_->reaches(r) && ucx_->landing() == d;
  }
  Endpoint& endpoint(Rank r) const override { return ucx_->to(r); }

 private:
  UcxEndpoints* const ucx_;  // null: all messages go through shared memory
  const std::string gpu_trouble_;
};

// For each rank the first rank of its host.
std::vector<int> domains_of(Exchange& e) {
  std::vector<int> domains;
  const std::vector<std::string> hosts = e.all_gather(host_identity());
  for (const std::string& h : hosts)
    domains.push_back(int(std::find(hosts.begin(), hosts.end(), h) - hosts.begin()));
  return domains;
}

class ProcessTransport final : public Transport {
 public:
  ProcessTransport(Exchange& e, const TransportOptions& o)
      : rank_(e.rank()), size_(e.size()), box_(rank_, size_, o.in_flight), live_(box_, o.silence) {
    const std::vector<int> domains = domains_of(e);
    const std::string gpu = gpu_trouble(e, o);
    std::vector<Rank> near, far;
    for (Rank r = 0; r < size_; ++r) {
      if (r == rank_) continue;
      const bool same = domains[size_t(r)] == domains[size_t(rank_)];
      if (o.way == Way::kShared && !same)
        throw BadOption(text("--transport shared: rank ", r,
                             " is on another host, or of another user, than rank ", rank_,
                             "; use auto or ucx"));
      (same && o.way != Way::kUcx ? near : far).push_back(r);
    }
    const bool one_host = std::all_of(domains.begin(), domains.end(), [&](int d) { return d == domains[0]; });
    NetworkChoice network{.devices = "", .addresses = own_addresses(), .why = ""};
    if (!one_host) network = choose_network(e, domains, o);
    network_ = network.why;
    if (o.way != Way::kUcx) shared_ = std::make_unique<SharedEndpoints>(e, domains, box_, live_, o);
    const UcxEndpoints::Peers peers{.far = far, .near = gpu.empty() ? near : std::vector<Rank>()};
    if (o.way == Way::kUcx || !one_host || gpu.empty())
      ucx_ = std::make_unique<UcxEndpoints>(e, peers, box_, live_, o, network);
    devices_ = std::make_unique<UcxDevices>(ucx_.get(), gpu);
    near_.assign(size_t(size_), false);
    for (Rank r : near) near_[size_t(r)] = true;
    live_.start();
  }

  ~ProcessTransport() override {
    const std::vector<Rank> dead = box_.membership().dead();
    Message m = notice(Kind::kGoodbye, rank_, 0, Tensor::of<int32_t>({int64_t(dead.size())}, dead));
    m.step = failed_ ? kFailed : 0;
    if (ucx_) ucx_->flush();
    for (Rank r = 0; r < size_; ++r) {
      if (r == rank_ || !box_.membership().alive(r)) continue;
      try {  // by UCX if possible, so that it comes after all messages; those in shared memory have arrived
        Endpoint& last = ucx_ && ucx_->reaches(r) ? ucx_->to(r) : to(r);
        last.send(m, m.payload, after(1));
      } catch (const Error&) {  // it has gone itself, or will find this rank gone
      }
    }
    if (ucx_) ucx_->await_confirmation();
  }

  Rank rank() const override { return rank_; }
  int size() const override { return size_; }
  Endpoint& to(Rank r) override {
    CHECK(r >= 0 && r < size_, "no door to rank", r);
    if (r == rank_) return self_;
    return near_[size_t(r)] ? shared_->to(r) : ucx_->to(r);
  }
  Mailbox& mailbox() override { return box_; }
  SharedMemory& memory() override { return shared_ ? *shared_ : Transport::memory(); }
  DeviceMemory& devices() override { return *devices_; }

  void progress() override {
    live_.check();
    if (shared_) shared_->progress();
    if (ucx_) ucx_->progress();
  }
  void wait(const Key& k, Clock::time_point until) override {
    if (shared_ && ucx_)
      shared_->nap(k, std::min(until, Clock::now() + std::chrono::microseconds(100)));
    else if (shared_)
      shared_->nap(k, until);
    else
      ucx_->nap(k, until);
  }

  bool in_pieces(Rank r) const override { return r != rank_ && !near_[size_t(r)]; }
  void fail() override { failed_ = true; }
  int64_t strangers() const override {
    return box_.strangers() + (shared_ ? shared_->strangers() : 0) + (ucx_ ? ucx_->strangers() : 0);
  }
  std::string describe() const override {
    std::ostringstream s;
    for (Rank r = 0; r < size_; ++r)
      if (r != rank_)
        s << "rank " << r << ": " << (near_[size_t(r)] ? "shared memory" : ucx_->lanes(r)) << '\n';
    if (!network_.empty()) s << network_ << '\n';
    return s.str();
  }

 private:
  // A server and a worker of one process send each other messages, too.
  class Self final : public Endpoint {
   public:
    explicit Self(ProcessTransport& t) : all_(t) {}
    const char* name() const override { return "self"; }
    void send(const Header& h, Tensor payload, Clock::time_point) override {
      all_.box_.put({h, std::move(payload)});
      if (all_.shared_) all_.shared_->wake();
      if (all_.ucx_) all_.ucx_->wake();
    }

   private:
    ProcessTransport& all_;
  };

  const Rank rank_;
  const int size_;
  std::atomic<bool> failed_{false};
  Mailbox box_;
  Liveness live_;  // outlives the endpoints, because goodbyes follow everything that was sent
  std::vector<bool> near_;
  std::string network_;
  std::unique_ptr<SharedEndpoints> shared_;
  std::unique_ptr<UcxEndpoints> ucx_;
  std::unique_ptr<UcxDevices> devices_;
  Self self_{*this};
};

}  // namespace

std::unique_ptr<Transport> connect(Exchange& e, const TransportOptions& o) {
  return std::make_unique<ProcessTransport>(e, o);
}

}  // namespace skein::comm
