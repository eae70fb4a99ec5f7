// Shared memory within a host; between hosts RDMA where all have it and it may stay unsealed, else TCP.
#include "comm/transports/ways.h"

#include <algorithm>

#include "comm/join/interfaces.h"
#include "comm/join/sockets.h"
#include "comm/ucx/ucx_look.h"

namespace skein::comm {
namespace {

// Why payloads in GPU memory cannot go by UCX: the reason of the first rank that has one. Collective.
std::string gpu_trouble(Exchange& e, const TransportOptions& o) {
  const bool left_out = o.way == Way::kShared || o.way == Way::kTcp;
  const std::string mine = o.gpu && !left_out ? text("+", ucx_cuda_trouble()) : "-";
  const std::vector<std::string> all = e.all_gather(mine);
  for (size_t r = 0; r < all.size(); ++r)
    if (all[r].size() > 1) return text("worker ", r, ": ", all[r].substr(1));
  if (std::find(all.begin(), all.end(), "+") != all.end()) return "";
  return left_out ? text("--transport ", o.way == Way::kTcp ? "tcp" : "shared", " leaves UCX out")
                  : "no worker asked for it";
}

std::string rdma_trouble_here() try {
  if (rdma_devices().empty()) return "has no active RDMA device";
  for (const std::string& r : look_at_ucx().resources)
    if (r.starts_with("rc_") || r.starts_with("dc_") || r.starts_with("ud_")) return "";
  return "has a UCX without RDMA";
} catch (const Error& e) { return text("cannot use UCX: ", e.what()); }

// Why the hosts do not speak by RDMA; empty: they do. Collective.
std::string rdma_trouble(Exchange& e, const TransportOptions& o) {
  const bool wanted = o.way == Way::kAuto || o.way == Way::kUcx;
  const std::vector<std::string> all = e.all_gather(wanted ? rdma_trouble_here() : "");
  if (!wanted) return "it is not asked for";
  if (o.sealing == Sealing::kOn) return "--seal on: RDMA cannot be sealed";
  if (o.tls.find("tcp") != std::string::npos) return "UCX is told to speak TCP (SKEIN_UCX_TLS)";
  for (size_t r = 0; r < all.size(); ++r)
    if (!all[r].empty()) return text("rank ", r, ' ', all[r]);
  return "";
}

// For each rank the first rank of its host.
std::vector<int> domains_of(Exchange& e) {
  std::vector<int> domains;
  const std::vector<std::string> hosts = e.all_gather(host_identity());
  for (const std::string& h : hosts)
    domains.push_back(int(std::find(hosts.begin(), hosts.end(), h) - hosts.begin()));
  return domains;
}

// All peers of a process write into one queue of UCX's shared memory, where each takes a place and then fills
// it. One that is killed between the two shuts the queue to all others for good: so did 18 of 200 that were
// killed while they sent. The transports that a test names in `tls` have a connection a peer.
bool speaks_ucx_within_host(const TransportOptions& o) {
  return o.way == Way::kUcx && !(o.outlives_peers && o.tls.empty());
}

}  // namespace

Ways choose_ways(Exchange& e, const TransportOptions& o, Refusals::Counter& strangers) {
  Ways w;
  w.domains = domains_of(e);
  w.gpu_trouble = gpu_trouble(e, o);
  w.one_host = std::all_of(w.domains.begin(), w.domains.end(), [](int d) { return d == 0; });
  w.network = {.listen = "127.0.0.1", .addresses = {"127.0.0.1"}, .why = ""};
  const bool ucx_within = speaks_ucx_within_host(o);
  w.opens_shared = o.way != Way::kTcp && !ucx_within;
  bool rdma = false;
  if (!w.one_host) {
    const std::string trouble = rdma_trouble(e, o);
    if (o.way == Way::kUcx && !trouble.empty())
      throw BadOption(
          text("--transport ucx is for RDMA between hosts (its TCP would believe every caller), and ",
               trouble, "; use --transport auto or tcp"));
    rdma = trouble.empty();
    w.network = choose_network(e, w.domains, o, strangers);
  }
  for (Rank r = 0; r < e.size(); ++r) {
    if (r == e.rank()) continue;
    const bool near = w.domains[size_t(r)] == w.domains[size_t(e.rank())];
    if (o.way == Way::kShared && !near)
      throw BadOption(text("--transport shared: rank ", r,
                           " is on another host, or of another user, than rank ", e.rank(),
                           "; use auto or tcp"));
    if (near && w.opens_shared)
      w.shared.push_back(r);
    else
      (rdma || o.way == Way::kUcx ? w.ucx : w.tcp).push_back(r);
  }
  w.opens_ucx = ucx_within || rdma || w.gpu_trouble.empty();
  return w;
}

}  // namespace skein::comm
