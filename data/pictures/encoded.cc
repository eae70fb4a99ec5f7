// Chooses the decoder by the content, then compares it with the name.
#include "data/pictures/encoded.h"

#include <cctype>
#include <cstring>

#include "data/pictures/jpeg.h"
#include "data/pictures/png.h"
#include "data/reading.h"

namespace skein::data {

std::string lower_suffix(const std::string& name) {
  const size_t dot = name.find_last_of("./");
  if (dot == std::string::npos || name[dot] == '/' || dot == 0 || name[dot - 1] == '/') return "";
  std::string suffix = name.substr(dot);
  for (char& c : suffix) c = char(std::tolower(static_cast<unsigned char>(c)));
  return suffix;
}

bool is_jpeg_suffix(const std::string& s) { return s == ".jpg" || s == ".jpeg" || s == ".jpe"; }

namespace {

// Names the formats that are often found under an image's suffix.
const char* what_instead(const Bytes& file) {
  const auto begins = [&](size_t at, const char* with) {
    const size_t n = std::strlen(with);
    return file.size() >= at + n && std::memcmp(file.data() + at, with, n) == 0;
  };
  if (begins(0, "RIFF") && begins(8, "WEBP")) return "WebP, not JPEG or PNG";
  if (begins(0, "GIF8")) return "GIF, not JPEG or PNG";
  if (begins(0, "BM")) return "BMP, not JPEG or PNG";
  if (begins(0, "II*") || begins(0, "MM")) return "TIFF, not JPEG or PNG";
  if (begins(4, "ftyp")) return "HEIF or AVIF, not JPEG or PNG";
  if (begins(0, "<")) return "HTML or SVG, not JPEG or PNG";
  return "neither JPEG nor PNG";
}

bool decode_and_draw(const Bytes& file, const std::string& name, const View& view, const ImageSize& out,
                     uint8_t* pixels, Picture& picture) {
  Reading& r = reading();
  const bool jpeg = is_jpeg(file.data(), file.size()), png = is_png(file.data(), file.size());
  if (!jpeg && !png) {
    r.odd |= file.empty() ? kEmpty : kUndecodable;
    if (!file.empty()) r.why = what_instead(file);
    return false;
  }
  picture.odd = 0;
  bool good;
  {
    const Stage decoding(r.seconds.decode);
    good = (jpeg ? decode_jpeg : decode_png)(file.data(), file.size(), view, out, picture);
  }
  r.odd |= picture.odd;
  const std::string suffix = lower_suffix(name);
  if (jpeg ? suffix == ".png" : is_jpeg_suffix(suffix)) r.odd |= kMisnamed;
  if (!good) return false;
  const Stage resizing(r.seconds.resize);
  draw(view, picture, out, pixels);
  return true;
}

}  // namespace

bool draw_encoded(const Bytes& file, const std::string& name, const View& view, const ImageSize& out,
                  uint8_t* pixels) {
  thread_local Picture picture;
  const bool good = decode_and_draw(file, name, view, out, pixels, picture);
  if (picture.bytes.capacity() > kKeptBytes) picture = {};
  return good;
}

}  // namespace skein::data
