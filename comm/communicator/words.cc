// Gathers and broadcasts of a few numbers or words.
#include "comm/communicator/words.h"

#include "comm/communicator/numbers.h"

namespace skein::comm {
namespace {

constexpr int64_t kLongestText = int64_t(1) << 28;  // bytes

}  // namespace

Tensor bytes_of_text(const std::string& s) {
  return Tensor::of<uint8_t>({int64_t(s.size())}, {s.begin(), s.end()});
}
std::string text_of_bytes(const Tensor& t) { return {static_cast<const char*>(t.raw()), size_t(t.size())}; }

// Doubles travel as integers with the same bits, which no wire rounds.
std::vector<std::vector<double>> gather_numbers(Communicator& c, const std::vector<double>& mine) {
  const int64_t each = int64_t(mine.size());
  const Tensor all({c.size() * each}, kI64);
  const std::vector<Tensor> gathered = c.gather(bits_of(mine), 0);
  for (size_t r = 0; r < gathered.size(); ++r) {
    if (gathered[r].size() != each)
      throw Disagreement(text("rank ", r, " told ", gathered[r].size(), " numbers, rank 0 ", each,
                              "; do all run the same version?"));
    copy_bytes(all.view({each}, int64_t(r) * each), gathered[r]);
  }
  c.broadcast(all, 0);
  return rows_of(numbers_of(all), size_t(c.size()));
}

// Zeros in place of the others' numbers, so that the sum of all is everybody's.
Gathering::Gathering(Communicator& c, const std::vector<double>& mine)
    : ranks_(size_t(c.size())), all_(Tensor::zeros({c.size() * int64_t(mine.size())}, kI64)) {
  copy_bytes(all_.view({int64_t(mine.size())}, c.rank() * int64_t(mine.size())), bits_of(mine));
  pending_ = c.all_reduce(all_);
}

std::vector<std::vector<double>> Gathering::wait() {
  pending_.wait();
  return rows_of(numbers_of(all_), ranks_);
}

std::vector<std::string> gather_text(Communicator& c, const std::string& mine, Rank root) {
  std::vector<std::string> all;
  for (const Tensor& t : c.gather(bytes_of_text(mine), root)) all.push_back(text_of_bytes(t));
  return all;
}

std::string broadcast_text(Communicator& c, const std::string& mine, Rank root) {
  const Tensor length = Tensor::of<int64_t>({1}, {int64_t(mine.size())});
  c.broadcast(length, root);
  const int64_t n = length.data<int64_t>()[0];
  if (n < 0 || n > kLongestText)
    throw Disagreement(
        text("rank ", root, " announced a text of ", n, " bytes; do all run the same version?"));
  const Tensor bytes = c.rank() == root ? bytes_of_text(mine) : Tensor({n}, kU8);
  c.broadcast(bytes, root);
  return text_of_bytes(bytes);
}

}  // namespace skein::comm
