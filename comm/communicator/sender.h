// Sender: packs payloads in the type they travel in, on the host or where they lie, and sends them.
#pragma once
#include "comm/communicator/group.h"

namespace skein::comm {

// Thread-safe.
class Sender {
 public:
  explicit Sender(Group& g) : g_(g) {}
  // Whose memory the payload is while it travels: kCopied leaves x to the caller; kLent may send the memory
  // of x itself, which must not change before the peers have used it.
  enum class Memory : uint8_t { kCopied, kLent };
  void send(const std::vector<Share>&, Tag, int64_t step, const Tensor& x, uint32_t layout,
            Memory = Memory::kCopied);
  // Sends f32 numbers that lie in the wire's type already, in memory that is lent.
  void send_buffer(const Share&, Tag, int64_t step, const Tensor& filled);

 private:
  struct Packed;
  int64_t counted(const Header&) const;  // bytes on the network
  Header header(Tag, int64_t step, const Tensor& x, DType wire, uint32_t layout) const;
  void send_same(const std::vector<Share>&, const Header&, const Tensor& source, bool as_it_is);
  void send_from_host(const std::vector<Share>&, Header, const Tensor& source, bool as_it_is);
  Packed packed_for(const Header&, const Tensor& source, float factor, bool as_it_is);
  void send_one(const Share&, Header, const Tensor& payload);

  Group& g_;
};

// y <- a x on the host, y of the type in which x travels. With a = 1 and equal types every bit arrives.
void pack(const Tensor& y, float a, const Tensor& x);

}  // namespace skein::comm
