// Models for tests of files: everything is random, running statistics too, so that no layer
// is trivial. Also pictures.
#pragma once
#include <filesystem>
#include <memory>
#include <string>

#include "engine/random.h"
#include "nn/models.h"
#include "tools/write_images.h"

namespace skein::testing {

// He normal weights, and norms whose scale, shift, mean and variance differ from channel to channel.
inline std::unique_ptr<nn::Module> random_model(const std::string& name, const nn::Input& in, uint64_t seed) {
  auto m = nn::make_model(name, in);
  nn::initialize(*m, seed);
  uint64_t k = 0;
  const auto fill = [&](const Tensor& t, float low, float high) {
    fill_uniform(t, {seed, Purpose::kTest, k++, 0}, low, high);
  };
  for (nn::Param* p : m->params())
    if (!p->decays)
      fill(p->value, p->name.ends_with("bias") ? -0.4f : 0.6f, p->name.ends_with("bias") ? 0.4f : 1.1f);
  fill(m->params()[m->params().size() - 2]->value, -0.2f, 0.2f);  // the classifier, which starts near zero
  for (nn::Buffer* b : m->buffers()) fill(b->value, b->start == 0 ? -0.3f : 0.5f, b->start == 0 ? 0.3f : 2.f);
  m->set_training(false);
  return m;
}

// Small, but large enough that maps are not reduced to 1x1 earlier than usual, and that vgg16-bn's
// pool has uneven windows.
inline int side_of(const std::string& name) {
  return name == "vgg16-bn" ? 96 : name == "vgg16-bn-cifar" ? 64 : name.starts_with("resnet") ? 40 : 28;
}

inline std::vector<const char*> model_names() {
  std::vector<const char*> all;
  for (const nn::ModelRow& row : nn::models()) all.push_back(row.name);
  return all;
}

// PNG files of smooth random colors.
inline void write_pictures(const std::string& directory, int count, int side, uint64_t seed) {
  std::filesystem::create_directories(directory);
  for (int n = 0; n < count; ++n) {
    Raster r{side, side, 3, std::vector<uint8_t>(size_t(side) * size_t(side) * 3)};
    const Draw draw{seed, Purpose::kTest, uint64_t(n), 1};
    for (int y = 0; y < side; ++y)
      for (int x = 0; x < side; ++x)
        for (int c = 0; c < 3; ++c)
          r.at(y, x, c) = uint8_t(127.5f + 60 * std::sin(float(x + y * (c + 1)) / 9 + float(n)) +
                                  60 * draw.unit(uint64_t((y / 4 * side + x / 4) * 3 + c)));
    skein::write_file(directory + "/" + std::to_string(n) + ".png", png_bytes(r));
  }
}

// DIRECTORY/{train,val}/CLASS/N.png
inline void write_folder(const std::filesystem::path& directory, const std::vector<std::string>& classes) {
  for (size_t i = 0; i < classes.size(); ++i) {
    write_pictures(directory / "train" / classes[i], 8, 20, 2 * i);
    write_pictures(directory / "val" / classes[i], 4, 20, 2 * i + 1);
  }
}

}  // namespace skein::testing
