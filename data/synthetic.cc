// Made-up images one can learn from: per class and channel the product of two cosines, plus uniform noise.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "data/formats.h"
#include "data/view.h"
#include "engine/random.h"

namespace skein::data {
namespace {

struct Spec {
  ImageSize image{32, 32, 3};
  int64_t classes = 10, train = 10000, test = 1000;
};

[[noreturn]] void bad_part(const std::string& part, const std::string& why) {
  throw BadOption(text("--data synthetic: \"", part, "\" ", why,
                       "; a full one reads synthetic:32x32x3,classes=10,train=10000,test=1000"));
}

int64_t parse_count(const std::string& part, const std::string& digits, int64_t least, int64_t most) {
  int64_t value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (code != std::errc{} || end != digits.data() + digits.size())
    bad_part(part, text("wants a whole number, not \"", digits, "\""));
  if (value < least || value > most) bad_part(part, text("must lie between ", least, " and ", most));
  return value;
}

ImageSize parse_size(const std::string& part) {
  std::array<int, 3> extent{};
  std::istringstream pieces(part + "x");
  std::string piece;
  size_t n = 0;
  for (; std::getline(pieces, piece, 'x'); ++n) {
    if (n == 3) bad_part(part, "has more than height, width and channels");
    extent[n] = int(parse_count(part, piece, 1, n == 2 ? 4 : 4096));
  }
  if (n != 3) bad_part(part, "is no HxWxC");
  return {extent[0], extent[1], extent[2]};
}

Spec parse(const std::string& given) {
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
      bad_part(part, "is none of HxWxC, classes=K, train=N, test=M");
  }
  return spec;
}

class Synthetic final : public DataSource {
 public:
  Synthetic(const Spec& spec, uint64_t seed, bool training)
      : image_(spec.image), seed_(seed), training_(training), size_(training ? spec.train : spec.test) {
    for (int64_t c = 0; c < spec.classes; ++c) {
      classes_.push_back(std::to_string(c));
      for (int channel = 0; channel < image_.channels; ++channel) {
        const Draw draw{seed, Purpose::kSynthetic, uint64_t(c), kPatternLane};
        append_wave(draw, uint64_t(channel) * 4, image_.height);
        append_wave(draw, uint64_t(channel) * 4 + 2, image_.width);
      }
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

  // 80 cos(2 pi (f x + phase)) over [0, 1) for the rows' half (its root), f up to three waves.
  void append_wave(const Draw& draw, uint64_t at, int n) {
    const float waves = 0.5f + 2.5f * draw.unit(at), phase = draw.unit(at + 1);
    for (int i = 0; i < n; ++i)
      waves_.push_back(std::sqrt(80.f) * std::cos(6.2831853f * (waves * float(i) / float(n) + phase)));
  }
  // 128 + pattern within +-80 + noise within +-80: mean and deviation are about those of mean() and std().
  void paint(int64_t index, uint8_t* to) const {
    const Draw draw{seed_, Purpose::kSynthetic, uint64_t(index), training_ ? kTrainLane : kTestLane};
    const int per_channel = image_.height + image_.width, channels = image_.channels;
    const float* waves = &waves_[size_t(label(index)) * size_t(channels * per_channel)];
    Philox4 block{};
    uint32_t n = 0;
    for (int y = 0; y < image_.height; ++y)
      for (int x = 0; x < image_.width; ++x)
        for (int c = 0; c < channels; ++c, ++n) {
          if (n % 16 == 0) block = draw.block(n / 16);
          const int noise = int(block.v[n / 4 % 4] >> (n % 4 * 8) & 0xFF) - 128;
          const float* wave = waves + c * per_channel;
          const float value = 128 + wave[y] * wave[image_.height + x] + 0.625f * float(noise);
          to[n] = uint8_t(std::clamp(int(value), 0, 255));
        }
  }

  const ImageSize image_;
  const uint64_t seed_;
  const bool training_;
  const int64_t size_;
  std::vector<std::string> classes_;
  std::vector<float> waves_;  // [class][channel]: along the rows, then along the columns
};

}  // namespace

Split open_synthetic(const std::string& path, uint64_t seed) {
  const Spec spec = parse(path);
  return {std::make_unique<Synthetic>(spec, seed, true), std::make_unique<Synthetic>(spec, seed, false)};
}

}  // namespace skein::data
