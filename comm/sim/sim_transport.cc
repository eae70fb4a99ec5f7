// A send is an event at the time of its arrival, which puts the message into the other's mailbox.
#include "comm/sim/sim_transport.h"

#include <algorithm>

namespace skein::comm::sim {

World::Round::Round(uint32_t epoch, const std::vector<Id>& m, std::vector<Worker> w, int64_t room)
    : members(m),
      workers(std::move(w)),
      flying(m.size(), std::vector<int64_t>(m.size(), 0)),
      open(m.size(), false) {
  for (Rank r = 0; r < Rank(m.size()); ++r) {
    boxes.push_back(std::make_unique<Mailbox>(r, int(m.size()), room));
    boxes.back()->membership().set_epoch(epoch);
  }
}

size_t World::Round::place_of(Worker w) const {
  return size_t(std::find(workers.begin(), workers.end(), w) - workers.begin());
}

class SimTransport::Way final : public Endpoint {
 public:
  Way(SimTransport& t, Rank peer) : t_(t), peer_(peer) {}
  const char* name() const override { return "simulated"; }
  void send(const Header& h, Tensor payload, Clock::time_point deadline) override {
    t_.send(peer_, h, std::move(payload), deadline);
  }

 private:
  SimTransport& t_;
  const Rank peer_;
};

SimTransport::SimTransport(World& w, std::shared_ptr<World::Round> round, Rank rank)
    : world_(w), round_(std::move(round)), rank_(rank) {
  for (Rank r = 0; r < size(); ++r) ways_.push_back(std::make_unique<Way>(*this, r));
}

// Its goodbye comes after all that it sent, and names the ranks that it misses.
SimTransport::~SimTransport() {
  if (world_.baton_.unwinds()) return;
  const std::vector<Rank> dead = mailbox().membership().dead();
  Message m = notice(Kind::kGoodbye, rank_, 0, Tensor::of<int32_t>({int64_t(dead.size())}, dead));
  m.step = failed_ ? kFailed : 0;
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

Endpoint& SimTransport::to(Rank r) { return *ways_.at(size_t(r)); }

// As by TCP, what is sent to a rank that has ended is lost; the next wait for it says why.
void SimTransport::send(Rank to, const Header& h, Tensor payload, Clock::time_point deadline) {
  if (world_.baton_.unwinds()) return;
  const int64_t bytes = payload.bytes();
  if (h.kind == Kind::kData) await_room(to, bytes, deadline);
  int64_t& flying = round_->flying[size_t(rank_)][size_t(to)];
  flying += bytes;
  const double all = double(bytes) + (world_.site_ ? double(sizeof(Header)) : 0);
  world_.network_.send(round_->workers[size_t(rank_)], round_->workers[size_t(to)], all,
                       [&w = world_, round = round_, &flying, to, m = Message{h, std::move(payload)}] {
                         flying -= m.payload.bytes();
                         put(w, round, to, m);
                       });
}

void SimTransport::put(World& w, const std::shared_ptr<World::Round>& round, Rank to, Message m) {
  w.count_message();
  if (!round->open[size_t(to)]) return;
  const Rank from = m.from;
  w.note(text(round->members[size_t(from)], " > ", round->members[size_t(to)], ": kind ", int(m.kind), ", ",
              m.communicator, '/', m.epoch, " tag ", m.tag, " step ", m.step, ", ", m.payload.bytes(), " B"));
  Mailbox& box = *round->boxes[size_t(to)];
  const std::string why = box.put(std::move(m));
  if (why.empty()) return;
  w.network_.send(round->workers[size_t(to)], round->workers[size_t(from)], double(why.size()),
                  [&w, round, from, refusal = box.refusal(why)] { put(w, round, from, refusal); });
}

void SimTransport::await_room(Rank to, int64_t bytes, Clock::time_point deadline) {
  const int64_t most = world_.options_.room;
  for (auto looked = Clock::now();;) {
    const int64_t flying = round_->flying[size_t(rank_)][size_t(to)];
    if ((flying == 0 || flying + bytes <= most) && box(to).room(rank_, flying + bytes)) return;
    deadline += absence(looked);
    mailbox().membership().require(to);
    if (Clock::now() >= deadline)
      throw Timeout(to, text("rank ", to, " has not taken what rank ", rank_,
                             " sent it; there is no room for ", bytes, " bytes more"));
    nap_until(std::min(deadline, after(0.02)));
  }
}

}  // namespace skein::comm::sim
