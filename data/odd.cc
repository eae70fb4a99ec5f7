// The table of odd kinds, and the count by file.
#include "data/odd.h"

#include <algorithm>
#include <bit>
#include <charconv>

namespace skein::data {
namespace {

constexpr OddKind kKinds[] = {{kCmyk, "cmyk"},
                              {kGray, "gray"},
                              {kSixteenBit, "16-bit"},
                              {kPalette, "palette"},
                              {kTransparent, "transparent"},
                              {kMisnamed, "misnamed"},
                              {kEmpty, "empty"},
                              {kTruncated, "truncated"},
                              {kUndecodable, "undecodable"},
                              {kUnopenable, "unopenable"}};

// The kinds that a file counts as. A damaged file may have looked sound, or odd in another way,
// at an earlier visit.
OddSet counted(OddSet s) {
  if (!left_out(s)) return s;
  const OddSet reasons = s & OddSet(~(kEmpty - 1));
  return OddSet(1 << std::countr_zero(reasons));
}

}  // namespace

std::span<const OddKind> odd_kinds() { return kKinds; }

const char* why_left_out(OddSet s) {
  if (s & kEmpty) return "empty";
  if (s & kTruncated) return "truncated: the file ends early";
  if (s & kUnopenable) return "cannot be read, or is larger than 512 MiB";
  return "damaged, or larger than 2^28 pixels or 512 MiB when decoded";
}

void Census::add(int64_t index, OddSet odd) {
  if (odd) files_[index] |= odd;
}
void Census::add(const Census& other) {
  for (const auto& [index, odd] : other.files_) add(index, odd);
}

int64_t Census::count(Odd kind) const {
  return std::count_if(files_.begin(), files_.end(),
                       [kind](const auto& f) { return counted(f.second) & kind; });
}
int64_t Census::left_out() const {
  return std::count_if(files_.begin(), files_.end(), [](const auto& f) { return data::left_out(f.second); });
}
int64_t Census::converted() const { return int64_t(files_.size()) - left_out(); }

std::string Census::pack() const {
  std::string all;
  for (const auto& [index, odd] : files_) {
    if (!all.empty()) all += ',';
    all += std::to_string(index) + ':' + std::to_string(odd);
  }
  return all;
}

Census Census::unpack(const std::string& packed) {
  Census c;
  const char *at = packed.data(), *const end = at + packed.size();
  const auto number = [&](int64_t most) {
    int64_t n = -1;
    const auto [stop, code] = std::from_chars(at, end, n);
    if (code != std::errc() || n < 0 || n > most)
      throw BadFile("the list of odd files is damaged: " + packed);
    at = stop;
    return n;
  };
  const auto skip = [&](char c) {
    if (at == end || *at++ != c) throw BadFile("the list of odd files is damaged: " + packed);
  };
  while (at != end) {
    if (at != packed.data()) skip(',');
    const int64_t index = number(INT64_MAX);
    skip(':');
    c.add(index, OddSet(number(UINT16_MAX)));
  }
  return c;
}

}  // namespace skein::data
