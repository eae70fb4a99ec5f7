// Writing letters, and reading untrusted bytes: every count is bounded by the bytes that are left.
#include "comm/membership/letters.h"

#include <algorithm>
#include <cstring>

namespace skein::comm {
namespace {

constexpr uint32_t kMagic = 0x55534B53;  // "SKSU"
constexpr uint8_t kVersion = 1;
constexpr uint64_t kLastRound = uint64_t(1) << 62;  // so that no next round overflows

class Writer {
 public:
  template <class T>
  Writer& number(T v) {
    const size_t at = bytes_.size();
    bytes_.resize(at + sizeof v);
    std::memcpy(bytes_.data() + at, &v, sizeof v);
    return *this;
  }
  void ballot(const Ballot& b) { number(b.round).number(b.by); }
  void members(const std::vector<View::Member>& all) {
    number(uint32_t(all.size()));
    for (const View::Member& m : all) {
      number(m.id).number(uint8_t(m.has_state)).number(uint32_t(m.card.size()));
      bytes_ += m.card;
    }
  }
  void view(const View& v) {
    number(v.epoch).number(v.step);
    members(v.members);
  }
  void promise(const Promise& p) {
    number(p.completed).number(p.oldest).number(uint8_t(p.leaving)).number(uint32_t(p.card.size()));
    bytes_ += p.card;
    members(p.waiting);
    number(uint8_t(p.vote.has_value()));
    if (!p.vote) return;
    ballot(p.vote->ballot);
    view(p.vote->view);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// After the first thing that is wrong, all that is read is zero and good() is false.
class Reader {
 public:
  explicit Reader(const std::string& bytes) : at_(bytes.data()), end_(at_ + bytes.size()) {}
  template <class T>
  T number() {
    T v{};
    if (!need(sizeof v)) return v;
    std::memcpy(&v, at_, sizeof v);
    at_ += sizeof v;
    return v;
  }
  bool flag() {
    const uint8_t b = number<uint8_t>();
    demand(b <= 1);
    return b == 1;
  }
  std::string card() {
    const size_t n = number<uint32_t>();
    demand(n <= kLongestCard);
    if (!need(n)) return {};
    at_ += n;
    return std::string(at_ - n, n);
  }
  Ballot ballot() {
    Ballot b;
    b.round = number<uint64_t>(), b.by = number<uint64_t>();
    demand(b.round > 0 && b.round <= kLastRound);
    return b;
  }
  std::vector<View::Member> members() {
    const size_t n = number<uint32_t>();
    demand(n <= kMostMembers);
    std::vector<View::Member> all;
    std::vector<MemberId> ids;
    for (size_t i = 0; i < n && good_; ++i) {
      View::Member m;
      m.id = number<uint64_t>(), m.has_state = flag(), m.card = card();
      ids.push_back(m.id);
      all.push_back(std::move(m));
    }
    std::sort(ids.begin(), ids.end());
    demand(std::adjacent_find(ids.begin(), ids.end()) == ids.end());
    return all;
  }
  View view() {
    View v;
    v.epoch = number<uint32_t>(), v.step = number<int64_t>(), v.members = members();
    demand(v.epoch > 0 && v.step >= 0 && !v.members.empty());
    return v;
  }
  Promise promise() {
    Promise p;
    p.completed = number<int64_t>(), p.oldest = number<int64_t>();
    p.leaving = flag(), p.card = card(), p.waiting = members();
    demand(p.completed >= 0 && p.oldest >= 0);
    if (!flag()) return p;
    const Ballot b = ballot();
    p.vote = Vote{b, view()};
    return p;
  }
  void demand(bool right) { good_ = good_ && right; }
  bool whole() const { return good_ && at_ == end_; }

 private:
  bool need(size_t n) {
    demand(size_t(end_ - at_) >= n);
    return good_;
  }
  const char *at_, *end_;
  bool good_ = true;
};

// Whether this word is of some ballot.
bool is_of_ballot(Word w) { return w != Word::kDecided && w != Word::kHere && w != Word::kEnded; }

}  // namespace

int View::rank(MemberId m) const {
  for (size_t r = 0; r < members.size(); ++r)
    if (members[r].id == m) return int(r);
  return -1;
}

std::string View::write() const {
  Content c;
  c.word = Word::kDecided, c.epoch = epoch, c.view = *this;
  return c.write();
}

std::optional<View> View::read(const std::string& bytes) {
  auto c = Content::read(bytes);
  if (!c || c->word != Word::kDecided) return {};
  return std::move(c->view);
}

std::string End::write() const {
  Content c;
  c.word = Word::kEnded, c.epoch = 1, c.end = *this;
  return c.write();
}

std::optional<End> End::read(const std::string& bytes) {
  const auto c = Content::read(bytes);
  if (!c || c->word != Word::kEnded) return {};
  return c->end;
}

std::string Content::write() const {
  Writer out;
  out.number(kMagic).number(kVersion).number(word).number(epoch);
  if (is_of_ballot(word)) out.ballot(ballot);
  if (word == Word::kPromise) out.promise(promise);
  if (word == Word::kRefused) out.ballot(higher);
  if (word == Word::kAccept || word == Word::kDecided) out.view(view);
  if (word == Word::kEnded) out.number(end.step).number(uint8_t(end.interrupted));
  return out.take();
}

std::optional<Content> Content::read(const std::string& bytes) {
  Reader in(bytes);
  in.demand(in.number<uint32_t>() == kMagic);
  in.demand(in.number<uint8_t>() == kVersion);
  Content c;
  c.word = in.number<Word>(), c.epoch = in.number<uint32_t>();
  in.demand(c.word >= Word::kPrepare && c.word <= Word::kEnded && c.epoch > 0);
  if (is_of_ballot(c.word)) c.ballot = in.ballot();
  if (c.word == Word::kPromise) c.promise = in.promise();
  if (c.word == Word::kRefused) c.higher = in.ballot();
  if (c.word == Word::kAccept || c.word == Word::kDecided) c.view = in.view();
  if (c.word == Word::kEnded) {
    c.end.step = in.number<int64_t>(), c.end.interrupted = in.flag();
    in.demand(c.end.step >= 0);
  }
  if (c.word == Word::kDecided) in.demand(c.view.epoch == c.epoch);
  if (!in.whole()) return {};
  return c;
}

}  // namespace skein::comm
