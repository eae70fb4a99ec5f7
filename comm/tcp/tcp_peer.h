// TCP peer: the connection of one peer, what leaves on it and what comes in.
#pragma once
#include "comm/tcp/inflow.h"
#include "comm/tcp/outflow.h"
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
  bool over_ = false;
  Clock::time_point over_since_;
  std::string why_;
};

}  // namespace skein::comm
