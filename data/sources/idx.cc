// MNIST and its family: IDX files (LeCun, Cortes & Burges), big-endian headers, plain or gzipped.
#include "data/sources/idx.h"

#include "data/sources/formats.h"
#include "engine/words/file.h"

namespace skein::data {
namespace {

constexpr const char* kFashionDirectory = "/usr/share/datasets/fashion-mnist";

// "train-images-idx3-ubyte" or "train-images.idx3-ubyte", with or without .gz: mirrors differ.
std::string find_part(const std::string& directory, const std::string& part, const std::string& kind) {
  const std::string stem = directory + "/" + part, first = stem + "-" + kind;
  for (const std::string& path : {first, stem + "." + kind})
    for (const char* suffix : {"", ".gz"})
      if (is_file(path + suffix)) return path + suffix;
  throw BadFile(first +
                "[.gz]: no such file; the directory should hold train-images-idx3-ubyte, "
                "train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, plain or .gz");
}

int64_t big_endian(const Bytes& bytes, size_t at) {
  return int64_t(bytes[at]) << 24 | int64_t(bytes[at + 1]) << 16 | int64_t(bytes[at + 2]) << 8 |
         bytes[at + 3];
}

// An IDX file of unsigned bytes: its extents, outermost first, and what follows the header.
struct Idx {
  std::vector<int64_t> extents;
  Bytes body;
};

// Reads the header first, so that no more is unpacked than it announces.
Idx parse_idx(const PathAndBytes& file, int rank) {
  const std::string& path = file.path;
  const size_t header = 4 + 4 * size_t(rank);
  const Bytes head = unpacked(file.bytes, path, header);
  const int64_t magic = head.size() < 4 ? -1 : big_endian(head, 0);
  if (magic >= 0 && magic != 0x0800 + rank)
    throw BadFile(text(path, ": wrong magic number 0x", std::hex, magic, ", 0x", 0x0800 + rank,
                       " expected: not an IDX file of ", rank == 3 ? "images" : "labels"));
  if (head.size() < header)
    throw BadFile(text(path, ": truncated: ", head.size(), " bytes, the header alone has ", header));
  Idx idx;
  uint64_t volume = 1;
  for (int i = 0; i < rank; ++i) {
    idx.extents.push_back(big_endian(head, 4 + 4 * size_t(i)));
    volume *= uint64_t(idx.extents.back());
    if (volume == 0 || volume > uint64_t(1) << 40)
      throw BadFile(text(path, ": the header cannot be: extent ", i, " is ", idx.extents.back()));
  }
  Bytes bytes = unpacked(file.bytes, path, header + volume + 1);
  const uint64_t body = bytes.size() - header;
  if (body != volume)
    throw BadFile(text(path,
                       body < volume ? text(": truncated: ", body) : text(": too long: more than ", volume),
                       " bytes after the header, which announces ", volume, "; fetch it again"));
  bytes.erase(bytes.begin(), bytes.begin() + int64_t(header));
  idx.body = std::move(bytes);
  return idx;
}

MemoryImages read_pair(const std::string& directory, const std::string& part) {
  const auto read = [](const std::string& path) { return PathAndBytes{path, read_whole(path)}; };
  return parse_idx(read(find_part(directory, part + "-images", "idx3-ubyte")),
                   read(find_part(directory, part + "-labels", "idx1-ubyte")));
}

Split open_idx(const std::string& directory, const std::vector<std::string>& classes, float mean, float std) {
  const auto open = [&](const char* part) {
    return std::make_unique<MemorySource>(read_pair(directory, part), classes, std::vector{mean},
                                          std::vector{std});
  };
  Split split{open("train"), open("t10k")};
  if (!(split.train->image() == split.test->image()))
    throw BadFile(directory + ": training and test images differ in size");
  return split;
}

}  // namespace

MemoryImages parse_idx(const PathAndBytes& images_file, const PathAndBytes& labels_file) {
  Idx images = parse_idx(images_file, 3), labels = parse_idx(labels_file, 1);
  if (images.extents[0] != labels.extents[0])
    throw BadFile(text(images_file.path, " holds ", images.extents[0], " images but ", labels_file.path,
                       " holds ", labels.extents[0], " labels; they do not belong together"));
  if (images.extents[1] > 1 << 15 || images.extents[2] > 1 << 15)
    throw BadFile(text(images_file.path, ": images of ", images.extents[1], " by ", images.extents[2],
                       " pixels are too large"));
  MemoryImages data;
  data.image = {int(images.extents[1]), int(images.extents[2]), 1};
  data.pixels = std::move(images.body);
  data.labels.assign(labels.body.begin(), labels.body.end());
  data.files = {{images_file.path, 0}};
  return data;
}

Split open_fashion_mnist(const std::string& path, uint64_t) {
  if (path.empty() && !is_directory(kFashionDirectory))
    throw BadFile(text(kFashionDirectory,
                       ": no such directory; run `apt-get install dataset-fashion-mnist`, or say "
                       "where the files are: --data fashion-mnist:DIRECTORY"));
  const std::string directory = path.empty() ? kFashionDirectory : path;
  need_directory(directory, "Fashion-MNIST's IDX files");
  return open_idx(directory,
                  {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag",
                   "Ankle boot"},
                  0.2860f, 0.3530f);
}

Split open_mnist(const std::string& path, uint64_t) {
  if (path.empty())
    throw BadOption(
        "--data mnist needs the directory of its files: --data mnist:DIRECTORY, holding "
        "train-images-idx3-ubyte[.gz] and the other three");
  need_directory(path, "MNIST's IDX files");
  return open_idx(path, {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}, 0.1307f, 0.3081f);
}

}  // namespace skein::data
