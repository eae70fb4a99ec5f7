// The registry of graphs, and those that are lists of offsets ("books") read in rotation.
#include "comm/topology/topology.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>
#include <tuple>

#include "comm/topology/graphs.h"
#include "engine/words/find_row.h"

namespace skein::comm {
namespace {

// Gossip q uses entries (j + q p) mod length of each rank's book, j = 0..p-1.
class BookGraph final : public Topology {
 public:
  BookGraph(std::vector<std::vector<Rank>> books, int peers)
      : Topology(int(books.size())), out_(std::move(books)), in_(out_), peers_(peers) {
    for (Rank r = 0; r < size(); ++r)
      for (size_t i = 0; i < out_[r].size(); ++i) in_[out_[r][i]][i] = r;
  }

  Mix at(Rank r, int64_t q) const override {
    const int64_t length = int64_t(out_[r].size());
    Mix m{1.0 / (peers_ + 1), {}, {}};
    for (int64_t j = 0; j < peers_; ++j) {
      const size_t i = size_t((j + q * peers_) % length);
      m.out.push_back({out_[r][i], m.self});
      m.in.push_back({in_[r][i], m.self});
    }
    return m;
  }

  int64_t cycle() const override {
    const int64_t length = int64_t(out_[0].size());
    return length / std::gcd(length, int64_t(peers_));
  }
  int peers() const override { return peers_; }

 private:
  std::vector<std::vector<Rank>> out_,
      in_;  // [rank][entry]: the ranks it gives to, and those that give to it
  int peers_;
};

// One rank's book: offsets to peers without itself and duplicates. Sign -1 exchanges the two directions.
std::vector<Rank> book_of(Rank r, int n, const std::vector<int64_t>& offsets, int sign = 1) {
  std::vector<Rank> book;
  for (const int64_t d : offsets) {
    const Rank peer = Rank(((r + sign * d) % n + n) % n);
    if (peer != r && std::find(book.begin(), book.end(), peer) == book.end()) book.push_back(peer);
  }
  return book;
}

std::unique_ptr<Topology> from_offsets(const TopologyOptions& o, int n, const std::vector<int64_t>& offsets,
                                       const char* name, bool bipartite = false) {
  std::vector<std::vector<Rank>> books;
  for (Rank r = 0; r < n; ++r) books.push_back(book_of(r, n, offsets, bipartite && r % 2 == 0 ? -1 : 1));
  const int available = int(books[0].size()), peers = chosen_peers(o, available, name, n);
  return std::make_unique<BookGraph>(std::move(books), peers);
}

// d, -d for every distance.
std::vector<int64_t> both_ways(const std::vector<int64_t>& distances) {
  std::vector<int64_t> offsets;
  for (const int64_t d : distances) offsets.insert(offsets.end(), {d, -d});
  return offsets;
}

std::vector<int64_t> odd_below(int n) {
  std::vector<int64_t> d;
  for (int64_t i = 1; i < n; i += 2) d.push_back(i);
  return d;
}

// With one peer it is directed and never changes: r gives to r + 1 at every gossip.
std::unique_ptr<Topology> ring(const TopologyOptions& o, int n) {
  const int available = n == 2 ? 1 : 2;
  if (o.in_turn || chosen_peers(o, available, "ring", n) > 1) return from_offsets(o, n, {1, -1}, "ring");
  return from_offsets(o, n, {1}, "ring");
}

std::unique_ptr<Topology> exponential(const TopologyOptions& o, int n) {
  const int64_t p = o.peers ? o.peers : std::min(o.default_peers, n - 1);
  std::vector<int64_t> offsets;
  for (int64_t stride = 1; stride < n; stride *= p + 1)
    for (int64_t j = 1; j <= p; ++j)
      if (j * stride < n) offsets.push_back(j * stride);
  return from_offsets(o, n, offsets, "exponential");
}

std::unique_ptr<Topology> bidirectional_exponential(const TopologyOptions& o, int n) {
  std::vector<int64_t> d;
  for (int64_t stride = 1; stride < n; stride *= 2) d.push_back(stride);
  return from_offsets(o, n, both_ways(d), "bidirectional-exponential");
}

std::unique_ptr<Topology> linear(const TopologyOptions& o, int n) {
  return from_offsets(o, n, both_ways(odd_below(n)), "linear");
}

std::unique_ptr<Topology> bipartite_exponential(const TopologyOptions& o, int n) {
  std::vector<int64_t> d = {1};
  for (int64_t power = 2; power < n; power *= 2) d.push_back(1 + power);
  return from_offsets(o, n, both_ways(d), "bipartite-exponential", true);
}

std::unique_ptr<Topology> bipartite_linear(const TopologyOptions& o, int n) {
  return from_offsets(o, n, both_ways(odd_below(n)), "bipartite-linear", true);
}

std::unique_ptr<Topology> complete(const TopologyOptions& o, int n) {
  if (o.peers > 0 && o.peers != n - 1)
    throw BadOption(text("--peers ", o.peers, ": the complete graph of ", n, " workers has ", n - 1,
                         " peers for each worker; leave --peers out or say ", n - 1));
  std::vector<int64_t> offsets(n - 1);
  std::iota(offsets.begin(), offsets.end(), 1);
  TopologyOptions all = o;
  all.peers = n - 1;
  return from_offsets(all, n, offsets, "complete");
}

class Alone final : public Topology {
 public:
  Alone() : Topology(1) {}
  Mix at(Rank, int64_t) const override { return {}; }
  int64_t cycle() const override { return 1; }
};

// A graph that all workers of this process have in common: ten thousand of them need one book of ten
// thousand, and not as many books.
class SharedGraph final : public Topology {
 public:
  struct Graph {
    explicit Graph(std::unique_ptr<Topology> t) : topology(std::move(t)) {}
    const std::unique_ptr<Topology> topology;
    std::once_flag asked;
    bool symmetric = false;
  };
  explicit SharedGraph(std::shared_ptr<Graph> g) : Topology(g->topology->size()), graph_(std::move(g)) {}
  Mix at(Rank r, int64_t q) const override { return graph_->topology->at(r, q); }
  int64_t cycle() const override { return graph_->topology->cycle(); }
  int peers() const override { return graph_->topology->peers(); }
  bool symmetric() const override {
    std::call_once(graph_->asked, [this] { graph_->symmetric = graph_->topology->symmetric(); });
    return graph_->symmetric;
  }

 private:
  const std::shared_ptr<Graph> graph_;
};

// Files may change between two calls.
std::unique_ptr<Topology> shared(const TopologyRow& row, const TopologyOptions& o, int world) {
  if (!o.file.empty()) return row.make(o, world);
  static std::mutex mutex;
  static std::map<std::tuple<std::string, int, int, int, bool, uint64_t, int64_t, int>,
                  std::weak_ptr<SharedGraph::Graph>>
      known;
  const std::lock_guard lock(mutex);
  std::weak_ptr<SharedGraph::Graph>& mine =
      known[{row.name, o.peers, o.default_peers, o.base, o.in_turn, o.seed, o.epoch, world}];
  std::shared_ptr<SharedGraph::Graph> graph = mine.lock();
  if (!graph) mine = graph = std::make_shared<SharedGraph::Graph>(row.make(o, world));
  return std::make_unique<SharedGraph>(std::move(graph));
}

const TopologyRow& row_of(const std::string& name) {
  if (const TopologyRow* row = find_row(topologies(), name)) return *row;
  const std::vector<std::string> names = names_of(topologies());
  throw BadOption("--topology " + name + ": there is no such graph; known: " + joined(names, " ") +
                  did_you_mean(name, names));
}

}  // namespace

int chosen_peers(const TopologyOptions& o, int available, const std::string& name, int world) {
  if (o.peers > available)
    throw BadOption(text("--peers ", o.peers, ": the graph ", name, " offers ", available, " with ", world,
                         " workers; allowed are 1 to ", available));
  return o.peers ? o.peers : std::min(o.default_peers, available);
}

void refuse_peers(const TopologyOptions& o, const std::string& name, const std::string& instead) {
  if (o.peers)
    throw BadOption(text("--peers ", o.peers, ": the graph ", name, " has its own number; ", instead));
}

Mix in_fp32(Mix m) {
  const auto rounded = [](double w) { return std::round(w * 0x1p24) * 0x1p-24; };  // 1 - w is a float too
  double given = 0;
  for (Edge& e : m.out) given += e.weight = rounded(e.weight);
  for (Edge& e : m.in) e.weight = rounded(e.weight);
  m.self = 1 - given;
  return m;
}

bool Topology::symmetric() const {
  for (int64_t q = 0; q < cycle(); ++q)
    for (Rank r = 0; r < size(); ++r) {
      const Mix m = at(r, q);
      if (m.out.size() != m.in.size()) return false;
      for (const Edge& e : m.out)
        if (std::find(m.in.begin(), m.in.end(), e) == m.in.end()) return false;
    }
  return true;
}

const std::vector<TopologyRow>& topologies() {
  static const std::vector<TopologyRow> rows = {
#define TOPOLOGY(name, make, even, source) {#name, source, even, make},
#include "comm/topology/topologies.def"
#undef TOPOLOGY
  };
  return rows;
}

std::unique_ptr<Topology> make_topology(const std::string& spec, TopologyOptions o, int world) {
  CHECK(world >= 1, world);
  const size_t colon = spec.find(':');
  if (colon != std::string::npos) o.file = spec.substr(colon + 1);
  const TopologyRow& row = row_of(hyphens(spec.substr(0, colon)));
  if (colon != std::string::npos && std::string(row.name) != "file")
    throw BadOption("--topology " + spec + ": only file takes a path, as file:PATH");
  if (o.peers < 0) throw BadOption(text("--peers ", o.peers, ": at least 1 is needed"));
  if (o.base < 1) throw BadOption(text("--base ", o.base, ": at least 1 is needed"));
  if (world == 1) return std::make_unique<Alone>();
  if (row.even && world % 2 != 0)
    throw BadOption(text("--topology ", row.name, " makes pairs and needs an even number of workers, not ",
                         world, "; use an even --workers, or another graph such as exponential or base"));
  return shared(row, o, world);
}

}  // namespace skein::comm
