// Reads samples from memory, and checks that every label has a class.
#include "data/sources/memory_source.h"

#include "data/pictures/view.h"

namespace skein::data {

MemorySource::MemorySource(MemoryImages data, std::vector<std::string> classes, std::vector<float> mean,
                           std::vector<float> std)
    : data_(std::move(data)), classes_(std::move(classes)), mean_(std::move(mean)), std_(std::move(std)) {
  const ImageSize& i = data_.image;
  CHECK(int64_t(data_.pixels.size()) == size() * i.height * i.width * i.channels);
  for (int64_t at = 0; at < size(); ++at)
    if (label(at) < 0 || label(at) >= int32_t(classes_.size()))
      throw BadFile(text("label ", label(at), " of ", name(at), " is out of range: the classes are 0 to ",
                         classes_.size() - 1, "; are these the labels of this data set?"));
}

bool MemorySource::read(int64_t index, const View& view, const ImageSize& out, uint8_t* pixels) const {
  CHECK(index >= 0 && index < size(), index, size());
  const ImageSize& i = data_.image;
  const int64_t row = int64_t(i.width) * i.channels;
  draw(view, {data_.pixels.data() + index * row * i.height, i.height, i.width, i.channels, row}, out, pixels);
  return true;
}

std::string MemorySource::name(int64_t index) const {
  const MemoryImages::File* file = &data_.files.front();
  for (const auto& f : data_.files)
    if (f.first <= index) file = &f;
  return text("item ", index - file->first, " of ", file->path);
}

}  // namespace skein::data
