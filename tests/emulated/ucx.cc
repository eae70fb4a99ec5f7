// UCX as a build with CUDA support: the real library, except that transfers from and to the emulated device's
// memory go through host memory. It takes the place of comm/ucx/ucx_table.cc. SKEIN_EMULATED_UCX=plain is a
// build without CUDA.
//
// It is stricter than UCX: the memory type of an address must be given correctly; data must not change before
// they are sent; receive buffers are overwritten from the call on.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "comm/ucx/ucx_library.h"
#include "engine/base.h"
#include "tests/emulated/state.h"

namespace skein::comm {
namespace {

using emulated::gpu;

bool plain() {
  const char* const said = getenv("SKEIN_EMULATED_UCX");
  return said && std::string(said) == "plain";
}
Ucx& real() {
  static Ucx u = open_ucx();
  return u;
}

// A transfer in flight, and the caller's callback for its end.
struct Transfer {
  char* device;
  std::vector<char> host;
  ucp_request_param_t caller;
  ucp_request_param_t ours(void* user) const {
    ucp_request_param_t p = caller;
    p.memory_type = UCS_MEMORY_TYPE_HOST;
    p.user_data = user;
    return p;
  }
};

void at_work(const emulated::Work& f) {
  const emulated::Lock lock(gpu().mutex);
  emulated::on_device_thread(f);
}

// Whether it is the device's memory. Ends the program if the caller declares something else.
bool on_device(const void* p, size_t bytes, const ucp_request_param_t* param) {
  const emulated::Lock lock(gpu().mutex);
  const bool said = param->op_attr_mask & UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  if (!said) emulated::fault("UCX is not told whose memory it gets");
  const bool device = p && gpu().memory.around(p);
  if (device != (param->memory_type == UCS_MEMORY_TYPE_CUDA) && bytes > 0)
    emulated::fault("UCX is told the wrong type of memory");
  if (device) emulated::device_here();  // it works on the calling thread's device
  if (device && !gpu().memory.holds(p, bytes))
    emulated::fault("UCX gets memory beyond a block of the device");
  return device;
}

void expect_unchanged(const Transfer& t) {
  at_work([&] {
    if (memcmp(t.device, t.host.data(), t.host.size()) != 0)
      emulated::fault("what UCX was to send has changed before it was sent");
  });
}
void land(const Transfer& t) {
  at_work([&] { memcpy(t.device, t.host.data(), t.host.size()); });
}

ucs_status_ptr_t send(ucp_ep_h ep, unsigned id, const void* header, size_t header_bytes, const void* buffer,
                      size_t bytes, const ucp_request_param_t* p) {
  if (!on_device(buffer, bytes, p))
    return real().ucp_am_send_nbx(ep, id, header, header_bytes, buffer, bytes, p);
  auto* t = new Transfer{const_cast<char*>(static_cast<const char*>(buffer)), std::vector<char>(bytes), *p};
  at_work([&] { memcpy(t->host.data(), t->device, bytes); });
  ucp_request_param_t ours = t->ours(t);
  ours.cb.send = [](void* request, ucs_status_t status, void* user) {
    const std::unique_ptr<Transfer> t(static_cast<Transfer*>(user));
    if (status == UCS_OK) expect_unchanged(*t);
    t->caller.cb.send(request, status, t->caller.user_data);
  };
  const ucs_status_ptr_t r =
      real().ucp_am_send_nbx(ep, id, header, header_bytes, t->host.data(), bytes, &ours);
  if (!UCS_PTR_IS_PTR(r)) delete t;
  return r;
}

ucs_status_ptr_t receive(ucp_worker_h worker, void* descriptor, void* buffer, size_t bytes,
                         const ucp_request_param_t* p) {
  if (!on_device(buffer, bytes, p)) return real().ucp_am_recv_data_nbx(worker, descriptor, buffer, bytes, p);
  auto* t = new Transfer{static_cast<char*>(buffer), std::vector<char>(bytes, char(0xFF)), *p};
  land(*t);
  ucp_request_param_t ours = t->ours(t);
  ours.cb.recv_am = [](void* request, ucs_status_t status, size_t length, void* user) {
    const std::unique_ptr<Transfer> t(static_cast<Transfer*>(user));
    land(*t);
    t->caller.cb.recv_am(request, status, length, t->caller.user_data);
  };
  const ucs_status_ptr_t r = real().ucp_am_recv_data_nbx(worker, descriptor, t->host.data(), bytes, &ours);
  if (!UCS_PTR_IS_PTR(r)) {
    land(*t);
    delete t;
  }
  return r;
}

ucs_status_t query(ucp_context_h context, ucp_context_attr_t* a) {
  const ucs_status_t status = real().ucp_context_query(context, a);
  if (a->field_mask & UCP_ATTR_FIELD_MEMORY_TYPES) a->memory_types |= UCS_BIT(UCS_MEMORY_TYPE_CUDA);
  return status;
}

Ucx emulate() {
  Ucx u = real();
  if (plain()) return u;
  u.ucp_am_send_nbx = send;
  u.ucp_am_recv_data_nbx = receive;
  u.ucp_context_query = query;
  return u;
}

}  // namespace

const Ucx& ucx() {
  static const Ucx u = emulate();
  return u;
}

void check(ucs_status_t s, const char* what) {
  if (s != UCS_OK) throw Error(text("UCX: ", what, ": ", ucx().ucs_status_string(s)));
}

}  // namespace skein::comm
