// Draws shards, and takes batches from them.
#include "data/sources/split.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>

#include "data/pictures/draws.h"
#include "engine/random.h"
#include "engine/words/number.h"

namespace skein::data {
namespace {

// What the random numbers of a split are for; Draw's step.
enum Use : uint64_t { kShuffle = 1, kConcentration = 2 };

Draws draws(uint64_t seed, Use use, uint32_t lane) { return Draws({seed, Purpose::kSplit, use, lane}); }

// Shares that add up to one.
std::vector<double> dirichlet(double concentration, int n, Draws numbers) {
  std::vector<double> p(static_cast<size_t>(n));
  for (double& v : p) v = numbers.log_gamma(concentration);
  const double largest = *std::max_element(p.begin(), p.end());
  double sum = 0;
  for (double& v : p) sum += v = std::exp(v - largest);
  for (double& v : p) v /= sum;
  return p;
}

// Samples by class, each class in a random order.
std::vector<std::vector<int64_t>> by_class(const std::vector<int32_t>& labels, int classes, uint64_t seed) {
  std::vector<std::vector<int64_t>> of(static_cast<size_t>(classes));
  for (size_t i = 0; i < labels.size(); ++i) of.at(size_t(labels[i])).push_back(int64_t(i));
  for (size_t c = 0; c < of.size(); ++c) {
    const Draw draw{seed, Purpose::kSplit, kShuffle, uint32_t(c)};
    for (size_t i = of[c].size(); i > 1; --i) std::swap(of[c][i - 1], of[c][draw.bits(i) % i]);
  }
  return of;
}

Shards deal_dirichlet(const std::vector<std::vector<int64_t>>& of, double a, int world, uint64_t seed) {
  Shards shards(static_cast<size_t>(world));
  for (size_t c = 0; c < of.size(); ++c) {
    const std::vector<double> p = dirichlet(a, world, draws(seed, kConcentration, uint32_t(c)));
    const int64_t n = int64_t(of[c].size());
    double sum = 0;
    int64_t at = 0;
    for (int r = 0; r < world; ++r) {
      sum += p[size_t(r)];
      const int64_t end = r + 1 == world ? n : std::clamp(int64_t(std::llround(sum * double(n))), at, n);
      shards[size_t(r)].insert(shards[size_t(r)].end(), of[c].begin() + at, of[c].begin() + end);
      at = end;
    }
  }
  return shards;
}

Shards deal_major(const std::vector<std::vector<int64_t>>& of, double fraction, int world, uint64_t seed) {
  int64_t size = 0;
  for (const auto& c : of) size += int64_t(c.size());
  const int64_t classes = int64_t(of.size());
  std::vector<int64_t> taken(of.size(), 0), whole(static_cast<size_t>(world));
  Shards shards(static_cast<size_t>(world));
  double most = 1;
  for (int r = 0; r < world; ++r) {
    const size_t c = size_t(r % classes);
    const int64_t sharing = (world - 1 - int64_t(c)) / classes + 1;  // workers with this class
    whole[size_t(r)] = size * (r + 1) / world - size * r / world;
    most = std::min(most, double(of[c].size()) / double(sharing * whole[size_t(r)]));
    const int64_t wanted = int64_t(std::ceil(fraction * double(whole[size_t(r)]) - 1e-9));
    const int64_t end = std::min(taken[c] + wanted, int64_t(of[c].size()));
    shards[size_t(r)].assign(of[c].begin() + taken[c], of[c].begin() + end);
    if (end - taken[c] < wanted) most = std::min(most, fraction - 1e-3);
    taken[c] = end;
  }
  if (fraction > most)
    throw BadOption(
        text("--split major:", fraction, ": of ", world, " workers each has ", size / world,
             " samples, and a class has too few for such a share of them; the most is about major:",
             std::floor(most * 1000) / 1000, ", or take dirichlet:A, whose shards differ in size"));
  std::vector<int64_t> rest;
  for (size_t c = 0; c < of.size(); ++c) rest.insert(rest.end(), of[c].begin() + taken[c], of[c].end());
  const Draw draw{seed, Purpose::kSplit, kShuffle, uint32_t(classes)};
  for (size_t i = rest.size(); i > 1; --i) std::swap(rest[i - 1], rest[draw.bits(i) % i]);
  for (size_t r = 0, at = 0; r < shards.size(); ++r)
    while (int64_t(shards[r].size()) < whole[r]) shards[r].push_back(rest.at(at++));
  return shards;
}

}  // namespace

SplitRule parse_split(const std::string& said) {
  if (said == "iid") return {};
  const size_t colon = said.find(':');
  const std::string kind = said.substr(0, colon),
                    number = colon == std::string::npos ? "" : said.substr(colon + 1);
  SplitRule rule;
  rule.value = number_in<double>(number).value_or(NAN);
  if ((kind != "dirichlet" && kind != "major") || !std::isfinite(rule.value))
    throw BadOption("--split " + said +
                    ": allowed are iid, dirichlet:A, as in dirichlet:0.5, and major:F, as in major:0.3");
  rule.kind = kind == "major" ? SplitRule::kMajor : SplitRule::kDirichlet;
  if (rule.kind == SplitRule::kDirichlet && !(rule.value > 0))
    throw BadOption("--split " + said +
                    ": the concentration must be above 0; 0.1 is very unequal, 100 nearly equal");
  if (rule.kind == SplitRule::kMajor && !(rule.value >= 0 && rule.value <= 1))
    throw BadOption("--split " + said +
                    ": the fraction of a shard that is of one class lies between 0 and 1");
  return rule;
}

Shards make_shards(const std::vector<int32_t>& labels, int classes, const SplitRule& rule, int world,
                   uint64_t seed) {
  CHECK(world > 0 && classes > 0 && rule.kind != SplitRule::kIid, world, classes);
  const auto of = by_class(labels, classes, seed);
  Shards shards = rule.kind == SplitRule::kDirichlet ? deal_dirichlet(of, rule.value, world, seed)
                                                     : deal_major(of, rule.value, world, seed);
  for (size_t r = 0; r < shards.size(); ++r) {
    std::sort(shards[r].begin(), shards[r].end());
    if (shards[r].empty())
      throw BadOption(text("--split: worker ", r, " of ", world, " gets none of the ", labels.size(),
                           " samples; take a larger A, fewer workers or another --seed"));
  }
  return shards;
}

std::vector<int32_t> labels_of(const DataSource& source) {
  std::vector<int32_t> labels(static_cast<size_t>(source.size()));
  for (int64_t i = 0; i < source.size(); ++i) labels[size_t(i)] = source.label(i);
  return labels;
}

std::vector<std::vector<int64_t>> histograms(const Shards& shards, const std::vector<int32_t>& labels,
                                             int classes) {
  std::vector<std::vector<int64_t>> counts(shards.size(), std::vector<int64_t>(static_cast<size_t>(classes)));
  for (size_t r = 0; r < shards.size(); ++r)
    for (int64_t i : shards[r]) ++counts[r].at(size_t(labels[size_t(i)]));
  return counts;
}

Portions::Portions(int64_t size, int64_t global_batch, int world, uint64_t seed)
    : size_(size),
      batch_(global_batch),
      world_(world),
      seed_(seed),
      steps_(data::steps_per_epoch(size, global_batch)) {}

Portions::Portions(Shards shards, int64_t batch, uint64_t seed)
    : batch_(batch), world_(int(shards.size())), seed_(seed), shards_(std::move(shards)) {
  for (const auto& s : shards_) steps_ = std::max(steps_, (int64_t(s.size()) + batch - 1) / batch);
}

int64_t Portions::samples(int64_t step, int rank) const {
  const int64_t s = step % steps_;
  if (shards_.empty()) return part(step, rank).size();
  return std::clamp<int64_t>(int64_t(shards_[size_t(rank)].size()) - s * batch_, 0, batch_);
}

int64_t Portions::samples(int64_t step) const {
  if (shards_.empty()) return whole(step).size();
  int64_t sum = 0;
  for (int r = 0; r < world_; ++r) sum += samples(step, r);
  return sum;
}

int64_t Portions::index(int64_t step, int rank, int64_t row) const {
  const int64_t epoch = step / steps_, s = step % steps_;
  if (shards_.empty())
    return sample_index(seed_, size_, epoch, position(epoch, part(step, rank).begin + row));
  const std::vector<int64_t>& mine = shards_[size_t(rank)];
  return mine[size_t(sample_index(seed_, int64_t(mine.size()), epoch, s * batch_ + row))];
}

Span Portions::part(int64_t step, int rank) const {
  return before_.empty() ? part_of(whole(step), rank, world_) : part_of(whole(step), rank, before_);
}

void Portions::share_out(const std::vector<int64_t>& shares) {
  CHECK(shards_.empty() && int(shares.size()) == world_, shards_.size(), shares.size(), world_);
  before_ = {0};
  bool even = true;
  for (int r = 0; r < world_; ++r) {
    const int64_t mine = shares[size_t(r)];
    CHECK(mine >= 0, mine);
    before_.push_back(before_.back() + mine);
    even = even && mine == part_of({0, batch_}, r, world_).size();
  }
  CHECK(before_.back() == batch_, before_.back(), batch_);
  if (even) before_.clear();
}

int64_t Portions::share_of(int rank) const {
  if (!shards_.empty()) return batch_;
  return (before_.empty() ? part_of({0, batch_}, rank, world_) : part_of({0, batch_}, rank, before_)).size();
}

std::vector<int64_t> Portions::shares() const {
  std::vector<int64_t> all;
  for (int r = 0; r < world_; ++r) all.push_back(share_of(r));
  return all;
}

// ---- an epoch that is dealt again
// ---------------------------------------------------------------------------

Span Portions::whole(int64_t step) const {
  const int64_t first = step % steps_ * batch_, end = std::min(first + batch_, size_);
  return {std::min(end, std::max(first, taken_of(step / steps_))), end};
}

int64_t Portions::position(int64_t epoch, int64_t dealt) const {
  if (epoch != leftover_.epoch) return dealt;
  int64_t at = dealt - taken_of(epoch);
  for (const Span& s : leftover_.positions) {
    if (at < s.size()) return s.begin + at;
    at -= s.size();
  }
  throw Error(text("position ", dealt, " of epoch ", epoch, " is none that is left"));
}

Leftover Portions::left_of(int64_t epoch, const std::vector<int64_t>& taken) const {
  CHECK(shards_.empty() && int(taken.size()) == world_, shards_.size(), taken.size(), world_);
  Leftover out{epoch, {}};
  std::vector<Span>& all = out.positions;
  for (int64_t step = epoch * steps_; step < (epoch + 1) * steps_; ++step)
    for (int r = 0; r < world_; ++r) {
      if (step < taken[size_t(r)]) continue;
      const Span mine = part(step, r);
      for (int64_t i = mine.begin; i < mine.end; ++i) {
        const int64_t at = position(epoch, i);
        if (!all.empty() && all.back().end == at)
          ++all.back().end;
        else
          all.push_back({at, at + 1});
      }
    }
  return out;
}

void Portions::deal_again(Leftover l) {
  if (!l.positions.empty() && !shards_.empty())
    throw BadOption(text("epoch ", l.epoch,
                         " was dealt to other workers while it was under way: resume with --split iid"));
  if (!l.positions.empty() && l.positions.back().end > size_)
    throw BadOption(text("of epoch ", l.epoch, ", which was under way, images up to number ",
                         l.positions.back().end, " are left, and the training set has ", size_,
                         "; resume with the images of before"));
  leftover_ = std::move(l);
  left_ = leftover_.size();
}

int64_t Portions::first_of(const Leftover& l) const {
  return l.size() == 0 ? (l.epoch + 1) * steps_ : l.epoch * steps_ + (size_ - l.size()) / batch_;
}

int64_t Leftover::size() const {
  int64_t sum = 0;
  for (const Span& s : positions) sum += s.size();
  return sum;
}

std::string Leftover::write() const {
  if (epoch < 0) return "";
  std::string words = std::to_string(epoch);
  for (const Span& s : positions) words += text(' ', s.begin, '-', s.end);
  return words;
}

Leftover Leftover::read(const std::string& written) {
  Leftover out;
  if (written.empty()) return out;
  std::istringstream in(written);
  in >> out.epoch;
  bool sound = in && out.epoch >= 0;
  int64_t before = -1;  // the end of the span before
  for (Span s; sound && !(in >> std::ws).eof(); out.positions.push_back(s), before = s.end) {
    char dash = 0;
    in >> s.begin >> dash >> s.end;
    sound = in && dash == '-' && s.begin > before && s.begin < s.end;
  }
  if (!sound) throw Error("not what is left of an epoch: " + written.substr(0, 60));
  return out;
}

}  // namespace skein::data
