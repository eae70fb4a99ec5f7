// DiLoCo: a round's progress is the gradient of an outer optimizer.  Douillard et al., 2023, Algorithm 1.
// Streaming DiLoCo: piece by piece, while the next steps compute. Douillard et al., 2025. Eager DiLoCo: the
// others' progress in the last round, and the worker's own in this one. Kale, Douillard & Donchev, 2025.
//
//   z      what all agreed on last      m    outer momentum      nu, mu  outer rate and momentum
//   Delta  z - mean x                   o_f  when piece f of F sets out in a period      d  steps it travels
//   z_i    eager: the anchor of worker i      Delta_i  z_i - x_i, what worker i did in a round
#include "optim/periodic/outer.h"
#include "optim/periodic/periodic.h"

namespace skein::optim {
namespace {

class DiLoCo final : public Anchored {
 public:
  explicit DiLoCo(const Options& o) : Anchored(o, 100), outer_(o) {}

  Tensor iterate(Worker& me, int64_t k) override {
    const Tensor loss = me.gradient();
    if (const Tensor mean = round_.step(me, k)) {     // x_i <- x_i - eta u_i
      outer_.step(round_.of(k), z_, m_, mean, me.x);  // x_i <- z <- OuterOpt(z, z - mean x)
      outer_.reset_inner(me.rule);
    }
    return loss;
  }

 private:
  const Outer outer_;
};

// At the beginning of a round the others know what this worker has learned (Shared), except for what it has
// added to pieces that set out later in a period.
class StreamingDiLoCo final : public Anchored {
 public:
  explicit StreamingDiLoCo(const Options& o)
      : Anchored(o),
        options_(o),
        fragments_(o.integer("fragments", 4, 1)),
        delay_(o.integer("delay", 0)),
        keep_(o.number("mix", 0, 0, 1)),
        outer_(o) {
    if (delay_ < 0 || delay_ >= round_.tau())
      throw BadOption(text("--delay ", delay_, ": allowed is from 0 to ", round_.tau() - 1,
                           ", less than --tau, so that a piece is back before it sets out again"));
  }

  void start(Worker& me) override {
    begin_at(me);
    const int64_t size = me.x.size();
    for (int64_t f = 0; f < fragments_; ++f) {
      const int64_t offset = f * round_.tau() / fragments_, end = size * (f + 1) / fragments_;
      if (!pieces_.empty() && pieces_.back()->offset == offset)
        pieces_.back()->end = end;  // more fragments than steps: those of one step travel as one
      else
        pieces_.push_back(std::make_unique<Piece>(options_, offset, size * f / fragments_, end));
    }
    if (delay_ == 0) round_.start(me, z_);
    for (auto& p : pieces_)
      if (delay_ > 0) p->flight.start(me, p->of(me.x), p->of(z_));
  }

  Tensor iterate(Worker& me, int64_t k) override {
    for (auto& p : pieces_) p->flight.carry_on(me);
    const Tensor loss = me.gradient();
    Piece *leaves = due(k + 1), *lands = due(k + 1 - delay_);
    Means mean;
    if (lands && delay_ == 0) {
      mean = round_.last_step(me, lands->begin, lands->end, lands->offset == 0);
    } else {
      if (lands) mean = lands->flight.land();
      me.local_step(me.x);  // x_i <- x_i - eta u_i
    }
    if (lands) {
      const Tensor x = lands->of(me.x), z = lands->of(z_);
      // z_f <- OuterOpt(z_f, z_f - mean x_f of d steps ago), x_f <- a x_f + (1 - a) z_f
      outer_.step(round_.of(k - delay_), z, lands->of(m_), mean.x, keep_ == 0 ? x : Tensor());
      if (keep_ != 0) lerp(x, z, 1 - keep_);
      mean.give_buffers(me);
      if (lands->offset == 0) outer_.reset_inner(me.rule);
    }
    if (leaves && delay_ > 0) leaves->flight.set_out(me, leaves->of(me.x));
    return loss;
  }

  void finish(Worker&) override {
    for (auto& p : pieces_) p->flight.finish();
  }

  Shared shared() override {
    Shared s = Periodic::shared();
    if (delay_ > 0)
      s.arrived = [this](Archive& a) {
        for (size_t f = 0; f < pieces_.size(); ++f) {
          Under flight(a, text("flight", f, "."));
          pieces_[f]->flight.visit_arrived(flight);
        }
      };
    return s;
  }
  void visit(Archive& a) override {
    visit_anchor(a);
    if (delay_ == 0) Periodic::visit(a);
    for (size_t f = 0; f < pieces_.size() && delay_ > 0; ++f) {
      Under flight(a, text("flight", f, "."));
      pieces_[f]->flight.visit(flight);
    }
  }

 private:
  struct Piece {
    Piece(const Options& o, int64_t offset, int64_t begin, int64_t end)
        : offset(offset), begin(begin), end(end), flight(o, offset == 0) {}
    Tensor of(const Tensor& x) const { return x.view({end - begin}, begin); }
    const int64_t offset, begin;
    int64_t end;
    Flight flight;
  };

  // The piece whose mean is that of the models after step t; steps count from 1.
  Piece* due(int64_t t) {
    for (auto& p : pieces_)
      if (t > 0 && t % round_.tau() == p->offset) return p.get();
    return nullptr;
  }

  const Options options_;
  const int64_t fragments_, delay_;
  const double keep_;
  const Outer outer_;
  std::vector<std::unique_ptr<Piece>> pieces_;
};

class EagerDiLoCo final : public Overlapped {
 public:
  explicit EagerDiLoCo(const Options& o) : Overlapped(o, 100), outer_(o) {}

  void start(Worker& me) override {
    z_ = me.x.clone();
    m_ = Tensor::zeros(z_.shape(), kF32, z_.device()), mine_ = m_.clone(), delta_ = m_.clone();
    flight_.start(me, mine_, m_.clone());  // a codec takes Delta_i as it is, a difference already
  }

  Tensor iterate(Worker& me, int64_t k) override {
    flight_.carry_on(me);
    const Tensor loss = me.gradient();
    const Means before = round_.ends(k) ? flight_.land() : Means();  // mean Delta of the round before
    me.local_step(me.x);                                             // x_i <- x_i - eta u_i
    if (!round_.ends(k)) return loss;
    const double n = me.comm.size();
    copy(mine_, z_), axpy(mine_, -1.f, me.x);  // Delta_i <- z_i - x_i
    fill(delta_, 0.f);                         // Delta <- mean Delta' + (Delta_i - Delta'_i) / n
    if (before)
      scaled_copy(delta_, -1 / n, flight_.own()), axpy(delta_, 1.f, before.x), before.give_buffers(me);
    axpy(delta_, 1 / n, mine_);
    flight_.set_out(me, mine_);
    outer_.step_along(round_.of(k), delta_, z_, m_);
    copy(me.x, z_);  // x_i <- z_i <- OuterOpt(z_i, Delta)
    outer_.reset_inner(me.rule);
    return loss;
  }

  void visit(Archive& a) override { a("z", z_), a("m", m_), Overlapped::visit(a); }

 private:
  const Outer outer_;
  Tensor z_, m_;
  Tensor mine_, delta_;  // scratch
};

}  // namespace

std::unique_ptr<Strategy> make_eager_diloco(const Options& o, int) {
  return std::make_unique<EagerDiLoCo>(o);
}
std::unique_ptr<Strategy> make_diloco(const Options& o, int) { return std::make_unique<DiLoCo>(o); }
std::unique_ptr<Strategy> make_streaming_diloco(const Options& o, int) {
  return std::make_unique<StreamingDiLoCo>(o);
}

}  // namespace skein::optim
