// Pools what is in the files of a checkpoint.
#include "apps/checkpoint/pool.h"

#include <algorithm>
#include <cmath>

#include "apps/checkpoint/reshare_rules.h"
#include "apps/model/safetensors.h"
#include "engine/words/number.h"

namespace skein::apps {
namespace {

template <class T>
T parse(const std::string& path, const std::string& name, const std::string& number, const char* kind) {
  const auto n = number_in<T>(number.substr(std::string(kind).size()));
  if (!n) throw BadFile(text(path, ": '", name, "' is not a number: ", number));
  return *n;
}

// The tensors of one name in the files read so far.
struct Gathered {
  Tensor first;  // that of the lowest worker: its shape and type, and its bytes unless they are summed
  std::unique_ptr<PooledNumbers> numbers;  // of f32
  int64_t workers = 0;
};
using AllGathered = std::map<std::string, Gathered>;

void add(AllGathered& all, const std::string& path, const std::string& name, const Tensor& t) {
  const bool flies = is_flight(name, ".x");
  const std::string pooled = flies ? "strategy.x" : name;
  Gathered& f = all[pooled];
  if (!flies) ++f.workers;
  if (!f.first) f.first = flies ? t : t.clone();
  if (t.dtype() != kF32) return;
  if (!f.numbers) f.numbers = std::make_unique<PooledNumbers>(pooled, t.size());
  if (f.numbers->size() != t.size())
    throw BadFile(text(path, ": the field '", name, "' has another size than the other workers'"));
  f.numbers->add(t.data<float>());
}

}  // namespace

PooledNumbers::PooledNumbers(const std::string& field, int64_t size)
    : least_(how_of("", field) == How::kLeast),
      numbers_(static_cast<size_t>(size), least_ ? INFINITY : -0.0) {}

void PooledNumbers::add(const float* x) {
  for (size_t i = 0; i < numbers_.size(); ++i)
    numbers_[i] = least_ ? std::min(numbers_[i], double(x[i])) : numbers_[i] + double(x[i]);
}

void PooledNumbers::write(float* y, double by) const {
  for (size_t i = 0; i < numbers_.size(); ++i) y[i] = float(numbers_[i] / (least_ ? 1 : by));
}

bool is_flight(const std::string& field, const char* part) {
  return field.starts_with("strategy.flight") && field.ends_with(part);
}
bool is_weight(const std::string& field) { return field == "strategy.w" || is_flight(field, ".weight"); }
double divisor_of(const std::string& field, int64_t workers, double weight) {
  return field == "strategy.x" && weight > 0 ? weight : double(workers);
}

Pool::Pool(const std::string& checkpoint, const Manifest& m) : checkpoint_(checkpoint) {
  AllGathered all;
  double weight = 0;
  for (size_t r = 0; r < m.files.size(); ++r) {
    const std::string path = checkpoint + '/' + m.files[r];
    const TensorFile file = read_safetensors(path, m.sums[r]);
    for (const auto& [name, t] : file.tensors) apps::add(all, path, name, t);
    for (const auto& [name, number] : file.metadata) {
      if (number.starts_with("int ")) wholes_[name].push_back(parse<int64_t>(path, name, number, "int "));
      if (!number.starts_with("real ")) continue;
      reals_[name].push_back(parse<double>(path, name, number, "real "));
      if (is_weight(name)) weight += reals_[name].back();
    }
  }
  for (auto& [name, f] : all) {
    if (f.first.dtype() != kF32) {
      tensors_[name] = f.first;
      continue;
    }
    tensors_[name] = Tensor(f.first.shape(), kF32);
    f.numbers->write(tensors_[name].data<float>(), divisor_of(name, f.workers, weight));
    f = {};
  }
}

void Pool::refuse(const std::string& why) const {
  if (checkpoint_.empty())
    throw Error(text("the state of the other workers: ", why,
                     "; all workers need the same options and version; resume from the last checkpoint"));
  throw BadFile(text(checkpoint_, ": ", why, "; resume with the options and the version that wrote it"));
}

}  // namespace skein::apps
