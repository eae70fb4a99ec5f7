// The vendor libraries open without a device, and if one is missing the message says what to do.
#include "engine/cuda/library.h"

#include <gtest/gtest.h>

#include "engine/cuda/cublas_library.h"
#include "engine/cuda/cudnn_library.h"

namespace skein::cuda {
namespace {

TEST(Library, CudnnAndCublasOpen) {
  EXPECT_GE(cudnn().cudnnGetVersion(), 90800u);
  EXPECT_GE(cublas().cublasLtGetVersion(), 120000u);
}

TEST(Library, AMissingOneNamesItselfThePackageAndTheWayRound) {
  try {
    open_library("cuNothing", "libcunothing.so.7", "libcunothing7");
    FAIL() << "no error";
  } catch (const Error& e) {
    const std::string said = e.what();
    for (const char* word :
         {"cuNothing", "libcunothing.so.7", "libcunothing7", "LD_LIBRARY_PATH", "--device cpu"})
      EXPECT_NE(said.find(word), std::string::npos) << word << " in: " << said;
  }
}

TEST(Library, AMissingFunctionNamesItselfAndTheVersion) {
  void* library = open_library("cuDNN", "libcudnn.so.9", "cudnn9-cuda-13");
  try {
    find_function(library, "cuDNN", "cudnnFly", "99");
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("cuDNN lacks cudnnFly; version 99"), std::string::npos);
  }
}

TEST(Library, StatusesBecomeErrorsInTheLibrarysWords) {
  EXPECT_NO_THROW(check(CUDNN_STATUS_SUCCESS, "x"));
  EXPECT_NO_THROW(check(CUBLAS_STATUS_SUCCESS, "x"));
  EXPECT_THROW(check(CUDNN_STATUS_BAD_PARAM, "flying"), Error);
  EXPECT_THROW(check(CUBLAS_STATUS_INVALID_VALUE, "flying"), Error);
}

}  // namespace
}  // namespace skein::cuda
