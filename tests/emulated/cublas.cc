// Matrix products of cuBLASLt: the real library's descriptors are read back and executed by a plain loop.
#include <cublasLt.h>
#include <dlfcn.h>

#include <cstring>
#include <string>
#include <vector>

#include "engine/dtype.h"
#include "tests/emulated/gpu.h"
#include "tests/emulated/libraries.h"

namespace skein::emulated {
namespace {

void* real = nullptr;
template <class F>
F* real_function(const char* name) {
  return reinterpret_cast<F*>(dlsym(real, name));
}

template <class V>
V attribute(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t name) {
  static const auto get =
      real_function<decltype(cublasLtMatmulDescGetAttribute)>("cublasLtMatmulDescGetAttribute");
  V value{};
  size_t written = 0;
  if (get(d, name, &value, sizeof value, &written) != CUBLAS_STATUS_SUCCESS || written != sizeof value)
    fault("a product's description lacks an attribute");
  return value;
}
template <class V>
V attribute(cublasLtMatrixLayout_t l, cublasLtMatrixLayoutAttribute_t name) {
  static const auto get =
      real_function<decltype(cublasLtMatrixLayoutGetAttribute)>("cublasLtMatrixLayoutGetAttribute");
  V value{};
  size_t written = 0;
  if (get(l, name, &value, sizeof value, &written) != CUBLAS_STATUS_SUCCESS || written != sizeof value)
    fault("a matrix' layout lacks an attribute");
  return value;
}

struct Matrix {  // column after column
  cudaDataType_t type;
  int64_t rows, columns, step;
  explicit Matrix(cublasLtMatrixLayout_t l)
      : type(cudaDataType_t(attribute<uint32_t>(l, CUBLASLT_MATRIX_LAYOUT_TYPE))),
        rows(int64_t(attribute<uint64_t>(l, CUBLASLT_MATRIX_LAYOUT_ROWS))),
        columns(int64_t(attribute<uint64_t>(l, CUBLASLT_MATRIX_LAYOUT_COLS))),
        step(attribute<int64_t>(l, CUBLASLT_MATRIX_LAYOUT_LD)) {
    if (step < rows) fault("a matrix' columns overlap");
  }
  size_t bytes() const { return size_t((columns - 1) * step + rows) * (type == CUDA_R_32F ? 4 : 2); }
  bool operator==(const Matrix&) const = default;
};

DType type_of(cudaDataType_t t) {
  if (t != CUDA_R_32F && t != CUDA_R_16BF && t != CUDA_R_16F)
    fault("a product of a type that nobody here multiplies");
  return t == CUDA_R_32F ? kF32 : t == CUDA_R_16F ? kF16 : kBF16;
}
float load(const void* p, cudaDataType_t t, int64_t i) {
  return visit_float(type_of(t), [&](auto zero) { return float(static_cast<const decltype(zero)*>(p)[i]); });
}
void store(void* p, cudaDataType_t t, int64_t i, float v) {
  visit_float(type_of(t), [&](auto zero) { static_cast<decltype(zero)*>(p)[i] = decltype(zero)(v); });
}
// op(m), dense and row-major.
std::vector<float> rows_of(const Matrix& m, const void* p, bool transposed) {
  const int64_t rows = transposed ? m.columns : m.rows, columns = transposed ? m.rows : m.columns;
  std::vector<float> v(size_t(rows * columns));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      v[size_t(r * columns + c)] = load(p, m.type, transposed ? r * m.step + c : c * m.step + r);
  return v;
}

cublasStatus_t create(cublasLtHandle_t* h) {
  static int one;
  *h = reinterpret_cast<cublasLtHandle_t>(&one);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t choose(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                      cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int wanted,
                      cublasLtMatmulHeuristicResult_t results[], int* found) {
  if (wanted < 1) return CUBLAS_STATUS_INVALID_VALUE;
  results[0] = {};
  results[0].workspaceSize = 1024;
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t multiply(cublasLtHandle_t, cublasLtMatmulDesc_t d, const void* alpha, const void* a,
                        cublasLtMatrixLayout_t la, const void* b, cublasLtMatrixLayout_t lb, const void* beta,
                        const void* c, cublasLtMatrixLayout_t lc, void* y, cublasLtMatrixLayout_t ly,
                        const cublasLtMatmulAlgo_t*, void* workspace, size_t room, cudaStream_t stream) {
  const Matrix ma(la), mb(lb), mc(lc), my(ly);
  const bool ta = attribute<int32_t>(d, CUBLASLT_MATMUL_DESC_TRANSA) == CUBLAS_OP_T,
             tb = attribute<int32_t>(d, CUBLASLT_MATMUL_DESC_TRANSB) == CUBLAS_OP_T;
  const int64_t m = my.rows, n = my.columns, k = ta ? ma.rows : ma.columns;
  if ((ta ? ma.columns : ma.rows) != m || (tb ? mb.columns : mb.rows) != k ||
      (tb ? mb.rows : mb.columns) != n || mc != my)
    fault("the matrices of a product do not fit each other");
  if (ma.type != mb.type) fault("a product of two types");
  const auto epilogue = attribute<uint32_t>(d, CUBLASLT_MATMUL_DESC_EPILOGUE);
  const bool biased = epilogue == CUBLASLT_EPILOGUE_BIAS;
  if (!biased && epilogue != CUBLASLT_EPILOGUE_DEFAULT) fault("an epilogue that nobody here computes");
  const void* bias = biased ? attribute<const void*>(d, CUBLASLT_MATMUL_DESC_BIAS_POINTER) : nullptr;
  const auto bias_type =
      biased ? cudaDataType_t(attribute<int32_t>(d, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE)) : CUDA_R_32F;
  if (!reachable(a, ma.bytes()) || !reachable(b, mb.bytes()) || !reachable(y, my.bytes()) || c != y ||
      (biased && !reachable(bias, size_t(m) * (bias_type == CUDA_R_32F ? 4 : 2))) ||
      (room > 0 && !reachable(workspace, room)))
    fault("a product gets memory that is not the device's, or too little");
  if (biased && reinterpret_cast<uintptr_t>(bias) % 16 != 0)
    fault("a product's bias is not aligned to 16 bytes, which kernels may load at once");
  const float by = *static_cast<const float*>(alpha), keep = *static_cast<const float*>(beta);
  enqueue(stream, "cublasLtMatmul", [=] {
    // right: each row is a column.
    const std::vector<float> left = rows_of(ma, a, ta), right = rows_of(mb, b, !tb);
#pragma omp parallel for schedule(static)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < m; ++i) {
        const float *u = left.data() + i * k, *v = right.data() + j * k;
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t p = 0; p < k; ++p) sum += u[p] * v[p];
        sum *= by;
        if (biased) sum += load(bias, bias_type, i);
        if (keep != 0) sum += keep * load(y, my.type, j * my.step + i);
        store(y, my.type, j * my.step + i, sum);
      }
  });
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

void* cublas_function(void* library, const char* name) {
  const auto is = [&](const char* other) { return strcmp(name, other) == 0; };
  if (strncmp(name, "cublas", 6) == 0) real = library;
  if (is("cublasLtCreate")) return reinterpret_cast<void*>(create);
  if (is("cublasLtMatmulAlgoGetHeuristic")) return reinterpret_cast<void*>(choose);
  if (is("cublasLtMatmul")) return reinterpret_cast<void*>(multiply);
  return nullptr;
}

}  // namespace skein::emulated
