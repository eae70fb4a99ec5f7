// Numbers are computed at once; then the time passes that the world file gives for them.
#include "apps/embed/job/simulation.h"

#include <algorithm>
#include <exception>

#include "apps/launch/simulated.h"
#include "engine/vectors/vec.h"
#include "nn/slices.h"

namespace skein::apps {
namespace {

constexpr double kDay = 86400;  // of virtual time, which passes at once where nothing happens

WorldFile world_of(const std::string& given) {
  const bool is_text = given.find('\n') != std::string::npos;
  WorldFile w = is_text ? parse_world(given, "world") : read_world(given);
  if (w.gradient.kind != GradientPlan::Kind::kReal)
    throw BadOption("[compute] gradient: leave it out, since the caller computes gradients here");
  return w;
}

// What the workers share. One of them runs at a time, so nothing is locked.
class Simulation {
 public:
  Simulation(const SimulatedTask& t, const WorldFile& w)
      : task_(t), options_(checked_options(t.worker, w.site.workers())), workers_(size_t(w.site.workers())) {}

  void train(const Member&);
  SimulatedResult result();
  std::exception_ptr first;  // that a function of the caller threw

 private:
  struct One {
    comm::Communicator* comm = nullptr;  // null: it has not begun, or is gone
    Tensor x = {};
    double loss = 0;
  };
  struct Present {  // in the life of a worker, whatever ends it
    One& one;
    ~Present() { one.comm = nullptr; }
  };
  double workers() const { return double(workers_.size()); }
  template <class F>
  auto calling(const F&);
  Tensor gradient(const Member&, const VectorWorker&, const optim::Slices&);
  void count(const Member&, int64_t step);
  comm::Traffic traffic() const;

  const SimulatedTask& task_;
  const WorkerOptions options_;
  std::vector<One> workers_;
  std::map<int64_t, size_t> taken_;  // by step: how many workers have taken it, until all have
  SimulatedMoment last_;
  comm::Traffic sent_;
  SimulatedResult result_;
};

template <class F>
auto Simulation::calling(const F& f) {
  try {
    return f();
  } catch (const std::exception&) {
    if (!first) first = std::current_exception();  // before its peers notice that this worker has gone
    throw;
  }
}

Tensor Simulation::gradient(const Member& me, const VectorWorker& w, const optim::Slices& slices) {
  const Tensor &x = w.parameters(), &g = w.gradient();
  if (first) throw Error("another worker's gradient has failed");
  const float loss = calling([&] { return task_.gradient(me.rank, w.steps(), x, g); });
  workers_[size_t(me.rank)].loss = double(loss);
  comm::sim::Pace& pace = me.simulated->pace;
  pace.begin();
  if (!slices) {
    pace.whole();
    return Tensor::of<float>({1}, {loss});
  }
  pace.forward(1);
  const int64_t slice = nn::slice_bytes_for(g.bytes()) / int64_t(sizeof(float));
  for (int64_t end = g.size(), begin = 0; end > 0; end = begin) {
    begin = std::max<int64_t>(end - slice, 0);
    pace.backward(double(end - begin) / double(g.size()));
    me.comm.progress();
    slices.ready(g.view({end - begin}, begin));
  }
  slices.complete();
  return Tensor::of<float>({1}, {loss});
}

comm::Traffic Simulation::traffic() const {
  comm::Traffic sum;
  for (const One& w : workers_) {
    const comm::Traffic t = w.comm->meter().traffic();
    sum.messages += t.messages, sum.bytes += t.bytes;
    sum.waited += t.waited, sum.in_flight += t.in_flight;
  }
  return sum;
}

// The last one to take a step looks at all workers, some of which may be further on.
void Simulation::count(const Member& me, int64_t step) {
  if (++taken_[step] < workers_.size()) return;
  taken_.erase(step);
  if (step % task_.every != 0 && step != task_.steps) return;
  if (std::any_of(workers_.begin(), workers_.end(), [](const One& w) { return !w.comm; })) return;
  sent_ = traffic();
  last_ = {step, me.simulated->world.now(), double(sent_.bytes) / workers()};
  for (const One& w : workers_) last_.loss += w.loss / workers();
  if (!task_.look) return;
  const Tensor mean = Tensor::zeros(task_.start.shape());
  for (const One& w : workers_) axpy(mean, float(1 / workers()), w.x);
  calling([&] { task_.look(last_, mean); });
}

void Simulation::train(const Member& me) {
  const Tensor x = task_.start.clone(), g = Tensor::zeros(x.shape());
  VectorWorker worker({.x = x, .g = g, .count = task_.count, .segments = task_.segments}, me.comm, options_);
  workers_[size_t(me.rank)] = {&me.comm, x};
  const Present here{workers_[size_t(me.rank)]};
  me.comm.barrier();  // all are there to be looked at
  while (worker.steps() < task_.steps) {
    worker.step([&](const optim::Slices& slices) {
      std::fill_n(g.data<float>(), g.size(), 0.f);
      return gradient(me, worker, slices);
    });
    count(me, worker.steps());
  }
  const double apart = worker.finish();
  if (me.rank == 0) result_.model = x.clone(), result_.figures["apart"] = apart;
}

SimulatedResult Simulation::result() {
  auto& f = result_.figures;
  result_.workers = int(workers_.size());
  f["steps"] = double(last_.step), f["seconds"] = last_.seconds, f["loss"] = last_.loss;
  f["messages"] = double(sent_.messages) / workers(), f["bytes"] = double(sent_.bytes) / workers();
  f["waited_s"] = sent_.waited / workers(), f["in_flight_s"] = sent_.in_flight / workers();
  return result_;
}

}  // namespace

SimulatedResult simulate(const SimulatedTask& t) {
  if (t.steps < 1) throw BadOption(text("steps=", t.steps, ": one or more are needed"));
  if (t.every < 1) throw BadOption(text("every=", t.every, ": a number of steps, one or more"));
  const WorldFile world = world_of(t.world);
  Simulation all(t, world);
  JobOptions job;
  job.deadline = kDay;
  try {
    const auto work = [&](const Member& me) { return all.train(me), 0; };
    run_simulated(job, world, work, {.silent = true});
  } catch (...) {
    if (all.first) std::rethrow_exception(all.first);
    throw;
  }
  return all.result();
}

}  // namespace skein::apps
