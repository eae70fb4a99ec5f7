// Notices: the messages by which ranks tell each other about themselves are short.
#pragma once
#include <cstdint>

namespace skein::comm {

// The most bytes of a payload of any kind but kData: the numbers of 65,536 ranks, or a sentence. A header
// that announces more is refused before anything is allocated.
inline constexpr int64_t kLongestNotice = int64_t(1) << 18;

}  // namespace skein::comm
