// UCX arrivals: from an active message to its place in the mailbox, on the host or on a device.
#include <cstring>

#include "comm/on_stream.h"
#include "comm/ucx/ucx_peer.h"
#include "engine/device/memory.h"

namespace skein::comm {
ucs_status_t UcxEndpoints::Worker::on_message(void* arg, const void* header, size_t n, void* data,
                                              size_t length, const ucp_am_recv_param_t* p) {
  Worker& w = *static_cast<Worker*>(arg);
  Arrival a;
  a.length = length;
  if (n == sizeof(Header)) std::memcpy(&a.header, header, n);
  if (n != sizeof(Header) || a.header.from < 0 || a.header.from >= Rank(w.peers_.size()) ||
      !w.peers_[size_t(a.header.from)] || a.header.magic != Header::kMagic ||
      a.header.version != Header::kVersion) {
    ++w.box_.refusals().messages;
    return UCS_OK;
  }
  if (p->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
    a.descriptor = data;
    w.arrive(std::move(a));
    return UCS_INPROGRESS;
  }
  a.copy = Tensor({int64_t(length)}, kU8, std::make_shared<Storage>(data, int64_t(length), kCpu, nullptr));
  w.arrive(std::move(a));
  return UCS_OK;
}

void UcxEndpoints::Worker::arrive(Arrival a) {
  auto& queue = waiting_[size_t(a.header.from)];
  if (!a.descriptor && queue.empty() && admit(a)) return;
  if (!a.descriptor) a.copy = a.copy.clone();  // UCX takes its memory back after the callback
  queue.push_back(std::move(a));
}

void UcxEndpoints::Worker::admit_all() {
  for (auto& queue : waiting_)
    while (!queue.empty() && admit(queue.front())) queue.pop_front();
}

bool UcxEndpoints::Worker::admit(Arrival& a) {
  const Header& h = a.header;
  if (h.kind != Kind::kData) return take_in(a), true;
  if (h.piece == 0 && !box_.room(h.from, h.bytes)) return false;
  const Piece range = h.pieces > 0 && h.bytes >= 0 ? piece_of(h) : Piece{0, -1};
  const bool whole = int64_t(a.length) == range.end - range.begin;
  if (whole && lands_on_device(a) && land_on_device(a)) return true;
  Tensor landing = whole ? box_.landing(h, skein::allocator(kCpu)) : Tensor();
  if (!landing) return refuse(a, whole), true;
  if (a.descriptor) return receive(a, std::move(landing)), true;
  if (a.length > 0) std::memcpy(landing.raw(), a.copy.raw(), a.length);
  finish(h, landing);
  return true;
}

void UcxEndpoints::Worker::take_in(const Arrival& a) {
  Message m{a.header, a.descriptor ? Tensor({0}, kU8) : a.copy.clone()};
  box_.put(std::move(m));
  release(a);
  if (a.header.kind == Kind::kGoodbye) live_.confirm_goodbye(a.header.from);
}

// The mailbox refuses it for its header. Nothing is allocated for what is not taken.
void UcxEndpoints::Worker::refuse(const Arrival& a, bool whole) {
  const Header& h = a.header;
  std::string why = whole ? box_.put({h, Tensor({0}, kU8)}) : "";
  if (why.empty()) {
    why =
        text("rank ", box_.owner(), " got a piece of ", a.length, " bytes that its header does not announce");
    box_.poison(why);
  }
  refusals_.emplace_back(h.from, why);
  release(a);
}

void UcxEndpoints::Worker::release(const Arrival& a) {
  if (a.descriptor) ucx().ucp_am_data_release(worker_, a.descriptor);
}

// UCX has already copied short messages to the host, where they stay.
bool UcxEndpoints::Worker::lands_on_device(const Arrival& a) const {
  return a.descriptor && a.header.on_device && !landing_.load().is_host();
}

// UCX writes at once, whatever the device is doing, so all earlier users of the memory must have finished.
bool UcxEndpoints::Worker::land_on_device(Arrival& a) try {
  const OnStream landing_stream(*landing_stream_);
  Tensor landing = box_.landing(a.header, skein::allocator(landing_));
  if (!landing) return false;
  settling_.push_back({a, std::move(landing), landing_stream_->record()});
  return true;
} catch (const OutOfMemory&) { return false; }

void UcxEndpoints::Worker::settle() {
  for (auto s = settling_.begin(); s != settling_.end();) {
    if (!s->free.ready()) {
      ++s;
      continue;
    }
    receive(s->arrival, std::move(s->landing));
    s = settling_.erase(s);
  }
}

void UcxEndpoints::Worker::receive(const Arrival& a, Tensor landing) {
  auto* r = new Receiving{this, a.header, std::move(landing)};
  ucp_request_param_t p{};
  p.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  p.cb.recv_am = [](void* request, ucs_status_t status, size_t, void* user) {
    ucx().ucp_request_free(request);
    auto* r = static_cast<Receiving*>(user);
    if (status == UCS_OK)
      r->worker->finish(r->header, r->landing);
    else if (Peer* d = r->worker->peers_[size_t(r->header.from)].get())
      d->fail(status);
    r->worker->receiving_.erase(r);
    delete r;
  };
  p.user_data = r;
  p.memory_type = memory_type(r->landing);
  const ucs_status_ptr_t s =
      ucx().ucp_am_recv_data_nbx(worker_, a.descriptor, r->landing.address(), a.length, &p);
  if (UCS_PTR_IS_PTR(s)) {
    receiving_.insert(r);
    return;
  }
  if (UCS_PTR_STATUS(s) == UCS_OK)
    finish(r->header, r->landing);
  else
    peers_[size_t(r->header.from)]->fail(UCS_PTR_STATUS(s));
  delete r;
}

void UcxEndpoints::Worker::finish(const Header& h, const Tensor& landing) { box_.landed(h, landing); }

}  // namespace skein::comm
