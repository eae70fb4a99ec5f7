// Our files in torchvision and torchvision's files here give the same logits, through the program. Needs
// torch and torchvision in the system's Python.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "apps/model/vectors.h"
#include "apps/model/weights.h"
#include "tests/support/numbers/difference.h"
#include "tests/support/program.h"
#include "tests/support/random_model.h"

namespace skein::apps {
namespace {

using testing_programs::Ended;
using testing_programs::Workplace;

constexpr int kSide = 56, kPictureSide = 64;  // evaluation sees the center, without resampling

// Largest difference, relative to the largest number if that is above 1.
double error(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.size(), b.size());
  double worst = 0, scale = 1;
  for (int64_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double x = a.data<float>()[i], y = b.data<float>()[i];
    worst = differences::worse(worst, std::abs(x - y)), scale = std::max(scale, std::abs(y));
    EXPECT_TRUE(std::isfinite(x) && std::isfinite(y));
  }
  return worst / scale;
}

// The logits must depend on the picture, or equal ones say little.
double spread(const Tensor& logits, int64_t classes) {
  double most = 0;
  for (int64_t i = classes; i < logits.size(); ++i)
    most = std::max(most, std::abs(double(logits.data<float>()[i]) - logits.data<float>()[i % classes]));
  return most;
}

TEST(Torchvision, LoadsOurFilesStrictlyAndOursLoadsItsWithTheSameLogits) {
  const Workplace w;
  const std::vector<std::string> models = {"resnet18", "resnet34", "resnet50", "vgg16-bn"};
  testing::write_pictures(w.path() / "pictures", 3, kPictureSide, 7);
  std::string line =
      "/usr/bin/python3 '" SKEIN_SOURCE_DIR "/tests/torchvision_weights.py' . " + std::to_string(kSide);
  for (const std::string& name : models) {
    const auto net = testing::random_model(name, {kSide, kSide, 3, 7}, 11);
    export_model(w.path() / ("ours-" + name + ".safetensors"), *net,
                 {.model = name, .classes = {}, .steps = 3, .more = {}});
    line += " " + name;
  }
  if (w.run("test -x /usr/bin/python3").status != 0) GTEST_SKIP() << "skipped: no /usr/bin/python3";
  const Ended torch = w.run(line);
  if (torch.status == 77) GTEST_SKIP() << "skipped: " << torch.out;
  ASSERT_EQ(torch.status, 0) << torch.out << torch.err;
  for (const std::string& name : models)
    for (const std::string whose : {"ours-", "theirs-"}) {
      const Ended e = w.run("$TRAIN --predict pictures --image-size " + std::to_string(kSide) +
                            " --weights " + whose + name + ".safetensors --logits here.npy");
      ASSERT_EQ(e.status, 0) << e.err;
      const Tensor here = read_vectors(w.path() / "here.npy").flat,
                   there = read_vectors(w.path() / (whose + name + ".npy")).flat;
      EXPECT_LT(error(here, there), 1e-4) << whose << name;
      EXPECT_GT(spread(there, 7), 1e-2) << whose << name;
      std::cout << whose << name << ": off by " << error(here, there) << '\n';
    }
}

}  // namespace
}  // namespace skein::apps
