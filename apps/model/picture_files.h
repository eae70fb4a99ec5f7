// PictureFiles: JPEG and PNG files without labels, as a source for a Loader.
#pragma once
#include <string>
#include <vector>

#include "data/source.h"

namespace skein::apps {

// The given files and, for each directory, all files below it with the suffix .jpg, .jpeg, .jpe or .png,
// sorted, without hidden ones. Throws BadFile if a path does not exist or a directory holds no picture.
std::vector<std::string> list_pictures(const std::vector<std::string>& paths);

class PictureFiles final : public data::DataSource {
 public:
  PictureFiles(std::vector<std::string> files, int channels);  // channels: 3, or 1 for gray
  int64_t size() const override { return int64_t(files_.size()); }
  const std::vector<std::string>& classes() const override { return classes_; }
  data::ImageSize image() const override { return {0, 0, channels_}; }
  int32_t label(int64_t) const override { return 0; }
  bool read(int64_t index, const data::View&, const data::ImageSize& out, uint8_t* pixels) const override;
  std::string name(int64_t index) const override { return files_[size_t(index)]; }
  std::vector<float> mean() const override { return {}; }
  std::vector<float> std() const override { return {}; }

 private:
  std::vector<std::string> files_, classes_;
  int channels_;
};

}  // namespace skein::apps
