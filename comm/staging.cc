// Copies through pinned memory; blocks go back when the event behind the copy has happened.
#include "comm/staging.h"

#include <algorithm>
#include <cstring>

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

void Staging::up(const Tensor& to, const Tensor& host) {
  if (to.device().is_host()) return copy_bytes(to, host);
  const Tensor pinned({host.size()}, host.dtype(), pinned_allocator());
  if (host.bytes() > 0) std::memcpy(pinned.raw(), host.raw(), size_t(host.bytes()));
  back(to, pinned);
}

Tensor Staging::up(Device d, const Tensor& host) {
  if (host.device() == d) return host;
  const Tensor there(host.shape(), host.dtype(), d);
  up(there, host);
  return there;
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
