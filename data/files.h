// Reads whole files within limits, with messages that name them.
#pragma once
#include <string>
#include <vector>

#include "engine/base.h"

namespace skein::data {

using Bytes = std::vector<uint8_t>;

// The file's bytes as they are. BadFile if it is missing, empty, unreadable, no file, or larger than memory.
Bytes read_whole(const std::string& path);

// The content of the file `path`, whose bytes are `file`: unpacked if it is gzipped. Stops after `most`
// bytes. BadFile if it is empty, damaged or ends early, or unpacks to a hundred times its size and 256 MiB.
Bytes unpacked(const Bytes& file, const std::string& path, size_t most = SIZE_MAX);

// Both.
Bytes read_unpacked(const std::string& path);

// Reads the file's bytes unchanged into a buffer that is reused. Returns false if that fails, or if there are
// more than `most`, which is allowed for images.
[[nodiscard]] bool read_raw(const std::string& path, int64_t most, Bytes& bytes);

bool is_file(const std::string& path);

// Throws BadFile unless `path` is a directory; `what` describes it in the message.
void need_directory(const std::string& path, const std::string& what);

}  // namespace skein::data
