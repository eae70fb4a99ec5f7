// Searches the table of known words.
#include "apps/config/known_words.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace skein::apps {
namespace {

struct Known {
  std::string_view flag, word, answer;
};
constexpr Known kKnown[] = {
#define WORD(flag, word, answer) {flag, word, answer},
#include "apps/config/known_words.def"
#undef WORD
};

bool matches(std::string_view pattern, const std::string& word) {
  return pattern.back() == '*' ? word.starts_with(pattern.substr(0, pattern.size() - 1)) : word == pattern;
}

}  // namespace

std::string answer_to_value(const std::string& flag, const std::string& word) {
  std::string plain = word;
  for (char& c : plain) c = c == '_' ? '-' : char(std::tolower(static_cast<unsigned char>(c)));
  for (const Known& k : kKnown)
    if (k.flag == flag && matches(k.word, plain)) return std::string(k.answer);
  return "";
}

std::string answer_to_flag(const std::string& name) { return answer_to_value("", name); }

}  // namespace skein::apps
