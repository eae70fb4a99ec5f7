// Numbers and texts that ranks tell each other. Every call but the last two is collective.
#pragma once
#include <string>
#include <vector>

#include "comm/communicator/communicator.h"

namespace skein::comm {

// Returns every rank's numbers to every rank, in rank order. All ranks give equally many.
std::vector<std::vector<double>> gather_numbers(Communicator&, const std::vector<double>& mine);

// The same while the ranks do something else: all make one, which waits for no other rank.
class Gathering {
 public:
  Gathering(Communicator&, const std::vector<double>& mine);
  bool done() { return pending_.done(); }
  std::vector<std::vector<double>> wait();

 private:
  size_t ranks_;
  Tensor all_;  // bits of the numbers of all ranks, of which each rank gives its own
  Pending pending_;
};

// Returns every rank's text, in rank order, on `root`; nothing elsewhere.
std::vector<std::string> gather_text(Communicator&, const std::string& mine, Rank root);
// Returns the text of `root` on every rank.
std::string broadcast_text(Communicator&, const std::string& mine, Rank root);

// A text as the payload of a message, and back.
Tensor bytes_of_text(const std::string&);
std::string text_of_bytes(const Tensor&);

}  // namespace skein::comm
