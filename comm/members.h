// Members: the ranks of the world that make up a group, in its order.
#pragma once
#include <algorithm>
#include <memory>
#include <vector>

#include "comm/membership/membership.h"

namespace skein::comm {

// Copies share one list, and all ranks of a world need none, so that ten thousand workers do not keep ten
// thousand lists of ten thousand.
class Members {
 public:
  Members() = default;
  explicit Members(int all) : size_(all) {}
  Members(std::vector<Rank> some)
      : list_(std::make_shared<const std::vector<Rank>>(std::move(some))), size_(int(list_->size())) {}
  int size() const { return size_; }
  Rank at(Rank r) const {
    CHECK(r >= 0 && r < size_, r, size_);
    return list_ ? (*list_)[size_t(r)] : r;
  }
  // The place of a rank of the world; size() if it is no member.
  Rank place_of(Rank world) const {
    if (!list_) return world >= 0 && world < size_ ? world : size_;
    return Rank(std::find(list_->begin(), list_->end(), world) - list_->begin());
  }
  template <class F>
  bool all_of(F f) const {
    for (Rank r = 0; r < size_; ++r)
      if (!f(at(r))) return false;
    return true;
  }

 private:
  std::shared_ptr<const std::vector<Rank>> list_;  // null: 0 .. size - 1
  int size_ = 0;
};

}  // namespace skein::comm
