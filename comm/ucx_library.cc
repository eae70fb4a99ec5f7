// UCX's functions: dlopen, with the settings the library reads while it loads.
#include "comm/ucx_library.h"

#include <dlfcn.h>

#include <cstdlib>

#include "engine/base.h"

namespace skein::comm {
namespace {

template <class F>
void look_up(void* library, const char* name, F& f) {
  f = reinterpret_cast<F>(dlsym(library, name));
  if (!f) throw Error(text("UCX lacks ", name, "; version 1.11 or later is needed: ", dlerror()));
}

Ucx open() {
  // Its signal handlers and malloc hooks break sanitizers, backtraces and Ctrl-C. Read when the library
  // loads.
  setenv("UCX_HANDLE_ERRORS", "none", 1);
  setenv("UCX_MEM_MMAP_HOOK_MODE", "none", 1);
  setenv("UCX_WARN_UNUSED_ENV_VARS", "n", 1);
  setenv("UCX_LOG_FILE", "stderr", 0);  // else its warnings stand amid what a program prints, JSON included
  // Error mode PEER silently rules these two out otherwise, and messages on one host go by TCP. By
  // environment, because ucp_config_modify knows settings of single transports by names that differ between
  // versions of UCX.
  setenv("UCX_POSIX_ERROR_HANDLING", "y", 0);
  setenv("UCX_SYSV_ERROR_HANDLING", "y", 0);
  void* library = dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw Error(text("UCX cannot be loaded: ", dlerror(),
                     "; install it (Debian: libucx0) or use --transport shared"));
  Ucx u;
#define SKEIN_UCX_LOOK_UP(name) look_up(library, #name, u.name);
  SKEIN_UCX_FUNCTIONS(SKEIN_UCX_LOOK_UP)
#undef SKEIN_UCX_LOOK_UP
  look_up(library, "ucs_status_string", u.ucs_status_string);
  return u;
}

}  // namespace

const Ucx& ucx() {
  static const Ucx u = open();
  return u;
}

void check(ucs_status_t s, const char* what) {
  if (s != UCS_OK) throw Error(text("UCX: ", what, ": ", ucx().ucs_status_string(s)));
}

}  // namespace skein::comm
