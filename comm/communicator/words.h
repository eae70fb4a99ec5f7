// Numbers and texts that ranks tell each other. Every call is collective.
#pragma once
#include <string>
#include <vector>

#include "comm/communicator/communicator.h"

namespace skein::comm {

// Every rank's numbers, in rank order, on every rank; as many from each.
std::vector<std::vector<double>> gather_numbers(Communicator&, const std::vector<double>& mine);

// Every rank's text, in rank order, on `root`; elsewhere nothing.
std::vector<std::string> gather_text(Communicator&, const std::string& mine, Rank root);
// The text of `root`, on every rank.
std::string broadcast_text(Communicator&, const std::string& mine, Rank root);

// A text as the payload of a message, and back.
Tensor bytes_of_text(const std::string&);
std::string text_of_bytes(const Tensor&);

}  // namespace skein::comm
