// Crossing: the way of one worker from an epoch of the membership into the next, however its members connect.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "apps/launch/job.h"
#include "comm/join/door.h"
#include "comm/membership/council.h"

namespace skein::apps {

// What belongs to one epoch, in the order in which it is made.
struct Connection {
  comm::View view;
  Place place;
  std::unique_ptr<comm::Transport> transport;
  std::unique_ptr<comm::Communicator> communicator;
  std::unique_ptr<comm::Door> door;                   // null: newcomers come by another way
  std::vector<std::unique_ptr<Connection>> attempts;  // at later epochs, which the council hears of as well
  std::unique_ptr<comm::Council> council;

  ~Connection() {  // door and council call each other
    if (door) door->close();
  }
};

struct Crossing {
  // Connects with the members of a view. Throws Error if they do not come together.
  std::function<std::unique_ptr<Connection>(const comm::View&)> connect;
  // Gives a connection its council, which continues with what this worker has promised.
  std::function<void(Connection&, std::unique_ptr<comm::Succession>)> begin;
  double patience;          // seconds
  double regrouping = 0.5;  // seconds for a view without those who did not come
};

// Waits until the next members are chosen, and connects with them: the connection whose epoch this worker has
// begun. If they do not come together, members of `now` choose again. Throws GivenUp, RunEnded, and Timeout
// if there is no quorum or the members do not come together in time.
std::unique_ptr<Connection> cross(Connection& now, const Crossing&);

}  // namespace skein::apps
