// Tar archives (ustar, pax and GNU names): where in the file each member lies, without unpacking.
#pragma once
#include <string>
#include <vector>

#include "data/files.h"

namespace skein::data {

struct TarMember {
  std::string name;
  int64_t offset = 0, size = 0;  // of its content in the archive
};

// Walks an archive's headers without reading what lies between. Not thread-safe.
class Tar {
 public:
  explicit Tar(const std::string& path);  // BadFile if it cannot be opened
  ~Tar();
  Tar(const Tar&) = delete;
  // Moves to the next regular file, skipping directories, links and the like. Returns false at the archive's
  // end. Throws BadFile, naming the archive and the offset, if it is no tar archive (compressed ones are
  // recognized), damaged or truncated.
  bool next(TarMember&);
  std::string read(const TarMember&);

 private:
  struct Header;
  const uint8_t* bytes(int64_t offset, int64_t n);
  std::string content(int64_t offset, int64_t n);
  Header header_at(int64_t offset);
  [[noreturn]] void refuse(const std::string& why) const;

  const std::string path_;
  int file_ = -1;
  int64_t size_ = 0, at_ = 0;
  Bytes window_;  // bytes of the file from window_at_ on
  int64_t window_at_ = 0;
};

// Reads part of a file into a buffer that is reused. Returns false if that fails.
[[nodiscard]] bool read_part(const std::string& path, int64_t offset, int64_t n, Bytes&);

}  // namespace skein::data
