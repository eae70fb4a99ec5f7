// The segments of a flat vector, with the factors by which each scales the learning rate and
// the weight decay.
#pragma once
#include <vector>

#include "engine/tensor.h"

namespace skein {

// The segments of one flat vector, in its order and without gaps, on host and device. Copies share
// the device's part.
class Segments {
 public:
  static constexpr int64_t kBlock = 64;  // elements; each segment begins at a multiple of them

  // Elements [begin, end) of the vector: one parameter and the padding behind it, which is zero.
  struct Segment {
    int64_t begin = 0, end = 0;
    int64_t rows = 1, columns = 0;  // as a matrix; without the padding
    bool hidden = false;  // a weight matrix inside the network: no norm, no bias, not the last layer
    float rate = 1;       // times the step's rate
    float decay = 0;      // times the weight decay
  };

  Segments() = default;  // none
  Segments(std::vector<Segment>, Device);
  static Segments one(const Tensor& x, float decay = 0);  // x without structure

  const std::vector<Segment>& all() const { return all_; }
  int64_t size() const { return all_.empty() ? 0 : all_.back().end; }  // of the vector
  Device device() const { return of_block_.device(); }

  // On the device: one f32 per segment, and the index of each block's segment, i32.
  Tensor numbers(const std::vector<float>&) const;
  const Tensor& rates() const { return rates_; }
  const Tensor& decays() const { return decays_; }
  const Tensor& of_block() const { return of_block_; }

  // sums[s] <- the sum of the squares of the elements of segment s, f32 as x. The order in which they are
  // added depends on the segments alone.
  void sum_squares(const Tensor& sums, const Tensor& x) const;

 private:
  std::vector<Segment> all_;
  Tensor of_block_, rates_, decays_;
  Tensor chunks_;  // i64: begin and end of the parts that are summed at once, each of one segment
  Tensor first_;   // i64: the first chunk of each segment, and the number of chunks
};

}  // namespace skein
