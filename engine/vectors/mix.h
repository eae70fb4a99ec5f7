// Mixup (Zhang et al. 2018) and cutmix (Yun et al. 2019) on the device: rows of a batch
// blended with each other.
#pragma once
#include <vector>

#include "engine/tensor.h"

namespace skein {

// Row r of a batch of N is blended with its partner, row (r + shift) mod N. If one of the two has no label
// (an unreadable image), the row stays as it is.
//   without a box   mixup: share * own + (1 - share) * partner
//   with a box      cutmix: the partner's pixels inside, its own outside; share is the part of the area
//                   outside
struct Blend {
  float share = 1;
  int64_t shift = 0;                             // 0: no row is blended
  int top = 0, left = 0, bottom = 0, right = 0;  // rows [top, bottom), columns [left, right) of pixels
  HD bool boxed() const { return bottom > top && right > left; }
};

// If `slot` is given, in device memory, kernels read the blend from it, and the Blend
// argument is only checked.
//
// normalize_image() of rows [first, first + rows) of the batch u8 [N,H,W,C], blended; labels i32 [N].
Tensor blend_image(const Tensor& u8, const Tensor& labels, const Blend&, int64_t first, int64_t rows,
                   const std::vector<float>& mean, const std::vector<float>& std, DType,
                   const Blend* slot = nullptr);
// i32 [N]: the label of each row's partner; its own if the row is not blended.
Tensor partner_labels(const Tensor& labels, const Blend&, const Blend* slot = nullptr);

// The target of each row of `logits`: the label with weight `share`, `other` with the rest. `other` is
// negative where the label is. Without `other` the target is the label alone.
struct Targets {
  Tensor labels, other;  // i32 [m]
  float share = 1;
  // the loss is the sum over the rows divided by this; 0: by the number of rows with a label
  int64_t rows = 0;
  const float* share_slot = nullptr;  // in device memory; if given, kernels read it instead of `share`
};
// Like cross_entropy() of ops.h with q = (1 - s) (share * one-hot + (1 - share) * other one-hot)
// + s / classes.
Tensor cross_entropy(const Tensor& logits, const Targets&, float smoothing);

}  // namespace skein
