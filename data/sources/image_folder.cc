// Class directories of JPEG and PNG files: the user's pictures, or ImageNet as torchvision lays it out.
#include "data/sources/image_listing.h"

#include <set>

#include "data/pictures/encoded.h"
#include "data/pictures/picture.h"
#include "data/reading.h"
#include "data/sources/formats.h"
#include "data/sources/split_directories.h"

namespace skein::data {
namespace {

class ImageFolder final : public DataSource {
 public:
  ImageFolder(std::vector<std::string> classes, std::string root, std::vector<Listed> files)
      : classes_(std::move(classes)), root_(std::move(root)) {
    starts_.reserve(files.size());
    labels_.reserve(files.size());
    for (const Listed& f : files) {
      starts_.push_back(int64_t(paths_.size()));
      labels_.push_back(f.label);
      paths_.append(f.path).push_back('\0');
    }
    paths_.shrink_to_fit();
  }
  int64_t size() const override { return int64_t(labels_.size()); }
  const std::vector<std::string>& classes() const override { return classes_; }
  ImageSize image() const override { return {0, 0, 3}; }
  int32_t label(int64_t index) const override { return labels_[size_t(index)]; }
  std::string name(int64_t index) const override { return root_ + "/" + key(index); }
  std::string key(int64_t index) const override { return paths_.data() + starts_[size_t(index)]; }
  std::vector<float> mean() const override { return {0.485f, 0.456f, 0.406f}; }
  std::vector<float> std() const override { return {0.229f, 0.224f, 0.225f}; }

  bool read(int64_t index, const View& view, const ImageSize& out, uint8_t* pixels) const override {
    CHECK(index >= 0 && index < size(), index, size());
    thread_local Bytes file;
    const std::string path = name(index);
    {
      const Stage reading_file(reading().seconds.read);
      if (!read_raw(path, kMostPictureBytes, file)) {
        reading().odd |= kUnopenable;
        return false;
      }
    }
    return draw_encoded(file, path, view, out, pixels);
  }

 private:
  const std::vector<std::string> classes_;
  const std::string root_;
  std::string paths_;            // paths below root_, each ended by a zero byte
  std::vector<int64_t> starts_;  // in paths_
  std::vector<int32_t> labels_;
};

// "photos//train" would be the name of every file.
std::string without_trailing_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::unique_ptr<DataSource> make(const std::vector<std::string>& classes, const std::string& root,
                                 std::vector<Listed> files) {
  return std::make_unique<ImageFolder>(classes, root, std::move(files));
}

std::string joined(const std::vector<std::string>& names, size_t most) {
  std::string all;
  for (size_t i = 0; i < std::min(names.size(), most); ++i) all += text(i ? ", " : "", names[i]);
  return all + (names.size() > most ? text(" and ", names.size() - most, " more") : "");
}

Split open_splits(const std::string& path, const SplitDirectories& s) {
  const std::string train = path + "/" + s.train, test = path + "/" + s.test;
  std::vector<std::string> notes;
  if (!s.unused.empty())
    notes.push_back(text(path, ": training on ", s.train, "/, testing on ", s.test,
                         "/; not used: ", joined(s.unused, 5)));
  const auto classes = list_classes(train);
  auto training = list_images(train, classes, &notes), testing = list_images(test, classes, &notes);
  return {make(classes, train, std::move(training)), make(classes, test, std::move(testing)), notes};
}

// If all classes hold only the same directories, at least two, then those may be the real classes, and the
// supposed classes splits with unusual names. Returns these directories; empty if there are none.
std::vector<std::string> directories_in_every_class(const std::vector<Listed>& all, size_t classes) {
  std::vector<std::set<std::string>> inside(classes);
  for (const Listed& image : all) {
    const size_t from = image.path.find('/') + 1, to = image.path.find('/', from);
    if (to == std::string::npos) return {};
    inside[size_t(image.label)].insert(image.path.substr(from, to - from));
  }
  for (const std::set<std::string>& i : inside)
    if (i != inside[0] || i.size() < 2) return {};
  return {inside[0].begin(), inside[0].end()};
}

// Opens class directories without splits; a tenth is kept for testing.
Split open_classes(const std::string& path) {
  std::vector<std::string> notes;
  const auto classes = list_classes(path);
  const std::vector<Listed> all = list_images(path, classes, &notes);
  if (const auto same = directories_in_every_class(all, classes.size()); !same.empty())
    notes.push_back(text("warning: ", path, ": the classes ", joined(classes, 5),
                         " all hold the same directories (", joined(same, 5), "); if those are the classes, ",
                         "arrange them as train/CLASS and val/CLASS"));
  auto [training, testing] = split_off_tenth(all);
  return {make(classes, path, std::move(training)), make(classes, path, std::move(testing)), notes, true};
}

}  // namespace

Split open_image_folder(const std::string& given, uint64_t) {
  if (given.empty())
    throw BadOption(
        "--data imagefolder needs a directory: --data imagefolder:DIRECTORY, holding "
        "train/CLASS/IMAGE and val/CLASS/IMAGE, or CLASS/IMAGE");
  const std::string path = without_trailing_slash(given);
  need_directory(path, "class directories of JPEG and PNG files");
  const SplitDirectories splits = find_splits(path);
  if (splits.both()) return open_splits(path, splits);
  if (splits.none()) return open_classes(path);
  throw BadFile(
      text(path, ": holds ", missing_split(splits),
           "; add it, or give the directory that holds the classes and a tenth is kept for testing"));
}

}  // namespace skein::data
