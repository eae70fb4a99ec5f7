// The rules that turn the state of N workers into that of M, one row per field, and the
// archive that applies them.
#include "apps/checkpoint/reshare.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "apps/launch/host_list.h"
#include "apps/model/safetensors.h"
#include "data/sources/split.h"
#include "engine/words/number.h"

namespace skein::apps {
namespace {

// If no row says otherwise: tensors and real numbers become the mean over the workers that have the field,
// which changes nothing if all have the same; whole numbers the largest; strings those of worker 0.
enum class How : uint8_t {
  kMean,
  kSum,            // worker 0 gets the sum, the others 0
  kCenter,         // the center's vector, as a joining worker pulls it
  kCenterVersion,  // the center's version
  kNumerator,      // sum of all X / sum of all w, including messages in flight
  kNumeratorTail,  // the part of X behind the parameters: the running statistics that travel with them
  kLeast,          // elementwise minimum
  kOne,
  kZero,
};
struct Row {
  std::string algorithms;  // empty: all
  std::string field;       // `*` ends a prefix
  How how;
};
const std::vector<Row>& table() {
  static const std::string pullers = " downpour dynsgd agn gem ", gossips = " sgp osgp ad-psgd ";
  static const std::vector<Row> rows = {
      {"", "meters.*", How::kSum},
      {"", "transfers.*", How::kSum},
      {"", "unreadable*", How::kSum},
      {"", "loss_scale.scale", How::kLeast},
      {pullers, "x", How::kCenter},
      {pullers, "strategy.pulled", How::kCenter},
      {pullers, "strategy.s", How::kCenter},
      {pullers, "strategy.version", How::kCenterVersion},
      {"", "strategy.center.log", How::kZero},
      {gossips, "strategy.x", How::kNumerator},
      {gossips, "x", How::kNumerator},
      {" osgp ad-psgd ", "buffers", How::kNumeratorTail},
      {gossips, "strategy.w", How::kOne},
      {" osgp ", "strategy.age", How::kZero},
      {" osgp ", "strategy.ahead", How::kZero},
      {" osgp ", "strategy.aloft", How::kZero},
      {" osgp ", "strategy.flights", How::kZero},
      {" osgp ad-psgd ", "strategy.log", How::kZero},
  };
  return rows;
}

How how_of(const std::string& algorithm, const std::string& field) {
  for (const Row& r : table()) {
    if (!r.algorithms.empty() && r.algorithms.find(' ' + algorithm + ' ') == std::string::npos) continue;
    const bool prefix = r.field.back() == '*';
    if (prefix ? field.starts_with(r.field.substr(0, r.field.size() - 1)) : field == r.field) return r.how;
  }
  return How::kMean;
}

// The state of all old workers, summed if possible.
struct Pool {
  struct Field {
    Tensor first;             // the tensor of the lowest worker that has the field
    std::vector<double> sum;  // over the workers, of f32
    std::vector<double> least;
    int64_t workers = 0;
  };
  std::map<std::string, Field> tensors;
  std::map<std::string, std::vector<double>> reals;
  std::map<std::string, std::vector<int64_t>> wholes;
  double weight = 0;  // push-sum's weight of all workers and messages in flight

  void add(const std::string& path, const std::string& name, const Tensor& t);
  void add(const std::string& path, const std::string& name, const std::string& number);
};

// "strategy.flight3.x" of osgp: a share in flight, which is part of the sum of all X.
bool is_flight(const std::string& name, const char* part) {
  return name.starts_with("strategy.flight") && name.ends_with(part);
}

void Pool::add(const std::string& path, const std::string& name, const Tensor& t) {
  const bool flies = is_flight(name, ".x");
  Field& f = tensors[flies ? "strategy.x" : name];
  if (!flies) ++f.workers;
  if (!f.first) f.first = flies ? t : t.clone();
  if (t.dtype() != kF32) return;
  if (f.sum.empty()) f.sum.resize(size_t(t.size()), 0.0);
  const bool small = how_of("", name) == How::kLeast;
  if (small && f.least.empty()) f.least.resize(size_t(t.size()), INFINITY);
  if (int64_t(f.sum.size()) != t.size())
    throw BadFile(text(path, ": the field '", name, "' has another size than the other workers'"));
  const float* x = t.data<float>();
  for (int64_t i = 0; i < t.size(); ++i) f.sum[size_t(i)] += x[i];
  for (size_t i = 0; i < f.least.size(); ++i) f.least[i] = std::min(f.least[i], double(x[i]));
}

void Pool::add(const std::string& path, const std::string& name, const std::string& number) {
  const auto parse = [&](const char* kind, auto& v) {
    const auto n = number_in<std::remove_reference_t<decltype(v)>>(number.substr(std::string(kind).size()));
    if (!n) throw BadFile(text(path, ": '", name, "' is not a number: ", number));
    v = *n;
  };
  if (number.starts_with("int ")) {
    int64_t v = 0;
    parse("int ", v);
    wholes[name].push_back(v);
  } else if (number.starts_with("real ")) {
    double v = 0;
    parse("real ", v);
    reals[name].push_back(v);
    if (name == "strategy.w" || is_flight(name, ".weight")) weight += v;
  }
}

class Resharer final : public Archive {
 public:
  Resharer(const std::string& checkpoint, const Manifest& m, bool first)
      : checkpoint_(checkpoint), algorithm_(m.identity.algorithm), first_(first) {
    for (size_t r = 0; r < m.files.size(); ++r) {
      const std::string path = checkpoint + '/' + m.files[r];
      const TensorFile file = read_safetensors(path, m.sums[r]);
      for (const auto& [name, t] : file.tensors) pool_.add(path, name, t);
      for (const auto& [name, number] : file.metadata) pool_.add(path, name, number);
    }
  }
  bool loading() const override { return true; }

  void operator()(const std::string& name, Tensor& v) override {
    CHECK(bool(v), "state must exist before it is visited:", name);
    const How how = how_of(algorithm_, name);
    const bool travels = how == How::kNumerator || how == How::kNumeratorTail;
    if (travels && pool_.tensors.contains("strategy.x")) return numerator(name, v, how);
    const Pool::Field& f = field(how == How::kCenter ? "strategy.center.theta"
                                 : travels           ? plain(name)
                                                     : name);
    if (f.first.dtype() != v.dtype()) refuse(text("the field '", name, "' is of another type"));
    if (v.dtype() != kF32) return copy_same(name, v, f.first);
    if (how == How::kLeast) return fill(name, v, f.least, 0, 1);
    fill(name, v, f.sum, 0, double(f.workers));
  }
  void operator()(const std::string& name, int64_t& v) override {
    const How how = how_of(algorithm_, name);
    if (how == How::kZero) return void(v = 0);
    const std::vector<int64_t>* all =
        find(pool_.wholes, how == How::kCenterVersion ? "strategy.center.version" : name);
    if (!all && name.starts_with("strategy.")) return void(v = 0);  // a single worker has no such field
    if (!all) refuse(text("lacks the field '", name, "'"));
    v = how == How::kSum ? 0 : *std::max_element(all->begin(), all->end());
    if (how == How::kSum && first_)
      for (const int64_t w : *all)
        if (__builtin_add_overflow(v, w, &v)) refuse(text("the counts '", name, "' are too large"));
  }
  void operator()(const std::string& name, double& v) override {
    const How how = how_of(algorithm_, name);
    if (how == How::kOne) return void(v = 1);
    const std::vector<double>* all = find(pool_.reals, name);
    if (!all) refuse(text("lacks the field '", name, "'"));
    double sum = 0;
    for (const double w : *all) sum += w;
    const bool same = std::all_of(all->begin(), all->end(), [&](double w) { return w == all->front(); });
    v = how == How::kSum ? (first_ ? sum : 0) : same ? all->front() : sum / double(all->size());
  }
  void operator()(const std::string& name, std::string& v) override {
    const Tensor& t = field(name).first;
    v.assign(reinterpret_cast<const char*>(t.raw()), size_t(t.size()));
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw BadFile(text(checkpoint_, ": ", why, "; resume with the options and the version that wrote it"));
  }
  template <class T>
  static const T* find(const std::map<std::string, T>& m, const std::string& name) {
    const auto at = m.find(name);
    return at == m.end() ? nullptr : &at->second;
  }
  const Pool::Field& field(const std::string& name) const {
    const Pool::Field* f = find(pool_.tensors, name);
    if (!f) refuse(text("lacks the field '", name, "'"));
    return *f;
  }
  // A single worker may have no separate X; then X is x.
  static std::string plain(const std::string& name) { return name == "strategy.x" ? "x" : name; }

  void numerator(const std::string& name, Tensor& v, How how) const {
    const Pool::Field& all = field("strategy.x");
    const int64_t size = int64_t(all.sum.size()), parameters = field("x").first.size();
    const double by = pool_.weight > 0 ? pool_.weight : double(all.workers);
    if (how == How::kNumerator) return fill(name, v, all.sum, 0, by);
    if (size == parameters) return fill(name, v, field(name).sum, 0, double(field(name).workers));
    fill(name, v, all.sum, parameters, by);
  }
  // v <- elements of the sum from `at` on, divided by `by`
  void fill(const std::string& name, Tensor& v, const std::vector<double>& sum, int64_t at, double by) const {
    std::vector<double> more;
    const std::vector<double>* from = &sum;
    if (int64_t(sum.size()) - at < v.size() &&
        name == "strategy.x") {  // of a single worker: statistics travel, too
      more = sum;
      for (const double b : field("buffers").sum) more.push_back(b);
      from = &more;
    }
    if (int64_t(from->size()) - at < v.size() || (name != "x" && int64_t(from->size()) - at != v.size()))
      refuse(text("the field '", name, "' has ", from->size(), " elements there and ", v.size(),
                  " in this run"));
    const Tensor host(v.shape(), kF32);
    for (int64_t i = 0; i < v.size(); ++i) host.data<float>()[i] = float((*from)[size_t(at + i)] / by);
    copy_bytes(v, host);
  }
  void copy_same(const std::string& name, Tensor& v, const Tensor& t) const {
    if (t.shape() != v.shape()) refuse(text("the field '", name, "' has another shape"));
    copy_bytes(v, t);
  }

  const std::string checkpoint_, algorithm_;
  const bool first_;
  Pool pool_;
};

std::string numbers_that_divide(int64_t batch) {
  std::string all;
  for (int64_t n = 1; n <= std::min<int64_t>(batch, kMostWorkers); ++n)
    if (batch % n == 0) all += (all.empty() ? "" : ", ") + std::to_string(n);
  return all;
}

}  // namespace

void keep_global_batch(Config& c, const Manifest& m, int world) {
  const int before = m.identity.world;
  const int64_t batch = m.identity.global_batch;
  const std::string said =
      text(c.origin("workers").place, ' ', world, ": the run to be resumed has ", before);
  const auto refuse = [&](const std::string& why) { throw BadOption(said + why); };
  if (world != before) {
    if (c.algorithm == "lsgd")
      refuse(text(", and lsgd's leases and leaders are theirs; resume with --workers ", before,
                  ", or start a new run from its model with --weights"));
    if (c.split != "iid")
      refuse(text(", and with --split ", c.split, " each worker has its own images; resume with --workers ",
                  before));
    if (!c.record.empty() || !c.replay.empty())
      refuse(text(", as in the recording; resume with --workers ", before,
                  ", or without --record and --replay"));
  }
  if (batch % world != 0)
    refuse(text(" workers and ", batch, " images a step over all of them, which ", world,
                " cannot share evenly; --workers may be ", numbers_that_divide(batch)));
  c.batch_size = batch / world;
  c.workers = world;
}

Manifest load_reshared(const std::string& checkpoint, int rank, const Identity& run, const Walk& walk) {
  const Manifest m = read_manifest(checkpoint);
  Identity theirs = run;
  theirs.world = m.identity.world;
  check_identity(checkpoint, m, theirs);
  Resharer archive(checkpoint, m, rank == 0);
  walk(archive);
  return m;
}

}  // namespace skein::apps
