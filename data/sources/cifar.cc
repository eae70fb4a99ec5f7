// CIFAR-10 and CIFAR-100, binary versions (Krizhevsky 2009): records of label bytes and planar 32x32 RGB.
#include <filesystem>
#include <sstream>

#include "data/sources/formats.h"
#include "data/sources/memory_source.h"
#include "engine/words/file.h"

namespace skein::data {
namespace {

constexpr int kSide = 32, kPlane = kSide * kSide;
constexpr int64_t kMostNames = 1 << 20;  // bytes

// Appends a file's records. The last of the label bytes before each image counts (CIFAR-100: coarse, fine).
void append(const std::string& path, int label_bytes, MemoryImages& data) {
  const Bytes bytes = read_unpacked(path);
  const size_t record = size_t(label_bytes) + 3 * kPlane;
  if (bytes.size() % record != 0)
    throw BadFile(text(path, ": truncated, or not CIFAR's binary version: ", bytes.size(),
                       " bytes are not a whole number of ", record, "-byte records"));
  data.files.push_back({path, int64_t(data.labels.size())});
  for (size_t at = 0; at < bytes.size(); at += record) {
    data.labels.push_back(bytes[at + size_t(label_bytes) - 1]);
    const uint8_t* planes = &bytes[at + size_t(label_bytes)];
    for (int p = 0; p < kPlane; ++p)
      for (int c = 0; c < 3; ++c) data.pixels.push_back(planes[c * kPlane + p]);
  }
}

MemoryImages read_all(const std::string& directory, const std::vector<std::string>& names, int label_bytes) {
  MemoryImages data;
  data.image = {kSide, kSide, 3};
  for (const std::string& name : names) append(directory + "/" + name, label_bytes, data);
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

// Label names, one per line; numbers if the file does not exist.
std::vector<std::string> read_names(const std::string& path, size_t count) {
  std::vector<std::string> names;
  std::istringstream file(is_file(path) ? read_file(path, kMostNames) : "");
  for (std::string line; names.size() < count && std::getline(file, line);)
    if (!line.empty()) names.push_back(line);
  while (names.size() < count) names.push_back(std::to_string(names.size()));
  return names;
}

}  // namespace

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
  const auto classes = read_names(directory + "/fine_label_names.txt", 100);
  const auto open = [&](const char* name) {
    return std::make_unique<MemorySource>(read_all(directory, {name}, 2), classes,
                                          std::vector{0.5071f, 0.4865f, 0.4409f},
                                          std::vector{0.2673f, 0.2564f, 0.2762f});
  };
  return {open("train.bin"), open("test.bin")};
}

}  // namespace skein::data
