// What the data tests share: a directory, files in it, pictures, and messages of errors.
#pragma once
#include <gtest/gtest.h>
#include <stdlib.h>
#include <zlib.h>

#include <cmath>
#include <filesystem>
#include <string>

#include "data/files.h"
#include "data/source.h"
#include "engine/random.h"
#include "tools/write_images.h"

namespace skein::data {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "skein-test-XXXXXX").string();
    if (!mkdtemp(pattern.data())) throw Error("no temporary directory");
    path_ = pattern;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  void write(const std::string& name, const Bytes& bytes) const {
    std::filesystem::create_directories(std::filesystem::path(*this / name).parent_path());
    write_file(*this / name, bytes);
  }
  void make(const std::string& name) const { std::filesystem::create_directories(*this / name); }

 private:
  std::string path_;
};

inline Bytes gzipped(const Bytes& bytes) {
  TemporaryDirectory d;
  const gzFile file = gzopen((d / "z").c_str(), "wb");
  gzwrite(file, bytes.data(), unsigned(bytes.size()));
  gzclose(file);
  std::ifstream in(d / "z", std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Random bytes.
inline Bytes noise(size_t n, uint64_t step = 0) {
  const Draw draw{1, Purpose::kTest, step};
  Bytes bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = uint8_t(draw.bits(i));
  return bytes;
}

// A picture that compression does not change much: waves that are at least a few pixels long.
inline Raster waves(int height, int width, int channels, int kind = 0) {
  Raster r{height, width, channels, Bytes(size_t(height * width * channels))};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c)
        r.at(y, x, c) =
            uint8_t(128 + 60 * std::sin(0.09 * x * (c + 1) + kind) + 50 * std::cos(0.07 * y + c + 2 * kind));
  return r;
}

// All pixels of image i, as large as the source's images are.
inline Bytes pixels_at(const DataSource& s, int64_t i) {
  const ImageSize size = s.image();
  Bytes pixels(size_t(size.height * size.width * size.channels));
  EXPECT_TRUE(s.read(i, View{}, size, pixels.data()));
  return pixels;
}

// The message of what `f` throws; "" if it does not throw, which no expectation accepts.
template <class E, class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const E& e) { return e.what(); }
  return "";
}
inline void expect_says(const std::string& message, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    EXPECT_NE(message.find(part), std::string::npos) << "\"" << part << "\" is not in \"" << message << "\"";
}

}  // namespace skein::data
