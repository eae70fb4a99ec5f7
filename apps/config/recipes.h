// Recipes: whole trainings by name, TOML files of apps/config/recipes/ that are part of the program.
#pragma once
#include <string>
#include <vector>

#include "apps/config/config.h"

namespace skein::apps {

struct Recipe {
  std::string name;    // "goyal-90"
  std::string source;  // its first comment: whose it is, and what it reaches
  std::string toml;    // the file
};
const std::vector<Recipe>& recipes();  // in the order of their names

// Sets what the recipe gives; errors say "recipe NAME:LINE". Throws BadOption: no such recipe,
// with the nearest name.
void read_recipe(Config&, const std::string& name, const Flags& = flags(),
                 const std::vector<std::string>& skip = {});

}  // namespace skein::apps
