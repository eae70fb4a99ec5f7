// The network interfaces of this host, as its kernel describes them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace skein::comm {

// One IPv4 address of an interface that is up.
struct Interface {
  std::string name, address;
  int prefix = 0;         // how many bits of the address name its network
  int mtu = 0;            // bytes
  int64_t megabits = -1;  // per second, as the driver says; -1: unknown (virtual interfaces, most clouds)
  bool loopback = false;
  bool inward = false;  // a bridge for containers and virtual machines, which leads to no other host

  std::string network() const;  // "10.1.0.0/24"
};

// Lists them in the kernel's order. Throws Error if the kernel does not answer.
std::vector<Interface> interfaces();

// The RDMA devices whose port is active, named as UCX does: "mlx5_0:1".
std::vector<std::string> rdma_devices();

// Whether the name looks like that of a bridge for containers or virtual machines.
bool is_inward(const std::string& name);

}  // namespace skein::comm
