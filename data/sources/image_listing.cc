// Walks class directories, and splits off a test set if there is none.
#include "data/sources/image_listing.h"

#include <algorithm>
#include <map>

#include "data/sources/folder_index.h"
#include "engine/random.h"
#include "engine/words/hash.h"

namespace skein::data {
namespace {

namespace fs = std::filesystem;

bool is_hidden(const fs::path& path) { return path.filename().native().starts_with('.'); }

uint64_t hash_of(const std::string& path) {  // Philox spreads the weak low bits of FNV-1a
  const Philox4 word = philox(uint64_t(Purpose::kSplit), Fnv<uint64_t>().add(path).value(), 0);
  return uint64_t(word.v[1]) << 32 | word.v[0];
}

}  // namespace

std::vector<fs::directory_entry> visible_entries(const fs::path& directory) {
  std::error_code code;
  std::vector<fs::directory_entry> found;
  for (fs::directory_iterator i(directory, code), end; !code && i != end; i.increment(code))
    if (!is_hidden(i->path())) found.push_back(*i);
  if (code) throw BadFile(directory.string() + ": cannot be listed: " + code.message());
  return found;
}

std::vector<std::string> list_classes(const std::string& directory) {
  std::vector<std::string> classes;
  bool files = false;
  for (const fs::directory_entry& e : visible_entries(directory)) {
    std::error_code code;
    if (e.is_directory(code))
      classes.push_back(e.path().filename().string());
    else
      files = true;
  }
  const std::string wanted = "; expected a directory per class with its JPEG and PNG files in it";
  if (classes.empty())
    throw BadFile(directory + (files ? ": holds files but no class directories" : ": is empty") + wanted);
  if (classes.size() == 1)
    throw BadFile(directory + ": holds only one class, \"" + classes[0] + "\"; at least two are needed" +
                  wanted);
  std::sort(classes.begin(), classes.end());
  return classes;
}

std::vector<Listed> list_images(const std::string& directory, const std::vector<std::string>& classes,
                                std::vector<std::string>* notes) {
  std::vector<std::string> there;
  for (const fs::directory_entry& e : visible_entries(directory)) {
    std::error_code code;
    if (!e.is_directory(code)) continue;
    there.push_back(e.path().filename().string());
    if (!std::binary_search(classes.begin(), classes.end(), there.back()))
      throw BadFile(text(
          e.path().string(),
          ": there is no class of that name to train on, so its images could never be classified correctly"));
  }
  std::sort(there.begin(), there.end());
  std::vector<Listed> all;
  std::vector<bool> filled(classes.size());
  for (const IndexedDirectory& d : index_images(directory, there, notes)) {
    const std::string top = d.path.substr(0, d.path.find('/'));
    const auto label = std::lower_bound(classes.begin(), classes.end(), top) - classes.begin();
    for (const std::string& image : d.images) all.push_back({d.path + "/" + image, int32_t(label)});
    if (!d.images.empty()) filled[size_t(label)] = true;
  }
  if (all.empty())
    throw BadFile(directory + ": no JPEG or PNG files in any class directory; expected " + directory +
                  "/CLASS/IMAGE.jpg");
  for (const std::string& c : there)
    if (!filled[size_t(std::lower_bound(classes.begin(), classes.end(), c) - classes.begin())])
      throw BadFile(directory + "/" + c +
                    ": no JPEG or PNG files in this class directory; add some or remove it");
  std::sort(all.begin(), all.end(), [](const Listed& a, const Listed& b) {
    return a.label != b.label ? a.label < b.label : a.path < b.path;
  });
  return all;
}

std::vector<bool> choose_tenth(const std::vector<Listed>& all) {
  std::map<int32_t, std::vector<std::pair<uint64_t, size_t>>> classes;
  for (size_t i = 0; i < all.size(); ++i) classes[all[i].label].emplace_back(hash_of(all[i].path), i);
  std::vector<bool> testing(all.size());
  for (auto& [label, order] : classes) {
    std::sort(order.begin(), order.end());
    const size_t kept = order.size() < 2 ? 0 : std::max<size_t>(1, order.size() / 10);
    for (size_t i = 0; i < kept; ++i) testing[order[i].second] = true;
  }
  return testing;
}

std::pair<std::vector<Listed>, std::vector<Listed>> split_off_tenth(const std::vector<Listed>& all) {
  const std::vector<bool> testing = choose_tenth(all);
  std::pair<std::vector<Listed>, std::vector<Listed>> parts;
  for (size_t i = 0; i < all.size(); ++i) (testing[i] ? parts.second : parts.first).push_back(all[i]);
  return parts;
}

}  // namespace skein::data
