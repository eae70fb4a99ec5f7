// Finds and decodes pictures.
#include "apps/model/picture_files.h"

#include <algorithm>
#include <filesystem>

#include "data/pictures/encoded.h"
#include "data/pictures/picture.h"
#include "data/reading.h"
#include "engine/words/file.h"

namespace skein::apps {

namespace fs = std::filesystem;

namespace {

bool called_like_a_picture(const fs::path& path) {
  const std::string suffix = data::lower_suffix(path.string());
  return suffix == ".png" || data::is_jpeg_suffix(suffix);
}

bool hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

void add_below(const fs::path& directory, std::vector<std::string>& files) {
  const size_t before = files.size();
  std::error_code error;
  fs::recursive_directory_iterator at(directory, fs::directory_options::follow_directory_symlink, error), end;
  for (; !error && at != end; at.increment(error)) {
    if (hidden(at->path())) {
      at.disable_recursion_pending();
      continue;
    }
    std::error_code none;
    if (at->is_regular_file(none) && called_like_a_picture(at->path())) files.push_back(at->path().string());
  }
  if (error) throw BadFile(text(directory.string(), ": cannot be read: ", error.message()));
  if (files.size() == before) throw BadFile(directory.string() + ": holds no .jpg, .jpeg or .png file");
  std::sort(files.begin() + std::ptrdiff_t(before), files.end());
}

// Luma of BT.601 with 16 fractional bits, like Pillow's conversion to "L".
void to_gray(const std::vector<uint8_t>& rgb, uint8_t* gray) {
  for (size_t i = 0; i < rgb.size() / 3; ++i) {
    const uint8_t* p = rgb.data() + 3 * i;
    gray[i] = uint8_t((p[0] * 19595u + p[1] * 38470u + p[2] * 7471u + 0x8000u) >> 16);
  }
}

}  // namespace

std::vector<std::string> list_pictures(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    if (is_directory(path))
      add_below(path, files);
    else if (std::error_code none; fs::exists(path, none))
      files.push_back(path);
    else
      throw BadFile(path + ": no such file or directory");
  }
  return files;
}

PictureFiles::PictureFiles(std::vector<std::string> files, int channels)
    : files_(std::move(files)), channels_(channels) {
  CHECK(channels == 1 || channels == 3, channels);
}

bool PictureFiles::read(int64_t index, const data::View& view, const data::ImageSize& out,
                        uint8_t* pixels) const {
  thread_local data::Bytes file;
  thread_local std::vector<uint8_t> rgb;
  if (!data::read_raw(name(index), data::kMostPictureBytes, file)) {
    data::reading().odd |= data::kUnopenable;
    return false;
  }
  const data::ImageSize color{out.height, out.width, 3};
  if (out.channels == 3) return data::draw_encoded(file, name(index), view, color, pixels);
  rgb.resize(size_t(out.height) * size_t(out.width) * 3);
  if (!data::draw_encoded(file, name(index), view, color, rgb.data())) return false;
  to_gray(rgb, pixels);
  return true;
}

}  // namespace skein::apps
