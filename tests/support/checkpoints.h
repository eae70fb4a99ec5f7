// The state of a rank with fields of every kind, and checkpoints of it.
#pragma once
#include "apps/checkpoint/checkpoint.h"
#include "engine/random.h"
#include "tests/support/files.h"

namespace skein::apps {

using testing::ScratchDir;

// A rank's state with fields of every kind.
struct State {
  Tensor x = Tensor::zeros({100}), counts = Tensor::of<int64_t>({2}, {0, 0});
  int64_t clock = 0;
  double weight = 0;
  std::string letters;

  void visit(Archive& a) {
    a("x", x);
    Under mine(a, "strategy.");
    mine("counts", counts);
    mine("clock", clock);
    mine("weight", weight);
    mine("letters", letters);
  }
  Walk walk() {
    return [this](Archive& a) { visit(a); };
  }
  bool operator==(const State& o) const {
    return memcmp(x.raw(), o.x.raw(), size_t(x.bytes())) == 0 &&
           memcmp(counts.raw(), o.counts.raw(), size_t(counts.bytes())) == 0 && clock == o.clock &&
           memcmp(&weight, &o.weight, sizeof weight) == 0 && letters == o.letters;
  }
};

inline State some_state(uint64_t which) {
  State s;
  fill_normal(s.x, {.seed = 1, .purpose = Purpose::kTest, .step = which}, 0, 1);
  s.counts.data<int64_t>()[1] = INT64_MAX - int64_t(which);
  s.clock = -int64_t(which);
  s.weight = 1.0 / (3.0 + double(which));
  s.letters = std::string("\0\xff in flight ", 12) + std::to_string(which);
  return s;
}

inline Identity identity(int world = 1) {
  return {.model = "mlp",
          .layout = "abc",
          .algorithm = "sgd",
          .world = world,
          .data = "mnist",
          .seed = 5,
          .global_batch = 64};
}

// The three steps, for a world of one.
inline std::string save(const std::string& output, int64_t step, State s) {
  Checkpoints store(output);
  try {
    store.begin(step);
    store.write(step, 0, s.walk());
    return store.commit(step, identity());
  } catch (...) {
    store.abandon(step);
    throw;
  }
}
inline std::string saved(const ScratchDir& dir, int64_t step) {
  return save(dir.path(), step, some_state(uint64_t(step)));
}

// Files that a checkpoint in the making, or one that failed, leaves behind.
inline std::vector<std::string> hidden_files(const std::string& dir) {
  std::vector<std::string> names;
  for (const auto& e : std::filesystem::recursive_directory_iterator(dir))
    if (const std::string n = e.path().filename().string();
        n.starts_with(".") || testing::has(n, ".partial") || testing::has(n, ".sum"))
      names.push_back(n);
  return names;
}

}  // namespace skein::apps
