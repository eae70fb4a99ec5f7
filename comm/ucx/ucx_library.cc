// UCX is opened by dlopen, after the settings that it reads while it loads.
#include "comm/ucx/ucx_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "engine/base.h"
#include "engine/words/file.h"

namespace skein::comm {
namespace {

constexpr const char* kFile = "libucp.so.0";

template <class F>
void look_up(void* library, const char* name, F& f) {
  f = reinterpret_cast<F>(dlsym(library, name));
  if (!f) throw Error(text("UCX lacks ", name, "; version 1.11 or later is needed: ", dlerror()));
}

// "" is the loader's choice.
std::string file_named() {
  const char* const said = std::getenv("SKEIN_UCX_LIBRARY");
  if (!said || !*said) return "";
  const std::filesystem::path place(said);
  return is_directory(place.string()) ? (place / kFile).string() : place.string();
}

void* open_library() {
  const std::string named = file_named();
  if (void* library = dlopen(named.empty() ? kFile : named.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  const std::string why = dlerror();
  throw Error(named.empty() ? text("UCX cannot be loaded: ", why,
                                   "; install it (Debian: libucx0) or use --transport shared")
                            : text("UCX cannot be loaded from SKEIN_UCX_LIBRARY=", named, ": ", why,
                                   "; install libucp.so.0 there or unset the variable"));
}

}  // namespace

Ucx open_ucx() {
  // Its signal handlers and malloc hooks break sanitizers, backtraces and Ctrl-C.
  setenv("UCX_HANDLE_ERRORS", "none", 1);
  setenv("UCX_MEM_MMAP_HOOK_MODE", "none", 1);
  setenv("UCX_WARN_UNUSED_ENV_VARS", "n", 1);
  setenv("UCX_LOG_LEVEL", "fatal", 0);  // the program reports every status itself
  setenv("UCX_LOG_FILE", "stderr", 0);  // else its warnings mix with what a program prints, such as JSON
  // Without these, error mode PEER silently rules the two out, and messages on one host go by TCP. They are
  // set in the environment because ucp_config_modify names them differently in different versions of UCX.
  setenv("UCX_POSIX_ERROR_HANDLING", "y", 0);
  setenv("UCX_SYSV_ERROR_HANDLING", "y", 0);
  void* const library = open_library();
  Ucx u;
#define SKEIN_UCX_LOOK_UP(name) look_up(library, #name, u.name);
  SKEIN_UCX_FUNCTIONS(SKEIN_UCX_LOOK_UP)
#undef SKEIN_UCX_LOOK_UP
  look_up(library, "ucs_status_string", u.ucs_status_string);
  return u;
}

}  // namespace skein::comm
