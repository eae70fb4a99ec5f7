// Local transport: ranks as threads of one process.
#pragma once
#include "comm/mailbox.h"
#include "comm/transport.h"

namespace skein::comm {

// Like local_world(size), with mailboxes that hold at most `bound` bytes of each sender.
std::vector<std::unique_ptr<Transport>> local_world(int size, int64_t bound);

}  // namespace skein::comm
