// Reading: what reading one sample has to tell beside its pixels.
#pragma once
#include "data/odd.h"
#include "engine/clock.h"

namespace skein::data {

// Seconds by stage of loading, summed over the loader's threads; `wait` is the training loop's, for batches.
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
  const char* why = nullptr;  // it is left out, where that says more than `odd`: "WebP, not JPEG or PNG"
  StageSeconds seconds;
};

// This thread's. DataSource::read adds to it; whoever wants to know clears it before.
inline Reading& reading() {
  thread_local Reading mine;
  return mine;
}

using Stage = Timed<steady_seconds>;  // adds the time until the end of the scope

}  // namespace skein::data
