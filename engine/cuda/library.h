// Opens vendor libraries at run time, so that a program starts without them and reports a missing one
// when it is needed.
#pragma once
#include "engine/base.h"

namespace skein::cuda {

// Opens `file` as the loader finds it, else from the toolkit's usual place. Throws Error that names `what`
// and says what to install.
void* open_library(const char* what, const char* file, const char* package);
// The function's address. Throws Error naming it and the least version that has it.
void* find_function(void* library, const char* what, const char* name, const char* since);

// Fills one member of a table of functions; the member has the function's name.
#define SKEIN_MEMBER(name) decltype(&::name) name = nullptr;

}  // namespace skein::cuda
