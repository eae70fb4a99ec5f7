// Data sets that are a few files of pixels.
#include "data/odd.h"
#include "data/sources/cifar.h"
#include "data/sources/idx.h"
#include "data/sources/split.h"
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

void read_some(const data::DataSource& source) {
  const data::ImageSize out{4, 4, source.image().channels};
  std::vector<uint8_t> pixels(size_t(out.height * out.width * out.channels));
  for (int64_t i = 0; i < std::min<int64_t>(source.size(), 2); ++i) {
    const int32_t label = source.label(i);
    require(label >= 0 && size_t(label) < source.classes().size(), "a label without a class was let in");
    require(source.read(i, {}, out, pixels.data()), "an image in memory cannot be read");
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

// The first byte says which of the two data sets the file belongs to, or that it is the list of classes.
void cifar(Input in) {
  const int label_bytes = 1 + (in.byte() & 1);
  const bool names = in.byte() & 1;
  const std::string bytes = in.rest();
  const size_t classes = label_bytes == 1 ? 10 : 100;
  if (names) return require(data::cifar_names(bytes, classes).size() == classes, "names are missing");
  may_refuse([&] {
    data::MemoryImages images;
    data::append_cifar({"hostile", bytes_of(bytes)}, label_bytes, images);
    require(images.pixels.size() == images.labels.size() * 32 * 32 * 3, "images without pixels");
    read_some(data::MemorySource(std::move(images), data::cifar_names("", classes), {0, 0, 0}, {1, 1, 1}));
  });
}

// The first byte says how many images there are. Every sample of every step must be one of them.
void leftover(Input in) {
  const int64_t size = 7 + in.byte() % 64;
  const std::string words = in.rest();
  may_refuse([&] {
    const data::Leftover left = data::Leftover::read(words);
    require(left == data::Leftover::read(left.write()), "it reads back as another one");
    data::Portions p(size, 6, 3, 1);
    p.deal_again(left);
    const int64_t epoch = left.epoch > 0 && left.epoch < 1000 ? left.epoch : 0, steps = p.steps_per_epoch();
    for (int64_t k = epoch * steps; k < (epoch + 1) * steps; ++k)
      for (int r = 0; r < 3; ++r)
        for (int64_t row = 0; row < p.samples(k, r); ++row)
          require(p.index(k, r, row) >= 0 && p.index(k, r, row) < size, "a sample that there is not");
  });
}

void odd_files(Input in) {
  may_refuse([&] {
    const data::Census c = data::Census::unpack(in.rest());
    require(data::Census::unpack(c.pack()).pack() == c.pack(), "the list reads back as another one");
  });
}

}  // namespace skein::fuzz
