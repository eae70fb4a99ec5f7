// PushSum: what one worker holds of a push-sum, a numerator X and its weight w.
#pragma once
#include "optim/strategy.h"

namespace skein::optim {

// The worker's model is z = X / w. With --bn-policy mix, w times the running statistics lie behind X in the
// same vector. Not thread-safe.
class PushSum {
 public:
  void start(const Worker&, bool mixes_buffers);  // X = x, w = 1

  const Tensor& x() const { return x_; }      // X, which the worker's step may change
  const Tensor& all() const { return all_; }  // with the running statistics
  double w() const { return w_; }

  void show(Worker& me) const;       // me.x <- z
  void take_buffers(const Worker&);  // the statistics, which forward passes have changed,
  void give_buffers(Worker&) const;  // and the worker's, from them
  // X += all of these, w += theirs, in this order.
  void add(const std::vector<Tensor>& in, const std::vector<double>& w);
  void keep(double part) { w_ *= part; }  // of w; the caller has scaled X
  void set(double w) { w_ = w; }          // the caller has written all()
  void visit(Archive&);

 private:
  Tensor all_, x_, b_;
  double w_ = 1;
};

}  // namespace skein::optim
