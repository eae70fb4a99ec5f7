// Servers as message handlers: what they hear goes into their book, what the book says goes out.
#include "optim/lease_servers.h"

#include <algorithm>
#include <variant>

namespace skein::optim {
namespace {

using comm::Communicator;
using comm::Message;
using comm::Rank;

// To the global server; to a group's, from its workers or from the global server; to a worker. Each client has one
// question open, numbered by the step of its message, and the answer has its number.
constexpr comm::Tag kToGlobal = 11, kToGroup = 12, kToWorker = 13;

Tensor pack(const Word& w) { return Tensor::of<int64_t>({3}, {w.idle, w.wants, w.returned}); }
Tensor pack(const Answer& a) { return Tensor::of<int64_t>({2}, {int64_t(a.turn), a.steps}); }
bool is_answer(const Message& m) { return m.payload.size() == 2; }
Word word_of(const Message& m) {
  const auto* v = m.payload.data<int64_t>();
  return {v[0] != 0, v[1] != 0, v[2]};
}
Answer answer_of(const Message& m) {
  const auto* v = m.payload.data<int64_t>();
  return {Turn(v[0]), v[1]};
}

// Whoever is lost is noticed by the workers, who wait for it.
template <class F>
void unless_lost(F f) {
  try {
    f();
  } catch (const comm::PeerLost&) {}
}

}  // namespace

class GlobalServer {
 public:
  GlobalServer(const Options& o, std::vector<Rank> firsts, int64_t steps, int64_t every)
      : firsts_(std::move(firsts)),
        open_(firsts_.size()),
        turns_(o, "server"),
        book_(int(firsts_.size()), steps, every) {}

  void open(const Communicator& comm) {
    comm_ = comm.twin();
    comm_->on(kToGlobal, [this](const Message& m) { heard(m); });
  }
  std::vector<Reply> hear(const Word& w) { return book_.hear(0, w); }  // of a world of one
  void visit(Archive& a) {
    const std::lock_guard lock(mutex_);
    turns_.visit(a);
    book_.visit(a);
  }

 private:
  void heard(const Message& m) {
    const std::lock_guard lock(mutex_);
    const int group = int(std::find(firsts_.begin(), firsts_.end(), m.from) - firsts_.begin());
    CHECK(group < int(firsts_.size()), "rank", m.from, "has no server");
    open_[size_t(group)] = m.step;
    turns_.arrived(group, word_of(m));
    while (const auto said = turns_.next())
      for (const Reply& r : book_.hear(said->first, said->second))
        unless_lost(
            [&] { comm_->push(firsts_[size_t(r.to)], kToGroup, open_[size_t(r.to)], 1, pack(r.answer)); });
  }

  const std::vector<Rank> firsts_;  // of each group
  std::vector<int64_t> open_;       // the number of each one's question
  std::mutex mutex_;                // the handler's thread against visit
  Turns<Word> turns_;
  CycleBook book_;
  std::unique_ptr<Communicator> comm_;  // last: its threads use the others
};

class GroupServer {
 public:
  GroupServer(const Options& o, std::vector<Rank> members, int index)
      : members_(std::move(members)),
        open_(members_.size()),
        turns_(o, text("group", index)),
        book_(int(members_.size())) {}

  void open(const Communicator& comm) {
    comm_ = comm.twin();
    comm_->on(kToGroup, [this](const Message& m) { heard(m); });
  }
  void visit(Archive& a) {
    const std::lock_guard lock(mutex_);
    turns_.visit(a);
  }

 private:
  using Said = std::variant<Word, Answer>;

  void heard(const Message& m) {
    const std::lock_guard lock(mutex_);
    const int above = int(members_.size());
    if (is_answer(m)) {
      turns_.arrived(above, answer_of(m));
    } else {
      const int worker = int(std::find(members_.begin(), members_.end(), m.from) - members_.begin());
      CHECK(worker < above, "rank", m.from, "is of another group");
      open_[size_t(worker)] = m.step;
      turns_.arrived(worker, word_of(m));
    }
    while (const auto said = turns_.next())
      say(said->first == above ? book_.hear(std::get<Answer>(said->second))
                               : book_.hear(said->first, std::get<Word>(said->second)));
  }

  void say(const GroupBook::Out& out) {
    for (const Reply& r : out.replies)
      unless_lost(
          [&] { comm_->push(members_[size_t(r.to)], kToWorker, open_[size_t(r.to)], 1, pack(r.answer)); });
    if (out.upward) unless_lost([&] { comm_->push(0, kToGlobal, sequence_++, 1, pack(*out.upward)); });
  }

  const std::vector<Rank> members_;
  std::vector<int64_t> open_;  // the number of each one's question
  int64_t sequence_ = 0;
  std::mutex mutex_;
  Turns<Said> turns_;
  GroupBook book_;
  std::unique_ptr<Communicator> comm_;  // last: its threads use the others
};

Leases::Leases(const Options& o, Communicator* comm, std::vector<std::vector<int>> groups, int64_t steps,
               int64_t every)
    : comm_(comm && comm->size() > 1 ? comm : nullptr) {
  const Rank me = comm_ ? comm_->rank() : 0;
  std::vector<Rank> firsts;
  for (size_t g = 0; g < groups.size(); ++g) {
    std::vector<Rank>& members = groups[g];
    firsts.push_back(members.at(0));
    if (std::find(members.begin(), members.end(), me) != members.end()) server_ = members[0];
    if (comm_ && members[0] == me) group_ = std::make_unique<GroupServer>(o, std::move(members), int(g));
  }
  if (me == 0) global_ = std::make_unique<GlobalServer>(o, std::move(firsts), steps, every);
}

Leases::~Leases() = default;

void Leases::open() {
  if (global_) global_->open(*comm_);
  if (group_) group_->open(*comm_);
}

Turn Leases::next() {
  if (mine_ == 0) {
    const Answer a = ask({});
    if (a.turn != Turn::kSteps) return a.turn;
    mine_ = a.steps;
  }
  --mine_;
  return Turn::kSteps;
}

Turn Leases::meet() {
  const Turn t = ask({.idle = false, .wants = false, .returned = mine_}).turn;
  mine_ = 0;
  return t;
}

Answer Leases::ask(const Word& w) {
  if (!comm_) return ask_oneself(w);
  if (sequence_ == 0) open();
  try {
    comm_->push(server_, kToGroup, sequence_, 1, pack(w));
    return answer_of(comm_->take(server_, kToWorker, sequence_++));
  } catch (const comm::Timeout& e) {
    throw comm::Timeout(e.rank,
                        text(e.what(), "; it answers when all have taken their steps: is a worker stopped?"));
  }
}

// The worker is its group's server, too.
Answer Leases::ask_oneself(const Word& w) {
  if (w.wants)
    if (const Answer a = global_->hear(w).at(0).answer; a.turn == Turn::kSteps) return a;
  return global_->hear({.idle = true, .wants = w.wants, .returned = w.returned}).at(0).answer;
}

void Leases::visit(Archive& a) {
  a("leased", mine_);
  Under global(a, "server."), group(a, "group.");
  if (global_) global_->visit(global);
  if (group_) group_->visit(group);
}

}  // namespace skein::optim
