// View: the members of one epoch, and the step from which it goes on. The bytes by which it is
// told to others.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace skein::comm {

// Names a process. Drawn at random and never used twice: a machine that comes back gets a new one.
using MemberId = uint64_t;

// What parsers accept: more is refused as not of ours.
inline constexpr size_t kMostMembers = 4096;
inline constexpr size_t kLongestCard = 16384;

struct View {
  struct Member {
    MemberId id = 0;
    std::string card;       // how others reach it; opaque here
    bool has_state = true;  // it can go on from the view's step by itself; if not, it needs another's state
    bool operator==(const Member&) const = default;
  };
  uint32_t epoch = 1;
  std::vector<Member> members;  // survivors in their old order, then newcomers by id; the place is the rank
  int64_t step = 0;  // how many steps the epoch finds completed: it goes on with the one after them

  int rank(MemberId) const;  // -1: not in it
  bool has(MemberId m) const { return rank(m) >= 0; }
  bool operator==(const View&) const = default;

  // The letter that tells of a decided view, which a newcomer reads with read().
  std::string write() const;
  // Nothing if the bytes are no such letter, are damaged, or name a member twice.
  static std::optional<View> read(const std::string& bytes);
};

}  // namespace skein::comm
