// The needed parts of the protocol buffers' wire format, and the frames around it.
#include "apps/report/event_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "apps/base/host.h"
#include "engine/base.h"

namespace skein::apps {
namespace {

constexpr std::string_view kPrefix = "events.out.tfevents.";

// ---- protocol buffers: a field is its number and wire type, then the value
std::string varint(uint64_t v) {
  std::string s;
  for (; v >= 128; v >>= 7) s += char(v | 128);
  return s + char(v);
}
template <class T>
std::string little_endian(T v) {
  static_assert(std::endian::native == std::endian::little);
  return {reinterpret_cast<const char*>(&v), sizeof v};
}
std::string field(int number, int64_t v) { return varint(uint64_t(number) << 3) + varint(uint64_t(v)); }
std::string field(int number, double v) { return varint(uint64_t(number) << 3 | 1) + little_endian(v); }
std::string field(int number, std::string_view v) {
  return varint(uint64_t(number) << 3 | 2) + varint(v.size()) + std::string(v);
}
std::string field(int number, float v) { return varint(uint64_t(number) << 3 | 5) + little_endian(v); }

// ---- tensorflow/core/util/event.proto and framework/summary.proto, tensor.proto: the numbers of the fields
namespace event {
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
constexpr int64_t kStart = 1;  // SessionLog.status
}  // namespace event
namespace summary {
constexpr int kValue = 1, kTag = 1, kSimpleValue = 2, kTensor = 8, kMetadata = 9, kPluginData = 1,
              kPluginName = 1;
}
namespace tensor {
constexpr int kType = 1, kShape = 2, kDimension = 2, kSize = 1, kStrings = 8;
constexpr int64_t kString = 7;  // DataType
}  // namespace tensor

std::string event_of(int64_t step, const std::string& what) {
  return field(event::kWallTime, wall_clock()) + field(event::kStep, step) + what;
}

// Readers take files in the order of their names, so a later file must have a later second,
// whatever the clock says.
int64_t next_second(const std::string& dir) {
  auto second = int64_t(wall_clock());
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(dir, none)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(kPrefix))
      second = std::max<int64_t>(second, std::atoll(name.c_str() + kPrefix.size()) + 1);
  }
  return second;
}

uint32_t masked(uint32_t crc) { return std::rotr(crc, 15) + 0xa282ead8u; }

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static const auto table = [] {
    std::array<uint32_t, 256> t{};
    for (uint32_t i = 0; i < 256; ++i) {
      t[i] = i;
      for (int bit = 0; bit < 8; ++bit) t[i] = t[i] >> 1 ^ (t[i] & 1 ? 0x82f63b78u : 0);
    }
    return t;
  }();
  uint32_t crc = ~0u;
  for (const char c : bytes) crc = table[uint8_t(crc ^ uint8_t(c))] ^ crc >> 8;
  return ~crc;
}

std::string framed(std::string_view record) {
  const std::string length = little_endian(uint64_t(record.size()));
  return length + little_endian(masked(crc32c(length))) + std::string(record) +
         little_endian(masked(crc32c(record)));
}

EventFile::EventFile(const std::string& dir, int64_t first_step) {
  path_ = text(dir, '/', kPrefix, next_second(dir), '.', host_name(), '.', ::getpid(), ".0");
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  if (fd_ < 0)
    throw BadFile(text(path_, ": cannot be made: ", std::strerror(errno),
                       "; choose another --output, or do without by --no-tensorboard"));
  append(event_of(0, field(event::kFileVersion, std::string_view("brain.Event:2"))));
  append(event_of(first_step, field(event::kSessionLog, field(1, event::kStart))));
}

EventFile::~EventFile() {
  if (fd_ >= 0) ::close(fd_);
}

void EventFile::write(int64_t step, const Scalars& scalars) {
  std::string values;
  for (const auto& [tag, v] : scalars)
    values += field(summary::kValue, field(summary::kTag, tag) + field(summary::kSimpleValue, float(v)));
  append(event_of(step, field(event::kSummary, values)));
}

void EventFile::write_text(int64_t step, const std::string& tag, const std::string& markdown) {
  const std::string plugin =
      field(summary::kPluginData, field(summary::kPluginName, std::string_view("text")));
  const std::string value =
      field(tensor::kType, tensor::kString) +
      field(tensor::kShape, field(tensor::kDimension, field(tensor::kSize, int64_t(1)))) +
      field(tensor::kStrings, markdown);
  append(
      event_of(step, field(event::kSummary,
                           field(summary::kValue, field(summary::kTag, tag) + field(summary::kTensor, value) +
                                                      field(summary::kMetadata, plugin)))));
}

void EventFile::append(const std::string& event) {
  const std::string bytes = framed(event);
  ssize_t n = 0;
  do n = ::write(fd_, bytes.data(), bytes.size());
  while (n < 0 && errno == EINTR);
  if (n == ssize_t(bytes.size())) return;
  throw BadFile(text(path_, ": cannot write: ", n < 0 ? std::strerror(errno) : "the disk is full",
                     "; free some space there or choose another --output"));
}

}  // namespace skein::apps
