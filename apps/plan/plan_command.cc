// Which words stay depends on the table of flags.
#include "apps/plan/plan_command.h"

#include <set>

#include "apps/base/printable.h"

namespace skein::apps {
namespace {

// The flags that a setting decides.
std::set<std::string> decided(const Config& c, bool fewer) {
  std::set<std::string> names = {"algorithm", "wire", "predicted"};
  for (const Flag& f : flags())
    if (!f.algorithms.empty()) names.insert(f.name);
  if (fewer) names.insert({"workers", "hosts", "min-workers", "max-workers"});
  if (fewer && c.global_batch > 0) names.insert({"global-batch", "batch-size"});
  return names;
}

bool is_from_file(const Config& c, const Flag& f) {
  const Source from = c.origin(f.name).source;
  return from == Source::kRecipe || from == Source::kFile;
}

// What files give, without what is a default anyway. Defaults of rate and decay depend on the optimizer.
std::string words_of_files(const Config& c, const std::set<std::string>& without) {
  std::string all;
  for (const Flag& f : flags()) {
    const std::string value = value_of(c, f);
    if (!is_from_file(c, f) || without.contains(f.name) || value.empty()) continue;
    if (value == value_of({}, f) && f.name != "lr" && f.name != "weight-decay") continue;
    all += f.kind == Flag::kSwitch ? text(value == "true" ? " --" : " --no-", f.name)
                                   : text(" --", f.name, ' ', shell_word(value));
  }
  return all;
}

}  // namespace

std::string typed_words(const Config& c, const char* const* argv, bool fewer) {
  const std::set<std::string> without = decided(c, fewer);
  // A flag of an algorithm cannot be taken back by the command line, so that the file has to go.
  bool without_files = false;
  for (const Flag& f : flags())
    without_files |= f.name != "algorithm" && without.contains(f.name) && is_from_file(c, f);
  std::string all;
  for (const char* const* word = argv; *word; ++word) {
    const std::string w = *word;
    const size_t sign = w.find('=');
    std::string name = w.starts_with("--") ? w.substr(2, sign == std::string::npos ? sign : sign - 2) : "";
    if (name == "plan" || name == "print") continue;
    if (name.starts_with("no-")) name = name.substr(3);
    const Flag* flag = find_flag(flags(), name);
    const bool file = without_files && (name == "config" || name == "recipe");
    if (!file && name != "html" && !without.contains(name)) {
      all += (all.empty() ? "" : " ") + shell_word(w);
      continue;
    }
    const bool has_value = !flag || flag->kind != Flag::kSwitch;
    if (has_value && sign == std::string::npos && word[1]) ++word;
  }
  return without_files ? all + words_of_files(c, without) : all;
}

}  // namespace skein::apps
