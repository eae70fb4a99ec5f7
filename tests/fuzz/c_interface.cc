// What a program says through the C interface. Its pointers are good, since bad ones cannot be recognized.
#include <cmath>

#include "apps/embed/c/skein_c.h"
#include "tests/fuzz/fuzz.h"

namespace skein::fuzz {
namespace {

constexpr int64_t kMostParameters = 300;

skein_status sound(skein_status s) {
  require(s >= SKEIN_OK && s <= SKEIN_GRADIENT_FAILED, "a status that there is not");
  require(s == SKEIN_OK || *skein_last_error() != 0, "a failure without words");
  may_refuse([&] {
    if (s == SKEIN_ERROR) throw Error(skein_last_error());
  });
  return s;
}

skein_job* alone() {
  skein_job* job = nullptr;
  require(sound(skein_join(&job, nullptr, 0)) == SKEIN_OK, skein_last_error());
  return job;
}

// "name=value" on each line, until an empty one. Long numbers would only be large.
struct Words {
  std::vector<std::string> names, values;
  explicit Words(Input& in) {
    for (std::string line = in.line(); !line.empty() && names.size() < 8; line = in.line()) {
      const size_t at = std::min(line.find('='), line.size());
      const std::string value = line.substr(std::min(at + 1, line.size()));
      if (std::count_if(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; }) > 3)
        continue;
      names.push_back(line.substr(0, at)), values.push_back(value);
    }
  }
  std::vector<skein_option> options() const {
    std::vector<skein_option> all;
    for (size_t i = 0; i < names.size(); ++i) all.push_back({names[i].c_str(), values[i].c_str()});
    return all;
  }
};

int gradient(void* context, float* loss) {
  *loss = 1;
  return *static_cast<const uint8_t*>(context) & 1;
}

void call(skein_worker* w, Input& in) {
  const uint8_t how = in.byte();
  uint8_t fails = how >> 7;
  float loss = 0;
  double figure = 0;
  switch (how % 7) {
    case 0:
    case 1:
      return void(sound(skein_step(w, gradient, &fails, how & 32 ? &loss : nullptr)));
    case 2:
      return void(sound(skein_set_rate(w, in.number<float>())));
    case 3:
      return void(sound(skein_ready(w, in.number<uint16_t>())));
    case 4:
      return void(sound(skein_figure(w, in.some(how >> 3).c_str(), &figure)));
    case 5:
      return void(sound(how & 32 ? skein_show_model(w) : skein_hide_model(w)));
    case 6:
      return void(sound(skein_load(w, (scratch() + "/nowhere").c_str())));
  }
}

}  // namespace

// The algorithm and options, a line each, an empty one; parts; calls.
void c_interface(Input in) {
  static skein_job* const job = alone();
  const std::string algorithm = in.line();
  const Words words(in);
  const std::vector<skein_option> options = words.options();
  std::vector<float> x(size_t(in.number<uint16_t>()) % kMostParameters, 0.5f), g = x, buffers(in.byte() & 1);
  std::vector<skein_part> parts(in.byte() % 4);
  for (skein_part& p : parts) {
    const uint8_t how = in.byte();
    p = {how & 1 ? in.byte() : in.number<int64_t>(), how & 2 ? in.byte() : in.number<int64_t>(), how & 4,
         how & 8};
  }
  const skein_vectors v{.parameters = x.data(),
                        .parameter_count = int64_t(x.size()),
                        .gradient = g.data(),
                        .buffers = buffers.empty() ? nullptr : buffers.data(),
                        .buffer_count = int64_t(buffers.size()),
                        .parts = parts.data(),
                        .part_count = parts.size()};
  skein_worker* w = nullptr;
  if (sound(skein_worker_new(&w, job, algorithm.c_str(), &v, options.data(), options.size())) != SKEIN_OK)
    return;
  for (int n = 0; in.left() > 0 && n < 12; ++n) call(w, in);
  double apart = 0;
  if (sound(skein_finish(w, &apart)) == SKEIN_OK) require(!(apart > 0), "one worker is apart from itself");
  skein_worker_end(w);
}

}  // namespace skein::fuzz
