// Odd files: image files that are not plain 8-bit RGB with the right suffix. Each is counted once, by kind.
#pragma once
#include <map>
#include <span>
#include <string>

#include "engine/base.h"

namespace skein::data {

// The kinds, as bits of a set. From kEmpty on they are reasons why a file is left out; files of the others
// are converted to RGB and may be of several kinds. Values are part of checkpoints.
enum Odd : uint16_t {
  kCmyk = 1,               // CMYK or YCCK JPEG
  kGray = 2,               // one channel
  kSixteenBit = 4,         // 16 bits a channel
  kPalette = 8,            // indices into a table of colors
  kTransparent = 16,       // has transparency, which is dropped
  kMisnamed = 32,          // PNG called .jpg, JPEG called .png
  kEmpty = 1 << 8,         // zero bytes
  kTruncated = 1 << 9,     // ends early
  kUndecodable = 1 << 10,  // neither JPEG nor PNG, damaged, or too large
  kUnopenable = 1 << 11,   // gone since it was listed, no permission, a disk error
};
using OddSet = uint16_t;
constexpr bool left_out(OddSet s) { return s >= kEmpty; }
const char* why_left_out(OddSet);  // "empty", "truncated: the file ends early": the first reason of the set

struct OddKind {
  Odd kind;
  const char* name;  // "cmyk": the key in summary.json
};
std::span<const OddKind> odd_kinds();

// The odd files seen so far, each counted once however often it is visited. Not thread-safe.
class Census {
 public:
  void add(int64_t index, OddSet);  // nothing if the set is empty
  void add(const Census&);
  // A file that is left out counts only under its first reason.
  int64_t count(Odd) const;
  int64_t converted() const;
  int64_t left_out() const;
  bool empty() const { return files_.empty(); }
  const std::map<int64_t, OddSet>& files() const { return files_; }  // by index in the source

  std::string pack() const;                  // "17:2,41:256", "" for none
  static Census unpack(const std::string&);  // BadFile if it is not what pack() makes

 private:
  std::map<int64_t, OddSet> files_;
};

}  // namespace skein::data
