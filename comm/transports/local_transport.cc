// Local transport: a send is a put into the other thread's mailbox; all threads see all memory.
#include "comm/transports/local_transport.h"

#include <algorithm>

namespace skein::comm {
namespace {

struct Hub {
  Hub(int size, int64_t bound) {
    for (int r = 0; r < size; ++r) boxes.push_back(std::make_unique<Mailbox>(r, size, bound));
  }
  std::vector<std::unique_ptr<Mailbox>> boxes;
};

class LocalEndpoint final : public Endpoint {
 public:
  LocalEndpoint(Mailbox& mine, Mailbox& other) : mine_(mine), other_(other) {}
  const char* name() const override { return "local"; }

  void send(const Header& h, Tensor payload, Clock::time_point deadline) override {
    const Rank me = mine_.owner(), peer = other_.owner();
    if (h.kind == Kind::kData) wait_room(me, peer, payload.bytes(), deadline);
    if (const std::string why = other_.put({h, std::move(payload)}); !why.empty())
      mine_.put(other_.refusal(why));
  }

 private:
  void wait_room(Rank me, Rank peer, int64_t bytes, Clock::time_point deadline) {
    auto looked = Clock::now();
    while (!other_.room(me, bytes) && !mine_.epoch_ends()) {  // then the peer may take nothing more
      deadline += absence(looked);
      mine_.membership().require(peer);
      if (Clock::now() >= deadline)
        throw Timeout(peer, text("rank ", peer, " has not taken what rank ", me,
                                 " sent it; its mailbox has no room for ", bytes, " bytes more"));
      other_.wait_room(me, bytes, std::min(deadline, Clock::now() + std::chrono::milliseconds(20)));
    }
  }
  Mailbox &mine_, &other_;
};

// All threads share one domain; a tensor's offset is its address.
class LocalMemory final : public SharedMemory {
 public:
  int domain(Rank) const override { return 0; }
  std::optional<int64_t> offset_of(const Tensor& x) const override {
    if (!x.device().is_host()) return {};
    return int64_t(reinterpret_cast<intptr_t>(x.raw()));
  }
  Tensor window(Rank, int64_t offset, int64_t elements, DType t) const override {
    void* at = reinterpret_cast<void*>(intptr_t(offset));
    return Tensor({elements}, t, std::make_shared<Storage>(at, elements * size_of(t), kCpu, nullptr));
  }
};

class LocalDevices final : public DeviceMemory {
 public:
  std::string trouble(Device) const override { return "the workers are threads (--transport local)"; }
};

class LocalTransport final : public Transport {
 public:
  LocalTransport(std::shared_ptr<Hub> hub, Rank rank) : hub_(std::move(hub)), rank_(rank) {
    for (auto& box : hub_->boxes) endpoints_.emplace_back(mailbox(), *box);
  }
  ~LocalTransport() override {
    for (auto& box : hub_->boxes)
      if (box->owner() != rank_) failed_ ? box->fail(rank_) : box->leave(rank_);
  }
  Rank rank() const override { return rank_; }
  int size() const override { return int(endpoints_.size()); }
  Endpoint& to(Rank peer) override { return endpoints_.at(size_t(peer)); }
  Mailbox& mailbox() override { return *hub_->boxes[size_t(rank_)]; }
  void wait(const Key& k, Clock::time_point until) override { mailbox().wait(k, until); }
  SharedMemory& memory() override { return memory_; }
  DeviceMemory& devices() override { return devices_; }
  void fail() override { failed_ = true; }
  std::string describe() const override { return text("local: ", size(), " threads of one process\n"); }

 private:
  std::shared_ptr<Hub> hub_;
  const Rank rank_;
  std::atomic<bool> failed_{false};
  std::deque<LocalEndpoint> endpoints_;
  LocalMemory memory_;
  LocalDevices devices_;
};

}  // namespace

std::vector<std::unique_ptr<Transport>> local_world(int size, int64_t bound) {
  CHECK(size > 0, size);
  const auto hub = std::make_shared<Hub>(size, bound);
  std::vector<std::unique_ptr<Transport>> world;
  for (Rank r = 0; r < size; ++r) world.push_back(std::make_unique<LocalTransport>(hub, r));
  return world;
}
std::vector<std::unique_ptr<Transport>> local_world(int size) { return local_world(size, int64_t(1) << 29); }

}  // namespace skein::comm
