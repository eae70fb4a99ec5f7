// Measuring how long work takes.
#pragma once
#include <chrono>

namespace skein {

// Seconds since some moment in the past; never goes back.
inline double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Adds the seconds of its lifetime, by that clock, to a sum.
template <double (*clock)()>
class Timed {
 public:
  explicit Timed(double& sum) : sum_(sum), from_(clock()) {}
  ~Timed() { sum_ += clock() - from_; }
  Timed(const Timed&) = delete;

 private:
  double& sum_;
  const double from_;
};

}  // namespace skein
