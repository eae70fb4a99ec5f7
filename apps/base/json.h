// Json: the type in which runs describe themselves. Objects keep the order of their members.
#pragma once
#include <nlohmann/json_fwd.hpp>

namespace skein::apps {

using Json = nlohmann::ordered_json;  // include nlohmann/json.hpp to use its members

}  // namespace skein::apps
