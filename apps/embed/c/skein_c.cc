// Turns exceptions into a status and a message, and pointers with counts into tensors over
// the caller's memory.
#include "apps/embed/c/skein_c.h"

#include <algorithm>
#include <string>

#include "apps/embed/job/averages.h"
#include "apps/embed/job/job_worker.h"
#include "engine/words/find_row.h"
#include "engine/words/number.h"

struct skein_job {
  std::shared_ptr<skein::apps::EmbeddedJob> job;
};
struct skein_worker {
  skein::Tensor gradient;
  skein::apps::JobWorker worker;
};

namespace {

using namespace skein;
using namespace skein::apps;

struct GradientFailed : Error {
  using Error::Error;
};

std::string& last_error() {
  static thread_local std::string words;
  return words;
}

skein_status failed(skein_status s, const char* why) noexcept {
  try {
    last_error() = why;
  } catch (...) { last_error().clear(); }
  return s;
}

// Derived types are caught before their bases.
template <class F>
skein_status guarded(F f) noexcept {
  try {
    f();
    return SKEIN_OK;
  } catch (const GradientFailed& e) {
    return failed(SKEIN_GRADIENT_FAILED, e.what());
  } catch (const BadOption& e) { return failed(SKEIN_BAD_OPTION, e.what()); } catch (const BadFile& e) {
    return failed(SKEIN_BAD_FILE, e.what());
  } catch (const comm::PeerLost& e) {
    return failed(SKEIN_PEER_LOST, e.what());
  } catch (const comm::Timeout& e) {
    return failed(SKEIN_TIMEOUT, e.what());
  } catch (const comm::EpochEnds& e) {
    return failed(SKEIN_WORKERS_CHANGED, e.what());
  } catch (const std::exception& e) { return failed(SKEIN_ERROR, e.what()); } catch (...) {
    return failed(SKEIN_ERROR, "an exception of unknown type");
  }
}

template <class T>
T& present(T* p, const char* what) {
  if (!p) throw BadOption(text(what, " is NULL"));
  return *p;
}

Tensor memory_of(void* data, int64_t count, DType type, const char* what) {
  if (count < 0 || (count > 0 && !data)) throw BadOption(text(what, ": ", count, " numbers at ", data));
  return Tensor({count}, type,
                std::make_shared<Storage>(data, count * int64_t(size_of(type)), kCpu, nullptr));
}

optim::Values values_of(const skein_option* options, size_t count) {
  optim::Values all;
  for (size_t i = 0; i < count; ++i) {
    const skein_option& o = (&present(options, "options"))[i];
    const std::string name = hyphens(&present(o.name, "the name of an option"));
    if (!all.emplace(name, &present(o.value, name.c_str())).second)
      throw BadOption(name + ": the option is given twice");
  }
  return all;
}

// Removes the option and returns its value; nothing if it was not given.
std::optional<std::string> take(optim::Values& all, const char* name) {
  const auto node = all.extract(name);
  return node.empty() ? std::nullopt : std::optional(node.mapped());
}
template <class T>
std::optional<T> take_number(optim::Values& all, const char* name) {
  const auto said = take(all, name);
  if (!said) return {};
  if (const auto v = number_in<T>(*said)) return v;
  throw BadOption(text(name, ' ', *said, ": a number is wanted"));
}

JobOptions job_options(optim::Values v) {
  JobOptions o;
  o.place = take(v, "place").value_or(o.place);
  o.deadline = take_number<double>(v, "deadline").value_or(o.deadline);
  o.transport = take(v, "transport").value_or(o.transport);
  o.seal = take(v, "seal").value_or(o.seal);
  const std::string wire = take(v, "wire").value_or("fp32");
  if (wire != "fp32" && wire != "bf16") throw BadOption("wire " + wire + ": fp32 or bf16");
  o.wire = wire == "bf16" ? kBF16 : kF32;
  const std::string elastic = take(v, "elastic").value_or("off");
  if (elastic != "on" && elastic != "off") throw BadOption("elastic " + elastic + ": on or off");
  o.elastic = elastic == "on";
  if (!v.empty())
    throw BadOption(
        text("a job has no option ", v.begin()->first,
             "; it has place, deadline, transport, seal, wire and elastic",
             did_you_mean(v.begin()->first, {"place", "deadline", "transport", "seal", "wire", "elastic"})));
  return o;
}

// The segments that the parts describe. Writes the layout, which must be equal on all workers, and the
// sizes to `o`.
Segments segments_of(const skein_vectors& v, JobWorkerOptions& o) {
  o.layout = std::to_string(v.parameter_count);
  if (!v.parts || v.part_count == 0) return {};
  std::vector<Segments::Segment> all;
  int64_t begin = 0;
  for (size_t i = 0; i < v.part_count; ++i) {
    const skein_part& p = v.parts[i];
    int64_t size = 0;
    if (p.rows < 1 || p.columns < 1 || __builtin_mul_overflow(p.rows, p.columns, &size) ||
        size > v.parameter_count - begin)
      throw BadOption(text("part ", i, " of ", p.rows, " x ", p.columns, " numbers, from number ", begin,
                           " on, does not fit into ", v.parameter_count));
    const int64_t blocks = (size + Segments::kBlock - 1) / Segments::kBlock * Segments::kBlock;
    const int64_t end = std::min(begin + blocks, v.parameter_count);
    all.push_back({begin, end, p.rows, p.columns, p.hidden != 0, 1, p.decays ? 1.f : 0.f});
    o.sizes.push_back(end - begin);
    o.layout += text(i ? "," : " in ", p.rows, 'x', p.columns, p.hidden ? "*" : "", p.decays ? "" : "-");
    begin = end;
  }
  if (begin != v.parameter_count)
    throw BadOption(text("these parts take ", begin, " numbers, and there are ", v.parameter_count));
  return {all, kCpu};
}

JobWorkerOptions worker_options(const char* algorithm, optim::Values v) {
  JobWorkerOptions o;
  o.algorithm = hyphens(&present(algorithm, "the algorithm"));
  o.optimizer = take(v, "optimizer").value_or(o.optimizer);
  o.lr = take_number<float>(v, "lr"), o.weight_decay = take_number<float>(v, "weight-decay");
  o.seed = take_number<uint64_t>(v, "seed").value_or(o.seed);
  o.flags = std::move(v);
  return o;
}

skein_worker* make_worker(skein_job& job, const char* algorithm, const skein_vectors& v,
                          const skein_option* options, size_t count) {
  JobWorkerOptions o = worker_options(algorithm, values_of(options, count));
  if (v.parameter_count < 1) throw BadOption("a worker without parameters");
  WorkerVectors all{.x = memory_of(v.parameters, v.parameter_count, kF32, "parameters")};
  all.g = v.gradient ? memory_of(v.gradient, v.parameter_count, kF32, "gradient")
                     : job.job->zeros(v.parameter_count);
  if (v.buffers) all.buffers = memory_of(v.buffers, v.buffer_count, kF32, "buffers");
  all.segments = segments_of(v, o);
  if (v.buffers) o.layout += text(" and ", v.buffer_count, " buffers");
  return new skein_worker{all.g, {job.job, all, o}};
}

// A null x takes part as an empty tensor, so that the other workers get the error, too.
void average(skein_job* job, void* x, int64_t count, DType type,
             void (*mean)(comm::Communicator&, const Tensor&)) {
  const bool is_there = count >= 0 && (x || count == 0);
  present(job, "the job").job->call([&](comm::Communicator& all) {
    mean(all, is_there ? memory_of(x, count, type, "x") : Tensor());
  });
}

template <class F>
int number_or_minus_one(F f) noexcept {
  int n = -1;
  guarded([&] { n = f(); });
  return n;
}

JobWorker& at_work(skein_worker* w) { return present(w, "the worker").worker; }

}  // namespace

int skein_c_version(void) { return SKEIN_C_VERSION; }
const char* skein_last_error(void) { return last_error().c_str(); }

skein_status skein_join(skein_job** job, const skein_option* options, size_t count) {
  return guarded([&] {
    present(job, "where the job is to be put") =
        new skein_job{std::make_shared<EmbeddedJob>(job_options(values_of(options, count)))};
  });
}
skein_status skein_leave(skein_job* job) {
  return guarded([&] {
    present(job, "the job").job->leave();
    delete job;
  });
}
int skein_rank(const skein_job* job) {
  return number_or_minus_one([&] { return present(job, "the job").job->peers().rank(); });
}
int skein_world(const skein_job* job) {
  return number_or_minus_one([&] { return present(job, "the job").job->peers().size(); });
}
skein_status skein_barrier(skein_job* job) {
  return guarded([&] { present(job, "the job").job->call([](auto& all) { all.barrier(); }); });
}
skein_status skein_average_floats(skein_job* job, float* x, int64_t count) {
  return guarded([&] { average(job, x, count, kF32, average_floats); });
}
skein_status skein_average_doubles(skein_job* job, double* x, int64_t count) {
  return guarded([&] { average(job, x, count, kI64, average_doubles); });
}

skein_status skein_worker_new(skein_worker** worker, skein_job* job, const char* algorithm,
                              const skein_vectors* vectors, const skein_option* options, size_t count) {
  return guarded([&] {
    present(worker, "where the worker is to be put") =
        make_worker(present(job, "the job"), algorithm, present(vectors, "the vectors"), options, count);
  });
}
void skein_worker_end(skein_worker* worker) { delete worker; }
float* skein_gradient_of(skein_worker* worker) { return worker ? worker->gradient.data<float>() : nullptr; }

skein_status skein_step(skein_worker* worker, skein_gradient function, void* context, float* loss) {
  return guarded([&] {
    if (!function) throw BadOption("the gradient function is NULL");
    const double mean = at_work(worker).step([function, context] {
      float here = 0;
      if (function(context, &here) != 0) throw GradientFailed("the gradient function has failed");
      return here;
    });
    if (loss) *loss = float(mean);
  });
}
int64_t skein_steps(const skein_worker* worker) { return worker ? worker->worker.steps() : -1; }
skein_status skein_ready(skein_worker* worker, size_t part) {
  return guarded([&] { at_work(worker).ready(part); });
}
skein_status skein_set_rate(skein_worker* worker, float lr) {
  return guarded([&] { at_work(worker).set_rate(lr); });
}
skein_status skein_show_model(skein_worker* worker) {
  return guarded([&] { at_work(worker).show_model(); });
}
skein_status skein_hide_model(skein_worker* worker) {
  return guarded([&] { at_work(worker).hide_model(); });
}
skein_status skein_finish(skein_worker* worker, double* apart) {
  return guarded([&] {
    const double d = at_work(worker).finish();
    if (apart) *apart = d;
  });
}
skein_status skein_save(skein_worker* worker, const char* directory, int keep) {
  return guarded([&] { at_work(worker).save(&present(directory, "the directory"), keep); });
}
skein_status skein_load(skein_worker* worker, const char* path) {
  return guarded([&] { at_work(worker).load(&present(path, "the path")); });
}
skein_status skein_figure(const skein_worker* worker, const char* name, double* value) {
  return guarded([&] {
    const auto all = present(worker, "the worker").worker.figures();
    const auto at = all.find(&present(name, "the name of the figure"));
    if (at == all.end()) throw BadOption(text("there is no figure ", name));
    present(value, "where the figure is to be put") = at->second;
  });
}
