// Decodes an image file of any supported format into the pixels that a View shows.
#pragma once
#include <string>

#include "data/files.h"
#include "data/source.h"

namespace skein::data {

// The content decides the format; `name` only serves to detect a wrong suffix. Returns false if the
// file cannot be decoded. reading() receives what is odd about it and the time of the stages. The
// output has three channels.
[[nodiscard]] bool draw_encoded(const Bytes& file, const std::string& name, const View&, const ImageSize& out,
                                uint8_t* pixels);

// ".jpg" of "a/b.JPG"; "" if there is none.
std::string lower_suffix(const std::string& name);
bool is_jpeg_suffix(const std::string&);  // .jpg .jpeg .jpe

}  // namespace skein::data
