// Reading: what reading one sample reports besides its pixels.
#pragma once
#include "data/odd.h"
#include "engine/clock.h"

namespace skein::data {

// Seconds by stage of loading, summed over the loader's threads; `wait` is how long the training
// loop waited for batches.
struct StageSeconds {
  double read = 0, decode = 0, resize = 0, jitter = 0, upload = 0, wait = 0;
  StageSeconds& operator+=(const StageSeconds& o) {
    read += o.read, decode += o.decode, resize += o.resize, jitter += o.jitter, upload += o.upload,
        wait += o.wait;
    return *this;
  }
};

struct Reading {
  OddSet odd = 0;
  const char* why = nullptr;  // why it is left out, if more is known than `odd` says: "WebP, not JPEG or PNG"
  StageSeconds seconds;
};

// The calling thread's. DataSource::read adds to it; its caller clears it before.
inline Reading& reading() {
  thread_local Reading mine;
  return mine;
}

using Stage = Timed<steady_seconds>;  // adds the time until the end of the scope

}  // namespace skein::data
