// The passes of mixing.h, a functor for each.
#include "engine/vectors/mixing.h"

#include <array>

#include "engine/vectors/elementwise.h"

namespace skein {
namespace {

constexpr size_t kMost = 2;  // messages, and shares, in one pass

// y <- self base + first + second + the rounding errors of share x and other_share x in W; z <- by y.
template <int kIn, int kSent, class W>
struct Mix {
  float share, other_share;
  HD static float lost(float v) { return v - float(W(v)); }
  HD void operator()(float& y, float& z, float base, float first, float second, float x, float self,
                     float by) const {
    y = self * base;
    if constexpr (kIn > 0) y += first;
    if constexpr (kIn > 1) y += second;
    if constexpr (kSent > 0) y += lost(share * x);
    if constexpr (kSent > 1) y += lost(other_share * x);
    z = by * y;
  }
};
struct ElasticPull {
  HD void operator()(float& x, float& z, float mean, float alpha, float beta) const {
    x += alpha * (z - x);
    z += beta * (mean - z);
  }
};
struct ElasticCommit {
  HD void operator()(float& z, float& e, float x, float alpha) const {
    e = alpha * (x - z);
    z += e;
  }
};
struct HalfWay {
  bool moved;
  HD void operator()(float& x, float sent, float received) const {
    float mean = 0.5f * sent;
    mean += 0.5f * received;
    x = moved ? x + mean - sent : mean;
  }
};
struct Outer {
  bool besides;
  HD void operator()(float& z, float& m, float& x, float mean, float decay, float gain, float along,
                     float beside) const {
    const float d = mean - z;
    m = decay * m;
    m += gain * d;
    z += along * m;
    z = besides ? z + beside * d : z;
    x = z;
  }
};

void check_like(const Tensor& x, std::initializer_list<const Tensor*> others) {
  for (const Tensor* t : others)
    CHECK(!*t || (t->size() == x.size() && t->device() == x.device()), x.shape(), t->shape(), x.device(),
          t->device());
}

// One pass of at most kMost messages of one type, and of as many shares if the messages are f32 or
// of the wire's type.
struct Pass {
  const MixArgs& a;
  const Tensor &base, &x;
  Scalar self;
  std::array<Tensor, kMost> in = {};
  std::array<float, kMost> sent = {};
  size_t messages = 0, shares = 0;
  Tensor z = {};

  template <int kIn, int kSent, class T, class W>
  void go() const {
    using First = std::conditional_t<(kIn > 0), T, void>;
    using Second = std::conditional_t<(kIn > 1), T, void>;
    using X = std::conditional_t<(kSent > 0), float, void>;
    each_element(a.y, Mix<kIn, kSent, W>{sent[0], sent[1]}, Write(a.y), WriteIfGiven(z), Read(base),
                 Read<First>(in[0]), Read<Second>(in[1]), Read<X>(x), Factor(self), Factor(a.by));
  }
  template <int kSent, class T, class W>
  void by_messages() const {
    if (messages == 0) return go<0, kSent, T, W>();
    messages == 1 ? go<1, kSent, T, W>() : go<2, kSent, T, W>();
  }
  void run() const {
    const DType type = messages == 0 ? kF32 : in[0].dtype();
    if (shares == 0) return visit_float(type, [&](auto t) { by_messages<0, decltype(t), bf16>(); });
    visit_float(a.wire, [&](auto w) {
      using W = decltype(w);
      if constexpr (sizeof(w) == 2) type == kF32 ? by_shares<float, W>() : by_shares<W, W>();
    });
  }
  template <class T, class W>
  void by_shares() const {
    shares == 1 ? by_messages<1, T, W>() : by_messages<2, T, W>();
  }
};

}  // namespace

void mix(const MixArgs& a) {
  check_like(a.y, {&a.x, &a.z});
  for (const Tensor& t : a.in) check_like(a.y, {&t});
  const std::vector<float> sent = a.wire == kF32 ? std::vector<float>() : a.sent;
  Tensor x = a.x, base = a.x;
  Scalar self = a.self;
  size_t messages = 0, shares = 0;
  do {
    Pass p{a, base, x, self};
    const DType t = messages < a.in.size() ? a.in[messages].dtype() : kF32;
    while (p.messages < kMost && messages < a.in.size() && a.in[messages].dtype() == t)
      p.in[p.messages++] = a.in[messages++];
    if (messages == a.in.size() && (t == kF32 || t == a.wire))
      while (p.shares < kMost && shares < sent.size()) p.sent[p.shares++] = sent[shares++];
    const bool last = messages == a.in.size() && shares == sent.size();
    if (last) p.z = a.z;
    // Shares refer to the old x, which this pass overwrites.
    if (!last && !sent.empty() && x.address() == a.y.address()) x = x.clone();
    p.run();
    base = a.y, self = 1.f;
  } while (messages < a.in.size() || shares < sent.size());
}

void elastic_pull(const Tensor& x, const Tensor& z, const Tensor& mean, Scalar alpha, Scalar beta) {
  check_like(x, {&z, &mean});
  each_element(x, ElasticPull(), Change(x), Change(z), Read(mean), Factor(alpha), Factor(beta));
}

void elastic_commit(const Tensor& z, const Tensor& e, const Tensor& x, Scalar alpha) {
  check_like(z, {&e, &x});
  visit_float(x.dtype(), [&](auto t) {
    each_element(z, ElasticCommit(), Change(z), Write(e), Read<decltype(t)>(x), Factor(alpha));
  });
}

void go_half_way(const Tensor& x, const Tensor& sent, const Tensor& received, bool moved) {
  check_like(x, {&sent, &received});
  visit_float(received.dtype(), [&](auto t) {
    each_element(x, HalfWay{moved}, Change(x), Read(sent), Read<decltype(t)>(received));
  });
}

void outer_step(const OuterStep& a) {
  check_like(a.z, {&a.m, &a.mean, &a.x});
  const bool besides = a.beside.slot || a.beside.value != 0;
  each_element(a.z, Outer{besides}, Change(a.z), Change(a.m), WriteIfGiven(a.x), Read(a.mean),
               Factor(a.decay), Factor(a.gain), Factor(a.along), Factor(a.beside));
}

}  // namespace skein
