// Replaces NCCL if its header was missing at compile time. One GPU needs no NCCL; several
// sum through the host.
#include "engine/device/device_group.h"

namespace skein::cuda {

DeviceGroups nccl_groups() {
  throw Error(
      "this program was built without NCCL; install NCCL's header (libnccl-dev) and build it again, or use "
      "--collectives host");
}

}  // namespace skein::cuda
