// Words every file may use: HD, CHECK, Error and its kinds.
#pragma once
#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <string>

#ifdef __CUDACC__
#define HD __host__ __device__ inline
#else
#define HD inline
#endif

namespace skein {

// True if the build found a CUDA toolkit, whether or not a device is present.
#ifdef SKEIN_CUDA
inline constexpr bool kHasCuda = true;
#else
inline constexpr bool kHasCuda = false;
#endif

// Everything this library throws. The three kinds of error are described in CONTRIBUTING.md.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// A file that cannot be read, written or believed; the message names it.
struct BadFile : Error {
  using Error::Error;
};
// A flag, key or value of the user's that is not valid; the message names it and says what is allowed.
struct BadOption : Error {
  using Error::Error;
};

template <class... A>
std::string text(const A&... part) {
  std::ostringstream s;
  ((s << part), ...);
  return s.str();
}

template <class... A>
[[noreturn]] void fail(const char* file, int line, const char* what, const A&... more) {
  std::ostringstream s;
  s << file << ':' << line << ": " << what;
  ((s << ' ' << more), ...);
  throw Error(s.str());
}

}  // namespace skein

// A promise the caller must keep. Always on; the extra arguments are printed.
#define CHECK(cond, ...)                                                                           \
  do {                                                                                             \
    if (!(cond)) ::skein::fail(__FILE__, __LINE__, "CHECK(" #cond ")" __VA_OPT__(, ) __VA_ARGS__); \
  } while (0)
