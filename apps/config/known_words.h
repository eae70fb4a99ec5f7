// Answers to words that other programs taught their users: --algorithm ddp, --device gpu, --optimizer adam.
#pragma once
#include <string>

namespace skein::apps {

// What to say to this value of a flag, whose name is without dashes; empty: nothing is known of it.
std::string answer_to_value(const std::string& flag, const std::string& word);
// What to say to this flag or key, which does not exist.
std::string answer_to_flag(const std::string& name);

}  // namespace skein::apps
