// UCX worker: what the UCX transport keeps behind its doors. Only ucx_transport.cc and ucx_worker.cc need it.
#pragma once
#include <deque>
#include <set>

#include "comm/ucx_library.h"
#include "comm/ucx_transport.h"

namespace skein::comm {

inline constexpr unsigned kUcxMessage = 1;  // our active message's number

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

  Worker(Mailbox& box, Liveness& live, const TransportOptions& o, const std::string& devices, int size);
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
  std::set<Receiving*> receiving_;  // not yet complete: UCX forgets those of a dead peer
  std::set<Sending*> sending_;
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
    w_.sending_.insert(s);
    const size_t bytes = size_t(s->payload.bytes());
    const ucs_status_ptr_t r = ucx().ucp_am_send_nbx(ep_, kUcxMessage, &s->header, sizeof(Header),
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
    w_.sending_.erase(s);
    delete s;
    if (status != UCS_OK) fail(status);
  }
  Worker& w_;
  const Rank peer_;
};

}  // namespace skein::comm
