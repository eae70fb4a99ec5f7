// Rendezvous: how ranks that know one address find each other, by TCP and with the job's key.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "comm/join/line.h"
#include "comm/refusals.h"
#include "comm/transport.h"

namespace skein::comm {

struct RendezvousOptions {
  Rank rank = 0;
  int size = 1;
  std::string host =
      "127.0.0.1";  // where rank 0 listens: names or addresses, with commas between, tried in turn
  int port = 0;
  std::vector<int> more_ports = {};  // rank 0 listens at the first free port, the others try each
  Secret key;                        // kJobKeyBytes, equal on every rank
  uint32_t epoch = 1;                // of the membership that is to meet
  double deadline = 60;              // seconds for all ranks to arrive, and for each exchange
  Fd listener = {};                  // rank 0: a socket that listens; empty: `port`, on all interfaces
  // The other ranks call it while rank 0 does not answer: it may return another host, port and key.
  std::function<void(RendezvousOptions&)> look_again = {};
  // Asked while ranks are missing: whether there is no point in waiting any longer.
  std::function<bool()> in_vain = {};
};

// Rank 0 keeps the table, and the others talk to it. Every connection begins with a greeting that only
// holders of the job's key can make, and all that follows is sealed. Strangers are hung up on and counted.
// For one thread.
class Rendezvous final : public Exchange {
 public:
  // Returns when all ranks are there. Throws Timeout, which names the missing ranks; Disagreement, if a rank
  // of the same key comes twice or expects another number of workers; Error, if the port is taken or the
  // address is impossible.
  explicit Rendezvous(RendezvousOptions);
  ~Rendezvous() override;

  Rank rank() const override { return o_.rank; }
  int size() const override { return o_.size; }
  std::vector<std::string> all_gather(const std::string& mine) override;
  // The key by which all have met: look_again may have brought another than the first.
  const Secret& key() const { return o_.key; }
  int64_t strangers() const { return strangers_; }  // callers refused so far; known to rank 0

 private:
  Fd listener();
  void wait_for_all();
  void admit(const Hello&, Line);
  void find_rank_zero();
  Credentials credentials() const;
  std::vector<int> ports() const;
  std::string where() const;  // "host:port, port", for messages
  std::vector<std::string> serve_gather(const std::string& mine);
  void tell_all(const std::string& trouble);
  std::string missing() const;
  void require_sense() const;

  RendezvousOptions o_;
  std::map<Rank, Line> members_;  // on rank 0 the others; elsewhere only rank 0
  Refusals::Counter strangers_{0};
  Fd listener_;
};

// What each of `size` ranks gave, from the bytes in which rank 0 sends it: for each its length in 8 bytes,
// then the string. Throws Disagreement if they do not add up.
std::vector<std::string> read_table(const std::string& bytes, int size);

// The numeric IPv4 addresses of names, separated by commas, that can be resolved, each once. `error` receives
// getaddrinfo's status of a name that cannot.
std::vector<std::string> addresses_of(const std::string& names, int* error = nullptr);

// A socket that listens at `port` (0: a free one of `otherwise`, which `port` then holds), on all interfaces
// or only within this host. If the port is taken, throws an Error that says what to do.
Fd listen_at(int& port, bool only_this_host, PortRange otherwise = {});

}  // namespace skein::comm
