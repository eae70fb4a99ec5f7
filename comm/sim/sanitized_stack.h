// SanitizedStack: tells the sanitizers when a thread changes its stack, which they cannot see by themselves.
#pragma once
#include <cstddef>

#if defined(__has_feature)  // clang
#define SKEIN_ASAN __has_feature(address_sanitizer)
#define SKEIN_TSAN __has_feature(thread_sanitizer)
#else
#ifdef __SANITIZE_ADDRESS__
#define SKEIN_ASAN 1
#endif
#ifdef __SANITIZE_THREAD__
#define SKEIN_TSAN 1
#endif
#endif

#if SKEIN_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#elif SKEIN_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace skein::comm::sim {

// One for each stack. Its functions are always inlined, because TSan keeps a list of calls for each stack.
#define SKEIN_INLINE __attribute__((always_inline)) inline
#if SKEIN_ASAN

class SanitizedStack {
 public:
  SanitizedStack() = default;  // of the calling thread: where it lies is told when the thread leaves it
  SanitizedStack(const SanitizedStack&) = delete;
  // Frames that were never returned from have left marks, which would be those of the memory's next owner.
  ~SanitizedStack() {
    if (begun_) __asan_unpoison_memory_region(bottom_, bytes_);
  }
  void begin(void* bottom, size_t bytes) { bottom_ = bottom, bytes_ = bytes, begun_ = true; }
  // On this stack, right before the thread changes over to `next`.
  SKEIN_INLINE void leave_for(SanitizedStack& next) {
    left_ = this, entered_ = &next;
    __sanitizer_start_switch_fiber(&frames_, next.bottom_, next.bytes_);
  }
  // On the new stack, right after the change.
  SKEIN_INLINE static void arrive() {
    __sanitizer_finish_switch_fiber(entered_->frames_, &left_->bottom_, &left_->bytes_);
  }

 private:
  static inline thread_local SanitizedStack *left_ = nullptr, *entered_ = nullptr;
  const void* bottom_ = nullptr;
  size_t bytes_ = 0;
  bool begun_ = false;
  void* frames_ = nullptr;  // those that ASan keeps elsewhere, to see them used after a return
};

#elif SKEIN_TSAN

class SanitizedStack {
 public:
  SanitizedStack() = default;
  SanitizedStack(const SanitizedStack&) = delete;
  ~SanitizedStack() {
    if (begun_) __tsan_destroy_fiber(fiber_);
  }
  void begin(void*, size_t) { fiber_ = __tsan_create_fiber(0), begun_ = true; }
  SKEIN_INLINE void leave_for(SanitizedStack& next) {
    if (!begun_) fiber_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(next.fiber_, 0);
  }
  static void arrive() {}

 private:
  void* fiber_ = nullptr;
  bool begun_ = false;
};

#else

struct SanitizedStack {
  void begin(void*, size_t) {}
  void leave_for(SanitizedStack&) {}
  static void arrive() {}
};

#endif
#undef SKEIN_INLINE

}  // namespace skein::comm::sim
