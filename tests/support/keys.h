// Two jobs' keys.
#pragma once
#include <string>

#include "comm/secret.h"

namespace skein::comm {

inline const Secret kKey(std::string(32, 'k')), kOther(std::string(32, 'o'));

}  // namespace skein::comm
