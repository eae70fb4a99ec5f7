// Door: where newcomers ask to take part in a running job. Each of its members has one.
#pragma once
#include <atomic>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "comm/join/line.h"
#include "comm/membership/end.h"
#include "comm/membership/view.h"
#include "comm/refusals.h"

namespace skein::comm {

// What a newcomer says of itself.
struct Application {
  View::Member member;  // identity and address
  std::string job;      // what all workers of a job must agree about: version, model, data, ...
};
// The name of one that only asks what the job is; its `job` is its version.
inline constexpr MemberId kAsks = 0;
std::string write_application(const Application&);
std::optional<Application> read_application(const std::string& bytes);

// Hears callers that hold the job's key, on a thread of its own. A newcomer that is admitted stays connected
// until it is told of the epoch in which it is a member.
class Door {
 public:
  struct Answers {
    // Returns why this newcomer cannot be taken in, or "" after proposing it to the other members. An
    // exception's message counts as such a reason.
    std::function<std::string(const Application&)> admit;
    // A newcomer has hung up before it was told.
    std::function<void(MemberId)> gone;
    // Describes the job to an asker of this version; throws Error if it cannot take part. Empty: no answer.
    std::function<std::string(const std::string& version)> describe = {};
  };
  // `listener` must outlive it. The functions are called on the door's thread, after open().
  Door(const Fd& listener, const Secret& key, Refusals::Counter& strangers, Answers);
  ~Door();  // hangs up; newcomers that were not told ask again
  void open();
  // Hears no more callers, because from now on this socket serves another purpose. Waiting newcomers can
  // still be told.
  void close();
  // The newcomers that wait and have not been told yet.
  std::vector<MemberId> waiting();
  // Tells the waiting newcomers of the next epoch: each is in it, or waits for a later one. Any thread
  // may call it.
  void tell(const View&);
  // Tells the waiting newcomers, and all later ones, that the run has ended. Any thread may call it.
  void tell(const End&);

 private:
  struct Guest {
    MemberId id;
    Line line;
  };
  void work();
  void hear(Line);
  std::string why_not(const Application&);
  void answer(Line, const std::string& version);
  bool turns_away(Line&);
  void drop_those_who_hung_up();
  const Fd& listener_;
  const Secret key_;
  Refusals::Counter& strangers_;
  const Answers answers_;
  std::mutex mutex_;
  std::list<Guest> waiting_;
  std::optional<End> ended_;
  std::atomic<bool> stop_{false};
  const Fd bell_;  // an eventfd, rung with stop_; empty if there was no descriptor for it
  std::thread thread_;
};

// The newcomer's side: knocks at this door and waits for the epoch in which it is a member. Empty: no member
// answers there, or it hung up. Throws Error with the reason if it is refused, RunEnded if it comes too late.
std::optional<View> knock(const std::vector<std::string>& addresses, int port, const Secret& key,
                          const Application&, Clock::time_point deadline);
// Asks at this door what the job is. Empty, and throws, as knock().
std::optional<std::string> ask(const std::vector<std::string>& addresses, int port, const Secret& key,
                               const std::string& version, Clock::time_point deadline);

}  // namespace skein::comm
