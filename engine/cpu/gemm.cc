// Matrix products on oneDNN: sgemm in f32, matmul in bf16 if the processor multiplies bf16.
#include <omp.h>

#include <map>

#include "engine/backend.h"
#include "engine/cpu/convert.h"
#include "engine/cpu/onednn.h"
#include "engine/cpu/profile.h"

namespace skein::cpu {

namespace {

struct Product {
  int64_t m, n, k;
};

Product check(const GemmArgs& g) {
  CHECK(g.a.rank() == 2 && g.b.rank() == 2 && g.y.rank() == 2, g.a.shape(), g.b.shape(), g.y.shape());
  const Product p{g.a.dim(g.ta ? 1 : 0), g.b.dim(g.tb ? 0 : 1), g.a.dim(g.ta ? 0 : 1)};
  CHECK(g.b.dim(g.tb ? 1 : 0) == p.k && g.y.shape() == Shape({p.m, p.n}), g.a.shape(), g.b.shape(),
        g.y.shape());
  CHECK(!g.bias || (g.bias.size() == p.n && g.bias.dtype() == kF32), g.bias.shape(), p.n);
  return p;
}

// y <- beta y + bias in every row; the product is then added to it.
void add_bias(float* y, const float* bias, float beta, int64_t m, int64_t n) {
#pragma omp parallel for schedule(static) if (m * n > (1 << 15))
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) y[i * n + j] = bias[j] + (beta == 0 ? 0 : beta * y[i * n + j]);
}

void gemm_f32(const GemmArgs& g, const Product& p) {
  onednn_isa();
  const Tensor a = as_f32(g.a), b = as_f32(g.b);
  const bool direct = g.y.dtype() == kF32;
  const Tensor y = direct ? g.y : scratch_f32(p.m * p.n);
  float beta = direct ? g.beta : 0;
  if (g.bias) {
    add_bias(y.data<float>(), g.bias.data<float>(), beta, p.m, p.n);
    beta = 1;
  }
  const auto status = dnnl_sgemm(g.ta ? 'T' : 'N', g.tb ? 'T' : 'N', p.m, p.n, p.k, 1.f, a.data<float>(),
                                 a.dim(1), b.data<float>(), b.dim(1), beta, y.data<float>(), p.n);
  CHECK(status == dnnl_success, "sgemm", p.m, p.n, p.k, int(status));
  if (!direct) blend(g.y, y.data<float>(), g.beta);
}

// A 2-d matrix stored row-major, or its transpose.
Md matrix(int64_t rows, int64_t columns, DType t, bool transposed) {
  return dense({rows, columns}, t, transposed ? std::vector{1, 0} : std::vector{0, 1});
}

struct MatmulPlan {
  dnnl::matmul::primitive_desc desc;
  dnnl::matmul run;
};

const MatmulPlan& matmul_plan(const GemmArgs& g, const Product& p) {
  using Key = std::tuple<int64_t, int64_t, int64_t, bool, bool, bool, DType, float, int>;
  thread_local std::map<Key, MatmulPlan> plans;
  const Key key{p.m, p.n, p.k, g.ta, g.tb, bool(g.bias), g.y.dtype(), g.beta, omp_get_max_threads()};
  if (const auto it = plans.find(key); it != plans.end()) return it->second;
  dnnl::primitive_attr attr = user_scratchpad();
  if (g.beta != 0) {
    dnnl::post_ops sum;
    sum.append_sum(g.beta);
    attr.set_post_ops(sum);
  }
  const auto desc =
      matmul_desc(matrix(p.m, p.k, kBF16, g.ta), matrix(p.k, p.n, kBF16, g.tb),
                  g.bias ? matrix(1, p.n, kF32, false) : Md(), matrix(p.m, p.n, g.y.dtype(), false), attr);
  return plans.emplace(key, MatmulPlan{desc, dnnl::matmul(desc)}).first->second;
}

void gemm_bf16(const GemmArgs& g, const Product& p) {
  const Tensor a = as_bf16(g.a), b = as_bf16(g.b);
  const MatmulPlan& plan = matmul_plan(g, p);
  const Tensor pad = scratch_bytes(int64_t(plan.desc.scratchpad_desc().get_size()));
  Arguments arguments{{DNNL_ARG_SRC, memory_at(plan.desc.src_desc(), a.raw())},
                      {DNNL_ARG_WEIGHTS, memory_at(plan.desc.weights_desc(), b.raw())},
                      {DNNL_ARG_DST, memory_at(plan.desc.dst_desc(), g.y.raw())},
                      {DNNL_ARG_SCRATCHPAD, memory_at(plan.desc.scratchpad_desc(), pad.raw())}};
  if (g.bias) arguments.insert({DNNL_ARG_BIAS, memory_at(matrix(1, p.n, kF32, false), g.bias.raw())});
  execute(plan.run, arguments, "matmul");
}

}  // namespace

void gemm(const GemmArgs& g) {
  const Product p = check(g);
  const Counted counted(kGemm, 2. * double(p.m * p.n * p.k), 0);
  if (p.m == 0 || p.n == 0) return;
  CHECK(p.k > 0, "a product over nothing", g.a.shape(), g.b.shape());
  const auto any = [&](DType t) { return g.a.dtype() == t || g.b.dtype() == t; };
  const bool halves = any(kF16) || g.y.dtype() == kF16;  // bf16 would lose three bits of an f16
  if (any(kBF16) && !halves && native_bf16())
    gemm_bf16(g, p);
  else
    gemm_f32(g, p);
}

}  // namespace skein::cpu
