// Unites what workers have in memory: tables first, then the tensors that differ or that some lack, field by
// field and part by part, so that little of them is on its way at any time.
#include <algorithm>
#include <numeric>
#include <set>

#include "apps/base/json.h"
#include "apps/base/together.h"
#include "apps/checkpoint/pool.h"
#include "apps/checkpoint/pool_table.h"
#include "apps/checkpoint/reshare_rules.h"
#include "engine/words/json.h"

namespace skein::apps {
namespace {

using comm::Rank;
using Ranks = std::vector<Rank>;
using Tensors = std::map<std::string, Tensor>;

constexpr comm::Tag kGiven = 1, kPooled = 2;
constexpr int64_t kPart = int64_t(1) << 22;  // elements that the workers deal with at a time

bool has(const Ranks& ranks, Rank r) { return std::find(ranks.begin(), ranks.end(), r) != ranks.end(); }

// Elements [begin, end) of t as bytes, which no wire rounds.
Tensor bytes_of(const Tensor& t, int64_t begin, int64_t end) {
  const int64_t each = size_of(t.dtype());
  return Tensor({t.storage()->bytes}, kU8, t.storage())
      .view({(end - begin) * each}, (t.offset() + begin) * each);
}

Tensor on_host(const Tensor& t) {
  const Tensor host = t.to(kCpu);
  if (!t.device().is_host()) current_stream(t.device()).sync();
  return host;
}

// What this worker gives: its tensors on the host, with messages in flight added to X.
Tensors tensors_of(const optim::Snapshot::Fields& own) {
  Tensors all;
  std::vector<Tensor> flights;
  for (const auto& [name, field] : own) {
    if (const auto* s = std::get_if<std::string>(&field)) all[name] = comm::bytes_of_text(*s);
    const Tensor* t = std::get_if<Tensor>(&field);
    if (!t || !*t) continue;
    if (is_flight(name, ".x"))
      flights.push_back(on_host(*t));
    else
      all[name] = on_host(*t);
  }
  if (flights.empty()) return all;
  Tensor& x = all["strategy.x"];
  PooledNumbers sum("strategy.x", x ? x.size() : 0);
  if (x) flights.insert(flights.begin(), x);
  for (const Tensor& f : flights) {
    CHECK(f.size() == sum.size(), "a message in flight is not of the size of X:", f.shape());
    sum.add(f.data<float>());
  }
  x = Tensor({sum.size()}, kF32);
  sum.write(x.data<float>(), 1);
  return all;
}

PoolTable table_of_own(const optim::Snapshot::Fields& own, const Tensors& tensors) {
  PoolTable t;
  for (const auto& [name, field] : own) {
    if (const auto* n = std::get_if<int64_t>(&field)) t.wholes[name] = *n;
    if (const auto* n = std::get_if<double>(&field)) t.reals[name] = *n;
  }
  for (const auto& [name, x] : tensors) t.tensors[name] = {x.dtype(), x.shape(), hash_of(x)};
  return t;
}

std::vector<PoolTable> tables_of_all(comm::Communicator& comm, const PoolTable& mine) {
  Json all = Json::array();
  for (const std::string& t : comm::gather_text(comm, to_text(mine), 0)) all.push_back(t);
  std::vector<PoolTable> tables;
  for (const Json& t : parse_json<Json>(comm::broadcast_text(comm, all.dump(), 0)))
    tables.push_back(table_of(t.is_string() ? t.get<std::string>() : ""));
  CHECK(int(tables.size()) == comm.size(), tables.size(), comm.size());
  return tables;
}

// One field that several workers have.
struct Field {
  std::string name;
  PoolTable::Field what;  // as the lowest worker has it
  Ranks holders;          // those that have the field
  Ranks alike;            // those of them that have the bytes of the lowest
  bool summed() const { return what.type == kF32 && alike.size() < holders.size(); }
};

std::vector<Field> fields_of(const std::vector<PoolTable>& tables) {
  std::map<std::string, Field> all;
  for (Rank r = 0; r < Rank(tables.size()); ++r)
    for (const auto& [name, what] : tables[size_t(r)].tensors) {
      Field& f = all.try_emplace(name, Field{name, what, {}, {}}).first->second;
      f.holders.push_back(r);
      if (what == f.what) f.alike.push_back(r);
      if (f.what.type == kF32 && (what.type != kF32 || what.shape.volume() != f.what.shape.volume()))
        throw Error(text("worker ", r, " has the field '", name, "' as ", what.type, ' ', what.shape,
                         ", worker ", f.holders[0], " as ", f.what.type, ' ', f.what.shape,
                         "; all workers need the same options and version; resume from the last checkpoint"));
    }
  std::vector<Field> fields;
  for (auto& [name, f] : all) fields.push_back(std::move(f));
  return fields;
}

// Lets one field after the other travel. Every worker sees the same fields, so all agree on every message.
class Exchange {
 public:
  explicit Exchange(comm::Communicator& comm) : comm_(comm) {}

  // The pooled tensor, from `mine`, which is empty if this worker has none. Where all that have it have it
  // alike, it is not copied on those.
  Tensor unite(const Field& f, const Tensor& mine, double by) {
    const Ranks& owners = f.summed() ? f.holders : f.alike;
    const bool lacks = f.summed() || !has(f.alike, comm_.rank());
    const Tensor pooled = lacks ? Tensor(f.what.shape, f.what.type) : mine;
    const int64_t size = pooled.size();
    for (int64_t begin = 0; begin < size; begin += kPart, ++step_) {
      const int64_t n = std::min(kPart, size - begin), k = int64_t(owners.size());
      std::vector<Slice> slices;
      for (int64_t i = 0; i < k; ++i)
        if (n * i / k < n * (i + 1) / k)
          slices.push_back({owners[size_t(i)], begin + n * i / k, begin + n * (i + 1) / k});
      if (f.summed()) sum(f, slices, mine, pooled, by);
      hand_out(slices, f.summed() ? Ranks() : f.alike, pooled);
    }
    return pooled;
  }

 private:
  struct Slice {
    Rank owner;
    int64_t begin, end;
  };

  // The owner's slice of `pooled` <- the sum over the holders, or their minimum.
  void sum(const Field& f, const std::vector<Slice>& slices, const Tensor& mine, const Tensor& pooled,
           double by) {
    const Rank me = comm_.rank();
    if (!mine) return;
    for (const Slice& s : slices)
      if (s.owner != me) comm_.push(s.owner, kGiven, step_, 1, bytes_of(mine, s.begin, s.end));
    for (const Slice& s : slices) {
      if (s.owner != me) continue;
      PooledNumbers numbers(f.name, s.end - s.begin);
      const Tensor given({numbers.size()}, kF32);
      const Tensor bytes = bytes_of(given, 0, given.size());
      for (const Rank r : f.holders) {
        copy_bytes(bytes,
                   r == me ? bytes_of(mine, s.begin, s.end) : comm_.take(r, kGiven, step_, bytes).payload);
        numbers.add(given.data<float>());
      }
      numbers.write(pooled.data<float>() + s.begin, by);
    }
  }

  // Every owner's slice to all that do not have it yet.
  void hand_out(const std::vector<Slice>& slices, const Ranks& have, const Tensor& pooled) {
    const Rank me = comm_.rank();
    for (const Slice& s : slices) {
      if (s.owner != me) continue;
      std::vector<comm::Share> shares;
      for (Rank d = 1; d < comm_.size(); ++d)  // not all to rank 0 at once
        if (const Rank to = (me + d) % comm_.size(); !has(have, to)) shares.push_back({to});
      if (!shares.empty()) comm_.push(shares, kPooled, step_, bytes_of(pooled, s.begin, s.end));
    }
    if (has(have, me)) return;
    for (const Slice& s : slices) {
      if (s.owner == me) continue;
      const Tensor bytes = bytes_of(pooled, s.begin, s.end);
      copy_bytes(bytes, comm_.take(s.owner, kPooled, step_, bytes).payload);
    }
  }

  comm::Communicator& comm_;
  int64_t step_ = 0;
};

// What all have alike is its own mean, but not the sum of all X / the sum of all w.
Tensor divided(const Field& f, const Tensor& alike, double weight) {
  const int64_t workers = int64_t(f.holders.size());
  const double by = divisor_of(f.name, workers, weight);
  if (f.what.type != kF32 || by == double(workers)) return alike;
  PooledNumbers sum(f.name, alike.size());
  for (int64_t i = 0; i < workers; ++i) sum.add(alike.data<float>());
  const Tensor all(alike.shape(), kF32);
  sum.write(all.data<float>(), by);
  return all;
}

std::string list(const Ranks& ranks) {
  std::string s;
  for (const Rank r : ranks) s += (s.empty() ? "" : ", ") + std::to_string(r);
  return s;
}

// Sums have no hash that was known before, so all compare what they have got.
void check(comm::Communicator& comm, const std::vector<Field>& fields, const Tensors& pooled) {
  Json sums = Json::array();
  for (const Field& f : fields)
    if (f.summed()) sums.push_back(hash_of(pooled.at(f.name)));
  const bool same = comm::broadcast_text(comm, sums.dump(), 0) == sums.dump();
  together(comm, [&] {
    const auto refuse = [&](const Field& f, const Ranks& from) {
      throw Error(
          text("the field '", f.name, "' came damaged to worker ", comm.rank(), " from worker",
               from.size() > 1 ? "s " : " ", list(from),
               ": its BLAKE2b is not that of the bytes sent; resume from the last checkpoint, and look "
               "for faults of memory or network on these hosts"));
    };
    for (const Field& f : fields)
      if (!f.summed() && !has(f.alike, comm.rank()) && hash_of(pooled.at(f.name)) != f.what.hash)
        refuse(f, f.alike);
    for (const Field& f : fields)
      if (f.summed() && !same) refuse(f, f.holders);
  });
}

}  // namespace

void Pool::add(const optim::Snapshot::Fields& fields) { own_ = fields; }

// Returns the sum of all weights.
double Pool::take_numbers(const std::vector<PoolTable>& tables) {
  double weight = 0;
  for (const PoolTable& t : tables) {
    for (const auto& [name, v] : t.wholes) wholes_[name].push_back(v);
    for (const auto& [name, v] : t.reals) {
      reals_[name].push_back(v);
      if (is_weight(name)) weight += v;
    }
  }
  return weight;
}

void Pool::unite(comm::Communicator& comm, bool has_state) {
  if (!has_state) std::erase_if(own_, [](const auto& f) { return how_of("", f.first) != How::kSum; });
  const Tensors mine = has_state ? tensors_of(own_) : Tensors();
  PoolTable told = has_state ? table_of_own(own_, mine) : PoolTable();
  told.has_state = has_state;
  Ranks all(static_cast<size_t>(comm.size()));
  std::iota(all.begin(), all.end(), 0);
  const std::unique_ptr<comm::Communicator> apart = comm.group(all);  // with tags of its own
  const std::vector<PoolTable> tables = tables_of_all(*apart, told);
  if (std::none_of(tables.begin(), tables.end(), [](const PoolTable& t) { return t.has_state; }))
    throw Error("no worker has any state to go on from; resume from the last checkpoint");
  const double weight = weight_ = take_numbers(tables);
  const std::vector<Field> fields = fields_of(tables);
  Exchange exchange(*apart);
  for (const Field& f : fields) {
    const auto at = mine.find(f.name);
    tensors_[f.name] = exchange.unite(f, at == mine.end() ? Tensor() : at->second,
                                      divisor_of(f.name, int64_t(f.holders.size()), weight));
  }
  check(*apart, fields, tensors_);
  for (const Field& f : fields)
    if (!f.summed()) tensors_[f.name] = divided(f, tensors_[f.name], weight);
}

}  // namespace skein::apps
