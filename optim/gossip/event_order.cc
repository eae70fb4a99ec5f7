// EventOrder: what a wait that takes too long says.
#include "optim/gossip/event_order.h"

namespace skein::optim {

void EventOrder::give_up() const {
  throw Error(text("ad-psgd waited ", deadline_, " s for ",
                   log_->replaying() ? text("event ", log_->next(), " of the recording") : "its partner"));
}

}  // namespace skein::optim
