// Reads whole files, with messages that name them.
#pragma once
#include <string>
#include <vector>

#include "engine/base.h"

namespace skein::data {

using Bytes = std::vector<uint8_t>;

// The file's bytes, unpacked if it is gzipped. BadFile if it is missing, empty, unreadable or ends early.
Bytes read_unpacked(const std::string& path);

// Reads the file's bytes unchanged into a buffer that is reused. Returns false if that fails, which
// is allowed for images.
[[nodiscard]] bool read_raw(const std::string& path, Bytes& bytes);

bool is_directory(const std::string& path);
bool is_file(const std::string& path);

// Throws BadFile unless `path` is a directory; `what` describes it in the message.
void need_directory(const std::string& path, const std::string& what);

}  // namespace skein::data
