// Notices are sent to every member that still hears them.
#include "comm/communicator/notices.h"

namespace skein::comm {
namespace {

void tell(Communicator& c, const std::vector<Rank>& members, const Message& m, double patience) {
  for (Rank r : members) try {
      c.transport().to(c.world_rank(r)).send(m, m.payload, after(patience));
    } catch (const Error&) {  // it has ended
    }
  c.transport().progress();
}

}  // namespace

void give_up(Communicator& c, const std::vector<Rank>& of_the_world, const std::vector<Rank>& members) {
  std::vector<Rank> others = members;
  std::erase(others, c.rank());
  const Tensor named = Tensor::of<int32_t>({int64_t(of_the_world.size())}, of_the_world);
  tell(c, others, notice(Kind::kGivenUp, c.transport().rank(), c.membership().epoch(), named), 1);
}

void refuse(Communicator& c, const std::string& why, const std::vector<Rank>& members) {
  tell(c, members, c.transport().mailbox().refusal(why), 5);
}

}  // namespace skein::comm
