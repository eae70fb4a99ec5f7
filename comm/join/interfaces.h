// The network interfaces of this host, as its kernel describes them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace skein::comm {

// One IPv4 address of an interface that is up.
struct Interface {
  std::string name, address;
  int prefix = 0;         // bits of the address that name its network
  int mtu = 0;            // bytes
  int64_t megabits = -1;  // a second, as the driver says; -1: it does not (virtual interfaces, most clouds)
  bool loopback = false;
  bool inward =
      false;  // of a bridge for this host's own containers and virtual machines: leads to no other host

  std::string network() const;  // "10.1.0.0/24"
};

// In the kernel's order. Throws Error if it does not answer.
std::vector<Interface> interfaces();

// Devices for RDMA as UCX names them, "mlx5_0:1", whose port is active.
std::vector<std::string> rdma_devices();

// Does the name look like that of a bridge for containers or virtual machines?
bool is_inward(const std::string& name);

}  // namespace skein::comm
