// Matrix products on cuBLASLt with the bias in the epilogue. The heuristics' first choice is kept per shape.
#include <map>
#include <mutex>
#include <tuple>

#include "engine/backend.h"
#include "engine/cuda/cublas_library.h"
#include "engine/cuda/handles.h"
#include "engine/cuda/pointwise.h"
#include "engine/numerics.h"

namespace skein::cuda {
namespace {

constexpr size_t kWorkspace = 32 << 20;  // NVIDIA's advice for Hopper

// The type both operands are converted to: the narrower of theirs, or f32 for two different 16-bit types.
DType type_inside(DType a, DType b) { return a == b || b == kF32 ? a : a == kF32 ? b : kF32; }
cudaDataType_t type_of(DType t) { return t == kF32 ? CUDA_R_32F : t == kF16 ? CUDA_R_16F : CUDA_R_16BF; }

// cuBLASLt is column-major, we are row-major: it sees our matrices transposed. So it computes y' = b' a', and
// the bias, which belongs to our columns, lies along its rows, as its epilogue needs it.
struct Product {
  int64_t m, n, k;
  bool ta, tb, bias, read_y, tf32;
  DType in, out;
  int64_t align_a, align_b, align_y;
  auto operator<=>(const Product&) const = default;
};

template <class T>
using Owned = std::unique_ptr<std::remove_pointer_t<T>, cublasStatus_t (*)(T)>;

Owned<cublasLtMatrixLayout_t> layout(DType t, int64_t rows, int64_t columns) {
  cublasLtMatrixLayout_t l = nullptr;
  check(cublas().cublasLtMatrixLayoutCreate(&l, type_of(t), uint64_t(rows), uint64_t(columns), rows),
        "cublasLtMatrixLayoutCreate");
  return {l, cublas().cublasLtMatrixLayoutDestroy};
}

struct Plan {
  Owned<cublasLtMatmulDesc_t> operation{nullptr, nullptr};
  Owned<cublasLtMatrixLayout_t> a{nullptr, nullptr}, b{nullptr, nullptr}, y{nullptr, nullptr};
  cublasLtMatmulAlgo_t algorithm{};
  size_t workspace = 0;
};

template <class V>
void set(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t name, const V& value) {
  check(cublas().cublasLtMatmulDescSetAttribute(d, name, &value, sizeof value),
        "cublasLtMatmulDescSetAttribute");
}
template <class V>
void set(cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t name, const V& value) {
  check(cublas().cublasLtMatmulPreferenceSetAttribute(p, name, &value, sizeof value),
        "cublasLtMatmulPreferenceSetAttribute");
}

Owned<cublasLtMatmulDesc_t> operation_of(const Product& p) {
  const bool tf32 = p.in == kF32 && p.tf32;
  cublasLtMatmulDesc_t d = nullptr;
  check(cublas().cublasLtMatmulDescCreate(&d, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
                                          CUDA_R_32F),
        "cublasLtMatmulDescCreate");
  Owned<cublasLtMatmulDesc_t> held(d, cublas().cublasLtMatmulDescDestroy);
  set(d, CUBLASLT_MATMUL_DESC_TRANSA, p.tb ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(d, CUBLASLT_MATMUL_DESC_TRANSB, p.ta ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (p.bias) {
    set(d, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(d, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(p.out));
  }
  return held;
}

Plan make_plan(Device device, const Product& p) {
  Plan plan;
  plan.operation = operation_of(p);
  plan.b = layout(p.in, p.tb ? p.k : p.n, p.tb ? p.n : p.k);
  plan.a = layout(p.in, p.ta ? p.m : p.k, p.ta ? p.k : p.m);
  plan.y = layout(p.out, p.n, p.m);
  cublasLtMatmulPreference_t wish = nullptr;
  check(cublas().cublasLtMatmulPreferenceCreate(&wish), "cublasLtMatmulPreferenceCreate");
  const Owned<cublasLtMatmulPreference_t> held(wish, cublas().cublasLtMatmulPreferenceDestroy);
  set(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspace);
  // Sums in f32 and in a fixed order: no atomics, no partial sums in the result's type.
  set(wish, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, uint32_t(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  set(wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, uint32_t(p.align_b));
  set(wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, uint32_t(p.align_a));
  set(wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, uint32_t(p.align_y));
  set(wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, uint32_t(p.align_y));
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  const cublasStatus_t status = cublas().cublasLtMatmulAlgoGetHeuristic(
      cublas_handle(device), plan.operation.get(), plan.b.get(), plan.a.get(), plan.y.get(), plan.y.get(),
      wish, 1, &best, &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && found == 0))
    throw Error(text("cuBLASLt has no way to multiply [", p.m, ',', p.k, "] by [", p.k, ',', p.n, "], ", p.in,
                     " to ", p.out, ", on ", device));
  check(status, "cublasLtMatmulAlgoGetHeuristic");
  plan.algorithm = best.algo;
  plan.workspace = best.workspaceSize;
  return plan;
}

const Plan& plan_for(Device d, const Product& p) {
  static std::mutex mutex;
  static auto& plans = *new std::map<std::pair<int, Product>, Plan>;
  const std::lock_guard lock(mutex);
  auto at = plans.find({d.index, p});
  if (at == plans.end()) at = plans.emplace(std::pair(d.index, p), make_plan(d, p)).first;
  return at->second;
}

// The bias is the only argument of the operation that is not part of the plan. Each call sets it in a copy,
// because other threads may be using the same plan.
void multiply(const Product& p, const Tensor& y, const Tensor& a, const Tensor& b, const Tensor& bias,
              float beta) {
  const Device d = y.device();
  const Plan& plan = plan_for(d, p);
  const Owned<cublasLtMatmulDesc_t> own =
      p.bias ? operation_of(p) : Owned<cublasLtMatmulDesc_t>{nullptr, nullptr};
  if (p.bias) {
    const void* at = bias.raw();
    set(own.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, at);
  }
  const Tensor memory = workspace(int64_t(plan.workspace), d);
  const float one = 1;
  check(cublas().cublasLtMatmul(cublas_handle(d), p.bias ? own.get() : plan.operation.get(), &one, b.raw(),
                                plan.b.get(), a.raw(), plan.a.get(), &beta, y.raw(), plan.y.get(), y.raw(),
                                plan.y.get(), &plan.algorithm, memory ? memory.raw() : nullptr,
                                plan.workspace, static_cast<cudaStream_t>(current_stream(d).handle())),
        "cublasLtMatmul");
}

// The heuristics do not know the bias' address, and kernels may load 16 bytes of it at once.
Tensor aligned(const Tensor& x) {
  if (common_alignment({x.raw()}) == 16) return x;
  const Tensor copied(x.shape(), x.dtype(), x.device());
  copy_bytes(copied, x);
  return copied;
}

}  // namespace

void gemm(const GemmArgs& g) {
  CHECK(g.a.rank() == 2 && g.b.rank() == 2 && g.y.rank() == 2, g.a.shape(), g.b.shape(), g.y.shape());
  const int64_t m = g.a.dim(g.ta ? 1 : 0), k = g.a.dim(g.ta ? 0 : 1), n = g.b.dim(g.tb ? 0 : 1);
  CHECK(g.b.dim(g.tb ? 1 : 0) == k && g.y.shape() == Shape({m, n}), g.a.shape(), g.b.shape(), g.y.shape());
  CHECK(!g.bias || (g.bias.size() == n && g.bias.dtype() == kF32), g.bias.shape(), n);
  if (m == 0 || n == 0) return;
  CHECK(k > 0, "a product over nothing", g.a.shape(), g.b.shape());
  const DType in = type_inside(g.a.dtype(), g.b.dtype());
  const Tensor a = as_type(g.a, in), b = as_type(g.b, in);
  const bool beside = g.y.dtype() != kF32 && g.y.dtype() != in;  // products are f32 or of the operands' type
  const Tensor y = beside ? Tensor(g.y.shape(), kF32, g.y.device()) : g.y;
  const Tensor bias = g.bias ? aligned(as_type(g.bias, y.dtype())) : Tensor();
  const float beta = beside ? 0 : g.beta;
  multiply({.m = m,
            .n = n,
            .k = k,
            .ta = g.ta,
            .tb = g.tb,
            .bias = bool(bias),
            .read_y = beta != 0,
            .tf32 = numerics().tf32,
            .in = in,
            .out = y.dtype(),
            .align_a = common_alignment({a.raw()}),
            .align_b = common_alignment({b.raw()}),
            .align_y = common_alignment({y.raw()})},
           y, a, b, bias, beta);
  if (beside) blend(g.y, y, g.beta);
}

}  // namespace skein::cuda
