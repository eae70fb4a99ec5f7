// Compares the models that trainings have written.
#pragma once
#include <cmath>
#include <filesystem>

#include "apps/model/safetensors.h"
#include "tests/support/numbers/difference.h"

namespace skein::testing_programs {

// The largest difference between the models of two runs' directories, over all their floats.
inline double models_differ(const std::filesystem::path& a, const std::filesystem::path& b) {
  const auto x = apps::read_safetensors((a / "model.safetensors").string()),
             y = apps::read_safetensors((b / "model.safetensors").string());
  double worst = 0;
  for (const auto& [name, t] : x.tensors)
    for (int64_t i = 0; t.dtype() == kF32 && i < t.size(); ++i)
      worst =
          differences::worse(worst, std::abs(double(t.data<float>()[i]) - y.find(name)->data<float>()[i]));
  return worst;
}

}  // namespace skein::testing_programs
