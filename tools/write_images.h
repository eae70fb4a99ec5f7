// Makes JPEG and PNG files of every sort, for tests and for folders to try things on.
#pragma once
#include <cstdint>
#include <cstdio>
// cstdio first: jpeglib.h needs FILE.
#include <jpeglib.h>
#include <png.h>

#include <fstream>
#include <string>
#include <vector>

#include "engine/base.h"

namespace skein {

// HWC bytes with 1, 2, 3 or 4 channels.
struct Raster {
  int height = 0, width = 0, channels = 0;
  std::vector<uint8_t> bytes = {};
  uint8_t& at(int y, int x, int c) { return bytes[size_t((y * width + x) * channels + c)]; }
  uint8_t at(int y, int x, int c) const { return bytes[size_t((y * width + x) * channels + c)]; }
};

inline void write_file(const std::string& path, const std::vector<uint8_t>& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
  if (!file.flush()) throw BadFile(path + ": cannot be written");
}

struct JpegOptions {
  int quality = 95;
  bool progressive = false;
  bool subsampled = false;  // 4:2:0
};
// One channel: gray; three: RGB stored as YCbCr; four: CMYK as Adobe stores it, inverted.
inline std::vector<uint8_t> jpeg_bytes(const Raster& image, const JpegOptions& options = {}) {
  jpeg_compress_struct jpeg;
  jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* out = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &out, &size);
  jpeg.image_width = JDIMENSION(image.width), jpeg.image_height = JDIMENSION(image.height);
  jpeg.input_components = image.channels;
  jpeg.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : image.channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, options.quality, TRUE);
  if (!options.subsampled) jpeg.comp_info[0].h_samp_factor = jpeg.comp_info[0].v_samp_factor = 1;
  if (options.progressive) jpeg_simple_progression(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  for (int y = 0; y < image.height; ++y) {
    JSAMPROW row = const_cast<uint8_t*>(&image.bytes[size_t(y * image.width * image.channels)]);
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  std::vector<uint8_t> bytes(out, out + size);
  jpeg_destroy_compress(&jpeg);
  std::free(out);
  return bytes;
}

struct PngOptions {
  int depth = 8;  // 16: each byte is written twice, which is the same brightness
  bool interlaced = false;
  std::vector<png_color> palette = {};  // not empty: one channel of indices
};
// One channel: gray or palette; two: gray and alpha; three: RGB; four: RGBA.
inline std::vector<uint8_t> png_bytes(const Raster& image, const PngOptions& options = {}) {
  constexpr int kTypes[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                            PNG_COLOR_TYPE_RGBA};
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  std::vector<uint8_t> bytes;
  png_set_write_fn(
      png, &bytes,
      [](png_structp p, png_bytep data, size_t n) {
        auto* to = static_cast<std::vector<uint8_t>*>(png_get_io_ptr(p));
        to->insert(to->end(), data, data + n);
      },
      nullptr);
  const int type = options.palette.empty() ? kTypes[image.channels - 1] : PNG_COLOR_TYPE_PALETTE;
  png_set_IHDR(png, info, unsigned(image.width), unsigned(image.height), options.depth, type,
               options.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  if (!options.palette.empty()) png_set_PLTE(png, info, options.palette.data(), int(options.palette.size()));
  png_write_info(png, info);
  const int wide = options.depth / 8, row = image.width * image.channels;
  std::vector<uint8_t> samples(image.bytes.size() * size_t(wide));
  for (size_t i = 0; i < samples.size(); ++i) samples[i] = image.bytes[i / size_t(wide)];
  std::vector<png_bytep> rows;
  for (int y = 0; y < image.height; ++y) rows.push_back(&samples[size_t(y * row * wide)]);
  png_write_image(png, rows.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return bytes;
}

}  // namespace skein
