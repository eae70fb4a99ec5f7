// Tar archives (ustar, pax and GNU names): where in the file each member lies, without unpacking.
#pragma once
#include <string>
#include <vector>

#include "data/files.h"

namespace skein::data {

struct TarMember {
  std::string name;
  int64_t offset = 0, size = 0;  // of its bytes in the archive
};

// Walks an archive's headers; what lies between is not read. One thread.
class Tar {
 public:
  explicit Tar(const std::string& path);  // BadFile if it cannot be opened
  ~Tar();
  Tar(const Tar&) = delete;
  // The next regular file; directories, links and the like are passed over. False at the
  // archive's end. BadFile, naming the archive and the place: no tar archive (compressed ones are
  // told so), damaged, truncated.
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

// Part of a file, into a buffer that is reused. False if that fails.
[[nodiscard]] bool read_part(const std::string& path, int64_t offset, int64_t n, Bytes&);

}  // namespace skein::data
