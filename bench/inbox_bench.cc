// Authenticated requests through one inbox on loopback, compared in turn with UDP that
// spins and checks nothing.
//
//   inbox_bench [--seconds S] [--rounds R] [--workers W]
//
// One thread plays W workers with one outstanding request each and has its own core; the inbox's thread and
// its consumer share another. Rates are by processor time, as if the server had its core to itself.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "comm/inbox/inbox.h"

using namespace skein;
using namespace skein::comm;

namespace {

double processor(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}
void stay_on(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core % int(std::thread::hardware_concurrency()), &set);
  sched_setaffinity(0, sizeof set, &set);
}

sockaddr_in loopback(int port) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(uint16_t(port));
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return a;
}

struct Rates {
  double wall = 0, server = 0;
};

// W workers that ask again as soon as they are acknowledged. `seal` is null if nothing is signed or checked.
int64_t ask(int port, int workers, double seconds, const Seal* seal, double& spent) {
  const Fd s = udp_socket();
  const int room = 4 << 20;
  setsockopt(s.get(), SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  Datagrams datagrams(s.get(), sizeof(Datagram));
  const sockaddr_in to = loopback(port);
  std::vector<int> ready(static_cast<size_t>(workers));
  std::vector<int64_t> sequence(static_cast<size_t>(workers), 0);
  for (int w = 0; w < workers; ++w) ready[size_t(w)] = w;
  int64_t done = 0;
  const double began = processor(CLOCK_MONOTONIC), busy = processor(CLOCK_THREAD_CPUTIME_ID);
  double heard = began;
  for (double now = began; now - began < seconds; now = processor(CLOCK_MONOTONIC)) {
    if (now - heard > 0.05 && ready.empty())  // some were lost: all are sent again
      for (int w = 0; w < workers; ++w) ready.push_back(w), --sequence[size_t(w)];
    for (; !ready.empty(); ready.pop_back()) {
      Datagram d;
      d.worker = ready.back(), d.kind = 1, d.sequence = ++sequence[size_t(d.worker)];
      if (seal) seal->sign(d);
      datagrams.add(&d, to);
    }
    datagrams.flush();
    const auto arrived = datagrams.receive(false);
    if (arrived.empty()) sched_yield();
    for (const Datagrams::Arrived& a : arrived) {
      Datagram d;
      if (!a.at || a.bytes != sizeof d) continue;
      std::memcpy(&d, a.at, sizeof d);
      if (d.worker < 0 || d.worker >= workers || d.sequence != sequence[size_t(d.worker)]) continue;
      if (seal && !seal->genuine(d)) continue;
      ++done;
      ready.push_back(d.worker);
      heard = now;
    }
  }
  spent = processor(CLOCK_THREAD_CPUTIME_ID) - busy;
  return done;
}

Rates measure(int workers, double seconds, int port, const Seal* seal) {
  double client = 0;
  int64_t done = 0;
  const double before = processor(CLOCK_PROCESS_CPUTIME_ID);
  std::thread t([&] {
    stay_on(1);
    done = ask(port, workers, seconds, seal, client);
  });
  t.join();
  const double server = processor(CLOCK_PROCESS_CPUTIME_ID) - before - client;
  return {double(done) / seconds, double(done) / server};
}

Rates through_inbox(int workers, double seconds) {
  stay_on(0);
  const Secret key = Secret::random(32);
  Inbox inbox({.key = key, .workers = workers});
  std::atomic<bool> stop{false};
  int64_t taken = 0;
  std::thread server([&] {
    while (!stop)
      if (inbox.next(Clock::now() + std::chrono::milliseconds(20))) ++taken;
  });
  const Seal seal(key, inbox.invitation().salt);
  const Rates r = measure(workers, seconds, inbox.invitation().port, &seal);
  stop = true;
  inbox.wake();
  server.join();
  CHECK(inbox.counts().forged == 0 && taken > 0, taken);
  return r;
}

Rates raw(int workers, double seconds) {
  stay_on(0);
  const Fd s = udp_socket();
  const int room = 4 << 20;
  setsockopt(s.get(), SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  sockaddr_in a = loopback(0);
  socklen_t n = sizeof a;
  if (bind(s.get(), reinterpret_cast<sockaddr*>(&a), sizeof a) != 0) fail_system("binding");
  getsockname(s.get(), reinterpret_cast<sockaddr*>(&a), &n);
  std::atomic<bool> stop{false};
  std::thread server([&] {
    Datagrams datagrams(s.get(), sizeof(Datagram));
    while (!stop) {
      const auto arrived = datagrams.receive(false);
      if (arrived.empty()) sched_yield();
      for (const Datagrams::Arrived& d : arrived)
        if (d.at && d.bytes == sizeof(Datagram)) datagrams.add(d.at, *d.from);
      datagrams.flush();
    }
  });
  const Rates r = measure(workers, seconds, ntohs(a.sin_port), nullptr);
  stop = true;
  server.join();
  return r;
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 1;
  int rounds = 5, workers = 512;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--seconds") seconds = std::atof(argv[i + 1]);
    if (flag == "--rounds") rounds = std::atoi(argv[i + 1]);
    if (flag == "--workers") workers = std::atoi(argv[i + 1]);
  }
  std::vector<double> wall, busy, share;
  for (int r = 0; r < rounds; ++r) {
    const Rates plain = raw(workers, seconds), ours = through_inbox(workers, seconds);
    std::printf(
        "round %d: inbox %.0f requests/s (%.0f by the server's processor time), raw UDP %.0f (%.0f)\n", r + 1,
        ours.wall, ours.server, plain.wall, plain.server);
    wall.push_back(ours.wall), busy.push_back(ours.server), share.push_back(ours.wall / plain.wall);
  }
  for (auto* v : {&wall, &busy, &share}) std::sort(v->begin(), v->end());
  const size_t middle = size_t(rounds) / 2;
  std::printf(
      "medians: inbox %.0f requests/s, %.0f by the server's processor time, best %.0f; %.2f of raw UDP\n",
      wall[middle], busy[middle], wall.back(), share[middle]);
}
