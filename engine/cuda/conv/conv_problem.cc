// Converts a convolution's arguments to a problem for cuDNN.
#include "engine/cuda/conv/conv_problem.h"

#include "engine/cuda/handles.h"
#include "engine/numerics.h"

namespace skein::cuda {

ConvProblem problem_of(ConvPass pass, const ConvArgs& c, const Tensor& w) {
  CHECK(c.x.rank() == 4 && w.rank() == 4 && c.y.rank() == 4, c.x.shape(), w.shape(), c.y.shape());
  const ConvGeometry& g = c.geometry;
  CHECK(g.groups > 0 && c.x.dim(3) == w.dim(3) * g.groups && w.dim(0) % g.groups == 0, c.x.shape(),
        w.shape());
  CHECK(c.x.dtype() == c.y.dtype(), c.x.dtype(), c.y.dtype());
  const ConvProblem k{.pass = pass,
                      .images = c.x.dtype(),
                      .weights = w.dtype(),
                      .n = c.x.dim(0),
                      .h = c.x.dim(1),
                      .w = c.x.dim(2),
                      .c = c.x.dim(3),
                      .o = w.dim(0),
                      .r = w.dim(1),
                      .s = w.dim(2),
                      .stride = g.stride,
                      .padding = g.padding,
                      .dilation = g.dilation,
                      .groups = g.groups,
                      .accumulate = c.beta == 1 && pass != ConvPass::kForward,
                      .tf32 = numerics().tf32,
                      .deterministic = numerics().deterministic,
                      .alignment = common_alignment({c.x.raw(), w.raw(), c.y.raw()})};
  CHECK(c.y.shape() == Shape({k.n, k.p(), k.q(), k.o}), "the result of", c.x.shape(), "and", w.shape(),
        "is not", c.y.shape());
  return k;
}

void fuse(ConvProblem& k, Operands& t, unsigned what, const Operands& more) {
  k.fused |= what;
  for (const Operand& o : more) {
    k.alignment = std::min(k.alignment, common_alignment({o.tensor.address()}));
    t.push_back(o);
  }
}

bool direct(const Tensor& result, DType computed, float beta) {
  return result.dtype() == computed && (beta == 0 || beta == 1);
}

}  // namespace skein::cuda
