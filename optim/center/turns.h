// Turns: a worker's side of a center, and, in worker 0 where servers are inline, the thread that serves it.
#pragma once
#include "comm/inbox/inbox_client.h"
#include "optim/center/center.h"
#include "optim/served.h"

namespace skein::optim {

class Turns {
 public:
  // `kept`: how many vectors the algorithm keeps with the center. Throws BadOption.
  Turns(const Options&, int workers, int64_t kept = 0);
  ~Turns();

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
  comm::Invitation invitation() const { return center_->invitation(); }
  int64_t leases_lost() const { return center_->leases_lost(); }

 private:
  void join(Worker&, comm::Communicator& hub, const Center::Column&);
  std::string open_center(std::unique_ptr<comm::Communicator> twin, const Center::Column&);
  std::string open_here(comm::Communicator& all, const Center::Column&);
  void close_center();
  void visit_seen(Archive&);
  bool membership_changes() const;
  Tensor settled_center() const { return settled_.view({settled_.size() / (1 + kept_)}); }
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
  Tensor settled_;        // worker 0: the center and what is kept with it, since all settled last
  int64_t version_ = 0, log_ = 0;
  bool is_settled_ = false;
  struct Seen {
    Tensor theta, u;
    int64_t version = 0;
  } seen_;  // saw()
  std::unique_ptr<Center> center_;
  std::atomic<bool> stop_{false};
  comm::Thread thread_;
};

// A strategy whose workers share a center.
class Centered : public Strategy, public WithServer {
 public:
  Centered(const Options& o, int world, int64_t kept = 0) : turns_(o, world, kept) {}
  void start(Worker& me) override { turns_.start(me, hub_of(me), column()); }
  void settle(Worker& me) override { turns_.settle(me); }
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
