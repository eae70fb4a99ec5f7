// Servers as message handlers: what they hear goes into their book, what the book says goes out.
#include "optim/leaders/lease_servers.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <variant>

#include "comm/communicator/words.h"
#include "comm/inbox/inbox.h"
#include "comm/inbox/inbox_client.h"
#include "optim/leaders/lease_words.h"
#include "optim/served.h"

namespace skein::optim {
namespace lease {
namespace {

using comm::Communicator;
using comm::Message;
using comm::Rank;

// The loss of a worker is noticed by the workers that wait for it.
template <class F>
void unless_lost(F f) {
  try {
    f();
  } catch (const comm::PeerLost&) {}
}

}  // namespace

// Its requests come by datagrams, fair to all; its answers are messages.
class GlobalServer {
 public:
  // In `comm` the workers have the ranks of the plan.
  GlobalServer(const Options& o, const Communicator& comm, const Plan& p)
      : open_(p.groups.size()),
        hearing_(o, "server"),
        book_(int(p.groups.size()), p.steps, p.every),
        comm_(comm.twin(false)),
        inbox_(comm::inbox_beside(comm, int(p.groups.size()))) {
    for (const std::vector<int>& members : p.groups) firsts_.push_back(members.at(0));
  }
  ~GlobalServer() {
    stop_ = true;
    inbox_.wake();
    if (thread_.joinable()) thread_.join();
  }
  std::string invitation() const { return inbox_.invitation().words(); }

  // Serves until `go_on`, which is asked now and then, returns false.
  template <class GoOn>
  void serve(Standing s, const GoOn& go_on) {
    book_.stand(s);
    hearing_.log().go_to(s.heard);
    while (go_on())
      if (const auto r = inbox_.next(comm::Clock::now() + std::chrono::milliseconds(200))) heard(*r);
  }
  void serve_aside(const Standing& s) {
    thread_ = comm::Thread([this, s] {
      try {
        serve(s, [this] { return !stop_.load(); });
      } catch (const std::exception& e) {
        comm_->transport().mailbox().poison(text("the global server of leases failed: ", e.what()));
      }
    });
  }

 private:
  void heard(const comm::Request& r) {
    open_[size_t(r.worker)] = r.sequence;
    const Word w = word_of(r);
    hearing_.arrived(r.worker, w, w.again);
    while (const auto said = hearing_.next())
      for (Reply& due : book_.hear(said->first, said->second)) {
        if (due.answer.next == Next::kMet) due.answer.standing.heard = hearing_.log().position();
        const auto to = size_t(due.to);
        unless_lost([&] { comm_->push(firsts_[to], kToGroup, open_[to], 1, pack(due.answer)); });
      }
  }

  std::vector<Rank> firsts_;   // of each group
  std::vector<int64_t> open_;  // the number of each one's question
  Hearing<Word> hearing_;
  CycleBook book_;
  const std::unique_ptr<Communicator> comm_;
  comm::Inbox inbox_;
  std::atomic<bool> stop_{false};
  comm::Thread thread_;
};

void serve(const Options& o, Communicator& hub, const Plan& p, Served& kept) {
  GlobalServer server(o, hub, p);
  const Rank me = hub.rank();
  comm::broadcast_text(hub, server.invitation(), me);
  const auto workers_are_left = [&] {
    hub.progress();
    return goes_on(hub, kept);
  };
  const auto twin = hub.twin(false);
  twin->set_deadline(comm::kForever);
  try {
    server.serve(standing_of(twin->take(0, kStanding, 0)), workers_are_left);
  } catch (const comm::PeerLost&) {   // before the first step
  } catch (const comm::EpochEnds&) {  // the workers know it, too
  }
}

class GroupServer {
 public:
  // The global server is rank `above` of `hub`, which is `comm` itself where that is inline.
  GroupServer(const Options& o, const Communicator& comm, const Communicator& hub, Rank above,
              std::vector<Rank> members, int index)
      : members_(std::move(members)),
        index_(index),
        open_(members_.size()),
        hearing_(o, text("group", index)),
        book_(int(members_.size())),
        above_(hub.world_rank(above)),
        dedicated_(&hub != &comm),
        comm_(comm.twin(false)),
        hub_(hub.twin(false)) {}
  ~GroupServer() { stop_ = true; }

  void open(const std::string& invitation) {
    upward_.emplace(comm::Invitation::read(invitation), comm_->options().key, index_);
    comm_->on(kToGroup, [this](const Message& m) { heard(m); });
    if (dedicated_) hub_->on(kToGroup, [this](const Message& m) { heard(m); });
  }
  void visit(Archive& a) {
    const std::lock_guard lock(mutex_);
    hearing_.log().visit(a);
  }

 private:
  using Said = std::variant<Word, Answer>;

  void heard(const Message& m) {
    const std::lock_guard lock(mutex_);
    const int server = int(members_.size());
    if (is_answer(m)) {
      hearing_.arrived(server, answer_of(m), asked_again_);
    } else {
      const int worker = int(std::find(members_.begin(), members_.end(), m.from) - members_.begin());
      CHECK(worker < server, "rank", m.from, "is of another group");
      open_[size_t(worker)] = m.step;
      const Word w = word_of(m);
      hearing_.arrived(worker, w, w.again);
    }
    while (const auto said = hearing_.next())
      say(said->first == server ? book_.hear(std::get<Answer>(said->second))
                                : book_.hear(said->first, std::get<Word>(said->second)));
  }

  void say(const GroupBook::Out& out) {
    for (const Reply& r : out.replies)
      unless_lost(
          [&] { comm_->push(members_[size_t(r.to)], kToWorker, open_[size_t(r.to)], 1, pack(r.answer)); });
    if (out.upward) ask(*out.upward);
  }

  // Asks until the inbox has it. If the global server is lost, or has left this epoch, and the inbox with it,
  // the workers themselves say so.
  void ask(const Word& w) {
    asked_again_ = w.again;
    upward_->begin(kind_of(w), int32_t(w.returned));
    while (!upward_->acknowledged() && !stop_) {
      if (!comm_->membership().alive(above_) || comm_->transport().mailbox().epoch_ends()) return;
      upward_->wait(comm::after(0.01));
    }
  }

  const std::vector<Rank> members_;
  const int index_;
  std::vector<int64_t> open_;  // the number of each one's question
  comm::Mutex mutex_;          // the handlers' threads against visit and each other
  Hearing<Said> hearing_;
  GroupBook book_;
  bool asked_again_ = false;  // Word::again, of the question that is open
  std::optional<comm::InboxClient> upward_;
  std::atomic<bool> stop_{false};
  const Rank above_;                                // in the world
  const bool dedicated_;                            // it is of the hub alone
  const std::unique_ptr<Communicator> comm_, hub_;  // their threads use the others
};

}  // namespace lease

using namespace lease;

Leases::Leases(const Options& o, Communicator& comm, Communicator& hub, const Plan& p)
    : comm_(comm), hub_(hub), steps_(p.steps) {
  if (comm.size() == 1) {
    alone_.emplace(1, p.steps, p.every);
    return;
  }
  const bool dedicated = &hub != &comm;
  const Rank me = comm.rank(), above = dedicated ? hub.size() - 1 : 0;
  if (me == 0 && !dedicated) global_ = std::make_unique<GlobalServer>(o, comm, p);
  for (size_t g = 0; g < p.groups.size(); ++g) {
    const std::vector<Rank>& members = p.groups[g];
    if (std::find(members.begin(), members.end(), me) == members.end()) continue;
    server_ = members[0];
    if (server_ == me) group_ = std::make_unique<GroupServer>(o, comm, hub, above, members, int(g));
  }
  invitation_ = comm::broadcast_text(hub, global_ ? global_->invitation() : "", above);
}

Leases::~Leases() = default;

// Workers that come from another epoch of the membership say what they have taken of the cycle. A round that
// some completed is over for all. If no worker does, the run begins, or continues from a checkpoint.
void Leases::take_stock() {
  const bool counted = comm_.meter().turn(false);
  int64_t rounds = -1, taken = 0;
  for (const auto& one :
       comm::gather_numbers(comm_, {double(past_.inherited ? past_.rounds : -1), double(past_.taken)})) {
    if (int64_t(one[0]) > rounds) rounds = int64_t(one[0]), taken = 0;
    if (int64_t(one[0]) == rounds) taken += int64_t(one[1]);
  }
  comm_.meter().turn(counted);
  if (rounds < 0) return;
  if (!past_.inherited || past_.rounds < rounds) past_.taken = 0;
  past_.rounds = rounds;
  standing_ = {.left = std::max<int64_t>(0, steps_ - taken), .rounds = rounds};
}

void Leases::open() {
  open_ = true;
  if (comm_.membership().epoch() > 1) take_stock();
  standing_.left = std::min(standing_.left, steps_);  // it may be of a run of more workers
  if (alone_) return alone_->stand(standing_);
  if (global_)
    global_->serve_aside(standing_);
  else if (comm_.rank() == 0)
    hub_.push(hub_.size() - 1, kStanding, 0, 1, pack(standing_));
  if (group_) group_->open(invitation_);
}

// A round that is broken off, because the membership changes, is not over.
lease::Next Leases::is_due(Next round) {
  in_round_ = true;
  return round;
}
void Leases::end_round() {
  if (std::exchange(in_round_, false)) ++past_.rounds, past_.taken = 0;
}

lease::Next Leases::next() {
  end_round();
  if (mine_ == 0) {
    stepped_ = true;
    const Answer a = ask({});
    if (a.next != Next::kSteps) return is_due(a.next);
    mine_ = a.steps;
  }
  --mine_;
  ++past_.taken;
  return Next::kSteps;
}

lease::Next Leases::meet() {
  end_round();
  const Answer a = ask({.idle = false, .wants = false, .returned = mine_, .again = !stepped_});
  mine_ = 0;
  if (a.next != Next::kMet) return is_due(a.next);
  standing_ = a.standing;
  past_.rounds = standing_.rounds;
  stepped_ = false;
  return a.next;
}

Answer Leases::ask(const Word& w) {
  if (!open_) open();
  if (alone_) return ask_oneself(w);
  try {
    comm_.push(server_, kToGroup, sequence_, 1, pack(w));
    return answer_of(take_answer());
  } catch (const comm::Timeout& e) {
    throw comm::Timeout(e.rank,
                        text(e.what(), "; it answers when all have taken their steps: is a worker stopped?"));
  }
}

// The group's server may wait for a dedicated one, which is no member of `comm`.
Message Leases::take_answer() {
  const int64_t number = sequence_++;
  if (&hub_ == &comm_) return comm_.take(server_, kToWorker, number);
  const double deadline = comm_.options().deadline;
  auto began = comm::Clock::now(), looked = began;
  for (; comm::seconds_since(began) < deadline; began += comm::absence(looked)) {
    if (auto m = comm_.take_within(std::min(0.2, deadline), server_, kToWorker, number)) return std::move(*m);
    hub_.membership().require(hub_.world_rank(hub_.size() - 1));
  }
  throw comm::Timeout(server_,
                      text("rank ", comm_.rank(), " waited ", deadline, " s for the server of its group"));
}

// The worker is its group's server, too.
Answer Leases::ask_oneself(const Word& w) {
  if (w.wants)
    if (const Answer a = alone_->hear(0, w).at(0).answer; a.next == Next::kSteps) return a;
  return alone_->hear(0, {.idle = true, .wants = w.wants, .returned = w.returned}).at(0).answer;
}

// When the membership changes nothing stays leased, and a negative number says what this worker has taken.
void Leases::visit(Archive& a) {
  constexpr int64_t kRound = int64_t(1) << 32;
  const bool changes = !a.loading() && comm_.transport().mailbox().epoch_ends();
  int64_t leased = changes ? -1 - (past_.rounds * kRound + past_.taken) : mine_;
  a("leased", leased);
  if (a.loading()) {
    past_.inherited = leased < 0;
    mine_ = std::max<int64_t>(0, leased);
    if (past_.inherited) past_.rounds = (-1 - leased) / kRound, past_.taken = (-1 - leased) % kRound;
  }
  Under server(a, "server."), group(a, "group.");
  if (comm_.rank() == 0) standing_.visit(server);
  if (group_) group_->visit(group);
}

}  // namespace skein::optim
