// A file of TensorBoard events: TFRecord framing around the few fields of the Event
// message that scalars need.
//
// The fields are written by hand: there are nine, of two wire types, frozen since 2015. libprotobuf
// would save fifty lines, but add a compiler to the build and a library that users without root
// would have to install.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace skein::apps {

uint32_t crc32c(std::string_view bytes);  // Castagnoli, RFC 3720
// Length, masked CRC of the length, bytes, masked CRC of the bytes.
std::string framed(std::string_view record);

using Scalars = std::vector<std::pair<std::string, double>>;  // tag and value, which need not be finite

// Each event is one write. Not thread-safe. Throws BadFile.
class EventFile {
 public:
  // Makes DIR/events.out.tfevents.SECONDS.HOST.PROCESS.0, which is newer than all others in DIR. Readers drop
  // the others' events from `first_step` on, because a resumed run repeats those steps.
  EventFile(const std::string& dir, int64_t first_step);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  const std::string& path() const { return path_; }

  void write(int64_t step, const Scalars&);
  void write_text(int64_t step, const std::string& tag, const std::string& markdown);

 private:
  void append(const std::string& event);
  std::string path_;
  int fd_ = -1;
};

}  // namespace skein::apps
