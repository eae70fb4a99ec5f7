// The version of the library that is linked, which need not be that of the headers.
#pragma once

namespace skein {

// "0.1.0", as in SKEIN_VERSION.
const char* version();

}  // namespace skein
