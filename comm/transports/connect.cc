// Connect: one process's transport, made of doors of two kinds, chosen per pair of ranks.
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

// Why payloads in a GPU's memory cannot go by UCX; the first rank's reason. Collective.
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

class ProcessTransport final : public Transport {
 public:
  ProcessTransport(Exchange& e, const TransportOptions& o)
      : rank_(e.rank()), size_(e.size()), box_(rank_, size_, o.in_flight), live_(box_, o.silence) {
    const std::vector<std::string> hosts = e.all_gather(host_identity());
    gpu_trouble_ = gpu_trouble(e, o);
    for (const std::string& h : hosts)
      domain_.push_back(int(std::find(hosts.begin(), hosts.end(), h) - hosts.begin()));
    std::vector<Rank> near, far;
    for (Rank r = 0; r < size_; ++r) {
      if (r == rank_) continue;
      const bool same = domain_[size_t(r)] == domain_[size_t(rank_)];
      if (o.way == Way::kShared && !same)
        throw BadOption(text("--transport shared: rank ", r,
                             " is on another host, or of another user, than rank ", rank_,
                             "; use auto or ucx"));
      (same && o.way != Way::kUcx ? near : far).push_back(r);
    }
    const bool one_host = std::all_of(domain_.begin(), domain_.end(), [&](int d) { return d == domain_[0]; });
    NetworkChoice network{.devices = "", .addresses = own_addresses(), .why = ""};
    if (!one_host) network = choose_network(e, domain_, o);
    network_ = network.why;
    if (o.way == Way::kUcx)
      domain_.assign(size_t(size_), -1);
    else
      shared_ = std::make_unique<SharedDoors>(e, near, box_, live_, o);
    const UcxDoors::Peers peers{.far = far, .near = gpu_trouble_.empty() ? near : std::vector<Rank>()};
    if (o.way == Way::kUcx || !one_host || gpu_trouble_.empty())
      ucx_ = std::make_unique<UcxDoors>(e, peers, box_, live_, o, network);
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
      try {  // behind all that went to it: what is in shared memory is there already
        Endpoint& last = ucx_ && ucx_->reaches(r) ? ucx_->to(r) : to(r);
        last.send(m, m.payload, after(1));
      } catch (const Error&) {  // it is gone itself, or will find us gone
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
  Endpoint& carrier(Rank r) override { return ucx_->to(r); }
  Mailbox& mailbox() override { return box_; }

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
  Allocator& allocator() override { return shared_ ? shared_->allocator() : skein::allocator(kCpu); }
  std::string device_trouble(Device d) const override {
    if (d.is_cuda()) return gpu_trouble_;
    return ucx_ ? "" : "shared memory is the host's";
  }
  void land_on(Device d) override {
    if (ucx_) ucx_->land_on(d);
  }
  bool carries(Rank r, Device d) const override {
    return !d.is_host() && ucx_ && ucx_->reaches(r) && ucx_->landing() == d;
  }
  int domain(Rank r) const override { return domain_[size_t(r)]; }
  std::optional<int64_t> place_of(const Tensor& x) const override {
    return shared_ ? shared_->place_of(x) : std::nullopt;
  }
  Tensor window(Rank peer, int64_t place, int64_t elements, DType t) const override {
    CHECK(shared_, "rank", peer, "shares no memory with us");
    return shared_->window(peer, place, elements, t);
  }
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
  // To oneself, as a server and a worker of one process have it.
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
  Liveness live_;  // outlives the doors: goodbye is said when everything sent has gone out
  std::vector<int> domain_;
  std::vector<bool> near_;
  std::string network_, gpu_trouble_;
  std::unique_ptr<SharedDoors> shared_;
  std::unique_ptr<UcxDoors> ucx_;
  Self self_{*this};
};

}  // namespace

std::unique_ptr<Transport> connect(Exchange& e, const TransportOptions& o) {
  return std::make_unique<ProcessTransport>(e, o);
}

}  // namespace skein::comm
