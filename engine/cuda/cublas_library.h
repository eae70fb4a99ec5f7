// cuBLASLt's functions, looked up when first needed, and its statuses as exceptions.
#pragma once
#include <cublasLt.h>

#include "engine/cuda/library.h"

namespace skein::cuda {

// clang-format off
#define SKEIN_CUBLAS_FUNCTIONS(ROW) \
  ROW(cublasLtCreate) \
  ROW(cublasLtGetStatusString) \
  ROW(cublasLtGetVersion) \
  ROW(cublasLtMatmul) \
  ROW(cublasLtMatmulAlgoGetHeuristic) \
  ROW(cublasLtMatmulDescCreate) \
  ROW(cublasLtMatmulDescDestroy) \
  ROW(cublasLtMatmulDescSetAttribute) \
  ROW(cublasLtMatrixLayoutCreate) \
  ROW(cublasLtMatrixLayoutDestroy) \
  ROW(cublasLtMatmulPreferenceCreate) \
  ROW(cublasLtMatmulPreferenceDestroy) \
  ROW(cublasLtMatmulPreferenceSetAttribute)
// clang-format on

struct Cublas {
  SKEIN_CUBLAS_FUNCTIONS(SKEIN_MEMBER)
};
// Opens the library once. Throws Error that says what to install.
const Cublas& cublas();
// Throws Error if the status is a failure.
void check(cublasStatus_t, const char* what);

}  // namespace skein::cuda
