// Converts preparations to and from metadata.
#include "apps/model/preparation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "data/pictures/augment.h"
#include "engine/words/json.h"

namespace skein::apps {
namespace {

// fmt writes the shortest text that reads back as the same float.
std::string list_of(const std::vector<float>& v) { return fmt::format("[{}]", fmt::join(v, ", ")); }

std::vector<float> numbers(const std::string& list) {
  const auto j = parse_json(list);
  if (!j.is_array() || !std::all_of(j.begin(), j.end(), [](const auto& v) { return v.is_number(); }))
    return {};
  return j.get<std::vector<float>>();
}

}  // namespace

data::View Preparation::view() const {
  return data::eval_view(center ? data::ImageSize{0, 0, image.channels} : image, image);
}

Preparation imagenet_preparation(int side) {
  return {.image = {side, side, 3}, .mean = {0.485f, 0.456f, 0.406f}, .deviation = {0.229f, 0.224f, 0.225f}};
}

std::map<std::string, std::string> to_metadata(const Preparation& p) {
  return {{"image", fmt::format("{}x{}x{}", p.image.height, p.image.width, p.image.channels)},
          {"view", p.center ? "center" : "whole"},
          {"mean", list_of(p.mean)},
          {"std", list_of(p.deviation)}};
}

std::optional<Preparation> read_preparation(const std::string& path,
                                            const std::map<std::string, std::string>& metadata) {
  const auto text_of = [&](const char* key) {
    const auto at = metadata.find(key);
    return at == metadata.end() ? std::string() : at->second;
  };
  if (text_of("image").empty()) return {};
  Preparation p;
  char rest = 0;
  const int read = std::sscanf(text_of("image").c_str(), "%5dx%5dx%5d%c", &p.image.height, &p.image.width,
                               &p.image.channels, &rest);
  p.center = text_of("view") == "center";
  p.mean = numbers(text_of("mean")), p.deviation = numbers(text_of("std"));
  const bool sound = read == 3 && p.image.height > 0 && p.image.width > 0 &&
                     (p.image.channels == 1 || p.image.channels == 3) &&
                     (p.center || text_of("view") == "whole") && p.mean.size() == size_t(p.image.channels) &&
                     p.deviation.size() == p.mean.size() &&
                     std::all_of(p.mean.begin(), p.mean.end(), [](float m) { return std::isfinite(m); }) &&
                     std::all_of(p.deviation.begin(), p.deviation.end(),
                                 [](float d) { return d > 0 && std::isfinite(d) && std::isfinite(1 / d); });
  if (!sound)
    throw BadFile(
        text(path, ": damaged: its metadata image, view, mean and std do not say how images are prepared"));
  return p;
}

}  // namespace skein::apps
