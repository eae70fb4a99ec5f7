// Pairing: a model that its worker steps and its partners average, each on a thread of its own.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <optional>

#include "optim/gossip/event_order.h"
#include "optim/gossip/gossip.h"
#include "optim/gossip/meeting.h"
#include "optim/gossip/shared_model.h"

namespace skein::optim {

// Odd ranks are active: a thread of theirs asks one even rank at a time for an exchange, (x + y) / 2 for
// both. Even ranks are passive and answer on a thread of theirs while they compute. What happens to x happens
// one event at a time; --record and --replay are of the order of these events.
class Pairing {
 public:
  // BadOption: a graph in which not every odd rank meets one even rank at a time. Any number of
  // workers has one.
  Pairing(const Options&, int world);
  ~Pairing();
  void start(Worker&);

  // For the thread that computes.
  void snapshot(Worker&);  // me.x <- x; partners are served from now on
  bool ask(Worker&);  // x sets out to the next partner; false: passive, or the last one has not answered yet
  void wait_a_moment();  // for that answer, but at most a moment
  void step(Worker&);    // x <- x - eta u: x as it is now, u at me.x
  // Returns when all have come, without an exchange on its way anywhere, and serves others until then; x
  // stays as it is until the next snapshot, and me.x shows it. Collective.
  void meet(Worker&);
  void average(Worker&);  // x <- mean x; collective, after meet()
  const Tensor& x() const { return model_->x(); }
  // When the membership changes, it first ends all exchanges for good. None is half done then, unless with
  // a lost partner.
  void visit(Archive&);

 private:
  using Lock = EventOrder::Lock;
  static constexpr comm::Tag kExchange = 1, kLast = 2, kCome = 3;
  // What is recorded: the rank that asked, when it is served, and
  enum Event : int64_t { kSnapshot = -1, kStep = -2, kAsked = -3, kAnswered = -4, kMeeting = -5 };
  // An active rank's.
  struct Asked {
    bool waits = false;  // an exchange is under way
    int64_t count = 0;   // asked for so far: chooses the next partner
    comm::Rank partner = 0;
    double at = 0;  // on the transport's clock
  };
  // A passive rank's.
  struct Served {
    bool open = false;                   // from a snapshot to the next meeting
    std::deque<comm::Message> waiting;   // requests not served yet
    std::map<comm::Rank, int64_t> last;  // the number of the last exchange that each rank got an answer in
  };

  void stop();
  void exchange();            // the active side's own thread
  void serve(comm::Message);  // the passive side's
  void serve_waiting();
  void end_exchanges();
  void await_last_answer();
  std::optional<comm::Message> come(comm::Tag, int64_t number) const;
  template <class F>
  void in_turn(Lock&, Event, F);

  const Options options_;
  Graph graph_;
  Meeting meeting_{kCome};
  bool active_ = false;
  std::unique_ptr<comm::Communicator> other_;  // of the other thread: the handler's or exchange()'s
  comm::Thread thread_;

  EventOrder order_;  // its mutex guards all that follows
  std::optional<SharedModel> model_;
  Asked asked_;
  Served served_;
  bool met_ = true;     // and no step since
  bool ended_ = false;  // there will be no further exchange
};

}  // namespace skein::optim
