// Text that came from outside (names of files and classes), made fit for a terminal.
#pragma once
#include <string>

namespace skein::apps {

// Control characters become escapes, as in "\x1b[2J": whoever names a file must not steer the terminal that
// lists it. Of UTF-8 the controls U+0080 to U+009F too; all other bytes, tabs and new lines stay.
std::string printable(const std::string&);

}  // namespace skein::apps
