// Synthetic images that a model can learn: per class and channel the product of two
// cosines, plus uniform noise.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "data/pictures/view.h"
#include "data/sources/formats.h"
#include "engine/random.h"
#include "engine/words/number.h"

namespace skein::data {
namespace {

constexpr int kMostChannels = 4;

struct Spec {
  ImageSize image{32, 32, 3};
  int64_t classes = 10, train = 10000, test = 1000;
};

[[noreturn]] void bad_part(const std::string& part, const std::string& why) {
  throw BadOption(text("--data synthetic: \"", part, "\" ", why,
                       "; a full one reads synthetic:32x32x3,classes=10,train=10000,test=1000"));
}

int64_t parse_count(const std::string& part, const std::string& digits, int64_t least, int64_t most) {
  const auto value = number_in<int64_t>(digits);
  if (!value) bad_part(part, text("needs a whole number, not \"", digits, "\""));
  if (*value < least || *value > most) bad_part(part, text("must lie between ", least, " and ", most));
  return *value;
}

ImageSize parse_size(const std::string& part) {
  std::array<int, 3> extent{};
  std::istringstream pieces(part + "x");
  std::string piece;
  size_t n = 0;
  for (; std::getline(pieces, piece, 'x'); ++n) {
    if (n == 3) bad_part(part, "has more than height, width and channels");
    extent[n] = int(parse_count(part, piece, 1, n == 2 ? kMostChannels : 4096));
  }
  if (n != 3) bad_part(part, "is no HxWxC");
  return {extent[0], extent[1], extent[2]};
}

Spec parse_spec(const std::string& given) {
  Spec spec;
  if (given.empty()) return spec;
  std::istringstream parts(given + ",");
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t equals = part.find('=');
    const std::string key = part.substr(0, equals),
                      value = equals == std::string::npos ? "" : part.substr(equals + 1);
    constexpr int64_t kMost = int64_t(1) << 40;
    if (equals == std::string::npos)
      spec.image = parse_size(part);
    else if (key == "classes")
      spec.classes = parse_count(part, value, 2, 100000);
    else if (key == "train")
      spec.train = parse_count(part, value, 1, kMost);
    else if (key == "test")
      spec.test = parse_count(part, value, 1, kMost);
    else
      bad_part(part, "is not one of HxWxC, classes=K, train=N, test=M");
  }
  return spec;
}

class Synthetic final : public DataSource {
 public:
  Synthetic(const Spec& spec, uint64_t seed, bool training)
      : image_(spec.image), seed_(seed), training_(training), size_(training ? spec.train : spec.test) {
    for (int64_t c = 0; c < spec.classes; ++c) {
      classes_.push_back(std::to_string(c));
      const Draw draw{seed, Purpose::kSynthetic, uint64_t(c), kPatternLane};
      append_waves(draw, 0, image_.height);
      append_waves(draw, kMostChannels, image_.width);
    }
  }
  int64_t size() const override { return size_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  ImageSize image() const override { return image_; }
  int32_t label(int64_t index) const override { return int32_t(index % int64_t(classes_.size())); }
  std::string name(int64_t index) const override { return text("synthetic image ", index); }
  std::vector<float> mean() const override { return std::vector<float>(size_t(image_.channels), 0.5f); }
  std::vector<float> std() const override { return std::vector<float>(size_t(image_.channels), 0.25f); }

  bool read(int64_t index, const View& view, const ImageSize& out, uint8_t* pixels) const override {
    CHECK(index >= 0 && index < size_, index, size_);
    thread_local std::vector<uint8_t> drawn;
    const int64_t row = int64_t(image_.width) * image_.channels;
    drawn.resize(size_t(row * image_.height));
    paint(index, drawn.data());
    draw(view, {drawn.data(), image_.height, image_.width, image_.channels, row}, out, pixels);
    return true;
  }

 private:
  static constexpr uint32_t kPatternLane = 0, kTrainLane = 1, kTestLane = 2;

  // n positions of every channel's wave: sqrt(80) cos(2 pi (waves x + phase)) with half a wave to three.
  void append_waves(const Draw& draw, int first, int n) {
    for (int i = 0; i < n; ++i)
      for (int c = 0; c < image_.channels; ++c) {
        const uint64_t at = 2 * uint64_t(first + c);
        const float waves = 0.5f + 2.5f * draw.unit(at), phase = draw.unit(at + 1);
        waves_.push_back(std::sqrt(80.f) * std::cos(6.2831853f * (waves * float(i) / float(n) + phase)));
      }
  }
  // 128 + pattern within +-80 + noise within +-80: mean and deviation are about those of mean() and std().
  void paint(int64_t index, uint8_t* to) const {
    const Draw draw{seed_, Purpose::kSynthetic, uint64_t(index), training_ ? kTrainLane : kTestLane};
    const int channels = image_.channels, row = image_.width * channels;
    const float* down = &waves_[size_t(label(index)) * size_t(channels * image_.height + row)];
    const float* across = down + channels * image_.height;
    thread_local std::vector<uint8_t> noise;
    noise.resize(size_t(image_.height * row + 15) / 16 * 16);
    for (size_t at = 0; at < noise.size(); at += 16) {
      const Philox4 block = draw.block(uint32_t(at / 16));
      std::memcpy(&noise[at], block.v, 16);
    }
    std::vector<float>& repeated = scratch_row(row);
    const uint8_t* n = noise.data();
    for (int y = 0; y < image_.height; ++y, to += row, n += row, down += channels) {
      for (int x = 0, i = 0; x < image_.width; ++x)
        for (int c = 0; c < channels; ++c, ++i) repeated[size_t(i)] = down[c];
      const float* level = repeated.data();
      for (int i = 0; i < row; ++i) {
        const float value = 128 + level[i] * across[i] + 0.625f * float(int(n[i]) - 128);
        to[i] = uint8_t(int(std::min(std::max(value, 0.f), 255.f)));
      }
    }
  }
  static std::vector<float>& scratch_row(int n) {
    thread_local std::vector<float> row;
    row.resize(size_t(n));
    return row;
  }

  const ImageSize image_;
  const uint64_t seed_;
  const bool training_;
  const int64_t size_;
  std::vector<std::string> classes_;
  std::vector<float> waves_;  // [class]: down [height][channels], then across [width][channels]
};

}  // namespace

Split open_synthetic(const std::string& path, uint64_t seed) {
  const Spec spec = parse_spec(path);
  return {std::make_unique<Synthetic>(spec, seed, true), std::make_unique<Synthetic>(spec, seed, false)};
}

}  // namespace skein::data
