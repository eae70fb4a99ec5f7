// Scans directories, or finds that the cache is still valid.
#include "data/sources/folder_index.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>

#include "data/pictures/encoded.h"
#include "data/pictures/jpeg.h"
#include "data/pictures/png.h"
#include "data/sources/image_listing.h"

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

bool has_image_suffix(const fs::path& path) {
  const std::string suffix = lower_suffix(path.native());
  return is_jpeg_suffix(suffix) || suffix == ".png";
}

// Files with an image's suffix are not opened, because there may be a million.
bool is_image(const fs::path& path) { return has_image_suffix(path) || begins_like_image(path); }

constexpr const char* kNowhere = " links that lead nowhere";

// A picture that is none: most often a link to what has been moved, or is not mounted.
std::string kind_of_other(const fs::directory_entry& e) {
  const std::string suffix = lower_suffix(e.path().filename().native());
  if (!has_image_suffix(e.path())) return suffix;
  std::error_code code;
  return suffix + (e.exists(code) ? " that are no files" : kNowhere);
}

void scan(const fs::path& root, const fs::path& below, int depth, std::vector<IndexedDirectory>& found) {
  if (depth > 8)
    throw BadFile((root / below).string() + ": nested deeper than eight directories; does a link lead back?");
  IndexedDirectory d{// Reads the times first, so that a later change is noticed.
                     below.string(),
                     times_of(root / below),
                     {},
                     {}};
  std::vector<fs::path> inner;
  for (const fs::directory_entry& e : visible_entries(root / below)) {
    std::error_code code;
    const fs::path name = e.path().filename();
    if (e.is_directory(code))
      inner.push_back(below / name);
    else if (e.is_regular_file(code) && is_image(e.path()))
      d.images.push_back(name.string());
    else
      ++d.others[kind_of_other(e)];
  }
  found.push_back(std::move(d));
  for (const fs::path& i : inner) scan(root, i, depth + 1, found);
}

std::string pack(const std::vector<IndexedDirectory>& all) {
  Record r;
  r.put(int64_t(all.size()));
  for (const IndexedDirectory& d : all) {
    r.put(d.path), r.put(d.times.modified), r.put(d.times.changed), r.put(int64_t(d.images.size()));
    for (const std::string& name : d.images) r.put(name);
    r.put(int64_t(d.others.size()));
    for (const auto& [suffix, files] : d.others) r.put(suffix), r.put(files);
  }
  return r.bytes();
}

// A scan finds names that are not hidden, so an index with others, such as "..", was not made by one.
std::string name_below(const std::string& path) {
  for (size_t at = 0; at <= path.size(); at = std::min(path.find('/', at), path.size()) + 1)
    if (at == path.size() || path[at] == '.' || path[at] == '/')
      throw BadFile("the index names \"" + path + "\", which no scan finds");
  return path;
}

// Writing the cache changes the root's time, so its directories are compared by name.
bool is_current(const std::string& root, const std::vector<std::string>& tops,
                const std::vector<IndexedDirectory>& all) {
  std::vector<std::string> known;
  for (const IndexedDirectory& d : all)
    if (d.path.find('/') == std::string::npos) known.push_back(d.path);
  std::sort(known.begin(), known.end());
  return known == tops && std::all_of(all.begin(), all.end(), [&](const IndexedDirectory& d) {
           return std::binary_search(tops.begin(), tops.end(), d.path.substr(0, d.path.find('/'))) &&
                  times_of(root + "/" + d.path) == d.times;
         });
}

std::optional<std::vector<IndexedDirectory>> known(const IndexCache::Found& found, const std::string& root,
                                                   const std::vector<std::string>& tops) {
  try {
    auto all = parse_image_index(found.bytes);
    if (is_current(root, tops, all)) return all;
  } catch (const BadFile&) {  // a damaged or forged cache is ignored
  }
  return {};
}

int64_t images_in(const std::vector<IndexedDirectory>& all) {
  int64_t n = 0;
  for (const IndexedDirectory& d : all) n += int64_t(d.images.size());
  return n;
}

// "5 files of other kinds skipped (2 .webp, 1 .gif, 2 without a suffix)"; "" if there are none.
std::string words_for_others(const std::vector<IndexedDirectory>& all) {
  constexpr size_t kMostNamed = 5;
  std::map<std::string, int64_t> sums;
  int64_t files = 0;
  for (const IndexedDirectory& d : all)
    for (const auto& [suffix, n] : d.others) sums[suffix] += n, files += n;
  if (files == 0) return "";
  std::vector<std::pair<std::string, int64_t>> kinds(sums.begin(), sums.end());
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string named;
  for (size_t i = 0; i < std::min(kinds.size(), kMostNamed); ++i)
    named += text(i ? ", " : "", kinds[i].second, ' ',
                  kinds[i].first.empty() ? "without a suffix" : kinds[i].first);
  if (kinds.size() > kMostNamed) named += ", ...";
  return text(files, files == 1 ? " file of another kind" : " files of other kinds", " skipped (", named,
              ')');
}

std::string keep(const IndexCache& cache, const std::vector<IndexedDirectory>& all) {
  // The directory's time stays the same when what they lead to is there again.
  for (const IndexedDirectory& d : all)
    for (const auto& [kind, n] : d.others)
      if (kind.ends_with(kNowhere)) return "not kept, for " + d.path + " has" + kNowhere;
  const auto recent =
      std::find_if(all.begin(), all.end(), [](const IndexedDirectory& d) { return is_recent(d.times); });
  if (recent != all.end())
    return "not kept, for " + recent->path + " has changed within the last two seconds";
  const std::string file = cache.store(pack(all));
  if (!file.empty()) return "kept in " + file;
  std::string tried;
  for (const std::string& place : cache.places()) tried += (tried.empty() ? "" : " nor ") + place;
  return "not kept: neither " + tried + " can be written";
}

}  // namespace

std::vector<IndexedDirectory> parse_image_index(const std::string& bytes) {
  constexpr int64_t kMostFiles = int64_t(1) << 40;  // their sum cannot overflow
  RecordReader r(bytes);
  std::vector<IndexedDirectory> all;
  for (int64_t n = r.number(); n > 0; --n) {
    IndexedDirectory& d = all.emplace_back();
    d.path = name_below(r.word());
    d.times.modified = r.number(), d.times.changed = r.number();
    for (int64_t images = r.number(); images > 0; --images) {
      d.images.push_back(name_below(r.word()));
      if (d.images.back().find('/') != std::string::npos) throw BadFile("the index has a path for a name");
    }
    for (int64_t kinds = r.number(); kinds > 0; --kinds) {
      const std::string suffix = r.word();
      d.others[suffix] = r.number(0, kMostFiles);
    }
  }
  if (!r.at_end()) throw BadFile("the index goes on after its end");
  return all;
}

std::vector<IndexedDirectory> index_images(const std::string& root, const std::vector<std::string>& tops,
                                           std::vector<std::string>* notes) {
  const IndexCache cache("images 2", root, root);
  const auto say = [&](const std::vector<IndexedDirectory>& all, const std::string& how) {
    if (!notes) return;
    notes->push_back(text(root, ": ", images_in(all), " images; the index is ", how));
    if (const std::string others = words_for_others(all); !others.empty())
      notes->push_back(root + ": " + others);
  };
  if (const auto found = cache.load())
    if (auto all = known(*found, root, tops)) {
      say(*all, "that of " + found->file);
      return std::move(*all);
    }
  std::vector<IndexedDirectory> all;
  for (const std::string& top : tops) scan(root, top, 1, all);
  say(all, "made by scanning and " + keep(cache, all));
  return all;
}

}  // namespace skein::data
