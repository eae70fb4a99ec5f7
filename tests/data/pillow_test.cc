// Our decoding, cropping and resizing against Pillow's on the same boxes of the
// same files: they differ by at most one gray level on average. Pillow's results
// are in tests/fixtures/pillow (tools/make_image_fixtures.py).
#include <cmath>
#include <fstream>
#include <sstream>

#include "data/pictures/encoded.h"
#include "data/pictures/jpeg.h"
#include "data/pictures/png.h"
#include "tests/support/data_files.h"

namespace skein::data {
namespace {

const std::string kPlace = SKEIN_SOURCE_DIR "/tests/fixtures/pillow/";

struct Case {
  std::string kind, jpeg, png;
  Box box;
  int side = 0;
};
std::vector<Case> cases() {
  std::vector<Case> all;
  std::ifstream in(kPlace + "views.txt");
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    Case& c = all.emplace_back();
    words >> c.kind >> c.jpeg >> c.box.top >> c.box.left >> c.box.height >> c.box.width >> c.side >> c.png;
  }
  return all;
}
Bytes file(const std::string& name) {
  Bytes b;
  EXPECT_TRUE(read_raw(kPlace + name, 1 << 26, b)) << name;
  return b;
}

TEST(Pillow, IsAGrayLevelAwayAtMost) {
  int crops = 0, boxes = 0;
  for (const Case& c : cases()) {
    const Bytes jpeg = file(c.jpeg), png = file(c.png);
    const ImageSize out{c.side, c.side, 3};
    Picture image, expected;
    // The output is larger than any image, so that nothing is reduced in the transform.
    ASSERT_TRUE(decode_jpeg(jpeg.data(), jpeg.size(), View{}, {4096, 4096, 3}, image));
    ASSERT_TRUE(decode_png(png.data(), png.size(), View{}, out, expected));
    Bytes got(expected.bytes.size());
    if (c.kind == "crop") {
      View v;
      v.kind = View::kRegion;
      v.area.fill(float(c.box.height * c.box.width / (double(image.height) * image.width)));
      v.log_aspect.fill(float(std::log(c.box.width / c.box.height)));
      v.at_y = float((c.box.top + 0.5) / (image.height - c.box.height + 1));
      v.at_x = float((c.box.left + 0.5) / (image.width - c.box.width + 1));
      ASSERT_EQ(region_of(v, image.height, image.width, out).box, c.box);
      ASSERT_TRUE(draw_encoded(jpeg, c.jpeg, v, out, got.data()));
      ++crops;
    } else {
      resize(image.pixels(), c.box, false, out, got.data());
      ++boxes;
    }
    double sum = 0;
    for (size_t i = 0; i < got.size(); ++i) sum += std::abs(int(got[i]) - int(expected.bytes[i]));
    EXPECT_LE(sum / double(got.size()), 1) << c.kind << ' ' << c.png;
    std::printf("%s %s: mean difference %.3f\n", c.kind.c_str(), c.png.c_str(), sum / double(got.size()));
  }
  EXPECT_EQ(crops, 12);
  EXPECT_EQ(boxes, 4);
}

}  // namespace
}  // namespace skein::data
