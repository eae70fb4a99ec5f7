// Epochs: the connection of one worker process to the others, which is replaced when the membership changes.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/launch/elastic/crossing.h"
#include "apps/launch/elastic/register.h"
#include "apps/launch/seat.h"
#include "comm/join/rendezvous.h"

namespace skein::apps {

// The configuration of the job that --join names, as its members describe it to this version. Throws
// as Epochs does.
std::string ask_job(const std::string& join, double deadline);

// With JobOptions::elastic or regroups() the members of an epoch choose those of the next one
// (comm/membership). Sockets, shared memory and communicators belong to one epoch. A worker carries over its
// state, and the socket at which it can be reached as long as it lives.
class Epochs {
 public:
  // Meets and connects with the ranks that the environment names or, with JobOptions::join, with a running
  // job. Throws Error if that job refuses this worker or cannot be found, RunEnded if it has ended meanwhile.
  Epochs(const JobOptions&, const Seat&);
  // If all others have ended as well, nothing is left by which newcomers would look for the job.
  ~Epochs();

  comm::Communicator& communicator();
  Place place() const;        // of this worker in this epoch
  comm::Rank server() const;  // that serves the others; negative: none
  // After the work of an epoch has ended with kNextEpoch: connects with the members of the next one. Throws
  // GivenUp if this worker is none of them, RunEnded if there is none, and Timeout if there is no quorum of
  // those that are left.
  void advance();
  // Call it when the work of this process is done. If the run has ended, it removes the note by which
  // newcomers find it.
  void end();

 private:
  void open_door();
  void find_register(comm::Rendezvous&);
  void write_card();
  void meet_seats();
  void announce(const std::string& directory);
  void join();
  bool try_to_meet(const comm::View&);
  std::optional<comm::View> claim(const comm::View& now, const comm::View& next);
  std::string describe(const std::string& version) const;
  std::string consider(const comm::Application&, Connection&) const;
  std::unique_ptr<Connection> connect(comm::Rendezvous&, comm::View);
  std::unique_ptr<Connection> meet_members(const comm::View&);
  void open_council(Connection&, std::unique_ptr<comm::Succession> begun);
  bool is_past(const comm::View&) const;  // a later one has been decided
  comm::TransportOptions transport_options(const comm::View&) const;

  const JobOptions o_;
  const Seat seat_;
  const bool changes_;  // there may be a later epoch
  const bool serves_;   // with --servers dedicated: this process was started for that
  comm::MemberId me_;
  comm::Secret key_;
  bool key_is_drawn_ = false;  // for this job, so that newcomers can have it only from its note
  std::string directory_;      // where the note is
  struct {
    comm::Fd socket;
    int port = 0;
  } door_;  // where this process listens as long as it lives
  Register register_;
  uint32_t complained_of_ = 0;  // the epoch for which the register could not keep a view
  std::string card_;            // its port, its addresses, and the register that it sees
  std::unique_ptr<Connection> now_;
  std::vector<std::unique_ptr<Connection>> past_;  // with regroups()
  std::function<void()> before_end_;
};

}  // namespace skein::apps
