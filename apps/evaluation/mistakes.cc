// Small pictures of test images that were misclassified.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/evaluation/verdicts.h"
#include "data/pictures/augment.h"
#include "data/pictures/png.h"

namespace skein::apps {
namespace {

constexpr int kSide = 72;  // pixels at most

data::ImageSize size_of_picture(const data::ImageSize& own) {
  return {own.height > 0 ? std::min(own.height, kSide) : kSide,
          own.width > 0 ? std::min(own.width, kSide) : kSide, own.channels};
}

std::string base64(const std::vector<uint8_t>& bytes) {
  static const char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t word = 0;
    for (size_t k = 0; k < 3; ++k) word = word << 8 | (i + k < bytes.size() ? bytes[i + k] : 0u);
    for (size_t k = 0; k < 4; ++k) out += i + k <= bytes.size() ? kDigits[word >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

}  // namespace

Json show_mistakes(const std::vector<Verdict>& mistakes, const data::DataSource& test) {
  const data::ImageSize size = size_of_picture(test.image());
  const data::View view = data::eval_view(test.image(), size);
  std::vector<uint8_t> pixels(size_t(size.height) * size_t(size.width) * size_t(size.channels));
  Json all = Json::array();
  for (const Verdict& v : mistakes) {
    Json one = {
        {"name", test.name(v.index)}, {"truth", v.truth}, {"guess", v.guess}, {"probability", v.probability}};
    if (test.read(v.index, view, size, pixels.data()))
      one["picture"] = "data:image/png;base64," + base64(data::encode_png(pixels.data(), size));
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace skein::apps
