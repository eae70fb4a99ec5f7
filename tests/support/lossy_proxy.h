// LossyProxy: a bad UDP network between clients and a server of this host, which loses, duplicates, delays
// and so reorders datagrams.
#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <map>
#include <queue>
#include <random>
#include <thread>

#include "comm/join/sockets.h"

namespace skein::comm {

struct UdpWeather {
  double loss = 0, duplication = 0, longest_delay_ms = 0;
};

class LossyProxy {
 public:
  LossyProxy(int server_port, UdpWeather w, int clients) : weather_(w), front_(bound()) {
    server_ = loopback(server_port);
    for (int i = 0; i < clients; ++i) backs_.push_back(bound());
    thread_ = std::thread([this] { work(); });
  }
  ~LossyProxy() {
    stop_ = true;
    thread_.join();
  }
  int port() const { return port_of(front_); }
  int lost() const { return lost_; }
  int overtaken() const { return overtaken_; }

 private:
  struct Parcel {
    Clock::time_point due;
    int64_t number = 0;
    int from_socket = 0;  // index into backs_, or -1: front_
    sockaddr_in to{};
    std::string bytes;
    bool operator<(const Parcel& o) const { return due > o.due; }  // the earliest on top
  };
  static sockaddr_in loopback(int port) {
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_port = htons(uint16_t(port));
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return a;
  }
  static Fd bound() {
    Fd s(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in a = loopback(0);
    const int room = 4 << 20;
    setsockopt(s.get(), SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    if (bind(s.get(), reinterpret_cast<sockaddr*>(&a), sizeof a) != 0)
      fail_system("binding a proxy's socket");
    return s;
  }
  static int port_of(const Fd& s) {
    sockaddr_in a{};
    socklen_t n = sizeof a;
    getsockname(s.get(), reinterpret_cast<sockaddr*>(&a), &n);
    return ntohs(a.sin_port);
  }

  void work() {
    std::vector<pollfd> waits{{front_.get(), POLLIN, 0}};
    for (const Fd& b : backs_) waits.push_back({b.get(), POLLIN, 0});
    while (!stop_) {
      poll(waits.data(), waits.size(), 1);
      for (size_t i = 0; i < waits.size(); ++i)
        if (waits[i].revents) hear(int(i) - 1);
      for (; !held_.empty() && held_.top().due <= Clock::now(); held_.pop()) {
        const Parcel& p = held_.top();
        if (p.number < newest_) ++overtaken_;
        newest_ = std::max(newest_, p.number);
        sendto(p.from_socket < 0 ? front_.get() : backs_[size_t(p.from_socket)].get(), p.bytes.data(),
               p.bytes.size(), MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&p.to), sizeof p.to);
      }
    }
  }
  void hear(int which) {
    char room[2048];
    sockaddr_in from{};
    socklen_t n = sizeof from;
    const int fd = which < 0 ? front_.get() : backs_[size_t(which)].get();
    for (ssize_t got; (got = recvfrom(fd, room, sizeof room, MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&from),
                                      &n)) >= 0;) {
      Parcel p{{}, 0, -1, {}, std::string(room, size_t(got))};
      if (which < 0) {  // from a client: each has its own socket toward the server
        const auto [at, fresh] = clients_.try_emplace(from.sin_port, int(clients_.size()));
        if (fresh) addresses_.push_back(from);
        p.from_socket = at->second;
        p.to = server_;
      } else {
        p.to = addresses_[size_t(which)];
      }
      hold(std::move(p));
    }
  }
  void hold(Parcel p) {
    std::uniform_real_distribution<double> unit(0, 1);
    if (unit(random_) < weather_.loss) return void(++lost_);
    for (int copies = unit(random_) < weather_.duplication ? 2 : 1; copies > 0; --copies) {
      p.number = ++numbers_;
      p.due =
          Clock::now() + std::chrono::microseconds(int64_t(1000 * weather_.longest_delay_ms * unit(random_)));
      held_.push(p);
    }
  }

  const UdpWeather weather_;
  const Fd front_;
  std::vector<Fd> backs_;
  sockaddr_in server_{};
  std::map<uint16_t, int> clients_;
  std::vector<sockaddr_in> addresses_;
  std::priority_queue<Parcel> held_;
  std::mt19937 random_{11};
  int64_t numbers_ = 0, newest_ = 0;
  std::atomic<int> lost_{0}, overtaken_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace skein::comm
