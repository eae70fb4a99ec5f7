// What --help prints.
#pragma once
#include <string>

#include "apps/config/config.h"

namespace CLI {
class App;
}

namespace skein::apps {

// How to start, and all options of the program by group.
std::string help_text(const CLI::App&);

// Help on one algorithm: its paper, and the flags it reads with their defaults. Some depend on the number of
// workers, which is --workers, or 4 if that is not given. Throws BadOption if there is no such algorithm.
std::string help_of_algorithm(const std::string& name, const Config&);

// Help on one optimizer, in the same way.
std::string help_of_optimizer(const std::string& name);

// The same values in one line, "tau 4, alpha 0.225", of the flags that only some algorithms
// or optimizers read.
std::string defaults_of_algorithm(const std::string& name);
std::string defaults_of_optimizer(const std::string& name);

}  // namespace skein::apps
