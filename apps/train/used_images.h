// UsedImages: which images a worker takes in each step, written down for checks that none is lost or doubled.
#pragma once
#include <string>

#include "apps/train/run.h"
#include "comm/join/sockets.h"

namespace skein::apps {

// With SKEIN_USED_IMAGES=DIR each process appends to DIR/PID-RANK: "begun EPOCH RANK STEP INDEX..." before it
// takes a step, and "taken EPOCH RANK STEP SECONDS" after it, by the host's steady clock; EPOCH is that of
// the membership. A step that is begun may have been completed by the others alone. Where workers are apart,
// "told EPOCH RANK STEP" says that this worker, which begins that one, has told the others of its steps but
// for the last one, of which they know when it has sent something in the next.
// docs/elastic.md says how bench/churn reads it.
class UsedImages {
 public:
  explicit UsedImages(const Run&);
  void begin();
  void end();
  void tell();

 private:
  void write(const char* word, const std::string& rest);
  const Run& run_;
  uint32_t epoch_ = 0;
  comm::Fd file_;
};

}  // namespace skein::apps
