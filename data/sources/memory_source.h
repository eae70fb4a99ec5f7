// MemorySource: a data set of equally sized images that fits in memory.
#pragma once
#include <array>

#include "data/files.h"
#include "data/source.h"

namespace skein::data {

// A file's bytes, and its path for messages.
struct PathAndBytes {
  std::string path;
  Bytes bytes;
};

// What the reader of a format returns. `pixels` holds the images one after the other, HWC.
struct MemoryImages {
  ImageSize image;
  Bytes pixels;
  std::vector<int32_t> labels;
  // Item i is the (i - first)-th of the last file whose first <= i; for messages.
  struct File {
    std::string path;
    int64_t first = 0;
  };
  std::vector<File> files;
};

class MemorySource final : public DataSource {
 public:
  // BadFile if a label is not one of `classes`.
  MemorySource(MemoryImages, std::vector<std::string> classes, std::vector<float> mean,
               std::vector<float> std);
  int64_t size() const override { return int64_t(data_.labels.size()); }
  const std::vector<std::string>& classes() const override { return classes_; }
  ImageSize image() const override { return data_.image; }
  int32_t label(int64_t index) const override { return data_.labels[size_t(index)]; }
  bool read(int64_t index, const View&, const ImageSize& out, uint8_t* pixels) const override;
  std::string name(int64_t index) const override;
  std::vector<float> mean() const override { return mean_; }
  std::vector<float> std() const override { return std_; }

 private:
  MemoryImages data_;
  std::vector<std::string> classes_;
  std::vector<float> mean_, std_;
};

}  // namespace skein::data
