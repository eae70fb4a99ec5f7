// TCP peer: the connection of one peer, what leaves on it and what comes in.
#pragma once
#include "comm/tcp/inflow.h"
#include "comm/tcp/outflow.h"
#include "comm/tcp/precedence.h"
#include "comm/tcp/tcp_transport.h"

namespace skein::comm {

class TcpPeer final : public Endpoint {
 public:
  TcpPeer(TcpEndpoints& all, Rank peer, Line line);
  const char* name() const override { return "tcp"; }
  void send(const Header&, Tensor payload, Clock::time_point deadline) override;

  // ---- under the lock of all ------------------------------------------------------------------------------
  void post(const Header&, Tensor payload);
  void go_out();
  void come_in();
  void report_failure();
  // What is at the front, out and in, as of now.
  Passage leaving(Clock::time_point now);
  Passage coming(Clock::time_point now);
  void may_leave(bool may) { may_leave_ = may; }
  void may_come(bool may);
  bool waits() const { return !may_leave_ || !may_come_; }
  bool wants_out() const { return !out_.idle() && may_leave_; }
  bool over() const { return over_; }
  const Fd& socket() const { return socket_; }
  const Outflow& out() const { return out_; }
  const Inflow& in() const { return in_; }

 private:
  void end(const std::string& why);
  TcpEndpoints& all_;
  const Rank peer_;
  Fd socket_;
  Outflow out_;
  Inflow in_;
  struct Motion {  // of what is at the front, in one direction
    std::optional<int64_t> round;
    int64_t bytes = 0;
    Clock::time_point last = {};
    // When it last moved, where `now_there` bytes have passed so far.
    Clock::time_point look(std::optional<int64_t> now_front, int64_t now_there, bool could,
                           Clock::time_point now);
  };
  Motion leaving_, coming_;
  bool may_leave_ = true, may_come_ = true;  // of messages of rounds
  bool over_ = false;
  Clock::time_point over_since_;
  std::string why_;
};

}  // namespace skein::comm
