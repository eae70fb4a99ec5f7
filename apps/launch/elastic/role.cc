// Looks at cards.
#include "apps/launch/elastic/role.h"

#include "engine/base.h"

namespace skein::apps {

int server_in(const comm::View& v) {
  for (size_t r = 0; r < v.members.size(); ++r)
    if (v.members[r].card.find(kServesMark) != std::string::npos) return int(r);
  return -1;
}

std::string name_in(const comm::View& v, int rank) {
  const int server = server_in(v);
  return rank == server ? kServerName : text("worker ", rank - (server >= 0 && server < rank));
}

}  // namespace skein::apps
