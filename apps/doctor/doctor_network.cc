// Checks interfaces, UCX, and the port where the workers will meet.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "apps/base/environment.h"
#include "apps/doctor/doctor.h"
#include "comm/join/interfaces.h"
#include "comm/join/rendezvous.h"
#include "comm/ucx/ucx_look.h"
#include "engine/words/number.h"

namespace skein::apps {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSlowLink = 1000;  // Mbit/s; below, averaging gradients at every step waits for the network

std::string words(const comm::Interface& i) {
  return fmt::format("{} {}/{} ({}, MTU {})", i.name, i.address, i.prefix,
                     i.megabits > 0 ? fmt::format("{} Mbit/s", i.megabits) : "speed unknown", i.mtu);
}

// The program that listens at a TCP port, as "python3 (pid 123)" if /proc tells, else "another program".
std::string listener_of(int port) {
  std::string inode;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream in(table);
    for (std::string line; std::getline(in, line);) {
      std::istringstream s(line);
      std::string slot, local, remote, state, skip, found;
      s >> slot >> local >> remote >> state;
      for (int i = 0; i < 5; ++i) s >> skip;
      s >> found;
      const size_t colon = local.rfind(':');
      if (state == "0A" && colon != std::string::npos &&
          std::stoi(local.substr(colon + 1), nullptr, 16) == port)
        inode = "socket:[" + found + "]";
    }
  }
  std::error_code none;
  for (const auto& process : fs::directory_iterator("/proc", none)) {
    const std::string pid = process.path().filename();
    if (inode.empty() || pid.find_first_not_of("0123456789") != std::string::npos) continue;
    for (fs::directory_iterator fd(process.path() / "fd", none), end; !none && fd != end; fd.increment(none))
      if (fs::read_symlink(fd->path(), none).string() == inode) {
        std::ifstream in(process.path() / "comm");
        std::string name;
        std::getline(in, name);
        return fmt::format("{} (pid {})", name, pid);
      }
    none.clear();
  }
  return "another program";
}

// torchrun's agent listens at MASTER_PORT itself.
Finding look_beside_agent(const std::vector<int>& ports, int taken) {
  for (int port : ports) try {
      comm::listen_at(port, false);
      return in_order("port", fmt::format("{} belongs to torchrun; rank 0 will listen at {}", taken, port));
    } catch (const Error&) {  // try the next one
    }
  return problem("port",
                 fmt::format("all ports except torchrun's own are in use: {}", fmt::join(ports, ", ")),
                 "another --rdzv-id, or another --master-port, makes others");
}

Finding look_at_port(int port) {
  int p = port;
  try {
    comm::listen_at(p, false);
  } catch (const Error& e) {
    if (port > 0 && port < 1024 && errno == EACCES)
      return problem("port", fmt::format("{} is for root alone", port), "choose a MASTER_PORT above 1024");
    return problem(
        "port", fmt::format("{} cannot be listened at: {} holds it", port, listener_of(port)),
        fmt::format("set MASTER_PORT to another port (such as {}) on all hosts, or end that program",
                    port + 1));
  }
  return in_order("port", port ? fmt::format("{} is free for rank 0 to listen at", port)
                               : fmt::format("a free one is available ({})", p));
}

}  // namespace

void check_interfaces(const Patient& p, Findings& out) {
  std::vector<comm::Interface> all;
  try {
    all = comm::interfaces();
  } catch (const Error& e) { return out.push_back(problem("interfaces", e.what(), "is /proc mounted?")); }
  std::vector<std::string> outward, inward;
  int64_t fastest = -1;
  bool known = true;
  for (const comm::Interface& i : all) {
    if (i.loopback) continue;
    (i.inward ? inward : outward).push_back(words(i));
    if (i.inward) continue;
    fastest = std::max(fastest, i.megabits);
    known = known && i.megabits > 0;
  }
  std::string what = fmt::format("{}", fmt::join(outward, ", "));
  if (!inward.empty()) what += fmt::format("; for containers only, not used: {}", fmt::join(inward, ", "));
  if (const auto rdma = comm::rdma_devices(); !rdma.empty())
    what += fmt::format("; RDMA: {}", fmt::join(rdma, ", "));
  if (!p.config.interface.empty() &&
      std::none_of(all.begin(), all.end(), [&](const auto& i) { return i.name == p.config.interface; }))
    out.push_back(problem(
        "interfaces", fmt::format("--interface {} is not up here; there are {}", p.config.interface, what),
        "name one of these, or leave --interface out: the fastest is then taken"));
  else if (outward.empty())
    out.push_back(p.several_hosts()
                      ? problem("interfaces", "none leads to another host" + what, "ip link set DEVICE up")
                      : in_order("interfaces", "none leads to another host; all workers are on this one"));
  else if (known && fastest < kSlowLink)
    out.push_back(warning("interfaces", what,
                          "between hosts prefer an algorithm that communicates less (overlap-local-sgd, "
                          "local-sgd, osgp), or --wire bf16"));
  else
    out.push_back(in_order("interfaces", what));
}

void check_ucx(const Patient& p, Findings& out) {
  // Elsewhere it serves RDMA and messages between GPUs; a library that the user names is to be there.
  const bool needed = p.config.transport == "ucx" || variable("SKEIN_UCX_LIBRARY");
  const auto grade = [&](Finding f) {
    if (!needed)
      f.grade = Finding::kWarning,
      f.what += fmt::format(" (--transport {} does {}it)", p.config.transport,
                            p.config.transport == "auto" ? "without " : "not use ");
    out.push_back(std::move(f));
  };
  comm::UcxFacts facts;
  try {
    facts = comm::look_at_ucx();
  } catch (const Error& e) {
    std::string why = e.what();
    if (why.starts_with("UCX ")) why.erase(0, 4);
    return grade(problem(
        "UCX", why.substr(0, why.find("; install")),
        "install it (Debian, Ubuntu: libucx0; or tools/make_bundle brings it along); workers of one host "
        "can do without: --transport shared"));
  }
  const std::string what = fmt::format("{} with {}", facts.version, fmt::join(facts.resources, " "));
  if (!facts.trouble.empty())
    return grade(problem("UCX", fmt::format("{} cannot receive messages here: {}", what, facts.trouble),
                         "see shared memory and open files above; UCX_LOG_LEVEL=info says more"));
  const char* const gpus = facts.moves_cuda          ? "; transfers GPU memory"
                           : cuda_device_count() > 0 ? "; cannot transfer GPU memory (docs/network.md)"
                                                     : "";
  out.push_back(in_order("UCX", what + gpus));
}

void check_port(const Patient& p, Findings& out) {
  const char* const said = std::getenv("MASTER_PORT");
  const std::string text = said ? said : "";
  const int port = number_in<int>(text).value_or(0);
  if (!text.empty() && (port < 1 || port > 65535))
    return out.push_back(
        problem("port", "MASTER_PORT=" + text + " is no port", "a number from 1024 to 65535"));
  const char* const host = std::getenv("MASTER_ADDR");
  if (std::getenv("SKEIN_LISTEN_FD"))
    return out.push_back(in_order("port", fmt::format("{} is open for the others", port)));
  if (!p.seat.ports.empty() && p.seat.rank == 0) return out.push_back(look_beside_agent(p.seat.ports, port));
  if (!host || !*host) return out.push_back(look_at_port(port));
  const std::vector<std::string> theirs = comm::addresses_of(host), ours = comm::own_addresses();
  if (theirs.empty())
    return out.push_back(problem("port",
                                 fmt::format("MASTER_ADDR={}: this host does not know the name", host),
                                 "give rank 0's address in numbers, or add the name to /etc/hosts"));
  const bool here = std::any_of(theirs.begin(), theirs.end(), [&](const std::string& a) {
    return std::find(ours.begin(), ours.end(), a) != ours.end() || a.starts_with("127.");
  });
  if (here && p.seat.rank == 0) return out.push_back(look_at_port(port));
  if (p.seat.told && p.seat.rank == 0)
    return out.push_back(
        problem("port",
                fmt::format("MASTER_ADDR={} ({}) is none of this host's addresses, but rank 0 is here", host,
                            theirs[0]),
                fmt::format("MASTER_ADDR={} on all hosts", ours.empty() ? "this host's" : ours[0])));
  out.push_back(
      in_order("port", fmt::format("rank 0 will be asked for at {} ({}), port {}", host, theirs[0], port)));
}

}  // namespace skein::apps
