// Lists names, and finds classes without images.
#include "apps/model/class_words.h"

#include <fmt/format.h>

#include "apps/base/printable.h"
#include "data/sources/split.h"

namespace skein::apps {
namespace {

// The classes without an image in this source; there may be labels beyond the named classes.
std::vector<std::string> classes_without_images(const data::DataSource& source,
                                                const std::vector<std::string>& classes) {
  std::vector<bool> filled(classes.size());
  for (const int32_t label : data::labels_of(source))
    if (size_t(label) < filled.size()) filled[size_t(label)] = true;
  std::vector<std::string> missing;
  for (size_t i = 0; i < classes.size(); ++i)
    if (!filled[i]) missing.push_back(classes[i]);
  return missing;
}

}  // namespace

std::string list_names(const std::vector<std::string>& names, size_t width) {
  std::string all;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string name = printable_name(names[i]);
    if (i > 0 && all.size() + 2 + name.size() > width)
      return all + fmt::format(", ... ({} in all)", names.size());
    all += (i ? ", " : "") + name;
  }
  return all;
}

std::vector<std::string> describe_classes(const data::Split& data) {
  const std::vector<std::string>& classes = data.train->classes();
  std::vector<std::string> lines = {"classes: " + list_names(classes)};
  for (const auto& [what, source, then] :
       {std::tuple{"training", data.train.get(), "nothing can be learned of them"},
        {"test", data.test.get(), "the accuracy says nothing about them"}})
    if (const auto missing = classes_without_images(*source, classes); !missing.empty())
      lines.push_back(fmt::format("warning: no {} images of {} of the {} classes, so {}: {}", what,
                                  missing.size(), classes.size(), then, list_names(missing)));
  return lines;
}

}  // namespace skein::apps
