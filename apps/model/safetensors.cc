// Reading trusts nothing: every offset, size and type is checked before a tensor is made.
#include "apps/model/safetensors.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <new>

#include "apps/base/digest.h"
#include "apps/base/json.h"
#include "engine/words/file.h"
#include "engine/words/host_memory.h"
#include "engine/words/json.h"

namespace skein::apps {
namespace {

constexpr uint64_t kLargestHeader = 100'000'000;  // as in the format's own library

constexpr struct {
  DType type;
  const char* name;
} kTypes[] = {{kF32, "F32"}, {kBF16, "BF16"}, {kF16, "F16"}, {kU8, "U8"}, {kI32, "I32"}, {kI64, "I64"}};

const char* name_in_file(DType t) {
  for (const auto& row : kTypes)
    if (row.type == t) return row.name;
  CHECK(false, "no name in files for", t);
  return "";
}

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw BadFile(text(path, ": ", why));
}

// PyTorch's .pth and .pt are zip archives of pickles, old ones bare pickles: programs rather than data.
void refuse_pytorch(const std::string& path, uint64_t beginning) {
  constexpr uint64_t kZip = 0x04034b50, kOldMagic = 0x469cfc6c0a8a0280;
  if ((beginning & 0xffffffff) != kZip && beginning != kOldMagic) return;
  const std::string to = std::filesystem::path(path).replace_extension(".safetensors").string();
  refuse(path,
         text("is PyTorch's own kind of file; convert it once with: tools/convert_weights ", path, ' ', to));
}

struct Entry {
  std::string name;
  DType type = kF32;
  Shape shape;
  uint64_t begin = 0, end = 0;
};

// A header may have a million members; Json looks for each among all before it.
using Sorted = nlohmann::json;

Shape parse_shape(const std::string& path, const std::string& name, const Sorted& j) {
  if (!j.is_array() || j.size() > Shape::kMaxRank)
    refuse(path, text("tensor '", name, "' has no shape of at most ", Shape::kMaxRank, " axes"));
  std::vector<int64_t> extents;
  int64_t volume = 1;
  for (const Sorted& d : j) {
    if (!d.is_number_unsigned() || d.get<uint64_t>() > uint64_t(INT64_MAX) ||
        __builtin_mul_overflow(volume, d.get<int64_t>(), &volume))
      refuse(path, text("tensor '", name, "' has an impossible shape ", brief(j)));
    extents.push_back(d.get<int64_t>());
  }
  return Shape(extents);
}

Entry parse_entry(const std::string& path, const std::string& name, const Sorted& j) {
  Entry e;
  e.name = name;
  if (!j.is_object() || !j.contains("dtype") || !j.contains("shape") || !j.contains("data_offsets"))
    refuse(path, text("the header's entry '", name, "' lacks dtype, shape or data_offsets"));
  bool known = false;
  for (const auto& row : kTypes)
    if (j["dtype"] == row.name) e.type = row.type, known = true;
  if (!known)
    refuse(path, text("tensor '", name, "' is of type ", brief(j["dtype"]),
                      "; F32, BF16, F16, U8, I32 and I64 are read"));
  e.shape = parse_shape(path, name, j["shape"]);
  const Sorted& at = j["data_offsets"];
  if (!at.is_array() || at.size() != 2 || !at[0].is_number_unsigned() || !at[1].is_number_unsigned())
    refuse(path, text("tensor '", name, "' has no data_offsets of two numbers"));
  e.begin = at[0].get<uint64_t>(), e.end = at[1].get<uint64_t>();
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(uint64_t(e.shape.volume()), uint64_t(size_of(e.type)), &bytes) ||
      e.end < e.begin || e.end - e.begin != bytes)
    refuse(path, text("tensor '", name, "' of shape ", e.shape, " does not fill its offsets ", brief(at)));
  return e;
}

// Tensors must tile the data without overlaps, gaps or remaining bytes; anything else hides bytes
// or reads some twice.
void check_tiling(const std::string& path, const std::vector<Entry>& entries, uint64_t data_bytes) {
  uint64_t at = 0;
  for (const Entry& e : entries) {
    if (e.begin < at) refuse(path, text("tensor '", e.name, "' overlaps the one before it"));
    if (e.begin > at) refuse(path, text("bytes before tensor '", e.name, "' belong to no tensor"));
    at = e.end;
  }
  if (at > data_bytes)
    refuse(path, text("truncated: ", data_bytes, " bytes of data where the header announces ", at));
  if (at < data_bytes) refuse(path, text(data_bytes - at, " bytes after the last tensor belong to none"));
}

struct Header {
  std::map<std::string, std::string> metadata;
  std::vector<Entry> entries;  // by offset
};

Header parse_header(const std::string& path, const std::string& json) {
  const Sorted root = parse_json<Sorted>(json);
  if (!root.is_object())
    refuse(path, text("damaged: its header is not a JSON object of at most ", kMostLevels, " levels"));
  Header h;
  for (const auto& [name, value] : root.items()) {
    if (name != "__metadata__") {
      h.entries.push_back(parse_entry(path, name, value));
      continue;
    }
    if (!value.is_object()) refuse(path, "damaged: __metadata__ is not an object");
    for (const auto& [key, v] : value.items()) {
      if (!v.is_string()) refuse(path, text("damaged: the metadata '", key, "' is not a string"));
      h.metadata[key] = v.get<std::string>();
    }
  }
  std::stable_sort(h.entries.begin(), h.entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  return h;
}

using Block = std::shared_ptr<char>;
Block make_block(uint64_t bytes) {
  constexpr std::align_val_t kAlign{64};
  char* memory = static_cast<char*>(::operator new(std::max<uint64_t>(bytes, 1), kAlign));
  return Block(memory, [](char* p) { ::operator delete(p, kAlign); });
}

// A window of the block, or a copy if another program left the data unaligned.
Tensor make_tensor(const Entry& e, const Block& data) {
  const int64_t bytes = int64_t(e.end - e.begin);
  if (e.begin % uint64_t(size_of(e.type)) == 0)
    return Tensor(e.shape, e.type, std::make_shared<Storage>(data.get() + e.begin, bytes, kCpu, data));
  Tensor t(e.shape, e.type);
  std::memcpy(t.raw(), data.get() + e.begin, size_t(bytes));
  return t;
}

std::string make_header(const TensorFile& file,
                        const std::vector<const std::pair<std::string, Tensor>*>& order) {
  Json root = Json::object();
  if (!file.metadata.empty()) root["__metadata__"] = file.metadata;
  int64_t at = 0;
  for (const auto* entry : order) {
    const Tensor& t = entry->second;
    CHECK(!root.contains(entry->first), "two tensors of one name:", entry->first);
    root[entry->first] = {{"dtype", name_in_file(t.dtype())},
                          {"shape", std::vector<int64_t>(t.shape().begin(), t.shape().end())},
                          {"data_offsets", {at, at + t.bytes()}}};
    at += t.bytes();
  }
  std::string json = json_text(root);
  json.resize((json.size() + 7) / 8 * 8, ' ');  // makes the data begin at a multiple of 8
  return json;
}

}  // namespace

const Tensor* TensorFile::find(const std::string& name) const {
  for (const auto& [key, tensor] : tensors)
    if (key == name) return &tensor;
  return nullptr;
}

std::string write_safetensors(const std::string& path, const TensorFile& file) {
  std::vector<const std::pair<std::string, Tensor>*> order;
  for (const auto& entry : file.tensors) order.push_back(&entry);
  // Wide types come first, so that every tensor is aligned for its type.
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return size_of(a->second.dtype()) > size_of(b->second.dtype());
  });
  const std::string header = make_header(file, order);
  FileWriter out(path);
  Digest digest;
  const auto put = [&](const void* data, size_t bytes) {
    digest.add(data, bytes);
    out.write(data, bytes);
  };
  const uint64_t length = header.size();  // little endian, like every machine this runs on
  put(&length, 8);
  put(header.data(), header.size());
  for (const auto* entry : order) {
    const Tensor host = entry->second.to(kCpu);
    if (entry->second.device().is_cuda()) current_stream(entry->second.device()).sync();
    put(host.raw(), size_t(host.bytes()));
  }
  out.close();
  return digest.hex();
}

TensorFile read_safetensors(const std::string& path, const std::string& expected) {
  FileReader in(path);
  uint64_t length = 0;
  if (in.read(&length, 8) < 8)
    refuse(path, text("not a safetensors file: ", in.size(), " bytes, too short for a header"));
  refuse_pytorch(path, length);
  const uint64_t rest = uint64_t(std::max<int64_t>(in.size(), 8)) - 8;
  if (length > kLargestHeader || length < 2)
    refuse(path, text("not a safetensors file: a header of ", length, " bytes is announced"));
  if (length > rest) refuse(path, text("truncated: ", rest, " bytes where the header alone takes ", length));
  if (rest > uint64_t(host_memory()))
    refuse(path, text(rest, " bytes are more than the memory of this machine"));
  std::string header(size_t(length), '\0');
  const uint64_t data_bytes = rest - length;
  const Block data = make_block(data_bytes);
  if (in.read(header.data(), length) < length || in.read(data.get(), data_bytes) < data_bytes)
    refuse(path, "truncated while it was read");
  if (!expected.empty()) {
    Digest digest;
    digest.add(&length, 8), digest.add(header.data(), header.size()), digest.add(data.get(), data_bytes);
    if (digest.hex() != expected) refuse(path, "damaged: its checksum is not the one it was written with");
  }
  const Header h = parse_header(path, header);
  check_tiling(path, h.entries, data_bytes);
  TensorFile file{.metadata = h.metadata, .tensors = {}};
  for (const Entry& e : h.entries) file.tensors.emplace_back(e.name, make_tensor(e, data));
  return file;
}

}  // namespace skein::apps
