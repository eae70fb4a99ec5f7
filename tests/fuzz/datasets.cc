// Data sets that are a few files of pixels.
#include <filesystem>

#include "data/odd.h"
#include "data/sources/formats.h"
#include "data/sources/idx.h"
#include "tests/fuzz/fuzz.h"

namespace skein::fuzz {
namespace {

std::string big_endian(std::initializer_list<uint32_t> words) {
  std::string s;
  for (uint32_t w : words)
    for (int shift = 24; shift >= 0; shift -= 8) s += char(w >> shift);
  return s;
}

data::Bytes bytes_of(const std::string& s) { return {s.begin(), s.end()}; }

std::string directory(const char* name) {
  std::filesystem::create_directories(scratch() + '/' + name);
  return scratch() + '/' + name;
}

void read_some(const data::Split& s) {
  for (const data::DataSource* source : {s.train.get(), s.test.get()}) {
    const data::ImageSize out{8, 8, source->image().channels};
    std::vector<uint8_t> pixels(size_t(out.height * out.width * out.channels));
    for (int64_t i = 0; i < std::min<int64_t>(source->size(), 4); ++i) {
      const int32_t label = source->label(i);
      require(label >= 0 && size_t(label) < source->classes().size(), "a label without a class was let in");
      require(source->read(i, {}, out, pixels.data()), "an image in memory cannot be read");
    }
  }
}

}  // namespace

void unpacking(Input in) {
  const size_t most = in.byte() & 1 ? SIZE_MAX : in.byte();
  const data::Bytes file = bytes_of(in.rest());
  may_refuse([&] {
    const data::Bytes all = data::unpacked(file, "f", most);
    require(all.size() <= most, "more was unpacked than was asked for");
  });
}

// The first byte chooses which of the two files is hostile; the other is whole.
void idx(Input in) {
  const bool labels = in.byte() & 1;
  const data::PathAndBytes hostile{"hostile", bytes_of(in.rest())},
      images{"images", bytes_of(big_endian({0x803, 2, 3, 3}) + std::string(18, 'x'))},
      two{"labels", bytes_of(big_endian({0x801, 2}) + std::string(2, '\1'))};
  may_refuse([&] {
    const data::MemoryImages all = data::parse_idx(labels ? images : hostile, labels ? hostile : two);
    require(all.pixels.size() == all.labels.size() * size_t(all.image.height) * size_t(all.image.width),
            "images without pixels");
  });
}

// The files that are whole are written once.
void cifar(Input in) {
  static const std::string ten = directory("cifar10"), hundred = directory("cifar100");
  static const bool whole = [] {
    for (int i = 1; i <= 5; ++i)
      put("cifar10/data_batch_" + std::to_string(i) + ".bin", std::string(3073, '\1'));
    put("cifar10/test_batch.bin", std::string(3073, '\2'));
    put("cifar100/test.bin", std::string(3074, '\1'));
    return true;
  }();
  require(whole, "no data sets");
  const uint8_t how = in.byte();
  const std::string bytes = in.rest();
  if (how & 1) {
    put("cifar100/train.bin", how & 2 ? bytes : std::string(3074, '\1'));
    put("cifar100/fine_label_names.txt", how & 2 ? "" : bytes);
    return may_refuse([&] { read_some(data::open_cifar100(hundred, 1)); });
  }
  put("cifar10/data_batch_3.bin", bytes);
  may_refuse([&] { read_some(data::open_cifar10(ten, 1)); });
}

void odd_files(Input in) {
  may_refuse([&] {
    const data::Census c = data::Census::unpack(in.rest());
    require(data::Census::unpack(c.pack()).pack() == c.pack(), "the list reads back as another one");
  });
}

}  // namespace skein::fuzz
