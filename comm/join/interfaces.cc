// getifaddrs and /sys/class/net.
#include "comm/join/interfaces.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <bit>
#include <filesystem>
#include <fstream>

#include "comm/join/sockets.h"

namespace skein::comm {
namespace {

namespace fs = std::filesystem;

int64_t number_in(const fs::path& file, int64_t otherwise) {
  std::ifstream in(file);
  int64_t v = 0;
  return in >> v ? v : otherwise;
}
std::string words(uint32_t network_order) {
  in_addr a{network_order};
  char text[INET_ADDRSTRLEN];
  inet_ntop(AF_INET, &a, text, sizeof text);
  return text;
}
uint32_t ip_of(const sockaddr* a) { return reinterpret_cast<const sockaddr_in*>(a)->sin_addr.s_addr; }

}  // namespace

bool is_inward(const std::string& name) {
  for (const char* start :
       {"docker", "podman", "virbr", "lxcbr", "lxdbr", "cni", "cali", "flannel", "vmnet", "vboxnet"})
    if (name.starts_with(start)) return true;
  // Docker's own networks: br- and twelve hexadecimal digits.
  return name.size() == 15 && name.starts_with("br-") &&
         name.find_first_not_of("0123456789abcdef", 3) == std::string::npos;
}

std::string Interface::network() const {
  in_addr a{};
  inet_pton(AF_INET, address.c_str(), &a);
  const uint32_t mask = prefix == 0 ? 0 : ~uint32_t(0) << (32 - prefix);
  return text(words(htonl(ntohl(a.s_addr) & mask)), '/', prefix);
}

std::vector<Interface> interfaces() {
  std::vector<Interface> all;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) fail_system("listing network interfaces");
  for (const ifaddrs* i = list; i; i = i->ifa_next) {
    if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET || !(i->ifa_flags & IFF_UP)) continue;
    Interface one{.name = i->ifa_name, .address = words(ip_of(i->ifa_addr))};
    one.name = one.name.substr(0, one.name.find(':'));  // eth0:1 is another address of eth0
    const fs::path device = fs::path("/sys/class/net") / one.name;
    one.prefix = i->ifa_netmask ? std::popcount(ip_of(i->ifa_netmask)) : 32;
    one.mtu = int(number_in(device / "mtu", 0));
    one.megabits = number_in(device / "speed", -1);
    one.loopback = (i->ifa_flags & IFF_LOOPBACK) != 0;
    one.inward = is_inward(one.name);
    all.push_back(std::move(one));
  }
  freeifaddrs(list);
  return all;
}

std::vector<std::string> rdma_devices() {
  std::vector<std::string> all;
  std::error_code none;
  for (const auto& device : fs::directory_iterator("/sys/class/infiniband", none))
    for (const auto& port : fs::directory_iterator(device.path() / "ports", none)) {
      std::ifstream in(port.path() / "state");  // "4: ACTIVE"
      std::string state;
      std::getline(in, state);
      if (state.find("ACTIVE") != std::string::npos)
        all.push_back(device.path().filename().string() + ":" + port.path().filename().string());
    }
  return all;
}

}  // namespace skein::comm
