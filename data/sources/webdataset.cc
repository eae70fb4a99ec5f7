// Tar shards of JPEG and PNG files with labels, read by random access.
#include <algorithm>
#include <filesystem>
#include <sstream>

#include "data/pictures/encoded.h"
#include "data/reading.h"
#include "data/sources/formats.h"
#include "data/sources/image_listing.h"
#include "data/sources/shards.h"
#include "data/sources/split_directories.h"
#include "data/sources/tar.h"
#include "engine/words/file.h"

namespace skein::data {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostNames = 1 << 26;  // bytes

struct Place {
  int64_t offset = 0, size = 0, name = 0;  // name: its offset in names_
  int32_t shard = 0, label = 0;
};

class WebDataset final : public DataSource {
 public:
  explicit WebDataset(std::vector<std::string> classes) : classes_(std::move(classes)) {}
  void add(const std::string& shard, const ShardSample& s) {
    if (shards_.empty() || shards_.back() != shard) shards_.push_back(shard);
    samples_.push_back({s.offset, s.size, int64_t(names_.size()), int32_t(shards_.size() - 1), s.label});
    names_.append(s.name).push_back('\0');
  }
  int64_t size() const override { return int64_t(samples_.size()); }
  const std::vector<std::string>& classes() const override { return classes_; }
  ImageSize image() const override { return {0, 0, 3}; }
  int32_t label(int64_t index) const override { return samples_[size_t(index)].label; }
  std::string name(int64_t index) const override {
    const Place& p = samples_[size_t(index)];
    return shards_[size_t(p.shard)] + ": " + (names_.data() + p.name);
  }
  std::string key(int64_t index) const override {
    const Place& p = samples_[size_t(index)];
    return fs::path(shards_[size_t(p.shard)]).filename().string() + ": " + (names_.data() + p.name);
  }
  std::vector<float> mean() const override { return {0.485f, 0.456f, 0.406f}; }
  std::vector<float> std() const override { return {0.229f, 0.224f, 0.225f}; }

  bool read(int64_t index, const View& view, const ImageSize& out, uint8_t* pixels) const override {
    CHECK(index >= 0 && index < size(), index, size());
    thread_local Bytes file;
    const Place& p = samples_[size_t(index)];
    {
      const Stage reading_part(reading().seconds.read);
      if (!read_part(shards_[size_t(p.shard)], p.offset, p.size, file)) {
        reading().odd |= kUnopenable;
        return false;
      }
    }
    return draw_encoded(file, names_.data() + p.name, view, out, pixels);
  }

 private:
  const std::vector<std::string> classes_;
  std::vector<std::string> shards_;
  std::string names_;  // each name ends with a zero byte
  std::vector<Place> samples_;
};

struct Patterns {
  std::string train, test;  // without `test`, a tenth of the training shards' samples is for testing
};

std::vector<std::string> tar_files(const fs::path& directory, const std::string& with = "") {
  std::vector<std::string> found;
  for (const fs::directory_entry& e : visible_entries(directory))
    if (lower_suffix(e.path().filename()) == ".tar" &&
        e.path().filename().native().find(with) != std::string::npos)
      found.push_back(e.path().string());
  return found;
}

// Finds train/*.tar and val/*.tar or the like, else names that contain train and val or test,
// else all tar files.
Patterns look_into(const std::string& directory) {
  const fs::path d = directory;
  if (const SplitDirectories s = find_splits(directory); s.both())
    return {d / s.train / "*.tar", d / s.test / "*.tar"};
  for (const char* test : {"val", "test"})
    if (!tar_files(d, "train").empty() && !tar_files(d, test).empty())
      return {d / "*train*.tar", d / text("*", test, "*.tar")};
  if (tar_files(directory).empty())
    throw BadFile(directory +
                  ": no shards in this directory; expected tar files, as in train-000000.tar and " +
                  "val-000000.tar");
  return {fs::path(directory) / "*.tar", ""};
}

// "TRAIN,val=TEST": a brace may hold commas too.
Patterns parse_patterns(const std::string& spec) {
  if (const size_t at = spec.rfind(",val="); at != std::string::npos)
    return {spec.substr(0, at), spec.substr(at + 5)};
  if (is_directory(spec)) return look_into(spec);
  return {spec, ""};
}

// Line i of classes.txt beside the first shard, or above its directory, names class i. Without that file
// the names are numbers, and there may not be more classes than samples, because a damaged label must not
// make a million classes.
std::vector<std::string> class_names(const std::string& first_shard, int64_t classes, int64_t samples,
                                     std::string& from) {
  std::vector<std::string> names;
  const fs::path beside = fs::path(first_shard).parent_path();
  for (const fs::path& p : {beside / "classes.txt", beside / "../classes.txt"}) {
    std::istringstream file(is_file(p) ? read_file(p, kMostNames) : "");
    for (std::string line; std::getline(file, line);) {
      if (line.ends_with('\r')) line.pop_back();  // written on Windows, as is a byte order mark
      if (names.empty() && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
      names.push_back(line);
    }
    while (!names.empty() && names.back().empty()) names.pop_back();
    if (const auto blank = std::find(names.begin(), names.end(), ""); blank != names.end())
      throw BadFile(text(p.lexically_normal().string(), ':', blank - names.begin() + 1,
                         ": is blank, where the name of class ", blank - names.begin(), " is to be"));
    if (!names.empty()) {
      from = p.lexically_normal().string();
      return names;
    }
  }
  from = text("the ", samples, " training samples (without a classes.txt beside the shards)");
  for (int64_t i = 0; i < std::min(classes, samples); ++i) names.push_back(std::to_string(i));
  return names;
}

int32_t largest_label(const std::vector<Shard>& shards) {
  int32_t most = 0;
  for (const Shard& s : shards)
    for (const ShardSample& sample : s.samples) most = std::max(most, sample.label);
  return most;
}

int64_t samples_in(const std::vector<Shard>& shards) {
  int64_t n = 0;
  for (const Shard& s : shards) n += int64_t(s.samples.size());
  return n;
}

void check_labels(const std::vector<Shard>& shards, size_t classes, const std::string& from) {
  for (const Shard& s : shards)
    for (const ShardSample& sample : s.samples)
      if (size_t(sample.label) >= classes)
        throw BadFile(text(s.path, ": label ", sample.label, " of ", sample.name,
                           " is out of range: the classes of ", from, " are 0 to ", classes - 1));
}

}  // namespace

Split open_webdataset(const std::string& path, uint64_t) {
  if (path.empty())
    throw BadOption(
        "--data webdataset needs shards: webdataset:DIRECTORY, or a pattern of tar files as in "
        "webdataset:/data/train-{000..146}.tar,val=/data/val-*.tar");
  Split split;
  const Patterns patterns = parse_patterns(path);
  const auto open = [&](const std::string& p) { return index_shards(p, expand_shards(p), &split.notes); };
  const std::vector<Shard> train = open(patterns.train),
                           test = patterns.test.empty() ? std::vector<Shard>() : open(patterns.test);
  std::string from;
  const std::vector<std::string> classes =
      class_names(train[0].path, largest_label(train) + 1, samples_in(train), from);
  check_labels(train, classes.size(), from), check_labels(test, classes.size(), from);
  if (classes.size() < 2) throw BadFile(patterns.train + ": has only one class; at least two are needed");

  std::vector<Listed> listed;
  if (patterns.test.empty())
    for (const Shard& s : train)
      for (const ShardSample& sample : s.samples)
        listed.push_back({fs::path(s.path).filename().string() + "/" + sample.name, sample.label});
  const std::vector<bool> tenth = choose_tenth(listed);
  auto training = std::make_unique<WebDataset>(classes), testing = std::make_unique<WebDataset>(classes);
  size_t i = 0;
  for (const Shard& s : train)
    for (const ShardSample& sample : s.samples)
      (!tenth.empty() && tenth[i++] ? testing : training)->add(s.path, sample);
  for (const Shard& s : test)
    for (const ShardSample& sample : s.samples) testing->add(s.path, sample);
  split.train = std::move(training), split.test = std::move(testing);
  split.tenth = patterns.test.empty();
  return split;
}

}  // namespace skein::data
