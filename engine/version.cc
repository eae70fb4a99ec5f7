// The version. It can also be read from the archive: grep -ao 'skein version [0-9.]*' libskein.a.
#include "engine/version.h"

namespace skein {

const char* version() {
  static constexpr char kWords[] = "skein version " SKEIN_VERSION;
  return kWords + sizeof("skein version ") - 1;
}

}  // namespace skein
