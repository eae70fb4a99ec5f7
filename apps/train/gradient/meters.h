// Meters: loss and hits of the training batches, summed on the device and read back occasionally.
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
  // Adds one batch: `rows` times `loss` [1] is the sum of its losses; `hits` [2] is the result of
  // top_k_hits(). The work is queued, and the host does not wait.
  void add(const Tensor& loss, float rows, const Tensor& hits);
  // Starts copying the sums to the host, which does not wait, and starts new ones. Only one send() at a time.
  void send();
  // Waits for the sums that were sent, if any, and adds them. Returns false if a loss was not finite.
  bool take();
  bool read() { return (!sent_ || take()) && (send(), take()); }  // reads everything, waiting for the device
  void visit(Archive&);                                           // call it after read()

  Sums recent, epoch;  // since the caller last cleared them
  Sums total;

 private:
  Tensor sums_;      // f32 [3]: loss, hits, images
  Tensor arriving_;  // the same, in pinned host memory
  Event arrived_;
  bool sent_ = false;
};

}  // namespace skein::apps
