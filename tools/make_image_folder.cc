// Writes Fashion-MNIST out as JPEG and PNG files of mixed sizes, as people's own pictures come, in a folder
// or in tar shards: something to try `--data imagefolder` and `--data webdataset` on without a download.
#include <charconv>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "data/pictures/resize.h"
#include "data/source.h"
#include "engine/random.h"
#include "tools/write_images.h"
#include "tools/write_tar.h"

namespace skein {
namespace {

constexpr const char* kUsage =
    R"(usage: make_image_folder DIRECTORY [--data KIND[:PATH]] [--per-class N] [--odd] [--tar [--per-shard N]]
  Writes DIRECTORY/train/CLASS/*.jpg|png and DIRECTORY/val/CLASS/..., N images of each class for training
  (default 100) and a fifth of that for validation, 40 to 160 pixels a side. DIRECTORY is new or empty.
  --data  what the images are made of, as in train_imagenet (default fashion-mnist)
  --odd   adds to train and to val, in the first class: seven files that are converted (CMYK, gray, 16 bits,
          palette, transparent, PNG called .jpg, JPEG called .png), five that cannot be read (empty, JPEG cut
          off, PNG cut off, text called .jpg, PNG with a damaged checksum), and four that are nothing unusual:
          a progressive JPEG, one called .dat, a hidden one, a text file.
  --tar   writes DIRECTORY/train-000000.tar, ..., DIRECTORY/val-000000.tar, ... instead, of --per-shard images
          each (default 1000), and the names of the classes to DIRECTORY/classes.txt.
)";

struct Arguments {
  std::string directory, data = "fashion-mnist";
  int64_t per_class = 100, per_shard = 1000;
  bool odd = false, tar = false, help = false;
};

int64_t parse_count(const std::string& flag, const std::string& digits) {
  int64_t n = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
  if (code != std::errc{} || end != digits.data() + digits.size() || n < 1)
    throw BadOption(flag + " " + digits + ": expected a whole number of at least 1");
  return n;
}

Arguments parse(int argc, char** argv) {
  Arguments a;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool takes_value = word == "--data" || word == "--per-class" || word == "--per-shard";
    if (takes_value && i + 1 == argc) throw BadOption(word + ": expected a value after it");
    if (word == "--help" || word == "-h")
      a.help = true;
    else if (word == "--odd")
      a.odd = true;
    else if (word == "--tar")
      a.tar = true;
    else if (word == "--data")
      a.data = argv[++i];
    else if (word == "--per-class")
      a.per_class = parse_count(word, argv[++i]);
    else if (word == "--per-shard")
      a.per_shard = parse_count(word, argv[++i]);
    else if (word.starts_with("-") || !a.directory.empty())
      throw BadOption("unexpected argument '" + word + "'; see make_image_folder --help");
    else
      a.directory = word;
  }
  if (a.directory.empty() && !a.help)
    throw BadOption("a directory to write to is missing; see make_image_folder --help");
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

// Where the images of a part go.
class Part {
 public:
  Part(const Arguments& a, std::string name, const std::vector<std::string>& classes)
      : a_(a), name_(std::move(name)), classes_(classes) {
    for (const std::string& c : classes)
      if (!a.tar) std::filesystem::create_directories(directory_of(c));
  }
  // `name` with its suffix, unlike any other of the part.
  void write(size_t label, const std::string& name, const std::vector<uint8_t>& bytes) {
    if (!a_.tar) return write_file(directory_of(classes_[label]) + "/" + name, bytes);
    const size_t dot = name.rfind('.');
    if (dot == 0 || name.ends_with(".txt") || name.ends_with(".dat")) return;  // no samples there
    shard_.add(name, bytes);
    shard_.add(name.substr(0, dot) + ".cls", std::to_string(label));
    if (++samples_ % a_.per_shard == 0) finish();
  }
  void finish() {
    if (shard_.size() == 0) return;
    char number[24];
    std::snprintf(number, sizeof number, "-%06d.tar", shards_++);
    write_file(a_.directory + "/" + name_ + number, shard_.finished());
    shard_ = {};
  }

 private:
  std::string directory_of(const std::string& c) const {
    return a_.directory + "/" + name_ + "/" + directory_name(c);
  }
  const Arguments& a_;
  const std::string name_;
  const std::vector<std::string>& classes_;
  TarBytes shard_;
  int64_t samples_ = 0;
  int shards_ = 0;
};

void write_part(const data::DataSource& source, int64_t per_class, Part& part) {
  std::vector<int64_t> written(source.classes().size());
  for (int64_t i = 0; i < source.size(); ++i) {
    const size_t label = size_t(source.label(i));
    if (written[label]++ >= per_class) continue;
    const bool png = i % 4 == 0;
    const Raster image = picture(source, i);
    part.write(label, text(i, png ? ".png" : ".jpg"),
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

void write_odd(const data::DataSource& source, Part& part) {
  const Raster image = picture(source, 0), gray = channels_of(image, 1);
  const std::vector<uint8_t> jpeg = jpeg_bytes(image), png = png_bytes(image), note{'n', 'o', 't', 'e', '\n'};
  std::vector<uint8_t> damaged = png;
  damaged[png.size() - 14] ^=
      0xFF;  // the last byte of the image data's checksum, before the 12 bytes that end a PNG
  std::vector<png_color> palette;
  for (int i = 0; i < 256; ++i) palette.push_back({uint8_t(i), uint8_t(i), uint8_t(i / 2)});
  const auto half = [](const std::vector<uint8_t>& b) {
    return std::vector<uint8_t>(b.begin(), b.begin() + int64_t(b.size() / 2));
  };
  part.write(0, "odd-cmyk.jpg", jpeg_bytes(channels_of(image, 4)));
  part.write(0, "odd-gray.jpg", jpeg_bytes(gray));
  part.write(0, "odd-16-bit.png", png_bytes(image, {.depth = 16}));
  part.write(0, "odd-palette.png", png_bytes(gray, {.palette = palette}));
  part.write(0, "odd-transparent.png", png_bytes(channels_of(image, 4), {.interlaced = true}));
  part.write(0, "odd-png-inside.jpg", png);
  part.write(0, "odd-jpeg-inside.png", jpeg);
  part.write(0, "bad-empty.png", {});
  part.write(0, "bad-cut-jpeg.jpg", half(jpeg));
  part.write(0, "bad-cut-png.png", half(png));
  part.write(0, "bad-text.jpg", note);
  part.write(0, "bad-checksum.png", damaged);
  part.write(0, "plain-progressive.jpg", jpeg_bytes(image, {.progressive = true}));
  part.write(0, "plain-jpeg.dat", jpeg);
  part.write(0, ".hidden.jpg", jpeg);
  part.write(0, "notes.txt", note);
}

// Never beside other files: they would become part of the data set.
void claim(const std::string& directory) {
  namespace fs = std::filesystem;
  std::error_code trouble;
  if (fs::exists(directory) && !fs::is_directory(directory))
    throw BadFile(directory + ": is a file; name a new directory");
  fs::create_directories(directory, trouble);
  if (trouble) throw BadFile(directory + ": cannot be made: " + trouble.message());
  if (!fs::is_empty(directory))
    throw BadFile(directory + ": is not empty; name a new directory, or remove it");
}

void run(const Arguments& a) {
  const data::Split split = data::open_data(a.data, 0);
  if (split.train->image().height == 0)
    throw BadOption("--data " + a.data + ": these are files of sizes of their own already; name a data set");
  claim(a.directory);
  const std::vector<std::string>& classes = split.train->classes();
  for (const auto& [name, source, per_class] :
       {std::tuple{"train", split.train.get(), a.per_class},
        {"val", split.test.get(), std::max<int64_t>(1, a.per_class / 5)}}) {
    Part part(a, name, classes);
    write_part(*source, per_class, part);
    if (a.odd) write_odd(*source, part);
    part.finish();
  }
  if (a.tar) {
    std::string names;
    for (const std::string& c : classes) names += c + '\n';
    write_file(a.directory + "/classes.txt", {names.begin(), names.end()});
  }
  std::cout << "wrote " << a.directory << "; train on it with --data "
            << (a.tar ? "webdataset:" : "imagefolder:") << a.directory << '\n';
}

}  // namespace
}  // namespace skein

int main(int argc, char** argv) {
  try {
    const skein::Arguments arguments = skein::parse(argc, argv);
    if (arguments.help)
      std::cout << skein::kUsage;
    else
      skein::run(arguments);
  } catch (const std::exception& e) {
    std::cerr << "make_image_folder: " << e.what() << '\n';
    return dynamic_cast<const skein::BadOption*>(&e) ? 2 : 1;
  }
}
