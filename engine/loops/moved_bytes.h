// MovedBytes: how much memory passes over vectors, and copies, read and write.
#pragma once
#include <cstdint>
#include <utility>

namespace skein {

// While it lives it counts what the calling thread does; of nested ones the innermost does. Not for threads
// that this one starts; simulated ones (comm/sim/fiber.h) are counted with it.
class MovedBytes {
 public:
  MovedBytes() : around_(std::exchange(current(), this)) {}
  ~MovedBytes() { current() = around_; }
  MovedBytes(const MovedBytes&) = delete;
  int64_t take() { return std::exchange(bytes_, 0); }  // since the last call

  static void count(int64_t bytes) {
    if (MovedBytes* here = current()) here->bytes_ += bytes;
  }
  static MovedBytes*& current() {  // the calling thread's; null: nobody counts
    static thread_local MovedBytes* here = nullptr;
    return here;
  }

 private:
  MovedBytes* const around_;
  int64_t bytes_ = 0;
};

}  // namespace skein
