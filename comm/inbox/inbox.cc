// The inbox's thread receives a batch, checks it, queues what is new, and acknowledges.
#include "comm/inbox/inbox.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "comm/communicator/communicator.h"

namespace skein::comm {
namespace {

constexpr int kKernelBuffer = 4 << 20;                    // bytes; the kernel may grant fewer
constexpr timeval kNap{.tv_sec = 0, .tv_usec = 200'000};  // between looks at stop_, in case a wake-up is lost

int64_t& count_of(Verdict v, InboxCounts& c) {
  switch (v) {
    case Verdict::kLength:
      return c.length;
    case Verdict::kStranger:
      return c.stranger;
    case Verdict::kVersion:
      return c.version;
    case Verdict::kJob:
      return c.job;
    case Verdict::kForged:
      return c.forged;
    case Verdict::kWorker:
      return c.worker;
    case Verdict::kGenuine:
      break;
  }
  return c.accepted;
}

}  // namespace

InboxOptions inbox_beside(const Communicator& c, int workers) {
  return {.key = c.options().key,
          .workers = workers,
          .address = c.transport().address(),
          .ports = c.options().ports,
          .refusals = &c.transport().mailbox().refusals()};
}

Inbox::Inbox(InboxOptions o) : o_(std::move(o)), salt_(random_bytes(16)), seal_(o_.key, salt_) {
  CHECK(o_.workers >= 1, o_.workers);
  accepted_.resize(size_t(o_.workers));
  if (timeline_here) {
    simulated_ = timeline_here->open_port();
    port_ = simulated_->number();
    thread_ = Thread([this] { receive_simulated(); });
    return;
  }
  socket_ = udp_socket();
  setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &kKernelBuffer, sizeof kKernelBuffer);
  setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &kNap, sizeof kNap);
  port_ = bind_to(socket_, o_.address, o_.ports);
  thread_ = Thread([this] { receive(); });
}

Inbox::~Inbox() {
  stop_ = true;
  if (simulated_) {
    simulated_->wake();
    thread_.join();
    return;
  }
  sockaddr_in me{};  // its own address: this wakes the thread
  socklen_t n = sizeof me;
  getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&me), &n);
  if (o_.address.empty()) me.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sendto(socket_.get(), "", 0, MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&me), sizeof me);
  thread_.join();
}

Invitation Inbox::invitation() const {
  return {salt_, port_, o_.address.empty() ? own_addresses() : std::vector<std::string>{o_.address}};
}

void Inbox::receive() {
  Datagrams datagrams(socket_.get(), sizeof(Datagram));
  while (!stop_) {
    const auto arrived = datagrams.receive(true);
    if (stop_) break;
    batch_.genuine.clear();
    for (const Datagrams::Arrived& a : arrived) look_at(a.at, a.bytes, a.from);
    enter_all();
    for (const Genuine& g : batch_.genuine)
      if (g.from) datagrams.add(&g.datagram, *g.from);
    datagrams.flush();  // workers repeat what is not acknowledged
  }
}

void Inbox::receive_simulated() {
  while (!stop_) {
    simulated_->wait(after(longest_nap()));
    while (const auto a = simulated_->receive()) {
      batch_.genuine.clear();
      look_at(a->bytes.data(), a->bytes.size(), &a->from);
      enter_all();
      for (const Genuine& g : batch_.genuine)
        if (g.from) simulated_->send(&g.datagram, sizeof g.datagram, *g.from);
    }
  }
}

void Inbox::look_at(const uint8_t* at, size_t bytes, const sockaddr_in* from) {
  Datagram d;
  const Verdict v = judge(at, bytes, seal_, o_.workers, d);
  if (v == Verdict::kGenuine)
    batch_.genuine.push_back({d, from});
  else
    ++count_of(v, batch_.bad);
}

void Inbox::enter_all() {
  bool more = false;
  {
    const std::lock_guard lock(mutex_);
    counts_.length += batch_.bad.length, counts_.stranger += batch_.bad.stranger,
        counts_.version += batch_.bad.version;
    counts_.job += batch_.bad.job, counts_.forged += batch_.bad.forged, counts_.worker += batch_.bad.worker;
    const bool empty = queue_.empty();
    const int64_t replayed = counts_.replayed;
    for (Genuine& g : batch_.genuine)
      if (!enter(g.datagram)) g.from = nullptr;
    if (o_.refusals) o_.refusals->datagrams += batch_.bad.dropped() + counts_.replayed - replayed;
    more = empty && !queue_.empty();
  }
  batch_.bad = {};
  if (more) changed_.notify_one();
  for (Genuine& g : batch_.genuine) {
    g.datagram.kind |= kAcknowledged;
    seal_.sign(g.datagram);
  }
}

bool Inbox::enter(const Datagram& d) {
  int64_t& last = accepted_[size_t(d.worker)].last;
  if (d.sequence == last) {
    ++counts_.duplicates;
    return true;
  }
  if (d.sequence < last) {
    ++counts_.replayed;
    return false;
  }
  last = d.sequence;
  ++counts_.accepted;
  const Request r{d.worker, d.kind, d.argument, d.sequence};
  if (accepted_[size_t(d.worker)].waits) {
    ++counts_.superseded;
    *std::find_if(queue_.begin(), queue_.end(), [&](const Request& q) { return q.worker == d.worker; }) = r;
  } else {
    queue_.push_back(r);
    accepted_[size_t(d.worker)].waits = true;
  }
  return true;
}

std::optional<Request> Inbox::next(Clock::time_point until) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, until, [&] { return !queue_.empty() || woken_; });
  woken_ = false;
  if (queue_.empty()) return {};
  const Request r = queue_.front();
  queue_.pop_front();
  accepted_[size_t(r.worker)].waits = false;
  return r;
}

void Inbox::forget(int worker) {
  const std::lock_guard lock(mutex_);
  std::erase_if(queue_, [&](const Request& r) { return r.worker == worker; });
  accepted_.at(size_t(worker)).waits = false;
}

void Inbox::wake() {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  changed_.notify_all();
}

InboxCounts Inbox::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace skein::comm
