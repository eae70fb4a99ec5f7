// UCX transport: one worker, one endpoint a peer, one active message a piece.
#include "comm/ucx_transport.h"

#include <poll.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <deque>
#include <set>

#include "comm/meet.h"
#include "comm/ucx_library.h"

namespace skein::comm {
namespace {

constexpr unsigned kMessage = 1;  // our active message's number
constexpr auto kLongestSleep = std::chrono::milliseconds(5);
constexpr int kPolls = 200;  // before sleeping
constexpr auto kVerdict =
    std::chrono::seconds(2);  // how long the liveness connection may contradict UCX's "peer failed"

void set(ucp_config_t* c, const char* name, const std::string& value) {
  check(ucx().ucp_config_modify(c, name, value.c_str()), name);
}

ucp_context_h make_context(const TransportOptions& o, int size) {
  ucp_config_t* config = nullptr;
  check(ucx().ucp_config_read(nullptr, nullptr, &config), "ucp_config_read");
  set(config, "KEEPALIVE_INTERVAL", "1s");
  if (!o.tls.empty()) set(config, "TLS", o.tls);
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

struct Address {  // what ranks exchange: secret, TCP port, own addresses, worker address
  std::string secret, worker;
  int port = 0;
  std::vector<std::string> hosts;

  std::string write() const {
    std::ostringstream s;
    s << secret << port << ' ' << hosts.size() << ' ';
    for (const std::string& h : hosts) s << h << ' ';
    return s.str() + worker;
  }
  static Address read(const std::string& words) {
    CHECK(words.size() > 32, "a rank gave no address");
    Address a;
    a.secret = words.substr(0, 32);
    std::istringstream s(words.substr(32));
    size_t n = 0;
    s >> a.port >> n;
    for (std::string h; n > 0 && s >> h; --n) a.hosts.push_back(h);
    s.get();
    a.worker.assign(std::istreambuf_iterator<char>(s), {});
    return a;
  }
};

}  // namespace

struct UcxDoors::Worker {
  struct Arrival {  // an active message whose data waits: by rendezvous (descriptor), or a copy of it
    Header header;
    void* descriptor = nullptr;
    size_t length = 0;
    Tensor copy;
  };
  struct Sending {
    Header header;
    Tensor payload;
    Door* door;
  };
  struct Receiving {
    Worker* worker;
    Header header;
    Tensor landing;
  };

  Worker(Mailbox& box, Liveness& live, const TransportOptions& o, int size);
  ~Worker();
  std::string address() const;
  void connect(Rank peer, const std::string& address);
  void progress();  // takes the lock
  void turn();      // under the lock: once round
  static ucs_status_t on_message(void* arg, const void* header, size_t n, void* data, size_t length,
                                 const ucp_am_recv_param_t*);
  void arrive(Arrival);
  bool admit(Arrival&);  // false: no room yet
  void receive(Arrival&, Tensor landing);
  void finish(const Header&, const Tensor& landing);
  void send_refusals();
  void report_failures();
  bool flushed() const;

  Mailbox& box_;
  Liveness& live_;
  const int64_t in_flight_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int event_ = -1;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Door>> doors_;
  std::vector<std::deque<Arrival>> waiting_;  // per sender, in order of arrival
  std::vector<std::pair<Rank, std::string>> refusals_;
  std::set<Receiving*> receiving_;
  int64_t strangers_ = 0;
};

class UcxDoors::Door final : public Endpoint {
 public:
  Door(Worker& w, Rank peer) : w_(w), peer_(peer) {}
  const char* name() const override { return "ucx"; }

  void send(const Header& h, Tensor payload, Clock::time_point deadline) override {
    std::unique_lock lock(w_.mutex_);
    while (on_the_way_ > 0 && on_the_way_ + payload.bytes() > w_.in_flight_ && h.kind == Kind::kData) {
      w_.box_.membership().require(peer_);
      if (Clock::now() > deadline)
        throw Timeout(peer_, text("rank ", peer_, " has not taken what we sent it (now tag ", h.tag,
                                  ", step ", h.step, "): ", on_the_way_, " bytes are on their way"));
      w_.turn();
      lock.unlock();
      w_.live_.check();
      std::this_thread::yield();
      lock.lock();
    }
    post(h, std::move(payload));
  }

  // Under the worker's lock.
  void post(const Header& h, Tensor payload) {
    if (failed_) return;  // the verdict is being waited for; the next wait throws it
    auto* s = new Worker::Sending{h, std::move(payload), this};
    ucp_request_param_t p{};
    p.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    p.cb.send = [](void* request, ucs_status_t status, void* user) {
      ucx().ucp_request_free(request);
      auto* s = static_cast<Worker::Sending*>(user);
      s->door->sent(s, status);
    };
    p.user_data = s;
    on_the_way_ += s->payload.bytes();
    ++sends_;
    const size_t bytes = size_t(s->payload.bytes());
    const ucs_status_ptr_t r = ucx().ucp_am_send_nbx(ep_, kMessage, &s->header, sizeof(Header),
                                                     bytes ? s->payload.raw() : nullptr, bytes, &p);
    if (!UCS_PTR_IS_PTR(r)) sent(s, UCS_PTR_STATUS(r));
  }

  void fail(ucs_status_t status) {
    if (failed_) return;
    failed_ = true;
    failed_at_ = Clock::now();
    why_ = ucx().ucs_status_string(status);
  }

  ucp_ep_h ep_ = nullptr;
  bool failed_ = false;
  Clock::time_point failed_at_;
  std::string why_;
  int64_t sends_ = 0, on_the_way_ = 0;

 private:
  friend struct Worker;
  void sent(Worker::Sending* s, ucs_status_t status) {
    on_the_way_ -= s->payload.bytes();
    --sends_;
    delete s;
    if (status != UCS_OK) fail(status);
  }
  Worker& w_;
  const Rank peer_;
};

UcxDoors::Worker::Worker(Mailbox& box, Liveness& live, const TransportOptions& o, int size)
    : box_(box),
      live_(live),
      in_flight_(o.in_flight),
      context_(make_context(o, size)),
      doors_(size_t(size)),
      waiting_(size_t(size)) {
  ucp_worker_params_t p{};
  p.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  p.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  check(ucx().ucp_worker_create(context_, &p, &worker_), "ucp_worker_create");
  ucp_am_handler_param_t h{};
  h.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                 UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  h.id = kMessage;
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

// ---- the doors --------------------------------------------------------------------------------------------

UcxDoors::UcxDoors(Exchange& exchange, const std::vector<Rank>& far, Mailbox& box, Liveness& live,
                   const TransportOptions& o)
    : worker_(std::make_unique<Worker>(box, live, o, exchange.size())) {
  Address mine;
  mine.secret = random_bytes(32);
  const Fd listener = listen_tcp(exchange.size(), mine.port);
  mine.hosts = own_addresses();
  mine.worker = worker_->address();
  std::vector<Address> all;
  Meeting m;
  for (const std::string& words : exchange.all_gather(mine.write())) {
    all.push_back(Address::read(words));
    m.secrets.push_back(all.back().secret);
  }
  m.me = exchange.rank();
  m.peers = far;
  m.deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(o.deadline));
  m.dial = [&](Rank r) { return connect_tcp(all[size_t(r)].hosts, all[size_t(r)].port, m.deadline); };
  m.welcome = [](const Fd&) { return true; };
  for (auto& [r, socket] : meet(m, listener, worker_->strangers_)) live.watch(r, std::move(socket));
  for (Rank r : far) worker_->connect(r, all[size_t(r)].worker);
}

UcxDoors::~UcxDoors() { flush(); }

void UcxDoors::flush() {
  const auto deadline = Clock::now() + std::chrono::seconds(60);
  while (!worker_->flushed() && Clock::now() < deadline) {
    worker_->progress();
    worker_->live_.check();
    std::this_thread::yield();
  }
}

Endpoint& UcxDoors::to(Rank r) {
  CHECK(worker_->doors_.at(size_t(r)), "rank", r, "is not reached by UCX");
  return *worker_->doors_[size_t(r)];
}
void UcxDoors::progress() { worker_->progress(); }
int64_t UcxDoors::strangers() const { return worker_->strangers_; }

void UcxDoors::nap(Clock::time_point until) {
  const int64_t before = worker_->box_.arrivals();
  for (int i = 0; i < kPolls; ++i) {
    worker_->progress();
    if (worker_->box_.arrivals() != before) return;
    if (i % 4 == 3) std::this_thread::yield();
  }
  {
    const std::lock_guard lock(worker_->mutex_);
    if (ucx().ucp_worker_arm(worker_->worker_) != UCS_OK) return;  // something is there to be progressed
  }
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::min<Clock::duration>(until - Clock::now(), kLongestSleep));
  pollfd p{worker_->event_, POLLIN, 0};
  poll(&p, 1, int(std::max<int64_t>(0, left.count())));
}

std::string UcxDoors::lanes(Rank r) const {
  const std::lock_guard lock(worker_->mutex_);
  char* words = nullptr;
  size_t n = 0;
  FILE* f = open_memstream(&words, &n);
  ucx().ucp_ep_print_info(worker_->doors_.at(size_t(r))->ep_, f);
  fclose(f);
  // Lines like "#  lane[1]:  3:posix/memory.0 md[3]  -> md[3]/posix/sysdev[255] am am_bw#0": the second word
  // counts.
  std::set<std::string> ways;
  std::istringstream all(std::string(words, n));
  free(words);
  for (std::string line; std::getline(all, line);) {
    const size_t lane = line.find("lane[");
    if (lane == std::string::npos) continue;
    std::istringstream s(line.substr(line.find(':', lane) + 1));
    std::string way;
    s >> way;
    ways.insert(way.substr(way.find(':') + 1));
  }
  std::string s = "ucx";
  for (const std::string& w : ways) s += " " + w;
  return s;
}

}  // namespace skein::comm
