// Our models against PyTorch in float64: logits, loss, gradients, three SGD steps and running statistics; in
// bf16 logits, loss and gradients. tools/make_fixtures.py made the fixtures and says how.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/ops.h"
#include "engine/tape.h"
#include "engine/vectors/vec.h"
#include "nn/file_layout.h"
#include "nn/layers.h"
#include "nn/models.h"
#include "tests/support/numbers/difference.h"

namespace skein::nn {
namespace {
using differences::worse;

enum Lane : uint32_t { kScale = 0, kInput = 1, kLabel = 2, kProjection = 100, kSample = 200 };

// A fixture's digest of one tensor, in torchvision's layout.
struct Digest {
  float norm;
  std::vector<float> projections, samples;
};

double mean_square(const std::vector<float>& x, const std::vector<float>& y) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += std::pow(double(x[i]) - y[i], 2) / double(x.size());
  return sum;
}
// Estimates |a - b| of two tensors from their digests. A projection on a vector uniform in (-1, 1) has
// variance |e|^2 / 3, a sampled element of n |e|^2 / n.
double projected(const Digest& a, const Digest& b) {
  return worse(std::abs(double(a.norm) - b.norm), std::sqrt(3 * mean_square(a.projections, b.projections)));
}
double distance(const Digest& a, const Digest& b, int64_t n) {
  return worse(projected(a, b), std::sqrt(double(n) * mean_square(a.samples, b.samples)));
}

class Fixture {
 public:
  explicit Fixture(const std::string& name) {
    std::ifstream in(SKEIN_SOURCE_DIR "/tests/fixtures/" + name + ".fixture", std::ios::binary);
    std::string line;
    std::getline(in, line);
    CHECK(in, "no fixture", name);
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

  // The digest of our tensor, which is the k-th of its kind.
  Digest digest(const Tensor& t, uint64_t k) const {
    const float* v = t.data<float>();
    const int64_t n = t.size();
    Digest d{float(norm(t)), {}, {}};
    for (const Tensor& random : random_) {
      const float* r = random.data<float>();
      const int64_t period = random.size();
      double sum = 0;
#pragma omp parallel for reduction(+ : sum)
      for (int64_t from = 0; from < n; from += period) {
        const int64_t m = std::min(period, n - from);
        double part = 0;
#pragma omp simd reduction(+ : part)
        for (int64_t i = 0; i < m; ++i) part += double(v[from + i]) * r[i];
        sum += part;
      }
      d.projections.push_back(float(sum));
    }
    for (size_t i = 0; i < count("samples"); ++i)
      d.samples.push_back(v[draw(k, kSample).bits(i) % uint32_t(n)]);
    return d;
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
    net = make_model(fixture.at<std::string>("model"), {side, side, 3, classes});
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
          file.data<float>()[i] = (float(choice[i] - 48) - 31.5f) / fixture.at<float>("shift_divisor");
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

class TorchParity : public ::testing::TestWithParam<const char*> {};

TEST_P(TorchParity, GradientsAndThreeStepsInF32AgreeWithFloat64) {
  constexpr double kBound = 1e-4;    // of the tensor's norm
  constexpr double kNothing = 1e-9;  // gradients of biases before a norm are zero up to rounding
  constexpr double kRounding = 0x1p-24;
  Trial run(GetParam(), kF32);
  Fixture& fixture = run.fixture;
  double worst = 0;
  const auto check = [&](const Tensor& ours, size_t k, const std::string& what, double slack) {
    const Digest d = fixture.next();
    const double e = distance(d, fixture.digest(ours, k), ours.size());
    EXPECT_LE(e, kBound * d.norm + slack) << what << ", norm " << d.norm;
    if (d.norm > kNothing) worst = worse(worst, (e - slack) / d.norm);
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

// ---- bf16 -----------------------------------------------------------------------------------------------
// A fixture MODEL-bf16 is of a tame net: what comes to a ReLU is a norm's output, of deviation one half,
// about a shift of about one up or down, so that few values are near the kink. The fixture says how far
// PyTorch's own bf16 is from float64 in each tensor. Two programs that round in the same places make errors
// of one size and of independent signs, so ours may be as large as PyTorch's, and of each kind of tensor
// (products' weights, and vectors: biases, norms' scales and shifts):
//  - all together, the root mean square of ours over PyTorch's: kTogether;
//  - one tensor: kMargin. Our estimate from 32 projections spreads by 1 / sqrt(64) = 12 %, that from elements
//    by more, as a few have most of the error; PyTorch's luck in one counts as the median figure at least;
//  - the norm of one tensor: kMargin times PyTorch's error in it, or so many deviations, the root mean
//    square of these errors over the kind. They are much smaller, as rounding stands at a random angle to
//    what it disturbs, though less so among the few and dependent numbers of a vector.
constexpr double kTogether = 1.5, kMargin = 3;
struct Demands {
  double deviations;
  double wrong;  // the test must refuse the exact gradient times 1 + this
};
constexpr Demands kOfWeights = {5, 0.1}, kOfVectors = {8, 0.3};

struct Apart {
  double error, norm;  // |t - exact|, and | |t| - |exact| |, relative to |exact|
};

Apart apart(const Digest& ours, const Digest& exact) {
  return {projected(ours, exact) / exact.norm, std::abs(double(ours.norm) - exact.norm) / exact.norm};
}

// The bounds on our errors in one kind of tensor, from PyTorch's.
class Bounds {
 public:
  Bounds(const std::vector<Apart>& torch, double deviations) {
    std::vector<double> errors;
    double squares = 0;
    for (const Apart& t : torch) errors.push_back(t.error), squares += t.norm * t.norm;
    std::sort(errors.begin(), errors.end());
    median_ = errors[errors.size() / 2];
    norm_ = deviations * std::sqrt(squares / double(torch.size()));
  }
  double size(const Apart& torch) const { return std::max(torch.error, median_); }
  double error(const Apart& torch) const { return kMargin * size(torch); }
  double norm(const Apart& torch) const { return std::max(kMargin * torch.norm, norm_); }

 private:
  double median_, norm_;
};

// Gradients of one kind in bf16, compared with PyTorch's.
struct Gradients {
  Demands demands;
  std::vector<std::string> names = {};
  std::vector<Apart> torch = {}, ours = {};

  void judge() const {
    const Bounds bounds(torch, demands.deviations);
    double squares = 0;
    for (size_t i = 0; i < names.size(); ++i) {
      EXPECT_LE(ours[i].error, bounds.error(torch[i])) << "gradient of " << names[i];
      EXPECT_LE(ours[i].norm, bounds.norm(torch[i])) << "size of the gradient of " << names[i];
      EXPECT_GT(demands.wrong, std::min(bounds.error(torch[i]), bounds.norm(torch[i])))
          << "a gradient of " << names[i] << " that is so much too large would not be seen";
      squares += std::pow(ours[i].error / bounds.size(torch[i]), 2);
    }
    const double together = std::sqrt(squares / double(names.size()));
    EXPECT_LE(together, kTogether);
    std::cout << "  " << names.size() << " gradients: errors " << together << " of PyTorch's\n";
  }
};

TEST_P(TorchParity, Bf16IsAsCloseToFloat64AsPyTorchsAndAWrongGradientWouldBeSeen) {
  Trial run(std::string(GetParam()) + "-bf16", kBF16);
  Fixture& fixture = run.fixture;
  const auto& said = fixture.json("bf16");
  const float loss = run.gradient();
  const Digest exact = fixture.next(), logits = fixture.digest(cast(run.logits, kF32), 0);
  const double torch = said["logits"][0], off = apart(logits, exact).error;
  EXPECT_LE(off, kMargin * torch);
  // The loss's gradient by the logits of one sample is no longer than sqrt(2) / batch.
  EXPECT_NEAR(loss, fixture.at<double>("loss"),
              std::sqrt(2 / fixture.at<double>("batch")) * kMargin * torch * exact.norm);
  std::cout << GetParam() << " in bf16: logits " << off / torch << " of PyTorch's\n";

  Gradients weights{kOfWeights}, vectors{kOfVectors};
  for (size_t k = 0; k < run.params.size(); ++k) {
    const Digest g = fixture.next();
    const auto& theirs = said["gradients"][k];
    if (theirs.is_null()) continue;  // zero, up to rounding: of a bias before a norm
    const Tensor t = run.window(run.flat.g, k);
    const Digest mine = fixture.digest(t, k);
    Gradients& kind = t.rank() > 1 ? weights : vectors;
    kind.names.push_back(run.params[k]->name);
    kind.torch.push_back({theirs[0], theirs[1]});
    kind.ours.push_back(apart(mine, g));
  }
  EXPECT_TRUE(fixture.finished());
  weights.judge();
  vectors.judge();
}

INSTANTIATE_TEST_SUITE_P(Models, TorchParity, ::testing::Values("cnn7", "resnet20", "resnet50", "vgg16-bn"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace skein::nn
