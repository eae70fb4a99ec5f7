// A send is an event at the time of its arrival, which puts the message into the other's mailbox.
#include "comm/sim/sim_transport.h"

#include <algorithm>

namespace skein::comm::sim {

World::Round::Round(uint32_t e, const std::vector<Id>& m, std::vector<Worker> w, const WorldOptions& o)
    : epoch(e),
      members(m),
      workers(std::move(w)),
      flying(m.size()),
      open(m.size(), false),
      large(int(m.size()) > o.most_by_messages),
      left(m.size(), false),
      waiting(m.size()) {
  for (Rank r = 0; r < Rank(m.size()); ++r) {
    boxes.push_back(std::make_unique<Mailbox>(r, int(m.size()), o.room));
    boxes.back()->membership().set_epoch(epoch);
  }
}

size_t World::Round::place_of(Worker w) const {
  return size_t(std::find(workers.begin(), workers.end(), w) - workers.begin());
}

SimTransport::SimTransport(World& w, std::shared_ptr<World::Round> round, Rank rank)
    : world_(w), round_(std::move(round)), rank_(rank), collectives_(w, round_) {}

// Its goodbye comes after all that it sent, and names the ranks that it misses.
SimTransport::~SimTransport() {
  if (world_.baton_.unwinds()) return;
  const std::vector<Rank> dead = mailbox().membership().dead();
  Message m = notice(Kind::kGoodbye, rank_, 0, Tensor::of<int32_t>({int64_t(dead.size())}, dead));
  m.step = failed_ ? kFailed : 0;
  if (round_->large && !failed_ && dead.empty()) {
    leave();
    return;
  }
  for (Rank r = 0; r < size(); ++r)
    if (r != rank_ && mailbox().membership().alive(r))
      world_.network_.send_last(round_->workers[size_t(rank_)], round_->workers[size_t(r)],
                                [&w = world_, round = round_, r, m] { put(w, round, r, m); });
  world_.hang_up(round_, size_t(rank_));
}

std::string SimTransport::address() const {
  const uint64_t host = round_->workers[size_t(rank_)];
  return text(host >> 24 & 255, '.', host >> 16 & 255, '.', host >> 8 & 255, '.', host & 255);
}

int SimTransport::host(Rank r) {
  return world_.site_ ? world_.site_->host_of(int(round_->workers[size_t(r)]) - 1) : -1;
}

Endpoint& SimTransport::to(Rank r) {
  CHECK(r >= 0 && r < size(), r, size());
  return ways_.try_emplace(r, *this, r).first->second;
}

Collectives* SimTransport::collectives(int members) {
  return members > world_.options_.most_by_messages ? &collectives_ : nullptr;
}

// ---- who leaves many others ------------------------------------------------------------------------------

void World::Round::say_goodbye(World& w, const std::shared_ptr<Round>& round, Rank from, Rank to) {
  if (!round->told[from].insert(to).second) return;
  const Message m = notice(Kind::kGoodbye, from, 0, Tensor::of<int32_t>({0}, {}));
  w.network_.send_last(round->workers[size_t(from)], round->workers[size_t(to)],
                       [&w, round, to, m] { SimTransport::put(w, round, to, m); });
}

void SimTransport::leave() {
  round_->open[size_t(rank_)] = false;
  round_->left[size_t(rank_)] = true;
  std::vector<Rank> waiting = round_->waiting[size_t(rank_)];
  std::sort(waiting.begin(), waiting.end());
  for (Rank r : waiting) World::Round::say_goodbye(world_, round_, rank_, r);  // once to each
}

void SimTransport::wait(const Key& k, Clock::time_point until) {
  if (!round_->large) return mailbox().wait(k, until);
  if (k.from == kAnyone) return mailbox().wait(k, until);
  if (round_->left[size_t(k.from)]) World::Round::say_goodbye(world_, round_, k.from, rank_);
  std::vector<Rank>& all = round_->waiting[size_t(k.from)];
  all.push_back(rank_);
  struct Waits {
    std::vector<Rank>& all;
    const Rank me;
    ~Waits() { all.erase(std::find(all.begin(), all.end(), me)); }  // also where the wait throws
  } waits{all, rank_};
  mailbox().wait(k, until);
}

// As by TCP, what is sent to a rank that has ended is lost; the next wait for it says why.
void SimTransport::send(Rank to, int64_t& flying, const Header& h, Tensor payload,
                        Clock::time_point deadline) {
  if (world_.baton_.unwinds()) return;
  const int64_t bytes = payload.bytes();
  if (h.kind == Kind::kData) await_room(to, flying, bytes, deadline);
  flying += bytes;
  const double counted =
      double(bytes) * stands_for(DType(h.dtype), h.kind == Kind::kData ? payload.size() : 0);
  const double all = counted + (world_.site_ ? double(sizeof(Header)) : 0);
  world_.network_.send(round_->workers[size_t(rank_)], round_->workers[size_t(to)], all, round_of(h),
                       [&w = world_, round = round_, &flying, to, m = Message{h, std::move(payload)}] {
                         flying -= m.payload.bytes();
                         put(w, round, to, m);
                       });
}

void SimTransport::put(World& w, const std::shared_ptr<World::Round>& round, Rank to, Message m) {
  w.arrivals_.count();
  if (!round->open[size_t(to)]) return;
  const Rank from = m.from;
  w.note(round->members[size_t(from)], " > ", round->members[size_t(to)], ": kind ", int(m.kind), ", ",
         m.communicator, '/', m.epoch, " tag ", m.tag, " step ", m.step, ", ", m.payload.bytes(), " B");
  Mailbox& box = *round->boxes[size_t(to)];
  const std::string why = box.put(std::move(m));
  if (why.empty()) return;
  w.network_.send(round->workers[size_t(to)], round->workers[size_t(from)], double(why.size()), {},
                  [&w, round, from, refusal = box.refusal(why)] { put(w, round, from, refusal); });
}

void SimTransport::await_room(Rank to, const int64_t& flying, int64_t bytes, Clock::time_point deadline) {
  const int64_t most = world_.options_.room;
  for (auto looked = Clock::now();;) {
    const bool room = (flying == 0 || flying + bytes <= most) && box(to).room(rank_, flying + bytes);
    if (room || mailbox().epoch_ends()) return;  // then the peer may take nothing more
    deadline += absence(looked);
    mailbox().membership().require(to);
    if (Clock::now() >= deadline)
      throw Timeout(to, text("rank ", to, " has not taken what rank ", rank_,
                             " sent it; there is no room for ", bytes, " bytes more"));
    nap_until(std::min(deadline, after(0.02)));
  }
}

}  // namespace skein::comm::sim
