// What --help prints.
#pragma once
#include <string>

#include "apps/config/config.h"

namespace CLI {
class App;
}

namespace skein::apps {

// How to begin, and all options of the program by group.
std::string help_text(const CLI::App&);

// Of one algorithm: whose it is, and the flags it reads, with the values they have unless they are
// given. Some depend on the number of workers: of --workers, or of 4 where that is not given.
// BadOption: no such algorithm.
std::string help_of_algorithm(const std::string& name, const Config&);

// The same values in one line, "tau 4, alpha 0.225", of the flags that only some algorithms read.
std::string defaults_of_algorithm(const std::string& name);

}  // namespace skein::apps
