// Reading files whole, with messages that name them.
#pragma once
#include <string>
#include <vector>

#include "engine/base.h"

namespace skein::data {

using Bytes = std::vector<uint8_t>;

// The file's bytes, unpacked if it is gzipped. BadFile if it is missing, empty, unreadable or ends early.
Bytes read_unpacked(const std::string& path);

// The file's bytes as they are, into a buffer that is reused. False if that fails: for images, which may.
[[nodiscard]] bool read_raw(const std::string& path, Bytes& bytes);

bool is_directory(const std::string& path);
bool is_file(const std::string& path);

// BadFile unless `path` is a directory; `what` says whose it should be.
void need_directory(const std::string& path, const std::string& what);

}  // namespace skein::data
