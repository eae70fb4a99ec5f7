// Sending waits for room, then for the device's work, and is then left to UCX.
#include "comm/ucx/ucx_peer.h"

#include <thread>

namespace skein::comm {

void UcxEndpoints::Peer::send(const Header& h, Tensor payload, Clock::time_point deadline) {
  std::unique_lock lock(w_.mutex_);
  auto looked = Clock::now();
  const auto too_much = [&] {
    return h.kind == Kind::kData && on_the_way_ > 0 && on_the_way_ + payload.bytes() > w_.in_flight_;
  };
  while (too_much() && !w_.box_.epoch_ends()) {  // then the peer may take nothing more
    deadline += absence(looked);
    w_.box_.membership().require(peer_);
    if (Clock::now() > deadline)
      throw Timeout(peer_, text("rank ", peer_, " has not taken what we sent it (now tag ", h.tag, ", step ",
                                h.step, "): ", on_the_way_, " bytes are on their way"));
    w_.turn();
    lock.unlock();
    w_.live_.check();
    std::this_thread::yield();
    lock.lock();
  }
  const Device device = payload.device();
  if (device.is_host() && queued_.empty()) return post(h, std::move(payload));
  if (failed_) return;
  on_the_way_ += payload.bytes();
  ++sends_;
  queued_.push_back({h, std::move(payload), device.is_host() ? Event() : current_stream(device).record()});
  go_on();
}

void UcxEndpoints::Peer::go_on() {
  if (failed_) forget_queued();
  while (!queued_.empty() && queued_.front().ready.ready()) {
    Queued next = std::move(queued_.front());
    queued_.pop_front();
    give_to_ucx(new Worker::Sending{next.header, std::move(next.payload), this});
  }
}

void UcxEndpoints::Peer::forget_queued() {
  for (const Queued& q : queued_) on_the_way_ -= q.payload.bytes(), --sends_;
  queued_.clear();
}

void UcxEndpoints::Peer::post(const Header& h, Tensor payload) {
  if (failed_) return;  // report_failures() is about to say why; the next wait throws it
  on_the_way_ += payload.bytes();
  ++sends_;
  give_to_ucx(new Worker::Sending{h, std::move(payload), this});
}

void UcxEndpoints::Peer::give_to_ucx(Worker::Sending* s) {
  s->header.on_device = !s->payload.device().is_host();
  ucp_request_param_t p{};
  p.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  p.cb.send = [](void* request, ucs_status_t status, void* user) {
    ucx().ucp_request_free(request);
    auto* s = static_cast<Worker::Sending*>(user);
    s->peer->sent(s, status);
  };
  p.user_data = s;
  p.memory_type = memory_type(s->payload);
  if (s->header.kind != Kind::kData) {  // nobody makes room for a notice: it comes with its header
    p.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    p.flags = UCP_AM_SEND_FLAG_EAGER;
  }
  w_.sending_.insert(s);
  const size_t bytes = size_t(s->payload.bytes());
  const ucs_status_ptr_t r = ucx().ucp_am_send_nbx(ep_, kUcxMessage, &s->header, sizeof(Header),
                                                   bytes ? s->payload.address() : nullptr, bytes, &p);
  if (!UCS_PTR_IS_PTR(r)) sent(s, UCS_PTR_STATUS(r));
}

void UcxEndpoints::Peer::sent(Worker::Sending* s, ucs_status_t status) {
  on_the_way_ -= s->payload.bytes();
  --sends_;
  w_.sending_.erase(s);
  delete s;
  if (status != UCS_OK) fail(status);
}

void UcxEndpoints::Peer::fail(ucs_status_t status) {
  if (failed_) return;
  failed_ = true;
  failed_at_ = Clock::now();
  why_ = ucx().ucs_status_string(status);
}

}  // namespace skein::comm
