// Connect: one process's transport, which reaches each peer through shared memory, by TCP or by UCX.
#include <algorithm>
#include <atomic>

#include "comm/join/handshake.h"
#include "comm/join/liveness.h"
#include "comm/mailbox.h"
#include "comm/tcp/tcp_transport.h"
#include "comm/transport.h"
#include "comm/transports/shared_transport.h"
#include "comm/transports/ways.h"
#include "comm/ucx/ucx_transport.h"

namespace skein::comm {
namespace {

// Payloads in a GPU's memory go by UCX.
class UcxDevices final : public DeviceMemory {
 public:
  UcxDevices(UcxEndpoints* ucx, std::string gpu_trouble) : ucx_(ucx), gpu_trouble_(std::move(gpu_trouble)) {}
  std::string trouble(Device d) const override {
    if (d.is_cuda()) return gpu_trouble_;
    return ucx_ ? "" : "shared memory and TCP are the host's";
  }
  void land_on(Device d) override {
    if (ucx_) ucx_->land_on(d);
  }
  bool carries(Rank r, Device d) const override {
    return !d.is_host() && ucx_ && ucx_->reaches(r) && ucx_->landing() == d;
  }
  Endpoint& endpoint(Rank r) const override { return ucx_->to(r); }

 private:
  UcxEndpoints* const ucx_;  // null: no message goes by UCX
  const std::string gpu_trouble_;
};

// Where a rank listens, as it tells the others.
std::string written(int port, const std::vector<std::string>& addresses) {
  std::string words = std::to_string(port);
  for (const std::string& a : addresses) words += ' ' + a;
  return words;
}
Fd dial(const std::string& words, Clock::time_point deadline) {
  std::istringstream in(words);
  int port = 0;
  in >> port;
  const std::vector<std::string> addresses(std::istream_iterator<std::string>(in), {});
  return connect_tcp(addresses, port, deadline);
}

class ProcessTransport final : public Transport {
 public:
  ProcessTransport(Exchange& e, const TransportOptions& o)
      : rank_(e.rank()),
        size_(e.size()),
        box_(rank_, size_, o.in_flight),
        live_(box_, o.silence),
        ways_(choose_ways(e, o, box_.refusals().callers)) {
    box_.membership().set_epoch(o.epoch);
    if (ways_.opens_shared) shared_ = std::make_unique<SharedEndpoints>(e, ways_.domains, box_, live_, o);
    std::map<Rank, Line> lines;
    for (auto& [who, line] : meet(e, o))
      if (who.second == Purpose::kHeartbeats)
        live_.watch(who.first, std::move(line));
      else
        lines.emplace(who.first, std::move(line));
    if (!lines.empty() || o.way == Way::kTcp)
      tcp_ = std::make_unique<TcpEndpoints>(std::move(lines), box_, live_, o.in_flight);
    if (ways_.opens_ucx) {
      std::vector<Rank> peers = ways_.ucx;
      if (ways_.gpu_trouble.empty()) peers.insert(peers.end(), ways_.shared.begin(), ways_.shared.end());
      ucx_ = std::make_unique<UcxEndpoints>(e, peers, box_, live_, o);
    }
    devices_ = std::make_unique<UcxDevices>(ucx_.get(), ways_.gpu_trouble);
    near_.assign(size_t(size_), false);
    for (Rank r : ways_.shared) near_[size_t(r)] = true;
    live_.start();
    if (tcp_) tcp_->start();
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
    if (tcp_) tcp_->await_confirmation();
    if (ucx_) ucx_->await_confirmation();
  }

  Rank rank() const override { return rank_; }
  int size() const override { return size_; }
  Endpoint& to(Rank r) override {
    CHECK(r >= 0 && r < size_, "no way to rank", r);
    if (r == rank_) return self_;
    if (near_[size_t(r)]) return shared_->to(r);
    return tcp_ ? tcp_->to(r) : ucx_->to(r);
  }
  Mailbox& mailbox() override { return box_; }
  SharedMemory& memory() override { return shared_ ? *shared_ : Transport::memory(); }
  DeviceMemory& devices() override { return *devices_; }
  std::string address() const override { return ways_.network.listen; }

  void progress() override {
    live_.check();
    if (shared_) shared_->progress();
    if (tcp_) tcp_->progress();
    if (ucx_) ucx_->progress();
  }
  // What has to be looked at beside shared memory shortens its naps.
  void wait(const Key& k, Clock::time_point until) override {
    if (ways_.shared.empty() && tcp_ && !ucx_) return tcp_->nap(k, until);
    if (!shared_ && ucx_) return ucx_->nap(k, until);
    const bool alone = !tcp_ && !ucx_;
    shared_->nap(k, alone ? until : std::min(until, Clock::now() + std::chrono::microseconds(100)));
  }

  bool in_pieces(Rank r) const override { return r != rank_ && !near_[size_t(r)]; }
  void fail() override { failed_ = true; }
  std::string describe() const override {
    std::ostringstream s;
    for (Rank r = 0; r < size_; ++r)
      if (r != rank_) s << "rank " << r << ": " << way_to(r) << '\n';
    if (!ways_.network.why.empty()) s << ways_.network.why << '\n';
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
      if (all_.tcp_) all_.tcp_->wake();
      if (all_.ucx_) all_.ucx_->wake();
    }

   private:
    ProcessTransport& all_;
  };

  // The connections to all peers outside shared memory: heartbeats have one of their own, which
  // no message blocks.
  Lines meet(Exchange& e, const TransportOptions& o) {
    if (ways_.one_host && shared_) return {};
    int port = 0;
    const Fd listener = listen_tcp(ways_.network.listen, o.ports, port);
    const std::vector<std::string> all = e.all_gather(written(port, ways_.network.addresses));
    HandshakeOptions h;
    h.mine = {
        .key = o.key, .me = rank_, .size = size_, .epoch = o.epoch, .hides = o.sealing != Sealing::kOff};
    h.peers = ways_.tcp.empty() ? ways_.ucx : ways_.tcp;
    h.purposes = {Purpose::kHeartbeats};
    if (!ways_.tcp.empty()) h.purposes.push_back(Purpose::kMessages);
    h.deadline = after(o.deadline);
    h.in_vain = o.in_vain;
    h.dial = [&](Rank r) { return dial(all[size_t(r)], h.deadline); };
    return handshake(h, listener, box_.refusals().callers);
  }
  std::string way_to(Rank r) const {
    if (near_[size_t(r)]) return "shared memory";
    if (tcp_) return tcp_->describe(r);
    return ucx_->lanes(r) + (ways_.one_host ? "" : ", not sealed");
  }

  const Rank rank_;
  const int size_;
  std::atomic<bool> failed_{false};
  Mailbox box_;
  Liveness live_;  // outlives the endpoints, because goodbyes follow everything that was sent
  const Ways ways_;
  std::vector<bool> near_;
  std::unique_ptr<SharedEndpoints> shared_;
  std::unique_ptr<TcpEndpoints> tcp_;
  std::unique_ptr<UcxEndpoints> ucx_;
  std::unique_ptr<UcxDevices> devices_;
  Self self_{*this};
};

}  // namespace

std::unique_ptr<Transport> connect(Exchange& e, const TransportOptions& o) {
  CHECK(o.key.size() == kJobKeyBytes, "connecting needs the job's key");
  return std::make_unique<ProcessTransport>(e, o);
}

}  // namespace skein::comm
