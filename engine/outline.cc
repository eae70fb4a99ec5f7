// Listing operations as they run.
#include "engine/outline.h"

namespace skein {

namespace {
thread_local Outline* g_outline = nullptr;
}

Outline::Outline() : outer_(g_outline) { g_outline = this; }
Outline::~Outline() { g_outline = outer_; }
Outline* Outline::current() { return g_outline; }

void Outline::add(Step step) {
  by_result_.emplace(step.out.id(), steps_.size());
  steps_.push_back(std::move(step));
}

const Outline::Step* Outline::source(const Tensor& t) const {
  const auto at = by_result_.find(t.id());
  return at == by_result_.end() ? nullptr : &steps_[at->second];
}

}  // namespace skein
