// A clock for measuring how long work takes.
#pragma once
#include <chrono>

namespace skein::apps {

// Seconds since some moment in the past; never goes back.
inline double clock_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Adds the time it lives to a sum.
class Timed {
 public:
  explicit Timed(double& sum) : sum_(sum), from_(clock_seconds()) {}
  ~Timed() { sum_ += clock_seconds() - from_; }
  Timed(const Timed&) = delete;

 private:
  double& sum_;
  const double from_;
};

}  // namespace skein::apps
