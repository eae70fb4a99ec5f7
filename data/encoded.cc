// Content first, name second.
#include "data/encoded.h"

#include <cctype>

#include "data/jpeg.h"
#include "data/png.h"
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

bool draw_encoded(const Bytes& file, const std::string& name, const View& view, const ImageSize& out,
                  uint8_t* pixels) {
  thread_local Picture picture;
  Reading& r = reading();
  const bool jpeg = is_jpeg(file.data(), file.size()), png = is_png(file.data(), file.size());
  if (!jpeg && !png) {
    r.odd |= file.empty() ? kEmpty : kUndecodable;
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

}  // namespace skein::data
