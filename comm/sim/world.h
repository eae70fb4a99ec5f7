// World: the workers of a run, threads of this process or fibers of one, on virtual time, with a
// network and faults.
//
//   World world({.weather = {.seed = 1, .latency = 1e-3}});
//   for (Id w : {1, 2, 3})
//     world.begin(w, [&] {
//       const auto transport = world.connect(1, {1, 2, 3});
//       Communicator c(*transport);
//       ...
//     });
//   world.at(7, [&] { world.kill(2); });
//   world.run();
#pragma once
#include <memory>
#include <optional>

#include "comm/membership/view.h"
#include "comm/sim/hearing.h"
#include "comm/sim/milestones.h"
#include "comm/sim/post.h"
#include "comm/transport.h"

namespace skein::comm::sim {

using Id = MemberId;  // a worker's

inline constexpr int kMostByMessages = 64;

struct WorldOptions {
  Weather weather = {};
  double silence = 10;              // seconds without a sign of life after which a peer counts as lost
  int64_t room = int64_t(1) << 29;  // bytes on their way to, or in the mailbox of, a peer before send() waits
  double time_up = 30.0 * 24 * 60 * 60;  // seconds; if workers are still at work then, something is wrong
  bool keeps_log = true;
  // Where the workers are, in the order in which they are begun; none: anywhere.
  std::optional<SitePlan> site = {};
  double stands_for = 1;  // numbers on the network for which each f32 number of a vector is counted
  // Workers are fibers: hundreds of times as cheap to change between as threads, for code that keeps nothing
  // of one worker in thread_local variables while it waits; what computes with a tape does.
  bool fibers = false;
  // Up to so many members, collectives are messages; more are carried out as a whole, in times
  // by closed forms.
  int most_by_messages = kMostByMessages;
};

// Time passes while all wait, and in spend(); what workers compute takes none. The same seed and the
// same program give the same log, byte for byte. Functions are called by the world's threads and events,
// or before run().
class World {
 public:
  explicit World(const WorldOptions& = {});
  ~World();
  World(const World&) = delete;

  // A worker that enters at this second. `main` runs on a thread of its own; what it throws ends only this
  // worker, and run() rethrows the first.
  void begin(Id, std::function<void()> main, double at = 0);
  void run();                     // until all workers have ended; Error if they never will
  Id me() const;                  // whose thread calls
  int host_of(Id) const;          // of its site
  std::vector<Id> alive() const;  // in the order in which they were begun
  // The transport of the calling worker among these; its rank is its place in the list. Collective: returns
  // when all have come with the same list and epoch, and can reach each other. Throws Timeout. `in_vain`:
  // asked while it waits, whether there is no point in waiting any longer.
  std::unique_ptr<Transport> connect(uint32_t epoch, const std::vector<Id>& members, double deadline = 60,
                                     const std::function<bool()>& in_vain = {});
  std::unique_ptr<Transport> connect(const View&, double deadline = 60,
                                     const std::function<bool()>& in_vain = {});

  // ---- faults; each is seen as it is between processes
  // The threads of the worker are unwound by Killed and send nothing more. Its peers see the hang-up or,
  // where its whole machine ends, silence.
  enum class Death : uint8_t { kHangUp, kSilence };
  void kill(Id, Death = Death::kHangUp);
  void hang(Id);  // as SIGSTOP does, until it has been woken as often as it was hung
  void wake(Id);
  void cut(const std::vector<Id>& side);   // between these and all others
  void mend(const std::vector<Id>& side);  // such a cut of these; others remain
  void at(double second, std::function<void()> event);
  // The same at the moment at which the message of this number arrives at a worker, before the worker has it.
  void at_message(uint64_t number, std::function<void()> event) { arrivals_.add(number, std::move(event)); }
  uint64_t messages() const { return arrivals_.counted(); }  // that have arrived so far

  // So much work of the calling worker, alone on so many cores. It takes longer where others of its machine
  // compute as well.
  void compute(double seconds, double cores = 1);

  uint64_t seed() const { return options_.weather.seed; }
  double now() const;  // seconds since the beginning
  template <class... Part>
  void note(const Part&... parts) {
    if (options_.keeps_log) write(text(parts...));
  }
  void write(const std::string& line);
  const std::string& log() const { return log_; }
  const Counts& counts() const { return network_.counts(); }
  uint64_t events() const { return baton_.events(); }
  double real_seconds() const;  // that run() has taken so far

 private:
  friend class SimTransport;
  friend class SimCollectives;
  struct Round;      // the members of an epoch, and their mailboxes
  struct Gathering;  // a collective that not all members have come to
  using Worker = Baton::Worker;
  Worker worker(Id) const;
  std::shared_ptr<Round> forming(uint32_t epoch, const std::vector<Id>& members);
  void fall_silent(Worker by, Worker of, double seconds);
  void hang_up(const std::shared_ptr<Round>&, size_t place);

  const WorldOptions options_;
  Baton baton_;
  std::chrono::steady_clock::time_point begun_{};  // run(), by the machine's clock
  std::optional<Site> site_;
  Network network_;
  Post post_{baton_, network_};
  std::vector<Id> ids_;  // by worker
  std::map<Id, Worker> workers_;
  std::set<Worker> ended_;
  bool faulty_ = false;  // a worker has been killed, or hung, or been cut off
  std::vector<std::shared_ptr<Round>> forming_;
  std::vector<std::weak_ptr<Round>> rounds_;
  Hearing hearing_;
  Milestones arrivals_;  // of messages
  std::string log_;
};

}  // namespace skein::comm::sim
