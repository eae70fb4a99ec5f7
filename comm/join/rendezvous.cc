// Rank 0's table of a job: it admits callers that know the key, then gathers strings and hands them out.
#include "comm/join/rendezvous.h"

#include <algorithm>
#include <cstring>

#include "comm/join/reception.h"

namespace skein::comm {
namespace {

template <class T>
std::string bytes_of(const T& v) {
  return {reinterpret_cast<const char*>(&v), sizeof v};
}
std::string list(const std::vector<Rank>& ranks) {
  std::string s = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) s += (i ? ", " : "") + std::to_string(ranks[i]);
  return s;
}

}  // namespace

Fd listen_at(int& port, bool only_this_host, PortRange otherwise) {
  const PortRange ports = port > 0 ? PortRange{port, port} : otherwise;
  try {
    return listen_tcp(only_this_host ? "127.0.0.1" : "", ports, port);
  } catch (const Error& e) {
    if (ports.any() || ports.first != ports.last) throw;
    throw Error(text(e.what(), ": is another job running? Choose another MASTER_PORT"));
  }
}

Rendezvous::Rendezvous(RendezvousOptions o) : o_(std::move(o)) {
  CHECK(o_.size >= 1 && o_.rank >= 0 && o_.rank < o_.size, o_.rank, o_.size);
  CHECK(o_.key.size() == kJobKeyBytes, "a job key has", kJobKeyBytes, "bytes");
  if (o_.size == 1) return;
  if (o_.rank == 0) {
    listener_ = listener();
    wait_for_all();
  } else {
    find_rank_zero();
  }
}
Rendezvous::~Rendezvous() = default;

Credentials Rendezvous::credentials() const {
  return {.key = o_.key, .me = o_.rank, .size = o_.size, .epoch = o_.epoch};
}

std::vector<int> Rendezvous::ports() const {
  std::vector<int> all = {o_.port};
  all.insert(all.end(), o_.more_ports.begin(), o_.more_ports.end());
  return all;
}

std::string Rendezvous::where() const {
  std::string s = text(o_.host, ':', o_.port);
  for (int port : o_.more_ports) s += ", " + std::to_string(port);
  return s;
}

Fd Rendezvous::listener() {
  if (o_.listener) return std::move(o_.listener);
  if (o_.more_ports.empty()) return listen_at(o_.port, false);
  for (int port : ports()) try {
      return listen_at(port, false);
    } catch (const Error&) {  // try the next one
    }
  throw Error(text("rank 0 cannot listen at any of these ports of this host, all are in use: ", where()));
}

void Rendezvous::require_sense() const {
  if (o_.in_vain && o_.in_vain()) throw Timeout(-1, "the membership has changed before all had met");
}

std::string Rendezvous::missing() const {
  std::vector<Rank> absent;
  for (Rank r = 1; r < o_.size; ++r)
    if (!members_.count(r)) absent.push_back(r);
  return list(absent);
}

void Rendezvous::tell_all(const std::string& trouble) {
  for (auto& [r, line] : members_) line.write_trouble(trouble);
}

void Rendezvous::admit(const Hello& h, Line line) {
  std::string refusal;
  if (h.size != o_.size)
    refusal = text("rank 0 expects ", o_.size, " workers, rank ", h.from, " expects ", h.size);
  else if (h.from <= 0 || h.from >= h.size || members_.count(h.from))
    refusal = text("rank ", h.from, " came twice: is another job using this address and key?");
  if (!refusal.empty()) {
    line.write_trouble(refusal);
    tell_all(refusal);
    throw Disagreement(refusal);
  }
  members_.emplace(h.from, std::move(line));
}

void Rendezvous::wait_for_all() {
  const Clock::time_point deadline = after(o_.deadline);
  Reception callers(listener_, credentials(), strangers_);
  while (int(members_.size()) < o_.size - 1) {
    std::optional<Reception::Guest> guest = callers.next(std::min(deadline, after(kReview)));
    require_sense();
    if (!guest && Clock::now() < deadline) continue;
    if (!guest) {
      const std::string trouble = text("no ", missing(), " after ", o_.deadline, " s; was it started? ",
                                       o_.size, " workers are expected at port ", o_.port, "; ", strangers(),
                                       " callers without the job's key were refused");
      tell_all(trouble);
      throw Timeout(-1, trouble);
    }
    if (guest->hello.purpose == Purpose::kMeeting)
      admit(guest->hello, std::move(guest->line));
    else
      ++strangers_;
  }
  listener_ = {};
}

std::vector<std::string> Rendezvous::serve_gather(const std::string& mine) {
  const Clock::time_point deadline = after(o_.deadline);
  std::vector<std::string> all(size_t(o_.size));
  all[0] = mine;
  std::vector<Rank> silent;
  for (Rank r = 1; r < o_.size; ++r)
    if (!members_.at(r).read_string(all[size_t(r)], deadline)) silent.push_back(r);
  if (!silent.empty()) {
    const std::string trouble = text(list(silent), " left or fell silent while the workers were meeting");
    tell_all(trouble);
    throw Timeout(silent[0], trouble);
  }
  std::string table;
  for (const std::string& s : all) table += bytes_of(uint64_t(s.size())) + s;
  for (Rank r = 1; r < o_.size; ++r)
    if (!members_.at(r).write_string(table, deadline)) silent.push_back(r);
  if (!silent.empty()) throw Timeout(silent[0], text(list(silent), " left while the workers were meeting"));
  return all;
}

std::vector<std::string> Rendezvous::all_gather(const std::string& mine) {
  if (o_.size == 1) return {mine};
  if (o_.rank == 0) return serve_gather(mine);
  // Rank 0 waits for its deadline and then names the missing ranks, so the others wait a little longer.
  const Clock::time_point deadline = after(o_.deadline + 5);
  std::string table;
  // Where rank 0 has hung up, it has said why before.
  const bool told = members_.at(0).write_string(mine, deadline);
  if (!members_.at(0).read_string(table, deadline) || !told)
    throw Timeout(0, "rank 0 left or fell silent while the workers were meeting");
  return read_table(table, o_.size);
}

std::vector<std::string> read_table(const std::string& bytes, int size) {
  std::vector<std::string> all;
  size_t at = 0;
  for (uint64_t n = 0; bytes.size() - at >= sizeof n; at += sizeof n + size_t(n)) {
    std::memcpy(&n, bytes.data() + at, sizeof n);
    if (n > bytes.size() - at - sizeof n) break;
    all.push_back(bytes.substr(at + sizeof n, size_t(n)));
  }
  if (at != bytes.size() || int(all.size()) != size)
    throw Disagreement(text("rank 0 sent a table of ", all.size(), " workers that does not add up, not of ",
                            size, "; do all run the same version?"));
  return all;
}

}  // namespace skein::comm
