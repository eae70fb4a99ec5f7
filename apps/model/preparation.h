// Preparation: how a picture becomes a model's input at test time. It is stored with the weights, so that
// prediction does the same as evaluation.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/pictures/view.h"

namespace skein::apps {

struct Preparation {
  data::ImageSize image;  // of the input
  // If pictures may differ in size: resize the short side to 256/224 of the input's, then take the center.
  // Else use the whole picture.
  bool center = true;
  std::vector<float> mean, deviation;  // per channel, of pixels in [0, 1]
  data::View view() const;
};

// ImageNet's preparation for torchvision's models, for square images.
Preparation imagenet_preparation(int side);

// Converts it to metadata: image "224x224x3", view "center" or "whole", mean and std as JSON lists.
std::map<std::string, std::string> to_metadata(const Preparation&);
// Returns nothing if the metadata have no preparation. Throws BadFile if they are malformed; `path`
// is for the message.
std::optional<Preparation> read_preparation(const std::string& path,
                                            const std::map<std::string, std::string>& metadata);

}  // namespace skein::apps
