// UCX worker: one worker, one endpoint a peer, one active message a piece.
#include "comm/ucx_worker.h"

#include <atomic>
#include <cstring>

namespace skein::comm {
namespace {

// How long the liveness connection may contradict UCX's "peer failed".
constexpr auto kVerdict = std::chrono::seconds(2);

void set(ucp_config_t* c, const char* name, const std::string& value) {
  check(ucx().ucp_config_modify(c, name, value.c_str()), name);
}

ucp_context_h make_context(const TransportOptions& o, const std::string& devices, int size) {
  ucp_config_t* config = nullptr;
  check(ucx().ucp_config_read(nullptr, nullptr, &config), "ucp_config_read");
  set(config, "KEEPALIVE_INTERVAL", "1s");
  if (!o.tls.empty()) set(config, "TLS", o.tls);
  if (!devices.empty()) set(config, "NET_DEVICES", devices);
  ucp_params_t p{};
  p.field_mask =
      UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
  p.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  p.estimated_num_eps = size_t(size);
  ucp_context_h context = nullptr;
  const ucs_status_t s = ucx().ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &p, config, &context);
  ucx().ucp_config_release(config);
  check(s, "ucp_init");
  return context;
}

}  // namespace

UcxDoors::Worker::Worker(Mailbox& box, Liveness& live, const TransportOptions& o, const std::string& devices,
                         int size)
    : box_(box),
      live_(live),
      in_flight_(o.in_flight),
      context_(make_context(o, devices, size)),
      doors_(size_t(size)),
      waiting_(size_t(size)) {
  ucp_worker_params_t p{};
  p.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  p.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  check(ucx().ucp_worker_create(context_, &p, &worker_), "ucp_worker_create");
  ucp_am_handler_param_t h{};
  h.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                 UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  h.id = kUcxMessage;
  h.flags = UCP_AM_FLAG_WHOLE_MSG;
  h.cb = on_message;
  h.arg = this;
  check(ucx().ucp_worker_set_am_recv_handler(worker_, &h), "ucp_worker_set_am_recv_handler");
  check(ucx().ucp_worker_get_efd(worker_, &event_), "ucp_worker_get_efd");
}

UcxDoors::Worker::~Worker() {
  std::vector<ucs_status_ptr_t> closing;
  for (auto& d : doors_) {
    if (!d || !d->ep_) continue;
    ucp_request_param_t p{};
    p.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    p.flags = UCP_EP_CLOSE_FLAG_FORCE;  // whatever could go out has gone out
    const ucs_status_ptr_t r = ucx().ucp_ep_close_nbx(d->ep_, &p);
    if (UCS_PTR_IS_PTR(r)) closing.push_back(r);
  }
  for (ucs_status_ptr_t r : closing) {
    while (ucx().ucp_request_check_status(r) == UCS_INPROGRESS) ucx().ucp_worker_progress(worker_);
    ucx().ucp_request_free(r);
  }
  for (auto& queue : waiting_)
    for (Arrival& a : queue)
      if (a.descriptor) ucx().ucp_am_data_release(worker_, a.descriptor);
  ucx().ucp_worker_destroy(worker_);
  ucx().ucp_cleanup(context_);
  for (Receiving* r : receiving_) delete r;
  for (Sending* s : sending_) delete s;
}

std::string UcxDoors::Worker::address() const {
  ucp_address_t* a = nullptr;
  size_t n = 0;
  check(ucx().ucp_worker_get_address(worker_, &a, &n), "ucp_worker_get_address");
  std::string bytes(reinterpret_cast<const char*>(a), n);
  ucx().ucp_worker_release_address(worker_, a);
  return bytes;
}

void UcxDoors::Worker::connect(Rank peer, const std::string& address) {
  auto door = std::make_unique<Door>(*this, peer);
  ucp_ep_params_t p{};
  p.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                 UCP_EP_PARAM_FIELD_ERR_HANDLER;
  p.address = reinterpret_cast<const ucp_address_t*>(address.data());
  p.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  p.err_handler.cb = [](void* door, ucp_ep_h, ucs_status_t s) { static_cast<Door*>(door)->fail(s); };
  p.err_handler.arg = door.get();
  check(ucx().ucp_ep_create(worker_, &p, &door->ep_), "ucp_ep_create");
  doors_[size_t(peer)] = std::move(door);
}

// ---- arrivals ---------------------------------------------------------------------------------------------

ucs_status_t UcxDoors::Worker::on_message(void* arg, const void* header, size_t n, void* data, size_t length,
                                          const ucp_am_recv_param_t* p) {
  Worker& w = *static_cast<Worker*>(arg);
  Arrival a;
  a.length = length;
  if (n == sizeof(Header)) std::memcpy(&a.header, header, n);
  if (n != sizeof(Header) || a.header.from < 0 || a.header.from >= Rank(w.doors_.size()) ||
      !w.doors_[size_t(a.header.from)] || a.header.magic != Header::kMagic ||
      a.header.version != Header::kVersion) {
    ++w.strangers_;
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

void UcxDoors::Worker::arrive(Arrival a) {
  auto& queue = waiting_[size_t(a.header.from)];
  if (!a.descriptor && queue.empty() && admit(a)) return;
  if (!a.descriptor) a.copy = a.copy.clone();  // UCX takes its memory back after the callback
  queue.push_back(std::move(a));
}

bool UcxDoors::Worker::admit(Arrival& a) {
  const Header& h = a.header;
  if (h.kind != Kind::kData) {
    Message m{h, a.descriptor ? Tensor({0}, kU8) : a.copy.clone()};
    box_.put(std::move(m));
    if (a.descriptor) ucx().ucp_am_data_release(worker_, a.descriptor);
    return true;
  }
  if (box_.outdated(h)) {
    if (a.descriptor) ucx().ucp_am_data_release(worker_, a.descriptor);
    return true;
  }
  if (h.piece == 0 && !box_.room(h.from, h.bytes)) return false;
  const Piece range = h.pieces > 0 ? piece_of(h) : Piece{0, -1};
  Tensor landing =
      int64_t(a.length) == range.end - range.begin ? box_.landing(h, skein::allocator(kCpu)) : Tensor();
  if (!landing) {
    Message m{h, Tensor({int64_t(a.length)}, kU8)};
    m.pieces = 1;
    std::string why = box_.put(std::move(m));
    if (why.empty()) {
      why = text("rank ", box_.owner(), " got a piece of ", a.length,
                 " bytes that its header does not announce");
      box_.poison(why);
    }
    refusals_.emplace_back(h.from, why);
    if (a.descriptor) ucx().ucp_am_data_release(worker_, a.descriptor);
    return true;
  }
  if (a.descriptor)
    receive(a, std::move(landing));
  else {
    if (a.length > 0) std::memcpy(landing.raw(), a.copy.raw(), a.length);
    finish(h, landing);
  }
  return true;
}

void UcxDoors::Worker::receive(Arrival& a, Tensor landing) {
  auto* r = new Receiving{this, a.header, std::move(landing)};
  ucp_request_param_t p{};
  p.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  p.cb.recv_am = [](void* request, ucs_status_t status, size_t, void* user) {
    ucx().ucp_request_free(request);
    auto* r = static_cast<Receiving*>(user);
    if (status == UCS_OK)
      r->worker->finish(r->header, r->landing);
    else if (Door* d = r->worker->doors_[size_t(r->header.from)].get())
      d->fail(status);
    r->worker->receiving_.erase(r);
    delete r;
  };
  p.user_data = r;
  const ucs_status_ptr_t s =
      ucx().ucp_am_recv_data_nbx(worker_, a.descriptor, r->landing.raw(), a.length, &p);
  if (UCS_PTR_IS_PTR(s)) {
    receiving_.insert(r);
    return;
  }
  if (UCS_PTR_STATUS(s) == UCS_OK)
    finish(r->header, r->landing);
  else
    doors_[size_t(r->header.from)]->fail(UCS_PTR_STATUS(s));
  delete r;
}

void UcxDoors::Worker::finish(const Header& h, const Tensor& landing) { box_.landed(h, landing); }

void UcxDoors::Worker::send_refusals() {
  for (const auto& [r, why] : refusals_) {
    Header h;
    h.kind = Kind::kRefusal;
    h.from = box_.owner();
    const Tensor words = Tensor::of<uint8_t>({int64_t(why.size())}, {why.begin(), why.end()});
    h.bytes = words.bytes();
    h.codec = h.dtype = uint8_t(kU8);
    doors_[size_t(r)]->post(h, words);
  }
  refusals_.clear();
}

// A peer that ends in good order also makes its connection fail; its goodbye, or the hang-up of its liveness
// connection, says which it was. UCX's word alone counts when neither comes.
void UcxDoors::Worker::report_failures() {
  for (Rank r = 0; r < Rank(doors_.size()); ++r) {
    Door* d = doors_[size_t(r)].get();
    if (d && d->failed_ && box_.membership().alive(r) && Clock::now() - d->failed_at_ > kVerdict)
      box_.lose(r, text("UCX says: ", d->why_));
  }
}

void UcxDoors::Worker::turn() {
  for (int i = 0; i < 64 && ucx().ucp_worker_progress(worker_); ++i) {}
  for (auto& queue : waiting_)
    while (!queue.empty() && admit(queue.front())) queue.pop_front();
  if (!refusals_.empty()) send_refusals();
  report_failures();
}
void UcxDoors::Worker::progress() {
  const std::lock_guard lock(mutex_);
  turn();
}
bool UcxDoors::Worker::flushed() const {
  for (Rank r = 0; r < Rank(doors_.size()); ++r)
    if (const Door* d = doors_[size_t(r)].get();
        d && !d->failed_ && d->sends_ > 0 && box_.membership().alive(r))
      return false;
  return true;
}

}  // namespace skein::comm
