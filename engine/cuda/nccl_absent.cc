// In the place of NCCL where its header was missing when this was compiled. One GPU needs no NCCL; several
// sum by way of the host.
#include "engine/device/device_group.h"

namespace skein::cuda {

DeviceGroups nccl_groups() {
  throw Error(
      "this program was built without NCCL; install NCCL's header (libnccl-dev) and build it again, or use "
      "--collectives host");
}

}  // namespace skein::cuda
