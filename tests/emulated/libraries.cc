// Opens the real libraries with some functions replaced. It takes the place of engine/cuda/library.cc.
#include "tests/emulated/libraries.h"

#include <dlfcn.h>

#include "engine/cuda/library.h"

namespace skein::cuda {

void* open_library(const char* what, const char* file, const char*) {
  for (const std::string& path : {std::string(file), text("/usr/local/cuda/lib64/", file)})
    if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  throw Error(text(what, " cannot be loaded: ", dlerror()));
}

void* find_function(void* library, const char* what, const char* name, const char*) {
  if (void* f = emulated::cudnn_function(library, name)) return f;
  if (void* f = emulated::cublas_function(library, name)) return f;
  void* f = dlsym(library, name);
  if (!f) throw Error(text(what, " lacks ", name));
  return f;
}

}  // namespace skein::cuda
