// Turns: a worker's side of a center, and, in worker 0 where servers are inline, the thread that serves it.
#pragma once
#include "comm/inbox/inbox_client.h"
#include "optim/center/center_host.h"
#include "optim/served.h"

namespace skein::optim {

class Turns {
 public:
  // `kept`: how many vectors the algorithm keeps with the center. Throws BadOption.
  Turns(const Options&, int workers, int64_t kept = 0);

  // All workers start from worker 0's x, which becomes the center. It is called again, with fewer workers, if
  // one is lost meanwhile. `hub`: the workers and, last, a dedicated server; the same as Worker::comm if
  // worker 0 serves. `column` runs where the server is.
  void start(Worker&, comm::Communicator& hub, const Center::Column& column);
  // Gives `what` ahead, asks for a turn and returns what the center gives in it: payload on the host,
  // weight a version.
  comm::Message exchange(const Tensor& what, int64_t version = 0);
  // A turn in two halves. Between them this worker holds the turn, and all others wait.
  comm::Message open();
  // u is a blank, which the caller fills in between.
  void commit(const Tensor& u);
  Tensor blank(const Tensor& like) const { return comm_->wire_buffer(like); }

  // What this worker knows of the center: theta + u, and how many turns that contains. If the membership
  // changes and worker 0 is lost, the most recent of these becomes the center. Both tensors are kept, not
  // copied: they must be the strategy's own memory, not a payload, which its sender has lent and may reuse.
  void saw(const Tensor& theta, int64_t version, const Tensor& u = {});

  void settle(Worker&);
  // Worker 0 visits the center as it was when all settled last; loading puts it back. When the membership
  // changes, it visits the center as it is, no longer served; the others, and with a dedicated server all of
  // them, visit what they have seen of it.
  void visit(Archive&);
  void write_model(Worker&, const Tensor& y);
  void serve(comm::Communicator& hub, const Center::Column& column, Served&);

  // Of the center that worker 0 has, where servers are inline.
  comm::Invitation invitation() const { return host_.center().invitation(); }
  int64_t leases_lost() const { return host_.center().leases_lost(); }

 private:
  void join(Worker&, comm::Communicator& hub, const Center::Column&);
  void visit_seen(Archive&);
  bool membership_changes() const;
  Tensor settled_center() const { return settled_.all.view({settled_.all.size() / (1 + kept_)}); }
  bool keeps() const { return first_ && !dedicated_; }  // the center
  void ask(uint16_t kind);
  void pull();
  void put();

  const Options options_;
  const int workers_;
  const int64_t kept_;
  const bool dedicated_;
  std::unique_ptr<comm::Communicator> comm_;  // with the server, for this worker's thread
  int server_ = 0, worker_ = 0;               // its rank there, and this worker's
  double patience_ = 60;                      // seconds for it to acknowledge
  bool joined_ = false, first_ = false;
  std::string invitation_;  // words of it, or of why there is none
  std::unique_ptr<comm::InboxClient> inbox_;
  int64_t sequence_ = 0;  // of the turn under way
  struct Settled {        // worker 0: the center and what is kept with it, when all settled last
    Tensor all;
    int64_t version = 0, log = 0;
    bool is_current = false;  // no turn has been taken since
  } settled_;
  struct Seen {
    Tensor theta, u;
    int64_t version = 0;
  } seen_;           // saw()
  CenterHost host_;  // of worker 0 or of the server
};

// A strategy whose workers share a center.
class Centered : public Strategy, public WithServer {
 public:
  Centered(const Options& o, int world, int64_t kept = 0) : turns_(o, world, kept) {}
  void start(Worker& me) override { turns_.start(me, hub_of(me), column()); }
  void settle(Worker& me) override { turns_.settle(me); }
  double share_of_model(const Worker&) const override { return 0; }  // lr has been weighed (Model::kCenter)
  void write_model(Worker& me, const Tensor& y) override { turns_.write_model(me, y); }
  void serve(comm::Communicator& hub, Served& kept) override { turns_.serve(hub, column(), kept); }
  void visit(Archive& a) override { turns_.visit(a); }

 protected:
  Turns turns_;

 private:
  // The algorithm's column of the figure: what happens in one turn. It runs on the server's thread, which may
  // outlive the strategy that derives from this class: it holds copies of what it needs.
  virtual Center::Column column() const = 0;
};

// x where `like` is and of its shape; x itself where it is there already.
Tensor beside(const Tensor& like, const Tensor& x);

}  // namespace skein::optim
