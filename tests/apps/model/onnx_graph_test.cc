// ONNX graphs: every model of the table gives a valid one, and operations without a counterpart are errors.
#include "apps/model/onnx_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "engine/tape.h"
#include "nn/layers.h"
#include "onnx.pb.h"
#include "tests/support/files.h"
#include "tests/support/random_model.h"

namespace skein::apps {
namespace {

constexpr int64_t kGraphClasses = 7;

onnx::Graph graph_of(nn::Module& net, const Tensor& x) {
  const NoTape off;
  const Outline outline;
  const Tensor y = net.forward(x);
  onnx::Graph graph;
  OnnxGraph g(graph, net);
  g.input(x, "images");
  g.output(outline, y, "logits");
  return graph;
}

class OnnxModel : public ::testing::TestWithParam<const char*> {};

TEST_P(OnnxModel, IsAGraphInOrderThatHoldsEachParameterOnce) {
  const int side = testing::side_of(GetParam());
  const auto net = testing::random_model(GetParam(), {side, side, 3, kGraphClasses}, 13);
  const onnx::Graph graph = graph_of(*net, Tensor::zeros({2, side, side, 3}));
  std::set<std::string> known = {"images"};
  for (const onnx::Tensor& t : graph.initializer()) {
    EXPECT_TRUE(known.insert(t.name()).second) << t.name();
    int64_t volume = t.data_type() == onnx::Tensor::FLOAT ? 4 : 8;
    for (const int64_t d : t.dims()) volume *= d;
    EXPECT_EQ(int64_t(t.raw_data().size()), volume) << t.name();
  }
  for (const nn::Param* p : net->params()) {
    const bool before_norm = std::string(GetParam()).starts_with("vgg") && p->name.starts_with("features") &&
                             p->name.ends_with("bias") && p->value.rank() == 1;
    EXPECT_TRUE(known.contains(p->name) || before_norm)
        << p->name << ", which moves only the mean of the norm after it";
  }
  for (const onnx::Node& n : graph.node()) {
    for (const std::string& in : n.input()) EXPECT_TRUE(known.contains(in)) << n.name() << " reads " << in;
    for (const std::string& out : n.output())
      EXPECT_TRUE(known.insert(out).second) << n.name() << " makes " << out;
  }
  EXPECT_TRUE(known.contains("logits"));
  ASSERT_EQ(graph.input_size(), 1);
  const auto& shape = graph.input(0).type().tensor_type().shape();
  EXPECT_EQ(shape.dim(0).dim_param(), "batch");
  EXPECT_EQ(shape.dim(1).dim_value(), 3);
  EXPECT_EQ(shape.dim(3).dim_value(), side);
}

std::vector<const char*> quick_names() {  // vgg16-bn has half a gigabyte of parameters
  std::vector<const char*> all = testing::model_names();
  std::erase_if(all, [](const char* name) { return std::string(name) == "vgg16-bn"; });
  return all;
}

INSTANTIATE_TEST_SUITE_P(Models, OnnxModel, ::testing::ValuesIn(quick_names()), [](const auto& info) {
  std::string name = info.param;
  std::erase(name, '-');
  return name;
});

// A model whose result comes from an op that the exporter does not know.
class Odd final : public nn::Module {
 public:
  Tensor forward(const Tensor& x) override { return log_softmax(global_avg_pool(x)); }
};

TEST(Onnx, AnOperationWithoutCounterpartIsAnErrorAndNeverAConstant) {
  Odd odd;
  const std::string m = testing::message_of<Error>([&] { graph_of(odd, Tensor::zeros({2, 4, 4, 3})); });
  EXPECT_TRUE(testing::has(m, "no counterpart")) << m;
}

// Applies one pointwise operation to the mean of the image.
class Pointwise final : public nn::Module {
 public:
  explicit Pointwise(std::function<Tensor(const Tensor&)> f) : f_(std::move(f)) {}
  Tensor forward(const Tensor& x) override { return f_(global_avg_pool(x)); }

 private:
  std::function<Tensor(const Tensor&)> f_;
};

TEST(Onnx, APointwiseRowIsTheNodeThatItNamesOrAnError) {
  const auto types = [](std::function<Tensor(const Tensor&)> f) {
    Pointwise net(std::move(f));
    std::vector<std::string> all;
    const auto graph = graph_of(net, Tensor::zeros({2, 4, 4, 3}));
    for (const onnx::Node& n : graph.node()) all.push_back(n.op_type());
    return all;
  };
  const auto has_node = [&](const char* type, std::function<Tensor(const Tensor&)> f) {
    const std::vector<std::string> all = types(std::move(f));
    return std::find(all.begin(), all.end(), type) != all.end();
  };
  EXPECT_TRUE(has_node("Tanh", [](const Tensor& x) { return tanh(x); }));
  EXPECT_TRUE(has_node("Max", [](const Tensor& x) { return maximum(x, neg(x)); }));
  const std::string m = testing::message_of<Error>([&] { types([](const Tensor& x) { return square(x); }); });
  EXPECT_TRUE(testing::has(m, "square")) << m;
}

}  // namespace
}  // namespace skein::apps
