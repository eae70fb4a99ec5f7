// A datagram is an event, which finds its port or is lost.
#include "comm/sim/post.h"

#include <arpa/inet.h>

#include <algorithm>
#include <utility>

#include "engine/base.h"

namespace skein::comm::sim {

class Post::SimPort final : public DatagramPort {
 public:
  SimPort(Post& p, int number) : post_(p), number_(number), worker_(p.baton_.here()) {
    post_.ports_[number] = this;
  }
  ~SimPort() override {
    post_.ports_.erase(number_);
    post_.lowest_free_ = std::min(post_.lowest_free_, number_);
  }
  int number() const override { return number_; }

  void send(const void* datagram, size_t bytes, const sockaddr_in& to) override {
    if (post_.baton_.unwinds()) return;
    const auto* first = static_cast<const uint8_t*>(datagram);
    const Baton::Worker worker = ntohl(to.sin_addr.s_addr);
    const auto a = std::make_shared<Arrived>(Arrived{{first, first + bytes}, {}});
    a->from.sin_family = AF_INET;
    a->from.sin_port = htons(uint16_t(number_));
    a->from.sin_addr.s_addr = htonl(uint32_t(worker_));
    post_.network_.send_datagram(worker_, worker, double(bytes),
                                 [&post = post_, port = int(ntohs(to.sin_port)), worker, a] {
                                   const auto p = post.ports_.find(port);
                                   if (p != post.ports_.end() && p->second->worker_ == worker)
                                     p->second->take(*a);
                                 });
  }
  std::optional<Arrived> receive() override {
    const Condition::Lock lock(mutex_);
    if (queue_.empty()) return {};
    Arrived a = std::move(queue_.front());
    queue_.pop_front();
    return a;
  }
  void wait(Clock::time_point until) override {
    Condition::Lock lock(mutex_);
    changed_.wait_until(lock, until, [&] { return !queue_.empty() || std::exchange(woken_, false); });
  }
  void wake() override {
    const Condition::Lock lock(mutex_);
    woken_ = true;
    changed_.notify_all();
  }

 private:
  void take(const Arrived& a) {
    const Condition::Lock lock(mutex_);
    queue_.push_back(a);
    changed_.notify_all();
  }
  Post& post_;
  const int number_;
  const Baton::Worker worker_;
  Mutex mutex_;
  Condition changed_;
  std::deque<Arrived> queue_;
  bool woken_ = false;
};

std::unique_ptr<DatagramPort> Post::open() {
  while (ports_.count(lowest_free_)) ++lowest_free_;
  CHECK(lowest_free_ < 1 << 16, "all ports of the simulated world are open");
  return std::make_unique<SimPort>(*this, lowest_free_);
}

}  // namespace skein::comm::sim
