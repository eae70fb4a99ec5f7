// Reading with libpng from memory; its errors come back by longjmp.
#include "data/pictures/png.h"

#include <png.h>

#include <algorithm>
#include <cstring>

namespace skein::data {
namespace {

struct Input {
  const uint8_t* at;
  size_t left;
  bool ended = false;  // the decoder asked for more bytes
};

struct PngDecoder {
  png_structp png;
  png_infop info;
  PngDecoder()
      : png(png_create_read_struct(
            PNG_LIBPNG_VER_STRING, nullptr, [](png_structp p, png_const_charp) { png_longjmp(p, 1); },
            [](png_structp, png_const_charp) {})),
        info(png ? png_create_info_struct(png) : nullptr) {
    if (!info) throw Error("libpng gives no decoder: out of memory, or another version than compiled for");
  }
  ~PngDecoder() { png_destroy_read_struct(&png, &info, nullptr); }
  PngDecoder(const PngDecoder&) = delete;
};

void read_input(png_structp png, png_bytep to, size_t bytes) {
  auto* input = static_cast<Input*>(png_get_io_ptr(png));
  if (bytes > input->left) {
    input->ended = true;
    png_error(png, "ends early");
  }
  std::memcpy(to, input->at, bytes);
  input->at += bytes, input->left -= bytes;
}

OddSet what_is_odd(png_structp png, png_infop info) {
  const int type = png_get_color_type(png, info);
  const bool see_through = type & PNG_COLOR_MASK_ALPHA || png_get_valid(png, info, PNG_INFO_tRNS);
  return OddSet((png_get_bit_depth(png, info) == 16 ? kSixteenBit : 0) | (see_through ? kTransparent : 0) |
                (type == PNG_COLOR_TYPE_PALETTE ? kPalette
                 : type & PNG_COLOR_MASK_COLOR  ? 0
                                                : kGray));
}

// Converts any kind of PNG to 8-bit RGB. Returns the number of passes that an interlaced file needs.
int ask_for_rgb(png_structp png, png_infop info) {
  png_set_scale_16(png);
  png_set_expand(png);
  png_set_gray_to_rgb(png);
  png_set_strip_alpha(png);
  const int passes = png_set_interlace_handling(png);
  png_read_update_info(png, info);
  return passes;
}

// It has no locals with destructors, because libpng may longjmp out of any call.
bool read_picture(PngDecoder& d, Picture& picture) {
  png_read_info(d.png, d.info);
  const int64_t height = png_get_image_height(d.png, d.info), width = png_get_image_width(d.png, d.info);
  if (height * width > kMostPixels || height * width * 3 > kMostPictureBytes) return false;
  picture.odd = what_is_odd(d.png, d.info);
  const int passes = ask_for_rgb(d.png, d.info);
  CHECK(png_get_rowbytes(d.png, d.info) == size_t(width) * 3);
  picture.height = int(height), picture.width = int(width);
  picture.bytes.resize(size_t(height * width) * 3);
  for (int pass = 0; pass < passes; ++pass)
    for (int64_t y = 0; y < height; ++y) png_read_row(d.png, &picture.bytes[size_t(y * width) * 3], nullptr);
  return true;
}

}  // namespace

bool is_png(const uint8_t* file, size_t bytes) { return bytes >= 8 && png_sig_cmp(file, 0, 8) == 0; }

bool decode_png(const uint8_t* file, size_t bytes, const View& view, const ImageSize& out, Picture& picture) {
  Input input{file, bytes, false};
  PngDecoder d;
  const auto fails = [&] {
    picture.odd = input.ended ? kTruncated : kUndecodable;
    return false;
  };
  if (setjmp(png_jmpbuf(d.png))) return fails();
  png_set_read_fn(d.png, &input, read_input);
  if (!read_picture(d, picture)) return fails();
  picture.box = region_of(view, picture.height, picture.width, out).box;
  return true;
}

std::vector<uint8_t> encode_png(const uint8_t* pixels, const ImageSize& size) {
  CHECK(size.channels == 1 || size.channels == 3, size.channels);
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = png_uint_32(size.width), image.height = png_uint_32(size.height);
  image.format = size.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  std::vector<uint8_t> file(PNG_IMAGE_PNG_SIZE_MAX(image));
  png_alloc_size_t bytes = file.size();
  CHECK(png_image_write_to_memory(&image, file.data(), &bytes, 0, pixels, 0, nullptr) != 0, image.message);
  file.resize(bytes);
  return file;
}

}  // namespace skein::data
