// Preparation: how a picture becomes a model's input at test time. Kept beside the weights, so that
// predicting does what evaluation did.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/pictures/view.h"

namespace skein::apps {

struct Preparation {
  data::ImageSize image;  // of the input
  // Pictures may differ in size: the short side to 256/224 of the input's, then the center.
  // Else: the whole picture.
  bool center = true;
  std::vector<float> mean, deviation;  // per channel, of pixels in [0, 1]
  data::View view() const;
};

// ImageNet's, as torchvision's models want it, for square images.
Preparation imagenet_preparation(int side);

// As metadata: image "224x224x3", view "center" or "whole", mean and std as JSON lists.
std::map<std::string, std::string> to_metadata(const Preparation&);
// Nothing if the metadata say nothing of it. Throws BadFile if they make no sense; `path` is for the message.
std::optional<Preparation> read_preparation(const std::string& path,
                                            const std::map<std::string, std::string>& metadata);

}  // namespace skein::apps
