// Walking class directories, and the split of those that have no test set.
#include "data/image_listing.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "data/files.h"
#include "data/jpeg.h"
#include "data/png.h"
#include "engine/random.h"

namespace skein::data {
namespace {

namespace fs = std::filesystem;

bool begins_like_image(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::array<char, 8> head{};
  file.read(head.data(), head.size());
  const auto* bytes = reinterpret_cast<const uint8_t*>(head.data());
  const size_t n = size_t(file.gcount());
  return is_jpeg(bytes, n) || is_png(bytes, n);
}

// Files called like images are not opened: there may be a million.
bool is_image(const fs::path& path) {
  std::string suffix = path.extension();
  for (char& c : suffix) c = char(std::tolower(static_cast<unsigned char>(c)));
  return suffix == ".jpg" || suffix == ".jpeg" || suffix == ".jpe" || suffix == ".png" ||
         begins_like_image(path);
}

bool is_hidden(const fs::path& path) { return path.filename().native().starts_with('.'); }

std::vector<fs::directory_entry> entries(const fs::path& directory) {
  std::error_code code;
  std::vector<fs::directory_entry> found;
  for (fs::directory_iterator i(directory, code), end; !code && i != end; i.increment(code))
    if (!is_hidden(i->path())) found.push_back(*i);
  if (code) throw BadFile(directory.string() + ": cannot be listed: " + code.message());
  return found;
}

void collect(const fs::path& root, const fs::path& below, int32_t label, int depth,
             std::vector<Listed>& found) {
  if (depth > 8)
    throw BadFile((root / below).string() + ": nested deeper than eight directories; does a link lead back?");
  for (const fs::directory_entry& e : entries(root / below)) {
    std::error_code code;
    const fs::path path = below / e.path().filename();
    if (e.is_directory(code))
      collect(root, path, label, depth + 1, found);
    else if (e.is_regular_file(code) && is_image(e.path()))
      found.push_back({path.string(), label});
  }
}

uint64_t hash_of(const std::string& path) {  // FNV-1a, then Philox to spread its weak low bits
  uint64_t h = 0xCBF29CE484222325u;
  for (const unsigned char c : path) h = (h ^ c) * 0x100000001B3u;
  const Philox4 word = philox(uint64_t(Purpose::kSplit), h, 0);
  return uint64_t(word.v[1]) << 32 | word.v[0];
}

}  // namespace

std::vector<std::string> list_classes(const std::string& directory) {
  std::vector<std::string> classes;
  bool files = false;
  for (const fs::directory_entry& e : entries(directory)) {
    std::error_code code;
    if (e.is_directory(code))
      classes.push_back(e.path().filename().string());
    else
      files = true;
  }
  const std::string wanted = "; wanted is a directory per class with its JPEG and PNG files in it";
  if (classes.empty())
    throw BadFile(directory + (files ? ": holds files but no class directories" : ": is empty") + wanted);
  if (classes.size() == 1)
    throw BadFile(directory + ": holds one class only, \"" + classes[0] +
                  "\"; two at least are needed to tell apart" + wanted);
  std::sort(classes.begin(), classes.end());
  return classes;
}

std::vector<Listed> list_images(const std::string& directory, const std::vector<std::string>& classes) {
  std::vector<Listed> all;
  std::vector<std::string> empty;
  for (const fs::directory_entry& e : entries(directory)) {
    std::error_code code;
    const std::string name = e.path().filename().string();
    if (e.is_directory(code) && !std::binary_search(classes.begin(), classes.end(), name))
      throw BadFile(
          text(e.path().string(), ": no class of that name to train on; its images could never be right"));
  }
  for (size_t c = 0; c < classes.size(); ++c) {
    std::vector<Listed> found;
    if (!is_directory(directory + "/" + classes[c])) continue;
    collect(directory, classes[c], int32_t(c), 1, found);
    if (found.empty()) empty.push_back(directory + "/" + classes[c]);
    std::sort(found.begin(), found.end(), [](const Listed& a, const Listed& b) { return a.path < b.path; });
    all.insert(all.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
  }
  if (all.empty())
    throw BadFile(directory + ": no JPEG or PNG files in any class directory; wanted is " + directory +
                  "/CLASS/IMAGE.jpg");
  if (!empty.empty())
    throw BadFile(empty[0] + ": no JPEG or PNG files in this class directory; add some or remove it");
  return all;
}

std::pair<std::vector<Listed>, std::vector<Listed>> split_off_tenth(const std::vector<Listed>& all) {
  std::pair<std::vector<Listed>, std::vector<Listed>> parts;
  for (size_t first = 0, last = 0; first < all.size(); first = last) {
    std::vector<std::pair<uint64_t, size_t>> order;
    for (; last < all.size() && all[last].label == all[first].label; ++last)
      order.emplace_back(hash_of(all[last].path), last);
    std::sort(order.begin(), order.end());
    const size_t kept = order.size() < 2 ? 0 : std::max<size_t>(1, order.size() / 10);
    std::vector<bool> testing(order.size());
    for (size_t i = 0; i < kept; ++i) testing[order[i].second - first] = true;
    for (size_t i = first; i < last; ++i) (testing[i - first] ? parts.second : parts.first).push_back(all[i]);
  }
  return parts;
}

}  // namespace skein::data
