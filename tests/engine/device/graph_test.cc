// Replayed work computes what the plain body computes, bit for bit, from scrambled memory.
#include "engine/device/graph.h"

#include "engine/vectors/clip.h"
#include "engine/vectors/gem.h"
#include "engine/vectors/mix.h"
#include "engine/vectors/vec.h"
#include "tests/engine/device/recordings.h"

namespace skein {
namespace {

using namespace testing;
using Way = Recorded::Way;

// A body's inputs, which are refilled before every run, and the results it writes.
struct Chain {
  std::string name;
  Values in;  // on the CPU
  std::function<Values(const Values&)> f;
};

// Runs f and computes the gradients of all floating inputs; copies them to where they stay.
class Body {
 public:
  Body(const Chain& c, Device d) : chain_(c) {
    for (const Tensor& x : c.in) in_.push_back(x.to(d).clone());
  }
  void refill(uint64_t run) {
    for (size_t i = 0; i < in_.size(); ++i) {
      const Tensor& x = in_[i];
      if (x.dtype() != kF32 && x.dtype() != kBF16) continue;
      Tensor fresh = random_uniform(x.shape(), 1000 * run + i, 0.2f, 1.2f, x.dtype());
      copy_bytes(x, fresh);
      current_stream(x.device()).sync();
    }
  }
  void operator()() {
    Tape tape;
    Values grads;
    for (const Tensor& x : in_)
      if (x.dtype() == kF32 || x.dtype() == kBF16) {
        grads.emplace_back(x.shape(), x.dtype(), x.device());
        tape.watch(x, grads.back());
      }
    Values results = chain_.f(in_);
    Tensor loss;
    for (const Tensor& y : results)
      if (y.dtype() == kF32 || y.dtype() == kBF16) {
        const Tensor part = sum(square(cast(y, kF32)));
        loss = loss ? add(loss, part) : part;
      }
    if (loss) {
      tape.backward(reshape(loss, {1}));
      results.insert(results.end(), grads.begin(), grads.end());
    }
    if (out_.empty())  // allocated by the plain run
      for (const Tensor& y : results) out_.push_back(y.clone());
    for (size_t i = 0; i < results.size(); ++i) copy_bytes(out_[i], results[i]);
  }
  std::vector<std::vector<uint8_t>> results() const {
    std::vector<std::vector<uint8_t>> all;
    for (const Tensor& y : out_) all.push_back(bytes_of(y));
    return all;
  }

 private:
  const Chain& chain_;
  Values in_, out_;
};

Tensor like(Shape s, DType t = kF32) { return Tensor(s, t); }
Chain one(std::string name, Values in, std::function<Tensor(const Values&)> f) {
  return {std::move(name), std::move(in), [f = std::move(f)](const Values& v) { return Values{f(v)}; }};
}
NormState state_of(const Values& v, size_t at) {
  return {v[at], v[at + 1], v[at + 2], v[at + 3], 0.1f, 1e-5f};
}

std::vector<Chain> chains() {
  std::vector<Chain> all;
#define UNARY(name, onnx, f, df) \
  for (DType t : {kF32, kBF16})  \
    all.push_back(               \
        one(text(#name, ' ', t), {like({3, 70}, t)}, [](const Values& v) { return skein::name(v[0]); }));
#define BINARY(name, onnx, f, da, db) \
  all.push_back(                      \
      one(#name, {like({5, 4, 9}), like({4, 1})}, [](const Values& v) { return skein::name(v[0], v[1]); }));
#include "engine/ops/pointwise.def"
#undef UNARY
#undef BINARY
  const auto add_one = [&](std::string name, Values in, std::function<Tensor(const Values&)> f) {
    all.push_back(one(std::move(name), std::move(in), std::move(f)));
  };
  add_one("sum", {like({4, 900, 5})}, [](const Values& v) { return sum(v[0], {0, 1}); });
  add_one("long sum", {like({40000})}, [](const Values& v) { return sum(v[0]); });
  add_one("mean", {like({4, 6, 5})}, [](const Values& v) { return mean(v[0], {1}, true); });
  add_one("max", {like({4, 6, 5})}, [](const Values& v) { return max(v[0], {0, 2}); });
  add_one("argmax", {like({4, 6})}, [](const Values& v) { return argmax(v[0], 1); });
  add_one("reshape", {like({4, 6})}, [](const Values& v) { return relu(reshape(v[0], {3, -1})); });
  add_one("transpose", {like({4, 6, 3})}, [](const Values& v) { return transpose(v[0], {2, 0, 1}); });
  add_one("pad", {like({4, 6})}, [](const Values& v) { return pad(v[0], {{1, 2}, {0, 3}}); });
  add_one("concat", {like({4, 6}), like({4, 3})}, [](const Values& v) {
    return concat({v[0], v[1], v[0]}, 1);
  });
  add_one("cast", {like({4, 6})}, [](const Values& v) { return cast(exp(cast(v[0], kBF16)), kF32); });
  add_one("matmul", {like({4, 6}), like({6, 5})}, [](const Values& v) { return matmul(v[0], v[1]); });
  for (DType t : {kF32, kBF16}) {
    add_one(text("linear ", t), {like({4, 6}, t), like({5, 6}), like({5})},
            [](const Values& v) { return linear(v[0], v[1], v[2]); });
    const auto conv = [&](const char* name, Shape x, Shape w, ConvGeometry g) {
      add_one(text("conv2d ", name, ' ', t), {like(x, t), like(w), like({w[0]})},
              [g](const Values& v) { return conv2d(v[0], v[1], v[2], g); });
    };
    conv("3x3", {2, 9, 9, 3}, {8, 3, 3, 3}, {.stride = 2, .padding = 1});
    conv("winograd", {2, 8, 8, 32}, {32, 3, 3, 32}, {.padding = 1});
    conv("1x1", {2, 8, 8, 16}, {24, 1, 1, 16}, {});
    conv("groups", {2, 8, 8, 8}, {16, 3, 3, 4}, {.padding = 1, .groups = 2});
    for (bool residual : {false, true})
      add_one(text("conv_bn ", residual, ' ', t),
              {like({2, 8, 8, 8}, t), like({16, 3, 3, 8}), like({16}), like({16}), like({16}), like({16}),
               like({2, 8, 8, 16}, t)},
              [residual](const Values& v) {
                return conv_bn(v[0], v[1], {.padding = 1}, state_of(v, 2),
                               {.training = true, .relu = true, .residual = residual ? v[6] : Tensor()});
              });
    if (t == kF32)  // on CUDA in f16, where the second convolution may normalize
      add_one("conv_bn_chain",
              {like({2, 8, 8, 8}), like({16, 3, 3, 8}), like({16}), like({16}), like({16}), like({16}),
               like({8, 3, 3, 16}), like({8}), like({8}), like({8}), like({8})},
              [](const Values& v) {
                const std::vector<ConvBnLink> links{{v[1], {.padding = 1}, state_of(v, 2)},
                                                    {v[6], {.padding = 1}, state_of(v, 7)}};
                return cast(
                    conv_bn_chain(cast(v[0], kF16), links, true, true, [&] { return cast(v[0], kF16); }),
                    kF32);
              });
    add_one(
        text("batch_norm ", t), {like({2, 5, 5, 7}, t), like({7}), like({7}), like({7}), like({7})},
        [](const Values& v) { return batch_norm(v[0], state_of(v, 1), {.training = true, .relu = true}); });
    add_one(text("max_pool2d ", t), {like({2, 9, 9, 5}, t)},
            [](const Values& v) { return max_pool2d(v[0], {.size = 3, .stride = 2, .padding = 1}); });
    add_one(text("avg_pool2d ", t), {like({2, 9, 9, 5}, t)},
            [](const Values& v) { return avg_pool2d(v[0], {.size = 3, .stride = 2}); });
  }
  add_one("global_avg_pool", {like({2, 9, 9, 5})}, [](const Values& v) { return global_avg_pool(v[0]); });
  add_one("log_softmax", {like({6, 11})}, [](const Values& v) { return log_softmax(v[0]); });
  add_one("folded norm",
          {like({2, 8, 8, 8}), like({16, 3, 3, 8}), like({16}), like({16}), like({16}), like({16})},
          [](const Values& v) {
            const NoTape off;
            return conv_bn(v[0], v[1], {.padding = 1}, state_of(v, 2), {.training = false, .relu = true});
          });
  const Tensor labels = Tensor::of<int32_t>({6}, {0, 3, -1, 10, 5, 5});
  all.push_back({"cross_entropy", {like({6, 11}), labels}, [](const Values& v) {
                   return Values{cross_entropy(v[0], v[1], 0.1f), top_k_hits(v[0], v[1], 2)};
                 }});
  Tensor pixels({6, 4, 4, 3}, kU8);
  for (int64_t i = 0; i < pixels.size(); ++i) pixels.data<uint8_t>()[i] = uint8_t(i * 37);
  all.push_back({"pixels", {pixels, labels}, [](const Values& v) {
                   const Blend mixed{.share = 0.3f, .shift = 2};
                   const std::vector<float> mean{0.1f, 0.2f, 0.3f}, std{0.5f, 0.6f, 0.7f};
                   return Values{normalize_image(v[0], mean, std, kF32),
                                 blend_image(v[0], v[1], mixed, 1, 4, mean, std, kBF16),
                                 partner_labels(v[1], mixed)};
                 }});
  all.push_back({"vectors",
                 {like({20000}), like({20000}), like({20000}), like({20000}), like({20000})},
                 [](const Values& v) {
                   const NoTape off;
                   Values y;
                   for (int i = 0; i < 5; ++i) y.push_back(v[size_t(i)].clone());
                   scale(y[0], 0.5f);
                   axpy(y[0], 2.f, y[1]);
                   lerp(y[1], y[2], 0.25f);
                   scaled_copy(y[2], 3.f, y[0]);
                   sgd_update({.x = y[3],
                               .v = y[4],
                               .g = y[0],
                               .at = y[3],
                               .lr = 0.1f,
                               .mu = 0.9f,
                               .decay = 1e-3f,
                               .decayed = 15000,
                               .nesterov = true});
                   clip_by_norm(y[0], 0.7);
                   const Tensor ones = Tensor::zeros({20000}, kF32, y[0].device());
                   fill(ones, 1.f);
                   y.push_back(ones);
                   gem_update({.x = y[0].clone(),
                               .m = y[1].clone(),
                               .s = y[2].clone(),
                               .u = y[3].clone(),
                               .pi = {},
                               .g = y[4],
                               .theta = y[5],
                               .lr = 0.1f,
                               .mu = 0.9f,
                               .kappa = 1.5f});
                   return y;
                 }});
  return all;
}

class Graph : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, Graph, kDevices, device_name);

// Every primitive of the backend and every kernel: one that did not keep its call would leave NaNs, or the
// values of an earlier run.
TEST_P(Graph, ReplayEqualsPlainForEveryOperation) {
  for (const Chain& c : chains()) {
    SCOPED_TRACE(c.name);
    Body plain(c, GetParam()), recorded(c, GetParam());
    Recorded work(GetParam(), c.name);
    for (uint64_t run = 0; run < 4; ++run) {
      plain.refill(run);
      recorded.refill(run);
      plain();
      scramble(work.memory(), GetParam());
      const Way way = work.run({}, [&] { recorded(); });
      EXPECT_EQ(way, run == 0 ? Way::kWarmUp : run == 1 ? Way::kRecorded : Way::kReplayed) << work.refused();
      EXPECT_TRUE(plain.results() == recorded.results()) << "run " << run;
    }
    EXPECT_GT(work.length({}), 0);
  }
}

}  // namespace
}  // namespace skein
