// What the data tests share: a directory, files in it, pictures, and messages of errors.
#pragma once
#include <gtest/gtest.h>
#include <stdlib.h>
#include <zlib.h>

#include <cmath>
#include <filesystem>
#include <string>

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
  void write(const std::string& name, const std::vector<uint8_t>& bytes) const {
    std::filesystem::create_directories(std::filesystem::path(*this / name).parent_path());
    write_file(*this / name, bytes);
  }
  void make(const std::string& name) const { std::filesystem::create_directories(*this / name); }

 private:
  std::string path_;
};

inline std::vector<uint8_t> gzipped(const std::vector<uint8_t>& bytes) {
  TemporaryDirectory d;
  const gzFile file = gzopen((d / "z").c_str(), "wb");
  gzwrite(file, bytes.data(), unsigned(bytes.size()));
  gzclose(file);
  std::ifstream in(d / "z", std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Random bytes.
inline std::vector<uint8_t> noise(size_t n, uint64_t step = 0) {
  const Draw draw{1, Purpose::kTest, step};
  std::vector<uint8_t> bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = uint8_t(draw.bits(i));
  return bytes;
}

// A picture that compression does not change much: waves that are at least a few pixels long.
inline Raster waves(int height, int width, int channels, int kind = 0) {
  Raster r{height, width, channels, std::vector<uint8_t>(size_t(height * width * channels))};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c)
        r.at(y, x, c) =
            uint8_t(128 + 60 * std::sin(0.09 * x * (c + 1) + kind) + 50 * std::cos(0.07 * y + c + 2 * kind));
  return r;
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
