// Assemblies: the messages whose pieces are on their way to a rank.
#pragma once
#include <list>

#include "comm/parcels.h"

namespace skein::comm {

// Headers have been found sound before. A mailbox's lock guards it.
class Assemblies {
 public:
  // Where the bytes of this piece are to be written, in memory of the allocator.
  Tensor place(const Header&, Allocator& from);
  // The bytes of place(header) are written. Returns the message with its last piece.
  std::optional<Message> placed(const Header&, const Tensor& place);
  bool has(const Key& k) const { return open_.count(k) > 0; }

 private:
  struct Assembly {
    Message message;
    std::vector<bool> placed;  // pieces that have been given a place
    size_t missing = 0;        // pieces not yet written
  };
  std::map<Key, std::list<Assembly>> open_;
};

}  // namespace skein::comm
