// Partial, reduced decoding with libjpeg-turbo; its errors come back by longjmp.
#include "data/pictures/jpeg.h"

#include <csetjmp>
#include <cstdio>
// cstdio first: jpeglib.h needs FILE.
#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <cmath>

namespace skein::data {
namespace {

constexpr int kMostScans = 64;

struct JpegDecoder {
  jpeg_decompress_struct jpeg;
  jpeg_error_mgr errors;
  jpeg_progress_mgr progress{};
  std::jmp_buf escape;
  bool damaged = false, ended = false;  // ended: the data ended before the image did

  JpegDecoder() {
    jpeg.err = jpeg_std_error(&errors);
    jpeg.client_data = this;
    errors.error_exit = [](j_common_ptr j) {
      std::longjmp(static_cast<JpegDecoder*>(j->client_data)->escape, 1);
    };
    errors.output_message = [](j_common_ptr) {};
    // A warning means damage, except those that intact files are known to cause.
    errors.emit_message = [](j_common_ptr j, int level) {
      const int code = j->err->msg_code;
      const bool harmless =
          code == JWRN_EXTRANEOUS_DATA || code == JWRN_JFIF_MAJOR || code == JWRN_ADOBE_XFORM;
      auto* d = static_cast<JpegDecoder*>(j->client_data);
      if (level < 0 && !harmless) d->damaged = true;
      if (level < 0 && code == JWRN_JPEG_EOF) d->ended = true;
    };
    // Each scan of a progressive file goes over the whole picture. Ten are usual.
    progress.progress_monitor = [](j_common_ptr j) {
      if (reinterpret_cast<j_decompress_ptr>(j)->input_scan_number > kMostScans) j->err->error_exit(j);
    };
    jpeg.mem = nullptr;  // so that destroying is safe if creating fails
  }
  ~JpegDecoder() { jpeg_destroy_decompress(&jpeg); }
  JpegDecoder(const JpegDecoder&) = delete;
};

// A decoder that stops at the view's bottom never notices a missing end, so this searches for the marker.
// Entropy-coded data cannot contain it; what comes before the first scan (a thumbnail) can.
bool has_end(const jpeg_source_mgr& source) {
  const JOCTET* data = source.next_input_byte;
  for (size_t i = source.bytes_in_buffer; i >= 2; --i)
    if (data[i - 2] == 0xFF && data[i - 1] == JPEG_EOI) return true;
  return false;
}

// libjpeg's reductions by 2, 4 and 8 are vectorized; other factors are slower than no reduction.
int reduction(const Box& box, const ImageSize& out) {
  int by = 1;
  while (by < 8 && box.height >= 2.0 * by * out.height && box.width >= 2.0 * by * out.width) by *= 2;
  return by;
}

void cmyk_to_rgb(const uint8_t* cmyk, int pixels, bool inverted, uint8_t* rgb) {
  for (int i = 0; i < pixels; ++i)
    for (int c = 0; c < 3; ++c) {
      const int ink = cmyk[4 * i + c], black = cmyk[4 * i + 3];
      rgb[3 * i + c] = uint8_t(((inverted ? ink * black : (255 - ink) * (255 - black)) + 127) / 255);
    }
}

// Places `region`, reduced, in the decoder's output and says which of its pixels to read.
struct Window {
  int top, left, height, width;
  Window(const Region& r, int by, int all_height, int all_width)
      : top(r.top / by),
        left(r.left / by),
        height(std::min((r.top + r.height + by - 1) / by, all_height) - top),
        width(std::min((r.left + r.width + by - 1) / by, all_width) - left) {}
};

// Decodes from the header on. It has no locals with destructors, because libjpeg may longjmp out of any call.
void read_window(JpegDecoder& d, const View& view, const ImageSize& out, Picture& picture,
                 std::vector<uint8_t>& line) {
  jpeg_decompress_struct& j = d.jpeg;
  const Region region = region_of(view, int(j.image_height), int(j.image_width), out);
  const int by = reduction(region.box, out);
  const bool cmyk = j.jpeg_color_space == JCS_CMYK || j.jpeg_color_space == JCS_YCCK;
  j.scale_num = 1, j.scale_denom = unsigned(by);
  j.out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
  j.do_fancy_upsampling = FALSE;  // a quarter of the time; the resize that follows smooths as much
  jpeg_start_decompress(&j);
  const Window w(region, by, int(j.output_height), int(j.output_width));
  JDIMENSION left = JDIMENSION(w.left), width = JDIMENSION(w.width);
  jpeg_crop_scanline(&j, &left, &width);  // widens the range to whole blocks
  picture.height = w.height, picture.width = int(width);
  picture.box = {region.box.top / by - w.top, region.box.left / by - double(left), region.box.height / by,
                 region.box.width / by};
  picture.bytes.resize(size_t(w.height) * width * 3);
  if (cmyk) line.resize(size_t(width) * 4);
  if (w.top > 0) jpeg_skip_scanlines(&j, JDIMENSION(w.top));
  // Reads several lines at once: asked for one, libjpeg decodes two if chroma is halved, and
  // copies the second later.
  constexpr int kLines = 16;
  JSAMPROW rows[kLines];
  for (int y = 0; y < w.height && !d.damaged;) {
    uint8_t* rgb = &picture.bytes[size_t(y) * width * 3];
    const int n = cmyk ? 1 : std::min(kLines, w.height - y);
    for (int i = 0; i < n; ++i) rows[i] = cmyk ? line.data() : rgb + size_t(i) * width * 3;
    y += int(jpeg_read_scanlines(&j, rows, JDIMENSION(n)));
    if (cmyk) cmyk_to_rgb(line.data(), int(width), j.saw_Adobe_marker, rgb);
  }
}

}  // namespace

bool is_jpeg(const uint8_t* file, size_t bytes) {
  return bytes >= 3 && file[0] == 0xFF && file[1] == 0xD8 && file[2] == 0xFF;
}

bool decode_jpeg(const uint8_t* file, size_t bytes, const View& view, const ImageSize& out,
                 Picture& picture) {
  thread_local std::vector<uint8_t> line;
  JpegDecoder d;
  const auto fails = [&] {
    picture.odd = d.ended ? kTruncated : kUndecodable;
    return false;
  };
  if (setjmp(d.escape)) return fails();
  jpeg_create_decompress(&d.jpeg);
  d.jpeg.mem->max_memory_to_use = long(kMostPictureBytes);
  d.jpeg.progress = &d.progress;
  jpeg_mem_src(&d.jpeg, file, bytes);
  jpeg_read_header(&d.jpeg, TRUE);
  d.ended = d.ended || !has_end(*d.jpeg.src);
  if (d.ended || int64_t(d.jpeg.image_height) * d.jpeg.image_width > kMostPixels) return fails();
  read_window(d, view, out, picture, line);
  const J_COLOR_SPACE colors = d.jpeg.jpeg_color_space;
  picture.odd = colors == JCS_GRAYSCALE ? kGray : colors == JCS_CMYK || colors == JCS_YCCK ? kCmyk : 0;
  return !d.damaged || fails();
}

}  // namespace skein::data
