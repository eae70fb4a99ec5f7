#include "nn/slices.h"

#include <algorithm>

namespace skein::nn {

int64_t slice_bytes_for(int64_t gradient_bytes, double mib) {
  constexpr int64_t kKiB = 1024;
  constexpr double kMost = 1e15;  // more than any gradient has
  if (mib > 0) return int64_t(std::clamp(mib * double(kKiB * kKiB), 1.0, kMost));
  return std::clamp(gradient_bytes / 8, 256 * kKiB, 4096 * kKiB);
}

SliceOrder::SliceOrder(const Layout& l, int64_t slice_bytes) : decayed_(l.decayed) {
  CHECK(slice_bytes > 0, "slices need a size, not", slice_bytes);
  const int64_t each = padded(std::max<int64_t>(slice_bytes / int64_t(sizeof(float)), 1));
  const int64_t last = std::min<int64_t>(each, (1 << 20) / sizeof(float));
  for (const Segment& s : l.segments) starts_.push_back(s.offset), decaying_ += s.decays;
  cut(0, l.decayed, last, each);
  cut(l.decayed, l.size, last, each);
  start();
}

// Cuts [begin, end) into slices of `each` elements after a first of `first`, to be given from the back.
void SliceOrder::cut(int64_t begin, int64_t end, int64_t first, int64_t each) {
  std::vector<Slice> forward;
  for (int64_t at = begin, n = first; at < end; at += n, n = each)
    forward.push_back({at, std::min(end, at + n)});
  slices_.insert(slices_.end(), forward.rbegin(), forward.rend());
}

void SliceOrder::start() {
  final_.assign(starts_.size(), false);
  next_ = 0;
  edge_ = decaying_;
  unfinished_ = starts_.size();
}

void SliceOrder::mark(int64_t begin, const Ready& ready) {
  const auto found = std::lower_bound(starts_.begin(), starts_.end(), begin);
  CHECK(found != starts_.end() && *found == begin, "no segment of g begins at", begin);
  const size_t i = size_t(found - starts_.begin());
  CHECK(!final_[i], "a gradient was said to be final twice in a step: segment", i);
  final_[i] = true;
  --unfinished_;
  while (edge_ > 0 && final_[edge_ - 1]) --edge_;
  give(false, ready);
}

void SliceOrder::finish(const Ready& ready) { give(true, ready); }

bool SliceOrder::is_final(const Slice& s) const {
  if (unfinished_ == 0) return true;
  return s.end <= decayed_ && s.begin >= (edge_ < decaying_ ? starts_[edge_] : decayed_);
}

void SliceOrder::give(bool all, const Ready& ready) {
  while (next_ < slices_.size() && (all || is_final(slices_[next_]))) ready(slices_[next_++]);
}

Slicer::Slicer(const Flat& flat, int64_t slice_bytes) : g_(flat.g), order_(flat, slice_bytes) {}

GradReady Slicer::start(GradReady ready) {
  ready_ = std::move(ready);
  order_.start();
  return [this](const Tensor& grad) {
    const int64_t bytes = static_cast<char*>(grad.raw()) - static_cast<char*>(g_.raw());
    order_.mark(bytes / int64_t(sizeof(float)), [this](Slice s) { emit(s); });
  };
}

void Slicer::finish() {
  order_.finish([this](Slice s) { emit(s); });
  ready_ = {};
}

void Slicer::emit(Slice s) const {
  if (ready_) ready_(g_.view({s.end - s.begin}, s.begin));
}

}  // namespace skein::nn
