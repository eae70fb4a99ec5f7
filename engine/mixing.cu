// One functor for each pass.
#include "engine/mixing.h"

#include "engine/packets.h"

namespace skein {
namespace {

constexpr int kMost = 2;  // messages, and shares, of one pass

// y <- self base + in[0] + in[1] + what W took from sent[k] x; z <- by y.
template <int kIn, int kSent, class T, class W>
struct Mix {
  float *y, *z;
  const float *base, *x;
  const T* in[kMost];
  float sent[kMost];
  Scalar self, by;
  void settle() { settle_all(self, by); }
  HD static float lost(float share) { return share - float(W(share)); }
  template <int N>
  HD void operator()(int64_t i, Lanes<N>) const {
    float p[N], q[N];
    load(q, base, i);
    for (int j = 0; j < N; ++j) p[j] = self.get() * q[j];
    if constexpr (kIn > 0) {
      load(q, in[0], i);
      for (int j = 0; j < N; ++j) p[j] += q[j];
    }
    if constexpr (kIn > 1) {
      load(q, in[1], i);
      for (int j = 0; j < N; ++j) p[j] += q[j];
    }
    if constexpr (kSent > 0) {
      load(q, x, i);
      for (int j = 0; j < N; ++j) {
        p[j] += lost(sent[0] * q[j]);
        if constexpr (kSent > 1) p[j] += lost(sent[1] * q[j]);
      }
    }
    store(y, i, p);
    if (!z) return;
    for (int j = 0; j < N; ++j) p[j] = by.get() * p[j];
    store(z, i, p);
  }
};

struct ElasticPull {
  float *x, *z;
  const float* mean;
  Scalar alpha, beta;
  void settle() { settle_all(alpha, beta); }
  template <int N>
  HD void operator()(int64_t i, Lanes<N>) const {
    float p[N], q[N], m[N];
    load(p, x, i), load(q, z, i), load(m, mean, i);
    for (int j = 0; j < N; ++j) {
      p[j] += alpha.get() * (q[j] - p[j]);
      q[j] += beta.get() * (m[j] - q[j]);
    }
    store(x, i, p), store(z, i, q);
  }
};

template <class T>
struct ElasticCommit {
  float *z, *e;
  const T* x;
  Scalar alpha;
  void settle() { settle_all(alpha); }
  template <int N>
  HD void operator()(int64_t i, Lanes<N>) const {
    float p[N], q[N];
    load(p, x, i), load(q, z, i);
    for (int j = 0; j < N; ++j) {
      p[j] = alpha.get() * (p[j] - q[j]);
      q[j] += p[j];
    }
    store(e, i, p), store(z, i, q);
  }
};

struct Outer {
  float *z, *m, *x;
  const float* mean;
  Scalar decay, gain, along, beside;
  bool besides;
  void settle() { settle_all(decay, gain, along, beside); }
  template <int N>
  HD void operator()(int64_t i, Lanes<N>) const {
    float p[N], q[N], d[N];
    load(p, z, i), load(q, m, i), load(d, mean, i);
    for (int j = 0; j < N; ++j) {
      d[j] -= p[j];
      q[j] = decay.get() * q[j];
      q[j] += gain.get() * d[j];
      p[j] += along.get() * q[j];
      p[j] = besides ? p[j] + beside.get() * d[j] : p[j];
    }
    store(z, i, p), store(m, i, q);
    if (x) store(x, i, p);
  }
};

void check_like(const Tensor& x, std::initializer_list<const Tensor*> others) {
  for (const Tensor* t : others)
    CHECK(!*t || (t->size() == x.size() && t->device() == x.device()), x.shape(), t->shape(), x.device(),
          t->device());
}

// One pass of at most kMost messages of one type, and of at most kMost shares where the messages are f32 or of the
// wire's type.
struct Pass {
  const MixArgs& a;
  const Tensor &base, &x;
  Scalar self;
  std::vector<Tensor> in;
  std::vector<float> sent;
  Tensor z;

  template <int kIn, int kSent, class T, class W>
  void go() const {
    bool packets = aligned({&a.y, &base, &x, &z});
    Mix<kIn, kSent, T, W> f{
        a.y.out<float>(), z ? z.out<float>() : nullptr, base.in<float>(), x.in<float>(), {}, {}, self, a.by};
    for (int k = 0; k < kIn; ++k) {
      packets = packets && aligned({&in[size_t(k)]});
      f.in[k] = in[size_t(k)].template in<T>();
    }
    for (int k = 0; k < kSent; ++k) f.sent[k] = sent[size_t(k)];
    for_each_packet(a.y.device(), a.y.size(), packets, f);
  }
  template <int kSent, class T, class W>
  void by_messages() const {
    if (in.empty()) return go<0, kSent, T, W>();
    in.size() == 1 ? go<1, kSent, T, W>() : go<2, kSent, T, W>();
  }
  void run() const {
    const DType type = in.empty() ? kF32 : in[0].dtype();
    if (sent.empty()) return visit_float(type, [&](auto t) { by_messages<0, decltype(t), bf16>(); });
    visit_float(a.wire, [&](auto w) {
      using W = decltype(w);
      if constexpr (sizeof(w) == 2) type == kF32 ? by_shares<float, W>() : by_shares<W, W>();
    });
  }
  template <class T, class W>
  void by_shares() const {
    sent.size() == 1 ? by_messages<1, T, W>() : by_messages<2, T, W>();
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
    Pass p{a, base, x, self, {}, {}, {}};
    const DType t = messages < a.in.size() ? a.in[messages].dtype() : kF32;
    while (p.in.size() < kMost && messages < a.in.size() && a.in[messages].dtype() == t)
      p.in.push_back(a.in[messages++]);
    if (messages == a.in.size() && (t == kF32 || t == a.wire))
      while (p.sent.size() < kMost && shares < sent.size()) p.sent.push_back(sent[shares++]);
    const bool last = messages == a.in.size() && shares == sent.size();
    if (last) p.z = a.z;
    // Shares are of x as it was; another pass may not find it so.
    if (!last && !sent.empty() && x.address() == a.y.address()) x = x.clone();
    p.run();
    base = a.y, self = 1.f;
  } while (messages < a.in.size() || shares < sent.size());
}

void elastic_pull(const Tensor& x, const Tensor& z, const Tensor& mean, Scalar alpha, Scalar beta) {
  check_like(x, {&z, &mean});
  for_each_packet(x.device(), x.size(), aligned({&x, &z, &mean}),
                  ElasticPull{x.out<float>(), z.out<float>(), mean.in<float>(), alpha, beta});
}

void elastic_commit(const Tensor& z, const Tensor& e, const Tensor& x, Scalar alpha) {
  check_like(z, {&e, &x});
  visit_float(x.dtype(), [&](auto t) {
    using T = decltype(t);
    for_each_packet(z.device(), z.size(), aligned({&z, &e, &x}),
                    ElasticCommit<T>{z.out<float>(), e.out<float>(), x.in<T>(), alpha});
  });
}

void outer_step(const OuterStep& a) {
  check_like(a.z, {&a.m, &a.mean, &a.x});
  const bool besides = a.beside.slot || a.beside.value != 0;
  for_each_packet(a.z.device(), a.z.size(), aligned({&a.z, &a.m, &a.mean, &a.x}),
                  Outer{a.z.out<float>(), a.m.out<float>(), a.x ? a.x.out<float>() : nullptr,
                        a.mean.in<float>(), a.decay, a.gain, a.along, a.beside, besides});
}

}  // namespace skein
