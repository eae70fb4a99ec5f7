// Runs batches of pictures through a saved model and prints its predictions as a table or as JSON.
#include "apps/model/predict.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

#include "apps/base/printable.h"
#include "apps/base/writable.h"
#include "apps/launch/device_choice.h"
#include "apps/launch/placement.h"
#include "apps/model/picture_files.h"
#include "apps/model/saved_model.h"
#include "apps/model/vectors.h"
#include "data/loader.h"
#include "engine/ops.h"
#include "engine/tape.h"
#include "engine/words/json.h"

namespace skein::apps {
namespace {

struct Guess {
  int64_t index = 0;
  double probability = 0;
};

// The `top` largest of softmax(logits), largest first; the earlier class first if equal.
std::vector<Guess> best(const float* logits, int64_t classes, int64_t top) {
  const double largest = *std::max_element(logits, logits + classes);
  std::vector<Guess> all;
  double sum = 0;
  for (int64_t i = 0; i < classes; ++i) {
    all.push_back({i, std::exp(double(logits[i]) - largest)});
    sum += all.back().probability;
  }
  const auto end = all.begin() + std::min(top, classes);
  std::partial_sort(all.begin(), end, all.end(), [](const Guess& a, const Guess& b) {
    return a.probability != b.probability ? a.probability > b.probability : a.index < b.index;
  });
  all.erase(end, all.end());
  for (Guess& g : all) g.probability /= sum;
  return all;
}

size_t widest(const std::vector<std::string>& words) {
  size_t n = 0;
  for (const std::string& w : words) n = std::max(n, w.size());
  return n;
}

class Table {
 public:
  Table(const std::vector<std::string>& files, const SavedModel& m, const Prediction& how)
      : classes_(m.classes),
        json_(how.json),
        width_(widest(files)),
        class_width_(std::min<size_t>(widest(m.classes), 24)) {}

  void line(const std::string& file, const std::vector<Guess>& guesses) const {
    if (json_) return json(file, guesses);
    std::string s = fmt::format("{:<{}}", printable_name(file), width_);
    for (const Guess& g : guesses)
      s += fmt::format("  {:<{}} {:6.2f} %", printable_name(classes_[size_t(g.index)]), class_width_,
                       100 * g.probability);
    fmt::print("{}\n", s);
  }
  void unreadable(const data::Unreadable& file) const {
    const std::string why = text("cannot be read: ", file.why);
    if (json_) fmt::print("{}\n", json_text(Json({{"file", file.name}, {"error", why}})));
    std::fflush(stdout);
    fmt::print(stderr, "train_imagenet: {}: {}\n", printable_name(file.name), why);
  }

 private:
  void json(const std::string& file, const std::vector<Guess>& guesses) const {
    Json j = {{"file", file}, {"classes", Json::array()}};
    for (const Guess& g : guesses)
      j["classes"].push_back(
          {{"index", g.index}, {"name", classes_[size_t(g.index)]}, {"probability", g.probability}});
    fmt::print("{}\n", json_text(j));
  }

  const std::vector<std::string>& classes_;
  bool json_;
  size_t width_, class_width_;
};

data::Plan plan_of(const PictureFiles& pictures, const SavedModel& m, int64_t batch) {
  data::Plan plan;
  plan.count = [=, n = pictures.size()](int64_t step) { return std::min(batch, n - step * batch); };
  plan.index = [=](int64_t step, int64_t row) { return step * batch + row; };
  plan.view = [view = m.preparation.view()](int64_t, int64_t, int64_t) { return view; };
  return plan;
}

void write_logits(const std::string& path, const std::vector<float>& logits, int64_t classes) {
  const int64_t rows = int64_t(logits.size()) / classes;
  Vectors v{.npy = true, .items = {{.name = "", .type = "<f4", .shape = {rows, classes}}}, .flat = {}};
  v.flat = Tensor::of<float>({int64_t(logits.size())}, logits);
  write_vectors(path, v);
}

}  // namespace

int64_t predict(const Config& c, const Prediction& how) {
  if (!how.logits.empty()) check_ending(how.logits, true), check_writable(how.logits);
  const std::vector<std::string> files = list_pictures(how.paths);
  const Device device = choose_device(c, {}).device;
  prepare_engine(c, device);
  const int threads = compute_threads(c, {});
  omp_set_num_threads(threads);
  const SavedModel m = open_saved_model(c, device);
  if (!m.assumed.empty()) fmt::print(stderr, "train_imagenet: {}\n", m.assumed);
  const PictureFiles pictures(files, m.preparation.image.channels);
  const int64_t batch = std::min<int64_t>(c.batch_size.most, pictures.size()),
                classes = int64_t(m.classes.size());
  const int64_t steps = (pictures.size() + batch - 1) / batch;
  data::Loader loader(pictures, plan_of(pictures, m, batch), m.preparation.image, 0, steps, device,
                      c.data_threads > 0 ? int(c.data_threads) : threads);
  const Table table(files, m, how);
  const NoTape off;
  std::vector<float> kept;
  for (int64_t step = 0; step < steps; ++step) {
    const data::Batch b = loader.next();
    const Tensor x =
        normalize_image(b.images, m.preparation.mean, m.preparation.deviation, activations_of(c));
    const Tensor logits = cast(m.net->forward(x), kF32).to(kCpu), labels = b.labels.to(kCpu);
    current_stream(device).sync();
    const std::vector<data::Unreadable> unreadable = loader.newly_unreadable();
    auto next_unreadable = unreadable.begin();
    for (int64_t row = 0; row < b.size(); ++row) {
      const std::string& file = files[size_t(step * batch + row)];
      const float* of_row = logits.data<float>() + row * classes;
      if (labels.data<int32_t>()[row] < 0) {
        table.unreadable(*next_unreadable++);
        continue;
      }
      table.line(file, best(of_row, classes, how.top));
      if (!how.logits.empty()) kept.insert(kept.end(), of_row, of_row + classes);
    }
  }
  if (!how.logits.empty()) write_logits(how.logits, kept, classes);
  return loader.unreadable();
}

}  // namespace skein::apps
