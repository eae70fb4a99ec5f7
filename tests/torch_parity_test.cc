// Our models against PyTorch in float64: logits, loss, every gradient, three SGD steps and the running statistics.
// tools/make_fixtures.py made the fixtures and says how.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/ops.h"
#include "engine/tape.h"
#include "engine/vec.h"
#include "nn/file_layout.h"
#include "nn/layers.h"
#include "nn/models.h"

namespace skein::nn {
namespace {

enum Lane : uint32_t { kScale = 0, kInput = 1, kLabel = 2, kProjection = 100, kSample = 200 };

// What a fixture says of one tensor, in torchvision's layout.
struct Digest {
  float norm;
  std::vector<float> projections, samples;
};

class Fixture {
 public:
  explicit Fixture(const std::string& model) {
    std::ifstream in(std::string(SKEIN_SOURCE_DIR) + "/tests/fixtures/" + model + ".fixture",
                     std::ios::binary);
    std::string line;
    std::getline(in, line);
    CHECK(in, "no fixture for", model);
    header_ = nlohmann::json::parse(line);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    data_.resize(bytes.size() / sizeof(float));
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(data_.data()));
    for (uint32_t j = 0; j < count("projections"); ++j) {
      random_.emplace_back(Shape{at("period")});
      fill_uniform(random_.back(), draw(0, kProjection + j), -1, 1);
    }
  }
  template <class T = int64_t>
  T at(const char* key) const {
    return header_.at(key).get<T>();
  }
  size_t count(const char* key) const { return at<size_t>(key); }
  const nlohmann::json& json(const char* key) const { return header_.at(key); }
  Draw draw(uint64_t step, uint32_t lane) const { return {at<uint64_t>("seed"), Purpose::kTest, step, lane}; }
  bool finished() const { return next_ == data_.size(); }

  // The next tensor's digest; tensors follow each other as make() wrote them.
  Digest next() {
    const auto take = [&](size_t n) {
      CHECK(next_ + n <= data_.size(), "the fixture is too short");
      const auto from = data_.begin() + std::ptrdiff_t(next_);
      next_ += n;
      return std::vector<float>(from, from + std::ptrdiff_t(n));
    };
    const float norm = take(1)[0];
    std::vector<float> projections = take(count("projections"));
    return {norm, std::move(projections), take(count("samples"))};
  }

  // |t - what the digest was made of|, estimated in three ways, of which the largest. A projection on a vector
  // uniform in (-1, 1) has variance |e|^2 / 3, a sampled element |e|^2 / n.
  double error(const Digest& d, const Tensor& t, uint64_t k) const {
    const float* v = t.data<float>();
    const int64_t n = t.size();
    double projected = 0, sampled = 0;
    for (size_t j = 0; j < random_.size(); ++j) {
      const float* r = random_[j].data<float>();
      const int64_t period = random_[j].size();
      double sum = 0;
#pragma omp parallel for reduction(+ : sum)
      for (int64_t from = 0; from < n; from += period) {
        const int64_t m = std::min(period, n - from);
        double part = 0;
#pragma omp simd reduction(+ : part)
        for (int64_t i = 0; i < m; ++i) part += double(v[from + i]) * r[i];
        sum += part;
      }
      projected += std::pow(sum - d.projections[j], 2);
    }
    for (size_t i = 0; i < d.samples.size(); ++i)
      sampled += std::pow(double(v[draw(k, kSample).bits(i) % uint32_t(n)]) - d.samples[i], 2);
    return std::max({std::abs(norm(t) - d.norm), std::sqrt(3 * projected / double(random_.size())),
                     std::sqrt(double(n) * sampled / double(d.samples.size()))});
  }

 private:
  nlohmann::json header_;
  std::vector<float> data_;
  size_t next_ = 0;
  std::vector<Tensor> random_;
};

// The fixture's net with its weights, batch and labels.
struct Trial {
  explicit Trial(const std::string& name, DType type) : fixture(name) {
    const int64_t side = fixture.at("side"), batch = fixture.at("batch"), classes = fixture.at("classes");
    net = make_model(name, {side, side, 3, classes});
    net->each([](Module& m) {
      if (auto* d = dynamic_cast<Dropout*>(&m)) d->set_training(false);
    });
    flat = flatten(*net, allocator(kCpu));
    for (Buffer* b : net->buffers()) fill(b->value, b->start);
    params = net->params();
    draw_weights();
    start = flat.x.clone();
    velocity = Tensor::zeros(flat.x.shape());

    Tensor planes({batch, 3, side, side});
    const float bound = std::sqrt(3.f);
    fill_uniform(planes, fixture.draw(0, kInput), -bound, bound);
    x = cast(transpose(planes, {0, 2, 3, 1}), type);
    labels = Tensor({batch}, DType::kI32);
    for (int64_t i = 0; i < batch; ++i)
      labels.data<int32_t>()[i] = int32_t(fixture.draw(0, kLabel).bits(uint64_t(i)) % uint32_t(classes));
  }

  void draw_weights() {
    const auto& said = fixture.json("params");
    CHECK(said.size() == params.size(), "parameters there and here:", said.size(), params.size());
    for (size_t k = 0; k < params.size(); ++k) {
      Param& p = *params[k];
      CHECK(said[k][0] == p.name, said[k][0], p.name);
      const float center = said[k][1], half = said[k][2];
      Tensor file(file_shape(p));
      fill_uniform(file, fixture.draw(k, kScale), center - half, center + half);
      if (const auto& shifts = fixture.json("shifts"); shifts.contains(p.name)) {
        const auto choice = shifts[p.name].get<std::string>();
        CHECK(int64_t(choice.size()) == file.size(), p.name);
        for (size_t i = 0; i < choice.size(); ++i)
          file.data<float>()[i] = (float(choice[i] - 48) - 31.5f) / 157.5f;
      }
      from_file(p, file, p.value);
    }
  }

  float gradient() {
    Tape tape;
    for (Param* p : params) tape.watch(p->value, p->grad);
    logits = net->forward(x);
    const Tensor loss = cross_entropy(logits, labels, fixture.at<float>("smoothing"));
    tape.backward(loss);
    return loss.item();
  }
  void step() {
    sgd_update({.x = flat.x,
                .v = velocity,
                .g = flat.g,
                .at = flat.x,
                .lr = fixture.at<float>("lr"),
                .mu = fixture.at<float>("momentum"),
                .decay = fixture.at<float>("decay"),
                .decayed = flat.decayed});
  }
  // The k-th parameter's window of a vector laid out as flat.x, as torchvision would hold it.
  Tensor window(const Tensor& vector, size_t k) const {
    for (const Segment& s : flat.segments)
      if (s.name == params[k]->name) return to_file(*params[k], vector.view(s.shape, s.offset));
    throw Error("no segment " + params[k]->name);
  }

  Fixture fixture;
  std::unique_ptr<Module> net;
  Flat flat;
  std::vector<Param*> params;
  Tensor start, velocity, x, labels, logits;
};

class TorchParity : public testing::TestWithParam<const char*> {};

TEST_P(TorchParity, GradientsAndThreeStepsInF32AgreeWithFloat64) {
  constexpr double kBound = 1e-4;    // of the tensor's norm
  constexpr double kNothing = 1e-9;  // gradients of biases before a norm are zero, there up to rounding
  constexpr double kRounding = 0x1p-24;
  Trial run(GetParam(), kF32);
  Fixture& fixture = run.fixture;
  double worst = 0;
  const auto check = [&](const Tensor& ours, size_t k, const std::string& what, double slack) {
    const Digest d = fixture.next();
    const double e = fixture.error(d, ours, k);
    EXPECT_LE(e, kBound * d.norm + slack) << what << ", norm " << d.norm;
    if (d.norm > kNothing) worst = std::max(worst, (e - slack) / d.norm);
  };

  const float loss = run.gradient();
  EXPECT_NEAR(loss, fixture.at<double>("loss"), 1e-5 * fixture.at<double>("loss"));
  check(run.logits, 0, "logits", 0);
  for (size_t k = 0; k < run.params.size(); ++k)
    check(run.window(run.flat.g, k), k, "gradient of " + run.params[k]->name, kNothing);

  float last = loss;
  for (int64_t s = 0; s < fixture.at("steps"); ++s) {
    if (s > 0) last = run.gradient();
    run.step();
  }
  EXPECT_NEAR(last, fixture.at<double>("last_loss"), 1e-5 * last);
  EXPECT_NE(last, loss);
  for (size_t k = 0; k < run.params.size(); ++k)
    check(run.window(run.velocity, k), k, "velocity of " + run.params[k]->name, kNothing);
  Tensor change = run.flat.x.clone();
  axpy(change, -1.f, run.start);
  for (size_t k = 0; k < run.params.size(); ++k)  // three steps round x three times
    check(run.window(change, k), k, "change of " + run.params[k]->name,
          6 * kRounding * norm(run.window(run.start, k)));
  const std::vector<Buffer*> buffers = run.net->buffers();
  ASSERT_EQ(fixture.json("buffers").size(), buffers.size());
  for (size_t k = 0; k < buffers.size(); ++k) {
    EXPECT_EQ(fixture.json("buffers")[k], buffers[k]->name);
    check(buffers[k]->value, k, buffers[k]->name, 0);
  }
  EXPECT_TRUE(fixture.finished());
  RecordProperty("worst", text(worst));
  std::cout << GetParam() << ": worst error relative to the tensor's norm " << worst << '\n';
}

// What eight bits of mantissa leave. These nets are made hard on purpose (norms over few values, random weights), and
// every rounding moves values across the kinks of ReLU. Unrelated gradients would have an error of 1.41.
struct Bf16Bounds {
  double loss, logits, median_gradient;
};
const std::map<std::string, Bf16Bounds> kBf16 = {{"cnn7", {0.002, 0.01, 0.01}},
                                                 {"resnet20", {0.002, 0.01, 0.2}},
                                                 {"resnet50", {0.005, 0.2, 1.0}},
                                                 {"vgg16-bn", {0.01, 0.08, 0.6}}};

TEST_P(TorchParity, Bf16StaysWithinItsBounds) {
  const Bf16Bounds bounds = kBf16.at(GetParam());
  Trial run(GetParam(), kBF16);
  Fixture& fixture = run.fixture;
  const double loss = fixture.at<double>("loss"), off = std::abs(run.gradient() - loss) / loss;
  const Digest d = fixture.next();
  const double logits = fixture.error(d, cast(run.logits, kF32), 0) / d.norm;
  std::vector<double> errors;
  for (size_t k = 0; k < run.params.size(); ++k)
    if (const Digest g = fixture.next(); g.norm > 1e-9)
      errors.push_back(fixture.error(g, run.window(run.flat.g, k), k) / g.norm);
  std::sort(errors.begin(), errors.end());
  const double median = errors[errors.size() / 2];
  EXPECT_LE(off, bounds.loss);
  EXPECT_LE(logits, bounds.logits);
  EXPECT_LE(median, bounds.median_gradient);
  std::cout << GetParam() << " in bf16: loss off by " << off << ", logits " << logits << ", gradients "
            << median << ", worst " << errors.back() << '\n';
}

INSTANTIATE_TEST_SUITE_P(Models, TorchParity, testing::Values("cnn7", "resnet20", "resnet50", "vgg16-bn"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace skein::nn
