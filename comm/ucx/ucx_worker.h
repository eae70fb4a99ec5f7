// UCX worker: what the UCX transport consists of. Only the ucx_*.cc files need it.
#pragma once
#include <atomic>
#include <deque>
#include <list>
#include <mutex>
#include <set>

#include "comm/ucx/ucx_library.h"
#include "comm/ucx/ucx_transport.h"

namespace skein::comm {

inline constexpr unsigned kUcxMessage = 1;  // the number of our active message

// Given with every transfer, so that UCX need not find out, nor remember, whose memory an address is.
inline ucs_memory_type_t memory_type(const Tensor& x) {
  return x.device().is_cuda() ? UCS_MEMORY_TYPE_CUDA : UCS_MEMORY_TYPE_HOST;
}

std::string address_of(ucp_worker_h);  // in bytes, with which another process connects to it

struct UcxEndpoints::Worker {
  struct Arrival {  // an active message whose data waits: behind a descriptor (rendezvous), or in a copy
    Header header;
    void* descriptor = nullptr;
    size_t length = 0;
    Tensor copy;
  };
  struct Sending {
    Header header;
    Tensor payload;
    Peer* peer;
  };
  struct Receiving {
    Worker* worker;
    Header header;
    Tensor landing;
  };
  struct Settling {  // a landing whose memory the device may still be using for its previous contents
    Arrival arrival;
    Tensor landing;
    Event free;
  };

  Worker(Mailbox& box, Liveness& live, const TransportOptions& o, int size);
  ~Worker();
  void connect(Rank peer, const std::string& address);
  void land_on(Device);
  void progress();  // takes the lock
  void turn();      // one round of progress; the caller holds the lock
  void send_refusals();
  void report_failures();
  bool flushed() const;
  bool goodbyes_confirmed() const;
  bool awaits_device();  // whether anything here waits for a device; takes the lock

  // ---- arrivals: ucx_arrivals.cc --------------------------------------------------------------------------
  static ucs_status_t on_message(void* arg, const void* header, size_t n, void* data, size_t length,
                                 const ucp_am_recv_param_t*);
  void arrive(Arrival);
  bool admit(Arrival&);  // false: no room yet
  void admit_all();
  void take_in(const Arrival&);  // for messages of other kinds than data
  void refuse(const Arrival&, bool whole);
  void release(const Arrival&);  // for data that will not be fetched
  bool lands_on_device(const Arrival&) const;
  bool land_on_device(Arrival&);  // false: the device has no memory left
  void receive(const Arrival&, Tensor landing);
  void settle();
  void finish(const Header&, const Tensor& landing);

  Mailbox& box_;
  Liveness& live_;
  const int64_t in_flight_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int event_ = -1;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<std::deque<Arrival>> waiting_;  // per sender, in order of arrival
  std::vector<std::pair<Rank, std::string>> refusals_;
  std::set<Receiving*> receiving_;  // not yet complete; UCX never completes those of a dead peer
  std::set<Sending*> sending_;
  std::atomic<Device> landing_{kCpu};
  // What lands on the device belongs to a stream that does nothing but wait for the last users of its memory.
  // On any other stream it would wait for that stream's work, too.
  std::unique_ptr<Stream> landing_stream_;
  std::list<Settling> settling_;
};

}  // namespace skein::comm
