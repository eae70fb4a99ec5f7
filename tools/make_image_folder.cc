// Writes Fashion-MNIST out as a folder of JPEG and PNG files of mixed sizes, as people's own pictures come:
// something to try `--data imagefolder` on without a download.
#include <charconv>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "data/resize.h"
#include "data/source.h"
#include "engine/random.h"
#include "tools/write_images.h"

namespace skein {
namespace {

constexpr const char* kUsage =
    "usage: make_image_folder DIRECTORY [--data KIND[:PATH]] [--per-class N] [--odd]\n"
    "  Writes DIRECTORY/train/CLASS/*.jpg|png and DIRECTORY/val/CLASS/..., N images of each class for "
    "training\n"
    "  (default 100) and a fifth of that for validation, 40 to 160 pixels a side.\n"
    "  --odd   adds to the first class: CMYK, grey, progressive, 16-bit, palette and transparent files, "
    "wrong\n"
    "          extensions, a hidden file, a text file; and four that cannot be read: one cut off, one of "
    "zero\n"
    "          bytes, a text called .jpg, a PNG with a damaged checksum.\n";

struct Arguments {
  std::string directory, data = "fashion-mnist";
  int64_t per_class = 100;
  bool odd = false;
};

int64_t parse_count(const std::string& digits) {
  int64_t n = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
  if (code != std::errc{} || end != digits.data() + digits.size() || n < 1)
    throw BadOption("--per-class wants a number of at least 1, not \"" + digits + "\"");
  return n;
}

Arguments parse(int argc, char** argv) {
  Arguments a;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool takes_value = word == "--data" || word == "--per-class";
    if (takes_value && i + 1 == argc) throw BadOption(word + " wants a value");
    if (word == "--odd")
      a.odd = true;
    else if (word == "--data")
      a.data = argv[++i];
    else if (word == "--per-class")
      a.per_class = parse_count(argv[++i]);
    else if (word.starts_with("-") || !a.directory.empty())
      throw BadOption("unknown argument \"" + word + "\"\n" + kUsage);
    else
      a.directory = word;
  }
  if (a.directory.empty()) throw BadOption(kUsage);
  return a;
}

// "T-shirt/top" cannot be the name of a directory.
std::string directory_name(std::string name) {
  for (char& c : name)
    if (c == '/' || c == ' ') c = '-';
  return name;
}

// The index-th image at a size of its own, tinted so that its channels differ.
Raster picture(const data::DataSource& source, int64_t index) {
  const data::ImageSize size = source.image();
  std::vector<uint8_t> small(size_t(size.height * size.width * size.channels));
  if (!source.read(index, {}, size, small.data())) throw BadFile(source.name(index) + ": cannot be read");
  const Draw draw{1, Purpose::kSynthetic, uint64_t(index)};
  Raster large{40 + int(120 * draw.unit(0)), 40 + int(120 * draw.unit(1)), size.channels};
  large.bytes.resize(size_t(large.height * large.width * large.channels));
  data::resize({small.data(), size.height, size.width, size.channels, int64_t(size.width) * size.channels},
               {0, 0, double(size.height), double(size.width)}, false,
               {large.height, large.width, large.channels}, large.bytes.data());
  if (large.channels == 3) return large;
  Raster tinted{large.height, large.width, 3, std::vector<uint8_t>(large.bytes.size() * 3)};
  for (size_t i = 0; i < large.bytes.size(); ++i)
    for (size_t c = 0; c < 3; ++c)
      tinted.bytes[3 * i + c] = uint8_t(float(large.bytes[i]) * (0.6f + 0.4f * draw.unit(2 + c)));
  return tinted;
}

void write_part(const data::DataSource& source, const std::string& directory, int64_t per_class) {
  std::vector<int64_t> written(source.classes().size());
  for (const std::string& name : source.classes())
    std::filesystem::create_directories(directory + "/" + directory_name(name));
  for (int64_t i = 0; i < source.size(); ++i) {
    const size_t label = size_t(source.label(i));
    if (written[label]++ >= per_class) continue;
    const bool png = i % 4 == 0;
    const Raster image = picture(source, i);
    write_file(text(directory, "/", directory_name(source.classes()[label]), "/", i, png ? ".png" : ".jpg"),
               png ? png_bytes(image) : jpeg_bytes(image, {.quality = 85, .subsampled = true}));
  }
}

Raster channels_of(const Raster& rgb, int channels) {
  Raster r{rgb.height, rgb.width, channels,
           std::vector<uint8_t>(size_t(rgb.height * rgb.width * channels), 255)};
  for (int i = 0; i < rgb.height * rgb.width; ++i)
    for (int c = 0; c < std::min(channels, 3); ++c)
      r.bytes[size_t(i * channels + c)] = rgb.bytes[size_t(i * 3 + c)];
  return r;
}

void write_odd(const data::DataSource& source, const std::string& directory) {
  const Raster image = picture(source, 0), grey = channels_of(image, 1);
  const std::vector<uint8_t> jpeg = jpeg_bytes(image), note{'n', 'o', 't', 'e', '\n'};
  std::vector<uint8_t> png = png_bytes(image);
  std::vector<png_color> palette;
  for (int i = 0; i < 256; ++i) palette.push_back({uint8_t(i), uint8_t(i), uint8_t(i / 2)});
  const auto write = [&](const char* name, const std::vector<uint8_t>& bytes) {
    write_file(directory + "/" + name, bytes);
  };
  write("odd-cmyk.jpg", jpeg_bytes(channels_of(image, 4)));
  write("odd-grey.jpg", jpeg_bytes(grey));
  write("odd-progressive.jpg", jpeg_bytes(image, {.progressive = true}));
  write("odd-16-bit.png", png_bytes(image, {.depth = 16}));
  write("odd-palette.png", png_bytes(grey, {.palette = palette}));
  write("odd-transparent.png", png_bytes(channels_of(image, 4), {.interlaced = true}));
  write("odd-png-inside.jpg", png);
  write("odd-jpeg-inside.dat", jpeg);
  write(".hidden.jpg", jpeg);
  write("notes.txt", note);
  write("bad-cut.jpg", {jpeg.begin(), jpeg.begin() + int64_t(jpeg.size() / 2)});
  write("bad-empty.png", {});
  write("bad-text.jpg", note);
  png[png.size() - 14] ^=
      0xFF;  // the last byte of the image data's checksum, before the 12 bytes that end a PNG
  write("bad-checksum.png", png);
}

void run(const Arguments& a) {
  const data::Split split = data::open_data(a.data, 0);
  write_part(*split.train, a.directory + "/train", a.per_class);
  write_part(*split.test, a.directory + "/val", std::max<int64_t>(1, a.per_class / 5));
  if (a.odd) write_odd(*split.train, a.directory + "/train/" + directory_name(split.train->classes()[0]));
  std::cout << "wrote " << a.directory << "; train on it with --data imagefolder:" << a.directory << '\n';
}

}  // namespace
}  // namespace skein

int main(int argc, char** argv) {
  try {
    skein::run(skein::parse(argc, argv));
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}
