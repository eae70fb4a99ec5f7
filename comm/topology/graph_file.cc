// A graph from a file: {"n": N, "rounds": [{"edges": [[from, to, weight], ...]}, ...]}, with self weights.
#include <cmath>

#include "comm/topology/graphs.h"
#include "engine/words/file.h"
#include "engine/words/json.h"

namespace skein::comm {
namespace {

using nlohmann::json;

class GraphFile final : public Topology {
 public:
  GraphFile(const std::string& path, int n) : Topology(n), path_(path) {
    const std::string said = read_file(path);
    if (nested_too_deeply(said)) bad(text("is nested deeper than ", kMostLevels, " levels"));
    try {
      const json file = json::parse(said);
      if (file.at("n") != n) bad(text("is a graph of ", brief(file.at("n")), " workers, not of ", n));
      for (const json& round : file.at("rounds")) read_round(round.at("edges"));
    } catch (const json::exception& e) { bad(e.what()); }
    if (rounds_.empty()) bad("has no rounds");
  }
  Mix at(Rank r, int64_t q) const override { return rounds_[size_t(q) % rounds_.size()][size_t(r)]; }
  int64_t cycle() const override { return int64_t(rounds_.size()); }

 private:
  [[noreturn]] void bad(const std::string& why) const {
    throw BadFile(
        path_ + ": " + why +
        "; a graph is {\"n\": N, \"rounds\": [{\"edges\": [[from, to, weight], ...]}, ...]} with self "
        "weights, in which what each worker gives adds up to 1");
  }

  void read_round(const json& edges) {
    const size_t n = size_t(size());
    std::vector<Mix> mix(n, Mix{0, {}, {}});
    std::vector<std::vector<double>> w(n, std::vector<double>(n, -1));  // [to][from]; -1: no edge
    const std::string here = text("round ", rounds_.size(), ": ");
    for (const json& edge : edges) {
      if (!edge.at(0).is_number_integer() || !edge.at(1).is_number_integer())
        bad(here + "the ends of an edge are numbers of workers, not " + brief(edge));
      const int64_t from = edge.at(0).get<int64_t>(), to = edge.at(1).get<int64_t>();
      const double weight = edge.at(2).get<double>();
      if (from < 0 || to < 0 || from >= size() || to >= size())
        bad(here + text("no edge ", from, " to ", to));
      if (!(weight >= 0 && weight <= 1)) bad(here + text("weight ", weight, " of ", from, " to ", to));
      if (w[size_t(to)][size_t(from)] >= 0) bad(here + text("two edges ", from, " to ", to));
      if (weight > 0) w[size_t(to)][size_t(from)] = weight;
    }
    for (size_t from = 0; from < n; ++from) {
      double given = 0, taken = 0;
      for (size_t to = 0; to < n; ++to) {
        given += std::max(0.0, w[to][from]);
        taken += std::max(0.0, w[from][to]);
        if (w[to][from] < 0) continue;
        if (to == from)
          mix[from].self = w[to][from];
        else
          mix[from].out.push_back({Rank(to), w[to][from]}), mix[to].in.push_back({Rank(from), w[to][from]});
      }
      if (std::abs(given - 1) > 1e-6) bad(here + text("worker ", from, " gives ", given, " in all"));
      if (taken <= 0) bad(here + text("worker ", from, " keeps nothing and is given nothing"));
    }
    rounds_.push_back(std::move(mix));
  }

  std::string path_;
  std::vector<std::vector<Mix>> rounds_;  // [round][rank]
};

}  // namespace

std::unique_ptr<Topology> graph_file(const TopologyOptions& o, int n) {
  if (o.file.empty()) throw BadOption("--topology file needs a path: --topology file:PATH");
  refuse_peers(o, "file", "it is written in the file");
  return std::make_unique<GraphFile>(o.file, n);
}

}  // namespace skein::comm
