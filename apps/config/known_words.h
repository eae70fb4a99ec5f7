// Answers to words that users of other programs type: --algorithm ddp, --device gpu, --optimizer adam.
#pragma once
#include <string>

namespace skein::apps {

// The answer to this value of a flag, whose name has no dashes; empty if the word is unknown.
std::string answer_to_value(const std::string& flag, const std::string& word);
// The answer to this flag or key, which does not exist.
std::string answer_to_flag(const std::string& name);

}  // namespace skein::apps
