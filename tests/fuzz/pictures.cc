// Image files, as a thread of the loader reads them.
#include "data/pictures/encoded.h"
#include "tests/fuzz/fuzz.h"

namespace skein::fuzz {

void image(Input in) {
  const uint8_t how = in.byte();
  const float area = float(in.byte()) / 256, aspect = float(in.byte()) / 128 - 1;
  data::View v;
  v.kind = data::View::Kind(how & 3);
  v.mirror = how & 4;
  v.resize_to = 32, v.pad = 2, v.shift_x = 1, v.shift_y = 3;
  v.area.fill(0.08f + 0.9f * area);
  v.log_aspect.fill(0.28f * aspect);
  v.at_y = float(in.byte()) / 256, v.at_x = float(in.byte()) / 256;
  const std::string bytes = in.rest();
  const data::Bytes file(bytes.begin(), bytes.end());
  std::vector<uint8_t> pixels(24 * 24 * 3);
  may_refuse([&] {
    (void)data::draw_encoded(file, how & 8 ? "a.png" : "a.jpg", v, {24, 24, 3}, pixels.data());
  });
}

}  // namespace skein::fuzz
