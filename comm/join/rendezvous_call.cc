// The other ranks' side of a rendezvous: looking for rank 0 until it answers.
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <sstream>
#include <thread>

#include "comm/join/rendezvous.h"

namespace skein::comm {

std::vector<std::string> addresses_of(const std::string& hosts, int* error) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  std::vector<std::string> all;
  std::istringstream names(hosts);
  for (std::string host; std::getline(names, host, ',');) {
    addrinfo* found = nullptr;
    if (const int e = getaddrinfo(host.c_str(), nullptr, &hints, &found); e != 0) {
      if (error) *error = e;
      continue;
    }
    for (const addrinfo* a = found; a; a = a->ai_next) {
      char word[INET_ADDRSTRLEN];
      inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(a->ai_addr)->sin_addr, word, sizeof word);
      if (std::find(all.begin(), all.end(), word) == all.end()) all.push_back(word);
    }
    freeaddrinfo(found);
  }
  return all;
}

namespace {

std::vector<std::string> addresses_of_rank_zero(const std::string& hosts) {
  int error = EAI_NONAME;
  std::vector<std::string> all = addresses_of(hosts, &error);
  if (all.empty())
    throw Error(text("cannot find the address of rank 0, MASTER_ADDR=", hosts, ": ", gai_strerror(error)));
  return all;
}

}  // namespace

// For the other ranks. Rank 0 may start later than they do. If there are several ports to try, a stranger
// that stays silent at one of them must not hold them up.
void Rendezvous::find_rank_zero() {
  constexpr double kSalt = 5, kProof = 20;  // seconds, if there are other ports to try
  const Clock::time_point deadline = after(o_.deadline);
  const bool elsewhere = o_.look_again || o_.in_vain || !o_.more_ports.empty();
  std::string host = o_.host;
  std::vector<std::string> addresses = addresses_of_rank_zero(host);
  for (bool refused = false, heard = false;;) {
    for (int port : ports()) {
      Fd s = connect_tcp(addresses, port, std::min(deadline, after(5)));
      const auto by = [&](double seconds) {
        return elsewhere ? std::min(deadline, after(seconds)) : deadline;
      };
      if (!s) continue;
      if (auto line =
              call(std::move(s), credentials(), 0, Purpose::kMeeting, by(kSalt), by(kProof), &refused)) {
        members_.emplace(0, std::move(*line));
        return;
      }
      heard = true;
    }
    if (refused && (!elsewhere || Clock::now() >= deadline))
      throw Error(text("rank ", o_.rank, " was refused at ", where(),
                       ": who listens there has another job key, or is no rank 0 of ours"));
    if (heard && Clock::now() >= deadline)
      throw Error(text("rank ", o_.rank, " was hung up on at ", where(),
                       " again and again: does another program listen there, or do strangers flood rank 0?"));
    if (Clock::now() >= deadline)
      throw Timeout(0, text("rank 0 did not answer at ", where(), " within ", o_.deadline,
                            " s; was it started there?"));
    std::this_thread::sleep_for(std::chrono::milliseconds(o_.in_vain ? 5 : 50));
    require_sense();
    if (o_.look_again) o_.look_again(o_);
    if (host != o_.host) host = o_.host, addresses = addresses_of_rank_zero(host);
  }
}

}  // namespace skein::comm
