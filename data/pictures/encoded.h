// From an image file's bytes to the pixels a View shows, whatever the file holds.
#pragma once
#include <string>

#include "data/files.h"
#include "data/source.h"

namespace skein::data {

// The content decides what a file is; `name` tells whether it is called something else. False: it cannot be
// decoded. Says in reading() what is odd about it and what the stages took. The output has three channels.
[[nodiscard]] bool draw_encoded(const Bytes& file, const std::string& name, const View&, const ImageSize& out,
                                uint8_t* pixels);

// ".jpg" of "a/b.JPG"; "" if there is none.
std::string lower_suffix(const std::string& name);
bool is_jpeg_suffix(const std::string&);  // .jpg .jpeg .jpe

}  // namespace skein::data
