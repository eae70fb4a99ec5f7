// What CUDA knows about memory that another library of the process has taken.
#pragma once

namespace skein::cuda {

int device_of_foreign(const void*);  // the index of its GPU; throws Error if it belongs to none

}  // namespace skein::cuda
