// What members say to each other about the next epoch, as structures and as bytes. Used by
// succession.cc and tests.
//
//   magic "SKSU", version 1, word, epoch; then what the word needs (letters.cc), little endian
#pragma once
#include <compare>
#include <limits>
#include <string>

#include "comm/membership/end.h"
#include "comm/membership/view.h"

namespace skein::comm {

// No state at all: older than any step that is asked for.
inline constexpr int64_t kNoState = std::numeric_limits<int64_t>::max();

// Proposals are ordered by round, then by who made them.
struct Ballot {
  uint64_t round = 0;  // 0: none
  MemberId by = 0;
  auto operator<=>(const Ballot&) const = default;
};

struct Vote {
  Ballot ballot;
  View view;
};

// What a member promises besides to follow no lower ballot: the state with which it enters the next epoch.
struct Promise {
  int64_t completed = 0;      // steps
  int64_t oldest = kNoState;  // it can go back to any count of steps from here to `completed`
  bool leaving = false;
  std::string card;
  std::vector<View::Member> waiting;  // who knocked at its door
  std::optional<Vote> vote;           // its last
};

enum class Word : uint8_t {
  kPrepare = 1,  // ballot
  kPromise,      // ballot, promise
  kAccept,       // ballot, view
  kAccepted,     // ballot
  kRefused,      // ballot, higher: one that it has promised to follow
  kDecided,      // view
  kHere,         // the sender is in this epoch; a receiver that knows a later one replies
  kEnded,        // end; of the run, whatever the epoch
};

struct Letter {
  MemberId to = 0;
  std::string bytes;
};

struct Content {
  Word word = Word::kHere;
  uint32_t epoch = 0;  // the sender's; of a decided view its own
  Ballot ballot, higher;
  Promise promise;
  View view;
  End end;

  std::string write() const;
  static std::optional<Content> read(const std::string& bytes);  // nothing if they are not of this form
};

}  // namespace skein::comm
