// Whether a file can be written that a program will have only when it has worked for long.
#pragma once
#include <string>

namespace skein::apps {

// Throws BadFile if no file can be put there: there may be no such directory. Leaves nothing behind.
void check_writable(const std::string& path);

}  // namespace skein::apps
