// The workers first compare what they give: a mean of arrays of different sizes would block or be wrong.
#include "apps/embed/job/averages.h"

#include "comm/communicator/words.h"

namespace skein::apps {
namespace {

constexpr double kNothing = 0, kFloats = 1, kDoubles = 2;  // what a worker gives

std::string described(const std::vector<double>& one) {
  if (one[0] == kNothing) return "no such array";
  return text(int64_t(one[1]), one[0] == kFloats ? " float32" : " float64");
}

void agree(comm::Communicator& all, double mine, const Tensor& x) {
  const auto of_all = comm::gather_numbers(all, {x ? mine : kNothing, x ? double(x.size()) : 0});
  for (size_t r = 0; r < of_all.size(); ++r)
    if (of_all[r] != of_all[0] || of_all[r][0] == kNothing)
      throw BadOption(
          text("average: contiguous, writable arrays of one size are wanted, of float32 or float64; ",
               "worker 0 gives ", described(of_all[0]),
               r > 0 ? text(", worker ", r, ' ', described(of_all[r])) : ""));
}

}  // namespace

void average_floats(comm::Communicator& all, const Tensor& x) {
  agree(all, kFloats, x);
  all.mean(x).wait();
}

// The sum in rank order.
void average_doubles(comm::Communicator& all, const Tensor& bits) {
  agree(all, kDoubles, bits);
  const std::vector<Tensor> every = all.gather(bits, 0);
  double* mean = reinterpret_cast<double*>(bits.data<int64_t>());
  for (size_t r = 1; r < every.size(); ++r) {
    const double* theirs = reinterpret_cast<const double*>(every[r].data<int64_t>());
    for (int64_t i = 0; i < bits.size(); ++i) mean[i] += theirs[i];
  }
  if (!every.empty())
    for (int64_t i = 0; i < bits.size(); ++i) mean[i] /= double(every.size());
  all.broadcast(bits, 0);
}

}  // namespace skein::apps
