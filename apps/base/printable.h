// Makes text from outside (names of files and classes) safe for a terminal.
#pragma once
#include <string>

namespace skein::apps {

// Control characters become escapes, as in "\x1b[2J", because a file's name must not control the terminal
// that lists it. U+0080 to U+009F in UTF-8 are escaped, too; all other bytes, tabs and newlines stay.
std::string printable(const std::string&);

}  // namespace skein::apps
