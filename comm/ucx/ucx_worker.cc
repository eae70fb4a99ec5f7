// UCX worker: one worker, one endpoint per peer, one active message per piece.
#include "comm/ucx/ucx_worker.h"

#include <algorithm>

#include "comm/join/interfaces.h"
#include "comm/ucx/ucx_peer.h"

namespace skein::comm {
namespace {

// How long the liveness connection may contradict UCX's "peer failed".
constexpr auto kVerdict = std::chrono::seconds(2);

void set(ucp_config_t* c, const char* name, const std::string& value) {
  check(ucx().ucp_config_modify(c, name, value.c_str()), name);
}

// A TCP socket of UCX believes every caller, and UCX 1.13 aborts when one sends it garbage. So there is none,
// unless a test asks for it by name, and then it is opened within this host.
ucp_context_h make_context(const TransportOptions& o, int size) {
  ucp_config_t* config = nullptr;
  check(ucx().ucp_config_read(nullptr, nullptr, &config), "ucp_config_read");
  set(config, "KEEPALIVE_INTERVAL", "1s");
  set(config, "TLS", o.tls.empty() ? "^tcp" : o.tls);
  const std::vector<std::string> rdma = rdma_devices();
  if (std::find(rdma.begin(), rdma.end(), o.interface) != rdma.end())
    set(config, "NET_DEVICES", o.interface);
  else if (!o.tls.empty())
    set(config, "NET_DEVICES", "lo");
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

ucp_worker_h make_worker(ucp_context_h context) {
  ucp_worker_params_t p{};
  p.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  p.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  ucp_worker_h worker = nullptr;
  // The status is left out: workers that lack the same thing fail at different places, and a message that is
  // equal on all of them is shown only once.
  if (ucx().ucp_worker_create(context, &p, &worker) != UCS_OK)
    throw Error(
        "UCX cannot receive messages here; train_imagenet --doctor looks for the reason (too little shared "
        "memory? too few open files?), UCX_LOG_LEVEL=info says more. Workers of one host can do without: "
        "--transport shared");
  return worker;
}

void close_all(ucp_worker_h worker, const std::vector<ucp_ep_h>& endpoints) {
  std::vector<ucs_status_ptr_t> closing;
  for (ucp_ep_h ep : endpoints) {
    ucp_request_param_t p{};
    p.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    p.flags = UCP_EP_CLOSE_FLAG_FORCE;  // everything that could be sent has been sent
    const ucs_status_ptr_t r = ucx().ucp_ep_close_nbx(ep, &p);
    if (UCS_PTR_IS_PTR(r)) closing.push_back(r);
  }
  for (ucs_status_ptr_t r : closing) {
    while (ucx().ucp_request_check_status(r) == UCS_INPROGRESS) ucx().ucp_worker_progress(worker);
    ucx().ucp_request_free(r);
  }
}

}  // namespace

UcxEndpoints::Worker::Worker(Mailbox& box, Liveness& live, const TransportOptions& o, int size)
    : box_(box),
      live_(live),
      in_flight_(o.in_flight),
      context_(make_context(o, size)),
      worker_(make_worker(context_)),
      peers_(size_t(size)),
      waiting_(size_t(size)) {
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

UcxEndpoints::Worker::~Worker() {
  std::vector<ucp_ep_h> endpoints;
  for (const auto& d : peers_)
    if (d && d->ep_) endpoints.push_back(d->ep_);
  close_all(worker_, endpoints);
  for (auto& queue : waiting_)
    for (Arrival& a : queue) release(a);
  for (Settling& s : settling_) release(s.arrival);
  ucx().ucp_worker_destroy(worker_);
  ucx().ucp_cleanup(context_);
  for (Receiving* r : receiving_) delete r;
  for (Sending* s : sending_) delete s;
}

std::string address_of(ucp_worker_h worker) {
  ucp_address_t* a = nullptr;
  size_t n = 0;
  check(ucx().ucp_worker_get_address(worker, &a, &n), "ucp_worker_get_address");
  std::string bytes(reinterpret_cast<const char*>(a), n);
  ucx().ucp_worker_release_address(worker, a);
  return bytes;
}

void UcxEndpoints::Worker::connect(Rank peer, const std::string& address) {
  auto made = std::make_unique<Peer>(*this, peer);
  ucp_ep_params_t p{};
  p.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                 UCP_EP_PARAM_FIELD_ERR_HANDLER;
  p.address = reinterpret_cast<const ucp_address_t*>(address.data());
  p.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  p.err_handler.cb = [](void* self, ucp_ep_h, ucs_status_t s) { static_cast<Peer*>(self)->fail(s); };
  p.err_handler.arg = made.get();
  check(ucx().ucp_ep_create(worker_, &p, &made->ep_), "ucp_ep_create");
  peers_[size_t(peer)] = std::move(made);
}

void UcxEndpoints::Worker::land_on(Device d) {
  const std::lock_guard lock(mutex_);
  if (!d.is_host() && !(landing_stream_ && landing_stream_->device() == d))
    landing_stream_ = std::make_unique<Stream>(d);
  landing_ = d;
}

void UcxEndpoints::Worker::send_refusals() {
  for (const auto& [r, why] : refusals_) {
    const Message m = box_.refusal(why);
    peers_[size_t(r)]->post(m, m.payload);
  }
  refusals_.clear();
}

// The connection also fails when a peer ends in good order; its goodbye, or the hang-up of its liveness
// connection, tells which it was. UCX's verdict counts alone only if neither comes.
void UcxEndpoints::Worker::report_failures() {
  for (Rank r = 0; r < Rank(peers_.size()); ++r) {
    Peer* d = peers_[size_t(r)].get();
    if (d && d->failed_ && box_.membership().alive(r) && Clock::now() - d->failed_at_ > kVerdict)
      box_.lose(r, text("UCX says: ", d->why_), false, seconds_since(d->failed_at_));
  }
}

void UcxEndpoints::Worker::turn() {
  // Asking for a stream makes the device current for this thread, which UCX needs for its work there.
  if (const Device d = landing_; !d.is_host()) current_stream(d);
  for (const auto& d : peers_)
    if (d) d->go_on();
  for (int i = 0; i < 64 && ucx().ucp_worker_progress(worker_); ++i) {}
  admit_all();
  settle();
  if (!refusals_.empty()) send_refusals();
  report_failures();
}
void UcxEndpoints::Worker::progress() {
  const std::lock_guard lock(mutex_);
  turn();
}
bool UcxEndpoints::Worker::awaits_device() {
  const std::lock_guard lock(mutex_);
  return !settling_.empty() ||
         std::any_of(peers_.begin(), peers_.end(), [](const auto& d) { return d && d->queues(); });
}
bool UcxEndpoints::Worker::goodbyes_confirmed() const {
  for (Rank r = 0; r < Rank(peers_.size()); ++r)
    if (const Peer* d = peers_[size_t(r)].get();
        d && !d->failed_ && box_.membership().alive(r) && !live_.goodbye_confirmed(r))
      return false;
  return true;
}
bool UcxEndpoints::Worker::flushed() const {
  for (Rank r = 0; r < Rank(peers_.size()); ++r)
    if (const Peer* d = peers_[size_t(r)].get();
        d && !d->failed_ && d->sends_ > 0 && box_.membership().alive(r))
      return false;
  return true;
}

}  // namespace skein::comm
