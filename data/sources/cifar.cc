// CIFAR-10 and CIFAR-100, binary versions (Krizhevsky 2009): records of label bytes and planar 32x32 RGB.
#include "data/sources/cifar.h"

#include <filesystem>
#include <sstream>

#include "data/sources/formats.h"
#include "engine/words/file.h"

namespace skein::data {
namespace {

constexpr int kSide = 32, kPlane = kSide * kSide;
constexpr int64_t kMostNames = 1 << 20;  // bytes

MemoryImages read_all(const std::string& directory, const std::vector<std::string>& names, int label_bytes) {
  MemoryImages data;
  for (const std::string& name : names) {
    const std::string path = directory + "/" + name;
    append_cifar({path, read_unpacked(path)}, label_bytes, data);
  }
  return data;
}

// The directory itself, or the one inside it that the archive unpacks to.
std::string locate(const char* kind, const std::string& path, const char* unpacked, const char* first_file) {
  if (path.empty())
    throw BadOption(text("--data ", kind, " needs the directory of its binary version: --data ", kind,
                         ":DIRECTORY (", unpacked, "), from https://www.cs.toronto.edu/~kriz/cifar.html"));
  need_directory(path, text("the files of ", unpacked));
  const std::string found = is_directory(path + "/" + unpacked) ? path + "/" + unpacked : path;
  if (!std::filesystem::exists(found + "/" + first_file))
    throw BadFile(
        text(found, ": holds no ", first_file, "; download the binary version of ", kind,
             " from https://www.cs.toronto.edu/~kriz/cifar.html and give the directory that it unpacks to"));
  return found;
}

}  // namespace

// The last of the label bytes before each image counts (CIFAR-100: coarse, fine).
void append_cifar(const PathAndBytes& file, int label_bytes, MemoryImages& data) {
  const Bytes& bytes = file.bytes;
  const size_t record = size_t(label_bytes) + 3 * kPlane;
  if (bytes.size() % record != 0)
    throw BadFile(text(file.path, ": truncated, or not CIFAR's binary version: ", bytes.size(),
                       " bytes are not a whole number of ", record, "-byte records"));
  data.image = {kSide, kSide, 3};
  data.files.push_back({file.path, int64_t(data.labels.size())});
  for (size_t at = 0; at < bytes.size(); at += record) {
    data.labels.push_back(bytes[at + size_t(label_bytes) - 1]);
    const uint8_t* const planes = &bytes[at + size_t(label_bytes)];
    data.pixels.resize(data.pixels.size() + 3 * kPlane);
    uint8_t* const pixels = &*(data.pixels.end() - 3 * kPlane);
    for (int p = 0; p < kPlane; ++p)
      for (int c = 0; c < 3; ++c) pixels[3 * p + c] = planes[c * kPlane + p];
  }
}

std::vector<std::string> cifar_names(const std::string& lines, size_t count) {
  std::vector<std::string> names;
  std::istringstream all(lines);
  for (std::string line; names.size() < count && std::getline(all, line);)
    if (!line.empty()) names.push_back(line);
  while (names.size() < count) names.push_back(std::to_string(names.size()));
  return names;
}

Split open_cifar10(const std::string& path, uint64_t) {
  const std::string directory = locate("cifar10", path, "cifar-10-batches-bin", "data_batch_1.bin");
  const std::vector<std::string> classes{"airplane", "automobile", "bird",  "cat",  "deer",
                                         "dog",      "frog",       "horse", "ship", "truck"};
  const auto open = [&](const std::vector<std::string>& names) {
    return std::make_unique<MemorySource>(read_all(directory, names, 1), classes,
                                          std::vector{0.4914f, 0.4822f, 0.4465f},
                                          std::vector{0.2470f, 0.2435f, 0.2616f});
  };
  return {open({"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                "data_batch_5.bin"}),
          open({"test_batch.bin"})};
}

Split open_cifar100(const std::string& path, uint64_t) {
  const std::string directory = locate("cifar100", path, "cifar-100-binary", "train.bin");
  const std::string names = directory + "/fine_label_names.txt";  // numbers if it does not exist
  const auto classes = cifar_names(is_file(names) ? read_file(names, kMostNames) : "", 100);
  const auto open = [&](const char* name) {
    return std::make_unique<MemorySource>(read_all(directory, {name}, 2), classes,
                                          std::vector{0.5071f, 0.4865f, 0.4409f},
                                          std::vector{0.2673f, 0.2564f, 0.2762f});
  };
  return {open("train.bin"), open("test.bin")};
}

}  // namespace skein::data
