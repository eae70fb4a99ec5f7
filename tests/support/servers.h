// Workers with a center, as tests drive them: in a given order of turns by one thread, or freely by threads.
#pragma once
#include "optim/served.h"
#include "tests/support/numbers/difference.h"
#include "tests/support/trainee.h"

namespace skein::trainee {

// n workers of one thread: step(w) is one local step of worker w, and ends its turn before the next begins.
class Driven {
 public:
  Driven(const Problem& p, const std::string& algorithm, const optim::Options& o, int n)
      : world_(comm::local_world(n)), comms_(size_t(n)), all_(size_t(n)), steps_(size_t(n), 0) {
    comm::on_threads(n, [&](int r) {
      comms_[size_t(r)] =
          std::make_unique<comm::Communicator>(*world_[size_t(r)], comm::CommunicatorOptions{.deadline = 20});
      all_[size_t(r)] = std::make_unique<Trainee>(p, algorithm, o, *comms_[size_t(r)]);
    });
  }
  Trainee& operator[](int w) { return *all_[size_t(w)]; }
  void step_of(int w) { (*this)[w].step(steps_[size_t(w)]++); }
  // x of this worker afterwards.
  float step(int w) {
    step_of(w);
    return values((*this)[w].x)[0];
  }

 private:
  std::vector<std::unique_ptr<comm::Transport>> world_;
  std::vector<std::unique_ptr<comm::Communicator>> comms_;
  std::vector<std::unique_ptr<Trainee>> all_;
  std::vector<int64_t> steps_;
};

// How an asynchronous run ended.
struct Ending {
  std::vector<std::vector<float>> x;      // by worker
  std::vector<std::vector<float>> theta;  // what each evaluates
  bool operator==(const Ending&) const = default;
};

// f(worker's trainee) on a thread each, with the server inline or, as one thread more, dedicated.
inline void with_servers(const Problem& p, const std::string& algorithm, optim::Options o, int n,
                         bool dedicated, const std::function<void(Trainee&, int)>& f, DType wire = kF32) {
  o.set("servers", dedicated ? "dedicated" : "inline");
  auto world = comm::local_world(n + dedicated);
  std::vector<int> workers;
  for (int r = 0; r < n; ++r) workers.push_back(r);
  comm::on_threads(n + dedicated, [&](int r) {
    {
      comm::Communicator all(*world[size_t(r)], {.deadline = 20, .wire = wire});
      optim::Served kept;
      if (r == n) return optim::with_server(*optim::make_strategy(algorithm, o, n)).serve(all, kept);
      const auto group = all.group(workers);
      Trainee t(p, algorithm, o, dedicated ? *group : all, all);
      f(t, r);
    }
    world[size_t(r)].reset();  // says goodbye: a server ends when all have
  });
}

// Steps [from, to) of all, settled at the end; from and into `states` where they are given.
inline Ending run(const Problem& p, const std::string& algorithm, const optim::Options& o, int n,
                  bool dedicated, std::vector<int64_t> meetings,
                  std::vector<optim::Snapshot>* resume = nullptr,
                  std::vector<optim::Snapshot>* states = nullptr, DType wire = kF32) {
  Ending end{std::vector<std::vector<float>>(size_t(n)), std::vector<std::vector<float>>(size_t(n))};
  const auto work = [&](Trainee& t, int r) {
    if (resume) (*resume)[size_t(r)].restore([&](Archive& a) { t.visit(a); });
    t.worker.comm.barrier();
    int64_t k = meetings.front();
    for (size_t i = 1; i < meetings.size(); ++i) {
      for (; k < meetings[i]; ++k) t.step(k);
      t.strategy->settle(t.worker);
    }
    if (states) (*states)[size_t(r)].take([&](Archive& a) { t.visit(a); });
    const Tensor y(t.x.shape(), kF32, t.x.device());
    t.strategy->write_model(t.worker, y);
    end.x[size_t(r)] = values(t.x), end.theta[size_t(r)] = values(y);
    t.worker.comm.barrier();
  };
  with_servers(p, algorithm, o, n, dedicated, work, wire);
  return end;
}

// How much further from the optimum the worst of ten late rounds is than that of ten early ones; workers take
// turns on a quadratic.
inline double growth(const std::string& row, int n, double rate) {
  Problem p{.size = 1, .lr = float(rate)};
  p.id = [](int) { return 0; };
  Driven d(p, row, {}, n);
  double early = 0, late = 0;
  for (int t = 0; t < 60 * n; ++t) {
    const double off = std::abs(d.step(t % n) - 1);
    if (t >= 20 * n && t < 30 * n) early = differences::worse(early, off);
    if (t >= 50 * n) late = differences::worse(late, off);
  }
  return late / early;
}

}  // namespace skein::trainee
