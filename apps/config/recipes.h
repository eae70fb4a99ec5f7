// Recipes: complete training configurations by name, the TOML files of apps/config/recipes/,
// compiled into the program.
#pragma once
#include <string>
#include <vector>

#include "apps/config/config.h"

namespace skein::apps {

struct Recipe {
  std::string name;    // "goyal-90"
  std::string source;  // its first comment: the paper and the accuracy it reaches
  std::string toml;    // the file
};
const std::vector<Recipe>& recipes();  // in the order of their names

// Sets the recipe's values; errors say "recipe NAME:LINE". Throws BadOption with the nearest name if there
// is no such recipe.
void read_recipe(Config&, const std::string& name, const Flags& = flags(),
                 const std::vector<std::string>& skip = {});

}  // namespace skein::apps
