// Mixup (Zhang et al. 2018) and cutmix (Yun et al. 2019) on the device: rows of a batch
// blended with each other.
#pragma once
#include <vector>

#include "engine/tensor.h"

namespace skein {

// Row r of a batch of N is blended with its partner, row (r + shift) mod N. Where one of the two has no label
// (an unreadable image), the row stays as it is.
//   without a box   mixup: share * own + (1 - share) * partner
//   with a box      cutmix: the partner's pixels inside, one's own outside; share is the part of the area
//                   outside
struct Blend {
  float share = 1;
  int64_t shift = 0;                             // 0: no row is blended
  int top = 0, left = 0, bottom = 0, right = 0;  // rows [top, bottom), columns [left, right) of pixels
  HD bool boxed() const { return bottom > top && right > left; }
};

// Where `slot` is given, in device memory, kernels read the blend there, and the one beside it need only be
// one that could be.
//
// normalize_image() of rows [first, first + rows) of the batch u8 [N,H,W,C], blended; labels i32 [N].
Tensor blend_image(const Tensor& u8, const Tensor& labels, const Blend&, int64_t first, int64_t rows,
                   const std::vector<float>& mean, const std::vector<float>& std, DType,
                   const Blend* slot = nullptr);
// i32 [N]: the label of each row's partner; its own where it is not blended.
Tensor partner_labels(const Tensor& labels, const Blend&, const Blend* slot = nullptr);

// What the rows of `logits` are to be: `share` of the label and the rest of `other`, which is negative where
// the label is; without `other` the label alone.
struct Targets {
  Tensor labels, other;  // i32 [m]
  float share = 1;
  int64_t rows = 0;  // the loss is the sum over the rows divided by this; 0: by the rows that have a label
  const float* share_slot = nullptr;  // in device memory; where given, what kernels read instead of share
};
// As cross_entropy() of ops.h, q = (1 - s) (share * one-hot + (1 - share) * other one-hot) + s / classes.
Tensor cross_entropy(const Tensor& logits, const Targets&, float smoothing);

}  // namespace skein
