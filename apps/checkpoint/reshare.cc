// The archive that applies the rules, and what they ask of the options.
#include "apps/checkpoint/reshare.h"

#include <algorithm>

#include "apps/checkpoint/reshare_rules.h"
#include "engine/vectors/vec.h"

namespace skein::apps {
namespace {

class Resharer final : public Archive {
 public:
  Resharer(const Pool& pool, std::string algorithm, bool first, Differing differing)
      : pool_(pool), algorithm_(std::move(algorithm)), first_(first), differing_(differing) {}
  bool loading() const override { return true; }

  void operator()(const std::string& name, Tensor& v) override {
    CHECK(bool(v), "state must exist before it is visited:", name);
    const How how = how_of(algorithm_, name);
    if (how == How::kZero) return skein::fill(v, 0.f);
    if (const Tensor* own = kept<Tensor>(name, how)) return copy_same(name, v, *own);
    if (!pool_.tensors().contains(name) && how == How::kOwed) return skein::fill(v, 0.f);
    if (!pool_.tensors().contains(name) && how == How::kCommon) return fill("x", v, field("x"), 0);
    const bool travels = how == How::kNumerator || how == How::kNumeratorTail;
    if (travels && pool_.tensors().contains("strategy.x")) return numerator(name, v, how);
    const Tensor& t = field(how == How::kCenter ? "strategy.center.theta" : travels ? plain(name) : name);
    if (t.dtype() != v.dtype()) pool_.refuse(text("the field '", name, "' is of another type"));
    if (v.dtype() != kF32) return copy_same(name, v, t);
    fill(name, v, t, 0);
  }
  void operator()(const std::string& name, int64_t& v) override {
    const How how = how_of(algorithm_, name);
    if (const int64_t* own = kept<int64_t>(name, how)) return void(v = *own);
    if (how == How::kZero) return void(v = 0);
    const std::vector<int64_t>* all =
        find(pool_.wholes(), how == How::kCenterVersion ? "strategy.center.version" : name);
    if (!all && name.starts_with("strategy.")) return void(v = 0);  // a single worker has no such field
    if (!all) lacks(name);
    v = how == How::kSum ? 0 : *std::max_element(all->begin(), all->end());
    if (how == How::kSum && takes_sums())
      for (const int64_t w : *all)
        if (__builtin_add_overflow(v, w, &v)) pool_.refuse(text("the counts '", name, "' are too large"));
  }
  void operator()(const std::string& name, double& v) override {
    const How how = how_of(algorithm_, name);
    if (const double* own = kept<double>(name, how)) return void(v = *own);
    if (how == How::kOne) return void(v = 1);
    const std::vector<double>* all = find(pool_.reals(), name);
    if (!all) lacks(name);
    double sum = 0;
    for (const double w : *all) sum += w;
    const bool same = std::all_of(all->begin(), all->end(), [&](double w) { return w == all->front(); });
    v = how == How::kSum ? (takes_sums() ? sum : 0) : same ? all->front() : sum / double(all->size());
  }
  void operator()(const std::string& name, std::string& v) override {
    if (const std::string* own = kept<std::string>(name, how_of(algorithm_, name))) return void(v = *own);
    const Tensor& t = field(name);
    v.assign(reinterpret_cast<const char*>(t.raw()), size_t(t.size()));
  }

 private:
  [[noreturn]] void lacks(const std::string& name) const {
    pool_.refuse(text("lacks the field '", name, "'"));
  }
  template <class T>
  static const T* find(const std::map<std::string, T>& m, const std::string& name) {
    const auto at = m.find(name);
    return at == m.end() ? nullptr : &at->second;
  }
  // What this worker itself has, where the rule leaves it.
  template <class T>
  const T* kept(const std::string& name, How how) const {
    const bool own = how == How::kMean || how == How::kSum || how == How::kOwed || how == How::kCommon;
    if (differing_ == Differing::kAllEqual || !own) return nullptr;
    const auto at = pool_.own().find(name);
    return at == pool_.own().end() ? nullptr : std::get_if<T>(&at->second);
  }
  bool takes_sums() const { return first_ && differing_ == Differing::kAllEqual; }
  const Tensor& field(const std::string& name) const {
    const Tensor* t = find(pool_.tensors(), name);
    if (!t) lacks(name);
    return *t;
  }
  // A single worker may have no separate X; then X is x.
  static std::string plain(const std::string& name) { return name == "strategy.x" ? "x" : name; }

  void numerator(const std::string& name, Tensor& v, How how) const {
    const Tensor& all = field("strategy.x");
    const int64_t parameters = field("x").size();
    if (how == How::kNumerator) return fill(name, v, all, 0);
    if (all.size() == parameters) return fill(name, v, field(name), 0);
    fill(name, v, all, parameters);
  }
  // v <- elements of t from `at` on
  void fill(const std::string& name, Tensor& v, Tensor t, int64_t at) const {
    if (t.size() - at < v.size() && name == "strategy.x")
      t = joined(t, field("buffers"));  // of a single worker: statistics travel, too
    const int64_t there = t.size() - at;
    if (t.dtype() != kF32) pool_.refuse(text("the field '", name, "' is of another type"));
    if (there < v.size() || (name != "x" && there != v.size()))
      pool_.refuse(
          text("the field '", name, "' has ", there, " elements there and ", v.size(), " in this run"));
    copy_bytes(v, t.view(v.shape(), at));
  }
  Tensor joined(const Tensor& a, const Tensor& b) const {
    if (a.dtype() != kF32 || b.dtype() != kF32) pool_.refuse("parameters are of another type");
    const Tensor all({a.size() + b.size()}, kF32);
    copy_bytes(all.view({a.size()}), a.view({a.size()}));
    copy_bytes(all.view({b.size()}, a.size()), b.view({b.size()}));
    return all;
  }
  void copy_same(const std::string& name, Tensor& v, const Tensor& t) const {
    if (t.shape() != v.shape() || t.dtype() != v.dtype())
      pool_.refuse(text("the field '", name, "' has another shape"));
    copy_bytes(v, t);
  }

  const Pool& pool_;
  const std::string algorithm_;
  const bool first_;
  const Differing differing_;
};

}  // namespace

void keep_global_batch(Config& c, const Manifest& m, int world) {
  const int before = m.identity.world;
  const int64_t batch = m.identity.global_batch;
  const std::string said =
      text(c.origin("workers").place, ' ', world, ": the run to be resumed has ", before);
  const auto refuse = [&](const std::string& why) { throw BadOption(said + why); };
  if (world != before) {
    if (c.split != "iid")
      refuse(text(", and with --split ", c.split, " each worker has its own images; resume with --workers ",
                  before));
    if (!c.record.empty() || !c.replay.empty())
      refuse(text(", as in the recording; resume with --workers ", before,
                  ", or without --record and --replay"));
  }
  if (batch < world)
    refuse(text(" workers and ", batch, " images a step over all of them, too few for ", world,
                "; --workers may be at most ", std::max<int64_t>(1, batch)));
  // Then the flags say it already, and --compare groups a run that was interrupted with those that were not.
  const bool said_already = c.batch_size.is_number() && m.shares.empty() && c.global_batch == 0;
  if (said_already && world == before && c.batch_size.most * world == batch) {
    c.workers = world;
    return;
  }
  const std::vector<int64_t>& said_shares = c.batch_size.shares;
  const bool fit = int(said_shares.size()) == world && global_batch_of(c, world) == batch;
  share_batch(c, batch, world, world == before ? m.shares : fit ? said_shares : std::vector<int64_t>());
}

void load_pooled(const Pool& pool, const std::string& algorithm, int rank, Differing differing,
                 const Walk& walk) {
  Resharer archive(pool, algorithm, rank == 0, differing);
  walk(archive);
}

Manifest load_reshared(const std::string& checkpoint, int rank, const Identity& run, const Walk& walk) {
  const Manifest m = read_manifest(checkpoint);
  Identity theirs = run;
  theirs.world = m.identity.world;
  check_identity(checkpoint, m, theirs);
  load_pooled(Pool(checkpoint, m), m.identity.algorithm, rank, Differing::kAllEqual, walk);
  return m;
}

}  // namespace skein::apps
