// Servers as message handlers: what they hear goes into their book, what the book says goes out.
#include "optim/lease_servers.h"

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <variant>

#include "comm/inbox.h"
#include "comm/inbox_client.h"

namespace skein::optim {
namespace lease {
namespace {

using comm::Communicator;
using comm::Message;
using comm::Rank;

// To a group's server, from its workers or from the global server; to a worker. Each client has one question open,
// numbered by the step of its message or the sequence of its datagram, and the answer has its number.
constexpr comm::Tag kToGroup = 11, kToWorker = 12;
constexpr uint16_t kIdle = 1, kWants = 2;  // kinds of datagrams

Tensor pack(const Word& w) { return Tensor::of<int64_t>({3}, {w.idle, w.wants, w.returned}); }
Tensor pack(const Answer& a) { return Tensor::of<int64_t>({2}, {int64_t(a.next), a.steps}); }
bool is_answer(const Message& m) { return m.payload.size() == 2; }
Word word_of(const Message& m) {
  const auto* v = m.payload.data<int64_t>();
  return {v[0] != 0, v[1] != 0, v[2]};
}
Word word_of(const comm::Request& r) { return {(r.kind & kIdle) != 0, (r.kind & kWants) != 0, r.argument}; }
Answer answer_of(const Message& m) {
  const auto* v = m.payload.data<int64_t>();
  return {Next(v[0]), v[1]};
}

std::string from_first(Communicator& comm, const std::string& mine) {
  const Tensor length = Tensor::of<int64_t>({1}, {int64_t(mine.size())});
  comm.broadcast(length, 0);
  Tensor words({length.data<int64_t>()[0]}, kU8);
  if (comm.rank() == 0) std::memcpy(words.raw(), mine.data(), mine.size());
  comm.broadcast(words, 0);
  return {static_cast<const char*>(words.raw()), size_t(words.size())};
}

// Whoever is lost is noticed by the workers, who wait for it.
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
  GlobalServer(const Options& o, std::vector<Rank> firsts, int64_t steps, int64_t every,
               const Communicator* comm)
      : firsts_(std::move(firsts)),
        open_(firsts_.size()),
        hearing_(o, "server"),
        book_(int(firsts_.size()), steps, every) {
    if (!comm) return;
    comm_ = comm->twin();
    inbox_.emplace(comm::InboxOptions{.key = comm->options().key, .workers = int(firsts_.size())});
  }
  ~GlobalServer() {
    stop_ = true;
    if (inbox_) inbox_->wake();
    if (thread_.joinable()) thread_.join();
  }

  std::string invitation() const { return inbox_->invitation().words(); }
  void open() {
    thread_ = std::thread([this] { serve(); });
  }
  std::vector<Reply> hear(const Word& w) { return book_.hear(0, w); }  // of a world of one
  void visit(Archive& a) {
    const std::lock_guard lock(mutex_);
    hearing_.visit(a);
    book_.visit(a);
  }

 private:
  void serve() {
    try {
      while (!stop_)
        if (const auto r = inbox_->next(comm::Clock::now() + std::chrono::seconds(1))) heard(*r);
    } catch (const std::exception& e) {
      comm_->transport().mailbox().poison(text("the global server of leases failed: ", e.what()));
    }
  }
  void heard(const comm::Request& r) {
    const std::lock_guard lock(mutex_);
    open_[size_t(r.worker)] = r.sequence;
    hearing_.arrived(r.worker, word_of(r));
    while (const auto said = hearing_.next())
      for (const Reply& due : book_.hear(said->first, said->second)) {
        const auto to = size_t(due.to);
        unless_lost([&] { comm_->push(firsts_[to], kToGroup, open_[to], 1, pack(due.answer)); });
      }
  }

  const std::vector<Rank> firsts_;  // of each group
  std::vector<int64_t> open_;       // the number of each one's question
  std::mutex mutex_;                // the server's thread against visit
  Hearing<Word> hearing_;
  CycleBook book_;
  std::unique_ptr<Communicator> comm_;
  std::optional<comm::Inbox> inbox_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

class GroupServer {
 public:
  GroupServer(const Options& o, const Communicator& comm, std::vector<Rank> members, int index)
      : members_(std::move(members)),
        index_(index),
        open_(members_.size()),
        hearing_(o, text("group", index)),
        book_(int(members_.size())),
        comm_(comm.twin()) {}
  ~GroupServer() { stop_ = true; }

  void open(const std::string& invitation) {
    upward_.emplace(comm::Invitation::read(invitation), comm_->options().key, index_);
    comm_->on(kToGroup, [this](const Message& m) { heard(m); });
  }
  void visit(Archive& a) {
    const std::lock_guard lock(mutex_);
    hearing_.visit(a);
  }

 private:
  using Said = std::variant<Word, Answer>;

  void heard(const Message& m) {
    const std::lock_guard lock(mutex_);
    const int above = int(members_.size());
    if (is_answer(m)) {
      hearing_.arrived(above, answer_of(m));
    } else {
      const int worker = int(std::find(members_.begin(), members_.end(), m.from) - members_.begin());
      CHECK(worker < above, "rank", m.from, "is of another group");
      open_[size_t(worker)] = m.step;
      hearing_.arrived(worker, word_of(m));
    }
    while (const auto said = hearing_.next())
      say(said->first == above ? book_.hear(std::get<Answer>(said->second))
                               : book_.hear(said->first, std::get<Word>(said->second)));
  }

  void say(const GroupBook::Out& out) {
    for (const Reply& r : out.replies)
      unless_lost(
          [&] { comm_->push(members_[size_t(r.to)], kToWorker, open_[size_t(r.to)], 1, pack(r.answer)); });
    if (out.upward) ask(*out.upward);
  }

  // Until the inbox has it, or nobody is there to have it.
  void ask(const Word& w) {
    upward_->begin(uint16_t((w.idle ? kIdle : 0) | (w.wants ? kWants : 0)), int32_t(w.returned));
    while (!upward_->acknowledged() && !stop_ && comm_->membership().alive(comm_->world_rank(0))) {
      pollfd p{upward_->descriptor(), POLLIN, 0};
      poll(&p, 1, 10);
    }
  }

  const std::vector<Rank> members_;
  const int index_;
  std::vector<int64_t> open_;  // the number of each one's question
  std::mutex mutex_;           // the handler's thread against visit
  Hearing<Said> hearing_;
  GroupBook book_;
  std::optional<comm::InboxClient> upward_;
  std::atomic<bool> stop_{false};
  std::unique_ptr<Communicator> comm_;  // its thread uses the others
};

}  // namespace lease

using namespace lease;

Leases::Leases(const Options& o, Communicator* comm, std::vector<std::vector<int>> groups, int64_t steps,
               int64_t every)
    : comm_(comm && comm->size() > 1 ? comm : nullptr) {
  const Rank me = comm_ ? comm_->rank() : 0;
  std::vector<Rank> firsts;
  for (const std::vector<int>& members : groups) firsts.push_back(members.at(0));
  if (me == 0) global_ = std::make_unique<GlobalServer>(o, std::move(firsts), steps, every, comm_);
  for (size_t g = 0; g < groups.size() && comm_; ++g) {
    std::vector<Rank>& members = groups[g];
    if (std::find(members.begin(), members.end(), me) == members.end()) continue;
    server_ = members[0];
    if (server_ == me) group_ = std::make_unique<GroupServer>(o, *comm_, std::move(members), int(g));
  }
  if (comm_) invitation_ = from_first(*comm_, me == 0 ? global_->invitation() : "");
}

Leases::~Leases() = default;

void Leases::open() {
  if (global_) global_->open();
  if (group_) group_->open(invitation_);
}

lease::Next Leases::next() {
  if (mine_ == 0) {
    const Answer a = ask({});
    if (a.next != Next::kSteps) return a.next;
    mine_ = a.steps;
  }
  --mine_;
  return Next::kSteps;
}

lease::Next Leases::meet() {
  const lease::Next t = ask({.idle = false, .wants = false, .returned = mine_}).next;
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
    if (const Answer a = global_->hear(w).at(0).answer; a.next == Next::kSteps) return a;
  return global_->hear({.idle = true, .wants = w.wants, .returned = w.returned}).at(0).answer;
}

void Leases::visit(Archive& a) {
  a("leased", mine_);
  Under global(a, "server."), group(a, "group.");
  if (global_) global_->visit(global);
  if (group_) group_->visit(group);
}

}  // namespace skein::optim
