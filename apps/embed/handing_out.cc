// Slices are planned once, from the end of the vector.
#include "apps/embed/handing_out.h"

#include <algorithm>
#include <numeric>

#include "apps/embed/calls.h"

namespace skein {

HandingOut::HandingOut(Tensor g, const std::vector<int64_t>& sizes, int64_t least_bytes)
    : g_(std::move(g)), ready_(sizes.size()) {
  int64_t end = std::accumulate(sizes.begin(), sizes.end(), int64_t(0));
  CHECK(end == g_.size(), end, g_.size());
  int64_t begin = end;
  size_t last = sizes.size();
  for (size_t i = sizes.size(); i-- > 0;) {
    begin -= sizes[i];
    if (i > 0 && (end - begin) * int64_t(sizeof(float)) < least_bytes) continue;
    order_.push_back({i, last, begin, end});
    end = begin, last = i;
  }
}

void HandingOut::begin(const optim::Slices& s) {
  slices_ = &s, next_ = 0;
  std::fill(ready_.begin(), ready_.end(), false);
}

void HandingOut::ready(size_t parameter) {
  demand(slices_, "ready() belongs into the gradient function of a step");
  demand(parameter < ready_.size(),
         text("there is no parameter ", parameter, ", only ", ready_.size(), " of them"));
  ready_[parameter] = true;
  hand_out(false);
}

void HandingOut::end() {
  hand_out(true);
  if (*slices_) slices_->complete();
  slices_ = nullptr;
}

void HandingOut::hand_out(bool all) {
  for (; next_ < order_.size(); ++next_) {
    const Slice& s = order_[next_];
    const auto first = ready_.begin() + std::ptrdiff_t(s.first),
               last = ready_.begin() + std::ptrdiff_t(s.last);
    if (!all && !std::all_of(first, last, [](bool r) { return r; })) return;
    if (*slices_) slices_->ready(g_.view({s.end - s.begin}, s.begin));
  }
}

}  // namespace skein
