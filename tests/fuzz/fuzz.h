// Harnesses: functions that give arbitrary bytes to a parser. libFuzzer runs them on inputs that it invents
// (libfuzzer.cc), the tests on the inputs kept here (replay_test.cc).
#pragma once
#include <algorithm>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base.h"

namespace skein::fuzz {

// Takes an input apart from the front. At its end there are zeros and empty strings.
class Input {
 public:
  explicit Input(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  size_t left() const { return bytes_.size(); }
  uint8_t byte() { return number<uint8_t>(); }
  template <class T>
  T number() {
    T v{};
    const size_t n = std::min(left(), sizeof v);
    if (n > 0) std::memcpy(static_cast<void*>(&v), bytes_.data(), n);
    bytes_ = bytes_.subspan(n);
    return v;
  }
  std::string some(size_t n) {
    n = std::min(n, left());
    const std::string s(reinterpret_cast<const char*>(bytes_.data()), n);
    bytes_ = bytes_.subspan(n);
    return s;
  }
  std::string rest() { return some(left()); }
  std::string line() {  // without the newline that ends it
    const void* end = left() ? std::memchr(bytes_.data(), '\n', left()) : nullptr;
    if (!end) return rest();
    std::string s = some(size_t(static_cast<const uint8_t*>(end) - bytes_.data()));
    bytes_ = bytes_.subspan(1);
    return s;
  }

 private:
  std::span<const uint8_t> bytes_;
};

struct Harness {
  const char* name;
  size_t longest;  // bytes of an input
  const char* bytes;
  void (*run)(Input);
};
const std::vector<Harness>& harnesses();
const Harness* find_harness(const std::string& name);  // null if there is none

#define HARNESS(name, longest, bytes) void name(Input);
#include "tests/fuzz/harnesses.def"
#undef HARNESS

// What an input must never do.
struct Find : std::logic_error {
  using std::logic_error::logic_error;
};
inline void require(bool good, std::string_view what) {
  if (!good) throw Find(std::string(what));
}

// Whether this is the message of a CHECK, "FILE:LINE: CHECK(...", and not of an error that quotes the word.
bool is_of_check(std::string_view message);

// Runs f, which may refuse its input by an Error. Any other exception is a find, and so is a broken CHECK:
// a promise among our own functions must not depend on bytes from outside.
template <class F>
void may_refuse(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    if (is_of_check(e.what())) throw Find(std::string("an input broke a promise: ") + e.what());
  }
}

// A directory of this process in TMPDIR, which is removed at its end; HOME and the cache
// directory are inside.
const std::string& scratch();
// Writes the file scratch()/name and returns its path.
std::string put(const std::string& name, const std::string& bytes);

}  // namespace skein::fuzz
