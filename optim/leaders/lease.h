// Who may take how many steps of a cycle: the books of the global server and of a group's local server, and
// the order in which each hears its clients. Pure: no threads, no messages.
#pragma once
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/archive.h"
#include "optim/order_log.h"

namespace skein::optim::lease {

// What a server answers.
enum class Next : int64_t { kSteps, kNoneLeft, kGroupRound, kGlobalRound, kMet };
// Where the global server stands when all have met. It tells the workers, who keep it with their own state,
// so that it may be anywhere.
struct Standing {
  int64_t left = -1;  // of the cycle; -1: it is the beginning
  int64_t rounds = 0;
  int64_t heard = 0;  // words, so far: its place in a recording
  void visit(Archive&);
  bool operator==(const Standing&) const = default;
};

struct Answer {
  Next next = Next::kNoneLeft;
  int64_t steps = 0;       // leased, with kSteps
  Standing standing = {};  // with kMet
  bool operator==(const Answer&) const = default;
};

// What a client says. A worker is never idle; a local server is when all its workers are in and its steps
// are used up.
struct Word {
  bool idle = false;
  bool wants = true;     // a step; else to meet the others
  int64_t returned = 0;  // leased steps that were not taken
  // It wants to meet and has asked for no step since all met last: it does not matter when that is heard.
  bool again = false;
  bool operator==(const Word&) const = default;
};

struct Reply {
  int to;
  Answer answer;
  bool operator==(const Reply&) const = default;
};

// The book of the global server. A cycle grants `steps` steps, first come, first served; steps that are
// returned are granted again. When all steps are taken, that is when every group is idle, all workers take
// part in a round. Every `every`-th round is global.
class CycleBook {
 public:
  CycleBook(int groups, int64_t steps, int64_t every);
  void stand(const Standing&);  // once, before anything is heard
  // Answers that are due now. A group that is not idle is answered at once. An idle one is answered when
  // steps have been returned, when the round is due, or, by kMet, when no group wants any more steps.
  std::vector<Reply> hear(int group, const Word&);
  int64_t left() const { return left_; }

 private:
  struct Idle {
    int group;
    bool wants;
  };
  Answer lease();
  const int groups_;
  const int64_t steps_, every_;
  int64_t left_, rounds_ = 0;
  std::deque<Idle> idle_;  // in order of arrival
};

// The book of a local server. It hands the steps that it leases on to its workers, fewer at a time, so that
// none is left with many when the others have none.
class GroupBook {
 public:
  explicit GroupBook(int workers) : workers_(workers) {}
  struct Out {
    std::vector<Reply> replies;
    std::optional<Word> upward;  // to the global server; one is on its way at a time
  };
  Out hear(int worker, const Word&);  // from one of the group
  Out hear(const Answer&);            // from the global server

 private:
  Out serve();
  Out tell_all(const Answer&);
  const int workers_;
  int64_t pool_ = 0;
  bool asking_ = false;      // the global server has not answered yet
  bool exhausted_ = false;   // it had none left
  std::deque<int> waiting_;  // workers that want a step, in order of arrival
  int meeting_ = 0;          // workers that want to meet
  bool stepped_ = false;     // a worker has asked for a step since all met last
};

// Words of several clients, each in the order it was said; between clients in the order of arrival or,
// replaying, of the recording. Not thread-safe.
template <class W>
class Hearing {
 public:
  Hearing(const Options& o, const std::string& name) : log_(o, name) {}
  // `anytime`: it does not matter when it is heard, so the recording does not say.
  void arrived(int client, W word, bool anytime) { words_.push_back({client, std::move(word), anytime}); }
  // The next one to be heard, if it has arrived.
  std::optional<std::pair<int, W>> next() {
    for (auto i = words_.begin(); i != words_.end(); ++i) {
      if (!i->anytime && log_.replaying() && i->client != log_.next()) continue;
      const Waiting heard = std::move(*i);
      words_.erase(i);
      if (!heard.anytime) log_.happened(heard.client);
      return std::pair(heard.client, heard.word);
    }
    return {};
  }
  OrderLog& log() { return log_; }

 private:
  OrderLog log_;
  struct Waiting {
    int client;
    W word;
    bool anytime;
  };
  std::deque<Waiting> words_;
};

}  // namespace skein::optim::lease
