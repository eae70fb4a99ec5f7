// Text for a terminal: numbers of things, and text from outside (names of files and classes) made safe.
#pragma once
#include <cstdint>
#include <string>

namespace skein::apps {

// Control characters become escapes, as in "\x1b[2J", because a file's name must not control the terminal
// that lists it. In UTF-8, U+0080 to U+009F are escaped, too, and what changes the direction of the text
// behind it; all other bytes, tabs and newlines stay.
std::string printable(const std::string&);
// The same for a name, which must not end the line that it stands in: tabs and newlines are escaped, too.
std::string printable_name(const std::string&);
// The first bytes of what should be a number or a word and may be anything: all but ASCII text is escaped.
std::string printable_excerpt(const std::string&);

// As one word for a shell, in quotes; and in quotes only where it needs them.
std::string shell_quoted(const std::string&);
std::string shell_word(const std::string&);

// "1 step", "2 steps".
std::string counted(int64_t n, const std::string& thing);

}  // namespace skein::apps
