// Notices: the messages by which ranks tell each other about themselves are short.
#pragma once
#include <cstdint>

namespace skein::comm {

// Bytes of the payload of a message of any kind but kData: the numbers of 65,536 ranks, or a sentence. Whoever
// announces more is not believed, and nothing is allocated for it.
inline constexpr int64_t kLongestNotice = int64_t(1) << 18;

}  // namespace skein::comm
