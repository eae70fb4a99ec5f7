// gossip_avg run as a program, with files of arrays to average.
#pragma once
#include <nlohmann/json.hpp>

#include "apps/model/safetensors.h"
#include "apps/model/vectors.h"
#include "comm/communicator/numbers.h"
#include "tests/support/program.h"

namespace skein {

using apps::Vectors;
using nlohmann::json;

class GossipAvg : public ::testing::Test {
 protected:
  testing_programs::Ended gossip(const std::string& flags) {
    return place_.run("timeout 100 $GOSSIP " + flags);
  }
  json result(const std::string& flags) {
    const auto ended = gossip(flags + " --json");
    EXPECT_EQ(ended.status, 0) << ended.err;
    return json::parse(ended.out.empty() ? "{}" : ended.out);
  }
  std::string path(const std::string& name) { return (place_.path() / name).string(); }
  void write_array(const std::string& name, const std::string& type, const std::vector<int64_t>& shape,
                   const std::vector<double>& numbers) {
    Vectors v{true, {{"", type, shape, false}}, comm::bits_of(numbers)};
    if (type != "<f8")
      v.flat = Tensor::of<float>({int64_t(numbers.size())}, {numbers.begin(), numbers.end()});
    apps::write_vectors(path(name), v);
  }
  std::vector<double> read_array(const std::string& name) {
    const Vectors v = apps::read_vectors(path(name));
    return comm::visit_numbers(v.flat,
                               [&](const auto* x) { return std::vector<double>(x, x + v.flat.size()); });
  }
  // in0.npy ... of shape [rows, 4], rank r holds (r + 1) * (0, 1, 2, ...)
  void write_inputs(int n, int64_t rows = 3, const std::string& type = "<f4") {
    for (int r = 0; r < n; ++r) {
      std::vector<double> numbers;
      for (int64_t i = 0; i < rows * 4; ++i) numbers.push_back(double((r + 1) * i));
      write_array(text("in", r, ".npy"), type, {rows, 4}, numbers);
    }
  }
  void expect_means(int n, const std::string& name, double tolerance) {
    for (int r = 0; r < n; ++r) {
      const std::string file = text(name, r, ".npy");
      ASSERT_EQ(apps::read_vectors(path(file)).items[0].shape, (std::vector<int64_t>{3, 4}));
      const std::vector<double> numbers = read_array(file);
      for (size_t i = 0; i < numbers.size(); ++i)
        EXPECT_NEAR(numbers[i], double(i) * (n + 1) / 2, tolerance) << r;
    }
  }
  testing_programs::Workplace place_;
};

}  // namespace skein
