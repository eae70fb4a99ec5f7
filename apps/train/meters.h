// Meters: loss and hits of the training batches, summed on the device and read back now and then.
#pragma once
#include "engine/archive.h"

namespace skein::apps {

// Sums over images that could be read.
struct Sums {
  double loss = 0, hits = 0, images = 0;
  double mean_loss() const { return images ? loss / images : 0; }
  double top1() const { return images ? 100 * hits / images : 0; }
  Sums& operator+=(const Sums&);
  void visit(Archive&);
};

class Meters {
 public:
  explicit Meters(Device);
  // One batch: `rows` times `loss` [1] is the sum of its losses; and what top_k_hits made of it [2]. Queued;
  // the host does not wait.
  void add(const Tensor& loss, float rows, const Tensor& hits);
  // The sums so far begin their way to the host, which does not wait, and new ones begin. One send at a time.
  void send();
  // Waits for what was sent, if anything, and adds it. False if a loss in it was not finite.
  bool take();
  bool read() { return (!sent_ || take()) && (send(), take()); }  // all there is, waiting for the device
  void visit(Archive&);                                           // after read()

  Sums recent, epoch;  // since the caller last cleared them
  Sums total;

 private:
  Tensor sums_;      // f32 [3]: loss, hits, images
  Tensor arriving_;  // the same, in memory a device writes by itself
  Event arrived_;
  bool sent_ = false;
};

}  // namespace skein::apps
