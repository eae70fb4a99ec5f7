// Json: what runs write about themselves. Objects keep the order of their members.
#pragma once
#include <nlohmann/json_fwd.hpp>

namespace skein::apps {

using Json = nlohmann::ordered_json;  // to look into one: nlohmann/json.hpp

}  // namespace skein::apps
