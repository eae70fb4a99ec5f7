// UCX peer: the endpoint of one peer, and what is on its way there, in the order it was given.
#pragma once
#include "comm/ucx/ucx_worker.h"

namespace skein::comm {

class UcxEndpoints::Peer final : public Endpoint {
 public:
  Peer(Worker& w, Rank peer) : w_(w), peer_(peer) {}
  const char* name() const override { return "ucx"; }
  void send(const Header&, Tensor payload, Clock::time_point deadline) override;

  // ---- under the worker's lock ----------------------------------------------------------------------------
  void post(const Header&, Tensor payload);  // gives it to UCX at once
  void go_on();                              // posts what a device has finished
  void fail(ucs_status_t);
  bool queues() const { return !queued_.empty(); }

  ucp_ep_h ep_ = nullptr;
  bool failed_ = false;
  Clock::time_point failed_at_;
  std::string why_;
  int64_t sends_ = 0, on_the_way_ = 0;  // with what is queued

 private:
  friend struct Worker;
  struct Queued {
    Header header;
    Tensor payload;
    Event ready;
  };
  void give_to_ucx(Worker::Sending*);
  void sent(Worker::Sending*, ucs_status_t);
  void forget_queued();
  Worker& w_;
  const Rank peer_;
  std::deque<Queued> queued_;  // waits for a payload that its device has not finished
};

}  // namespace skein::comm
