// What --list prints: the tables of the program, with their citations.
#pragma once
#include <string>

namespace skein::apps {

// `what`: algorithms, optimizers, models, topologies, data, or empty for all. BadOption otherwise.
std::string list_tables(const std::string& what);

}  // namespace skein::apps
