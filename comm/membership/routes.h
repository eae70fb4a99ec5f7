// Routes: the transports by which letters reach the members of an epoch, and of the next while they connect.
#pragma once
#include <string>
#include <vector>

#include "comm/membership/letters.h"
#include "comm/transport.h"

namespace skein::comm {

// By which some members are reached.
struct Route {
  Transport* transport;
  View view;  // its members are the ranks of the transport
  bool over = false;
};
using Routes = std::vector<Route>;

bool lead_to(const Routes&, MemberId);
bool lead_into(const Routes&, uint32_t epoch);

struct ReceivedLetter {
  MemberId from = 0;
  std::string bytes;
};
// Those that have come by any of the routes and have not been taken yet.
std::vector<ReceivedLetter> take_letters(const Routes&);

// By each route that leads to a letter's receiver. A member that no route reaches gets nothing;
// a newcomer is told by the member that it asked, unless it is connected already. A letter that finds no
// room is lost.
void send(const Routes&, const std::vector<Letter>&);

}  // namespace skein::comm
