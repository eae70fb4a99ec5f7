// The recipes, which CMake copied into the build.
#include "apps/config/recipes.h"

#include "engine/words/find_row.h"

namespace skein::apps {
namespace {

std::string first_comment(const std::string& toml) {
  const size_t from = toml.find_first_not_of("# ");
  return toml.substr(from, toml.find('\n') - from);
}

}  // namespace

const std::vector<Recipe>& recipes() {
  static const std::vector<Recipe> all = [] {
    std::vector<Recipe> list;
    const auto add = [&](const char* name, const std::string& toml) {
      list.push_back({name, first_comment(toml), toml});
    };
#define RECIPE(name, toml) add(name, toml);
#include "recipes.inc"
#undef RECIPE
    return list;
  }();
  return all;
}

void read_recipe(Config& config, const std::string& name, const Flags& table,
                 const std::vector<std::string>& skip) {
  if (const Recipe* r = find_row(recipes(), name))
    return parse_toml(config, r->toml, "recipe " + name, Source::kRecipe, table, skip);
  throw BadOption(text("--recipe: there is no '", name, "'", did_you_mean(name, names_of(recipes())),
                       " All of them: train_imagenet --list recipes; a file of your own: --config FILE"));
}

}  // namespace skein::apps
