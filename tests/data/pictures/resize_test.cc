// Resizing against a slow reference.
#include "data/pictures/resize.h"

#include <algorithm>
#include <cmath>

#include "engine/words/hash.h"
#include "tests/support/pictures.h"

namespace skein::data {
namespace {

TEST(Resize, AgreesWithASlowReference) {
  for (const int channels : {1, 3, 4})
    for (const auto& [h, w, box, out_h, out_w] : std::vector<std::tuple<int, int, Box, int, int>>{
             {23, 31, {0, 0, 23, 31}, 7, 9},          // reduce
             {8, 5, {0, 0, 8, 5}, 19, 13},            // enlarge
             {30, 20, {3, 4, 20, 10}, 11, 17},        // a part, both
             {16, 16, {1.25, 2.5, 9.7, 11.3}, 8, 8},  // off the pixel grid
             {40, 3, {0, 0, 40, 3}, 1, 1},
             {1, 1, {0, 0, 1, 1}, 3, 2}}) {
      const Raster from{h, w, channels, noise(size_t(h * w * channels))};
      const ImageSize out{out_h, out_w, channels};
      for (const bool mirror : {false, true}) {
        Raster to{out_h, out_w, channels, Bytes(size_t(out_h * out_w * channels))};
        resize(pixels_of(from), box, mirror, out, to.bytes.data());
        for (int y = 0; y < out_h; ++y)
          for (int x = 0; x < out_w; ++x)
            for (int c = 0; c < channels; ++c)
              ASSERT_NEAR(to.at(y, mirror ? out_w - 1 - x : x, c), resampled(from, box, out, y, x, c), 0.51)
                  << h << 'x' << w << " to " << out_h << 'x' << out_w << " at " << y << ' ' << x << ' ' << c;
      }
    }
}

// Recorded from g++ with AVX2. Vectors of any width must give these bytes, so that a training does not depend
// on its processor; the same without fused products are others.
TEST(Resize, GivesTheSameBytesOnEveryProcessor) {
#if defined(__clang__) || !defined(__x86_64__)
  GTEST_SKIP() << "skipped: recorded from g++ on x86";
#endif
  const Box whole{0, 0, 240, 317};
  const std::vector<std::tuple<Box, int, int>> cases = {{whole, 97, 131},
                                                        {whole, 500, 411},
                                                        {whole, 31, 803},
                                                        {{7.3, 21.7, 201.9, 177.1}, 224, 223},
                                                        {{50.5, 3.1, 60.2, 91.4}, 301, 29}};
  for (const auto& [channels, want] : {std::pair<int, const char*>(1, "b762028dcbc24a15"),
                                       {3, "c71c57a180eaa449"},
                                       {4, "5da4b7204d9c7ac5"}}) {
    const Raster from{240, 317, channels, noise(size_t(240 * 317 * channels))};
    std::string all;
    for (const auto& [box, h, w] : cases)
      for (const bool mirror : {false, true}) {
        Bytes to(size_t(h * w * channels));
        resize(pixels_of(from), box, mirror, {h, w, channels}, to.data());
        all.append(to.begin(), to.end());
      }
    EXPECT_EQ(fingerprint(all), want) << channels;
  }
}

TEST(Resize, KeepsAConstantAndTheIdentity) {
  const Raster white{37, 53, 3, Bytes(37 * 53 * 3, 255)};
  Bytes small(11 * 13 * 3);
  resize(pixels_of(white), {0, 0, 37, 53}, false, {11, 13, 3}, small.data());
  EXPECT_EQ(small, Bytes(11 * 13 * 3, 255));
  const Raster any{9, 7, 3, noise(9 * 7 * 3)};
  Bytes same(9 * 7 * 3);
  resize(pixels_of(any), {0, 0, 9, 7}, false, {9, 7, 3}, same.data());
  EXPECT_EQ(same, any.bytes);
}

}  // namespace
}  // namespace skein::data
