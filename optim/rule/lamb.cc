// Layer-wise adaptive moments for large batches.  You et al., ICLR 2020, Algorithm 2; as timm's Lamb.
//
//   u_s   AdamW's direction of segment s, weight decay included      w_s   its weights
//
//   w_s <- w_s - eta (|w_s| / |u_s|) u_s;  as in timm, segments without weight decay (norms, biases, all of
//   them if --weight-decay is 0) by u_s itself
//
// timm clips the gradient of all segments at norm 1 first: that is --clip-norm 1.
#include "optim/rule/moments.h"

namespace skein::optim {
namespace {

class Lamb final : public Rule {
 public:
  Lamb(const Options& o, const RuleTask& task)
      : segments_(task.segments),
        moments_(o, task, 1e-6),
        u_(task.like.shape(), kF32, task.like.device()),
        ratio_({int64_t(segments_.all().size())}, kF32, task.like.device()),
        decay_(task.weight_decay) {}

  void step(const Tensor& x, const Tensor& g, const Tensor& at, Scalar lr) override {
    adam_direction(u_, moments_.next(g, at));
    const Tensor w(ratio_.shape(), kF32, ratio_.device()), u(ratio_.shape(), kF32, ratio_.device());
    segments_.sum_squares(w, at);
    segments_.sum_squares(u, u_);
    trust_ratios(ratio_, segments_, decay_, w, u);
    segment_step(x, u_, segments_, ratio_, lr);
  }
  const float* on() const override { return moments_.on(); }
  void reset() override { moments_.reset(); }
  void visit(Archive& a) override { moments_.visit(a); }

 private:
  const Segments segments_;
  Moments moments_;
  const Tensor u_, ratio_;  // scratch: the direction; of each segment, what it is multiplied by
  const double decay_;
};

}  // namespace

std::unique_ptr<Rule> make_lamb_rule(const Options& o, const RuleTask& task) {
  return std::make_unique<Lamb>(o, task);
}

}  // namespace skein::optim
