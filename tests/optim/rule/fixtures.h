// The fixtures of tools/make_optimizer_fixtures.py, and the problem they were made of.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/random.h"
#include "engine/vectors/vec.h"
#include "optim/rule.h"
#include "tests/support/numbers/difference.h"

namespace skein::fixtures {

// A vector of a few segments; elements are those of the fixture, without padding.
struct Problem {
  std::vector<Segments::Segment> all;
  explicit Problem(const nlohmann::json& segments) {
    int64_t at = 0;
    for (const auto& s : segments) {
      const int64_t rows = s.at("rows"), columns = s.at("columns"), blocks = Segments::kBlock;
      const int64_t end = at + (rows * columns + blocks - 1) / blocks * blocks;
      all.push_back({.begin = at,
                     .end = end,
                     .rows = rows,
                     .columns = columns,
                     .hidden = rows > 1 && s.value("hidden", true),
                     .rate = s.at("rate"),
                     .decay = s.at("decays").get<bool>() ? 1.f : 0.f});
      at = end;
    }
  }
  int64_t size() const { return all.back().end; }
  Segments segments(Device d = kCpu) const { return {all, d}; }
  // f(segment, index in it, element of the vector)
  template <class F>
  void each(F f) const {
    for (size_t s = 0; s < all.size(); ++s)
      for (int64_t i = 0; i < all[s].rows * all[s].columns; ++i) f(double(s), double(i), all[s].begin + i);
  }
  Tensor start() const {
    const Tensor x = Tensor::zeros({size()});
    each([&](double s, double i, int64_t at) { x.data<float>()[at] = float(0.5 * std::cos(0.37 * i + s)); });
    return x;
  }
  Tensor gradient(const Tensor& x, int64_t k) const {
    const Tensor g = Tensor::zeros({size()});
    each([&](double s, double i, int64_t at) {
      g.data<float>()[at] =
          float(0.3 * double(x.data<float>()[at]) + std::sin(0.7 * i + 1.3 * double(k) + 2 * s));
    });
    return g;
  }
  // The largest difference of an element; that of padding to zero, too.
  double distance(const Tensor& x, const std::vector<double>& want) const {
    std::vector<double> all(size_t(size()), 0.0);
    size_t next = 0;
    each([&](double, double, int64_t at) { all[size_t(at)] = want.at(next++); });
    double worst = 0;
    for (int64_t i = 0; i < size(); ++i)
      worst = differences::worse(worst, std::abs(all[size_t(i)] - x.data<float>()[i]));
    return next == want.size() ? worst : HUGE_VAL;
  }
};

inline double rate(double lr, int64_t k) { return lr * std::min(1.0, double(k + 1) / 5); }

// Follows every case of this optimizer; returns how many there are.
inline int follow_fixtures(const std::string& optimizer, double within) {
  std::ifstream in(SKEIN_SOURCE_DIR "/tests/fixtures/optimizers.json");
  const nlohmann::json fixture = nlohmann::json::parse(in);
  const Problem p(fixture.at("segments"));
  int cases = 0;
  for (const auto& c : fixture.at("cases")) {
    if (c.at("optimizer") != optimizer) continue;
    ++cases;
    optim::Options o;
    for (const auto& [key, value] : c.items())
      if (key != "optimizer" && key != "after" && key != "lr" && key != "decay")
        o.set(key, value.is_string() ? value.get<std::string>() : value.dump());
    const Tensor x = p.start();
    const auto rule = optim::make_rule(
        optimizer, o, {.like = x, .segments = p.segments(), .weight_decay = c.at("decay").get<float>()});
    for (int64_t k = 0; k < fixture.at("steps"); ++k) {
      rule->step(x, p.gradient(x, k), rate(c.at("lr"), k));
      const auto kept = c.at("after").find(std::to_string(k + 1));
      if (kept == c.at("after").end()) continue;
      EXPECT_LT(p.distance(x, *kept), within) << optimizer << " case " << cases << " after step " << k + 1;
    }
  }
  return cases;
}

}  // namespace skein::fixtures
