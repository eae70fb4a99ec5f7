// Class directories of JPEG and PNG files: one's own pictures, or ImageNet as torchvision lays it out.
#include "data/image_listing.h"

#include "data/encoded.h"
#include "data/formats.h"
#include "data/reading.h"

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
  std::string name(int64_t index) const override {
    return root_ + "/" + (paths_.data() + starts_[size_t(index)]);
  }
  std::vector<float> mean() const override { return {0.485f, 0.456f, 0.406f}; }
  std::vector<float> std() const override { return {0.229f, 0.224f, 0.225f}; }

  bool read(int64_t index, const View& view, const ImageSize& out, uint8_t* pixels) const override {
    CHECK(index >= 0 && index < size(), index, size());
    thread_local Bytes file;
    const std::string path = name(index);
    {
      const Stage reading_file(reading().seconds.read);
      if (!read_raw(path, file)) {
        reading().odd |= kUnopenable;
        return false;
      }
    }
    return draw_encoded(file, path, view, out, pixels);
  }

 private:
  const std::vector<std::string> classes_;
  const std::string root_;
  std::string paths_;            // below root_, one after the other, each ended by a zero byte
  std::vector<int64_t> starts_;  // in paths_
  std::vector<int32_t> labels_;
};

std::unique_ptr<DataSource> make(const std::vector<std::string>& classes, const std::string& root,
                                 std::vector<Listed> files) {
  return std::make_unique<ImageFolder>(classes, root, std::move(files));
}

}  // namespace

Split open_image_folder(const std::string& path, uint64_t) {
  if (path.empty())
    throw BadOption(
        "--data imagefolder needs a directory: --data imagefolder:DIRECTORY, holding "
        "train/CLASS/IMAGE and val/CLASS/IMAGE, or CLASS/IMAGE");
  need_directory(path, "class directories of JPEG and PNG files");
  std::string test;
  for (const char* name : {"val", "test"})
    if (test.empty() && is_directory(path + "/" + name)) test = path + "/" + name;
  const std::string train = path + "/train";
  std::vector<std::string> notes;
  if (is_directory(train) && !test.empty()) {
    const auto classes = list_classes(train);
    auto training = list_images(train, classes, &notes), testing = list_images(test, classes, &notes);
    return {make(classes, train, std::move(training)), make(classes, test, std::move(testing)), notes};
  }
  if (is_directory(train) || !test.empty())
    throw BadFile(text(
        path, ": holds ", test.empty() ? "train/ but neither val/ nor test/" : "no train/ beside " + test,
        "; add it, or give the directory that holds the classes and a tenth is kept for testing"));
  const auto classes = list_classes(path);
  auto [training, testing] = split_off_tenth(list_images(path, classes, &notes));
  return {make(classes, path, std::move(training)), make(classes, path, std::move(testing)), notes};
}

}  // namespace skein::data
