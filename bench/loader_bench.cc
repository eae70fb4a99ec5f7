// The loader on one core: decode, random-resized-crop to 224, flip, normalize; images a second.
//
//   loader_bench DIRECTORY [SECONDS]        DIRECTORY/CLASS/*.jpg, two classes at least, in the page cache
//
// bench/loader makes such a directory and compares this with Pillow and torchvision. There are two
// rates: by wall time, and by processor seconds, which other programs on the machine do not change. The
// best of five spans counts.
#include <omp.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "bench/stopwatch.h"
#include "data/loader.h"
#include "data/pictures/encoded.h"
#include "data/pictures/picture.h"
#include "data/reading.h"
#include "engine/ops.h"

using namespace skein;

namespace {

constexpr data::ImageSize kOut{224, 224, 3};
constexpr int64_t kBatch = 64;

// `some` processes a few images and returns how many.
void measure(const char* name, double seconds, const std::function<int64_t()>& some) {
  some();
  double by_wall = 0, by_processor = 0;
  for (int span = 0; span < 5; ++span) {
    const double from = bench::wall_seconds(), busy = bench::cpu_seconds();
    int64_t n = 0;
    do n += some();
    while (bench::wall_seconds() - from < seconds / 5);
    by_wall = std::max(by_wall, double(n) / (bench::wall_seconds() - from));
    by_processor = std::max(by_processor, double(n) / (bench::cpu_seconds() - busy));
  }
  std::printf("%-60s %7.0f img/s %7.0f img/s by processor time\n", name, by_wall, by_processor);
  std::fflush(stdout);
}

struct Files {
  std::vector<data::Bytes> bytes;
  explicit Files(const data::DataSource& source) {
    for (int64_t i = 0; i < source.size(); ++i)
      if (!data::read_raw(source.name(i), data::kMostPictureBytes, bytes.emplace_back()))
        throw BadFile(source.name(i) + ": cannot be read");
  }
};

void run(const std::string& directory, double seconds) {
  const data::Split split = data::open_data("imagefolder:" + directory, 0);
  const data::DataSource& source = *split.train;
  const Files files(source);
  const int64_t n = source.size();
  const auto view_of = [](int64_t i) { return data::train_view(data::Augment::kRegion, 1, i, i, kOut); };
  data::Bytes pixels(size_t(kOut.height) * kOut.width * 3);
  int64_t at = 0;
  const auto drawn = [&](const data::View& v, const data::ImageSize& out) {
    const size_t i = size_t(at++ % n);
    if (!data::draw_encoded(files.bytes[i], "x.jpg", v, out, pixels.data()))
      throw BadFile(source.name(int64_t(i)));
    return int64_t(1);
  };
  data::reading() = {};
  measure("decode the crop, resize, flip (in memory, u8)", seconds, [&] { return drawn(view_of(at), kOut); });
  const data::StageSeconds s = data::reading().seconds;
  std::printf("  of which decoding %.3f ms, resizing %.3f ms an image\n", 1e3 * s.decode / double(at),
              1e3 * s.resize / double(at));
  measure("resize 256, center crop (evaluation)", seconds,
          [&] { return drawn(data::eval_view(source.image(), kOut), kOut); });

  const data::Plan plan{[](int64_t) { return kBatch; },
                        [n](int64_t k, int64_t row) { return (k * kBatch + row) % n; },
                        [&](int64_t k, int64_t row, int64_t) { return view_of(k * kBatch + row); }};
  data::Loader loader(source, plan, kOut, 0, 1 << 30, kCpu, 1, 1);
  const std::vector<float> mean = source.mean(), deviation = source.std();
  measure("loader: read, decode, crop 224, flip, normalize to float", seconds, [&] {
    const data::Batch b = loader.next();
    const Tensor x = normalize_image(b.images, mean, deviation, kF32);
    return b.size();
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: loader_bench DIRECTORY [SECONDS]\n");
    return 2;
  }
  try {
    omp_set_num_threads(1);
    run(argv[1], argc > 2 ? std::atof(argv[2]) : 5);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "loader_bench: %s\n", e.what());
    return 1;
  }
}
