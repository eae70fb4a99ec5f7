// dlopen for the CUDA libraries, with messages that say what to install when one is missing.
#include "engine/cuda/library.h"

#include <dlfcn.h>

namespace skein::cuda {

void* open_library(const char* what, const char* file, const char* package) {
  std::string reasons;
  for (const std::string& path : {std::string(file), text("/usr/local/cuda/lib64/", file)}) {
    if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    if (const char* why = dlerror()) reasons += text(reasons.empty() ? "" : "; ", why);
  }
  throw Error(text(what, " cannot be loaded: ", reasons, ". Install it (Debian, Ubuntu: ", package,
                   ") or name its folder in LD_LIBRARY_PATH; or run with --device cpu"));
}

void* find_function(void* library, const char* what, const char* name, const char* since) {
  void* f = dlsym(library, name);
  if (!f) throw Error(text(what, " lacks ", name, "; version ", since, " or later is needed"));
  return f;
}

}  // namespace skein::cuda
