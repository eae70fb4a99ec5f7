// A block of pinned memory is freed when the event behind its copy has happened.
#include "comm/communicator/staging.h"

#include <algorithm>
#include <cstring>

#include "comm/on_stream.h"
#include "engine/vectors/vec.h"

namespace skein::comm {

Staging::~Staging() {
  for (const auto& [read, host] : held_) try {
      read.sync();
    } catch (const Error&) {  // a lost device reads nothing any more
    }
}

Staging::Landing Staging::down(const Tensor& x) {
  if (x.device().is_host()) return {x.view({x.size()}), {}};
  const Tensor host({x.size()}, x.dtype(), pinned_allocator());
  copy_bytes(host, x);
  return {host, current_stream(x.device()).record()};
}

void Staging::bring(const Tensor& to, const Tensor& from) {
  if (to.device() == from.device()) return copy_bytes(to, from);
  from.device().is_host() ? up(to, from) : bring(to, fetched(from));
}

Tensor Staging::fetched(const Tensor& x) {
  const Landing landing = down(x);
  landing.ready.sync();
  return landing.host;
}

void Staging::up(const Tensor& to, const Tensor& host) {
  const Tensor pinned({host.size()}, host.dtype(), pinned_allocator());
  if (host.bytes() > 0) std::memcpy(pinned.raw(), host.raw(), size_t(host.bytes()));
  back(to, pinned);
}

Tensor Staging::beside(Device d, const Tensor& x) {
  if (x.device() == d) return x;
  if (d.is_host()) return fetched(x).view(x.shape());
  const Tensor there(x.shape(), x.dtype(), d);
  bring(there, x);
  return there;
}

Stream Staging::aside(Device d) {
  const std::lock_guard lock(mutex_);
  if (!aside_ || aside_->device() != d) aside_.emplace(d);
  return *aside_;
}

Tensor Staging::converted(DType t, const Tensor& x) {
  const OnStream here(aside(x.device()));
  const Tensor y(x.shape(), t, x.device());
  copy(y, x);
  current_stream(x.device()).sync();
  return y;
}

void Staging::back(const Tensor& to, const Tensor& host) {
  copy_bytes(to, host);
  if (!to.device().is_host()) hold(to.device(), host);
}

void Staging::hold(Device d, Tensor host) {
  const std::lock_guard lock(mutex_);
  std::erase_if(held_, [](const auto& h) { return h.first.ready(); });
  held_.emplace_back(current_stream(d).record(), std::move(host));
}

}  // namespace skein::comm
