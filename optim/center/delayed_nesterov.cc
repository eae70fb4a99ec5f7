// The center's momentum, one commit at a time.
#include "optim/center/delayed_nesterov.h"

#include "engine/vectors/vec.h"
#include "engine/words/find_row.h"

namespace skein::optim {

DelayedNesterov::DelayedNesterov(const Options& o, int world)
    : n_(o.integer("server-buffer", world, 1)),
      a_(o.number("server-lr", 0.7, 0)),
      beta_(o.number("server-momentum", 0.9, 0, 0.99999)),
      c_(o.number("server-share", 0, 0, 1.0 / double(n_))) {}

void DelayedNesterov::commit(const Turn& t, const Tensor& delta) const {
  const Tensor m = t.kept(0), sum = t.kept(1);
  const bool is_nth = (t.version + 1) % n_ == 0;
  axpy(sum, 1.f, delta);
  if (is_nth) scale(m, beta_), axpy(m, 1 / double(n_), sum), fill(sum, 0.f);  // m <- beta m + mean delta
  // theta <- theta + a (c beta m + delta / N), at every N-th one (1 - c N + c) beta m
  const double share = is_nth ? 1 - c_ * double(n_) + c_ : c_;
  if (share * beta_ > 0) axpy(t.theta, a_ * share * beta_, m);
  axpy(t.theta, a_ / double(n_), delta);
}

std::optional<DelayedNesterov> delayed_nesterov(const Options& o, int world) {
  if (one_of<bool>("--server-rule", o.word("server-rule", "sum"),
                   {{"sum", false}, {"delayed-nesterov", true}}))
    return DelayedNesterov(o, world);
  for (const std::string flag : {"server-buffer", "server-lr", "server-momentum", "server-share"})
    if (!o.word(flag, "").empty())
      throw BadOption("--" + flag + ": it belongs to --server-rule delayed-nesterov, which is not given");
  return {};
}

}  // namespace skein::optim
