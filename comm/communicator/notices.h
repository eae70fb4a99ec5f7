// Notices: what ranks tell each other about themselves, outside tags and steps.
#pragma once
#include <string>
#include <vector>

#include "comm/communicator/communicator.h"

namespace skein::comm {

// Tells these members that ranks of the world are given up. For the members those ranks are lost from then
// on; a rank that is given up ends with GivenUp if it ever hears of it.
void give_up(Communicator&, const std::vector<Rank>& of_the_world, const std::vector<Rank>& members);
// Ends the waits of these members, now and later: they throw Disagreement(why). This rank may be one of them.
void refuse(Communicator&, const std::string& why, const std::vector<Rank>& members);

}  // namespace skein::comm
