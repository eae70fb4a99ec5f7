// Events as lines of JSON, and the summary at the end.
#include "apps/report/metrics.h"

#include <fcntl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <thread>

#include "apps/base/host.h"
#include "engine/device/device.h"
#include "engine/words/file.h"
#include "engine/words/json.h"

namespace skein::apps {
namespace {

void put(Json& j, const std::string& name, const Spread& v) {
  j[name] = v.mean;  // dump() writes what JSON cannot hold as null
  if (v.min) j[name + "_min"] = *v.min;
  if (v.max) j[name + "_max"] = *v.max;
}

template <class T>
void put(Json& j, const char* name, const std::optional<T>& v) {
  if (v) j[name] = *v;
}

void put(Json& j, const std::optional<Scaling>& s) {
  if (s) j["loss_scale"] = s->scale, j["skipped_steps"] = s->skipped;
}

// The lines of an earlier run that a resume at `step` continues, and the time they took.
struct Kept {
  std::string lines;
  double seconds = 0;
};
Kept keep_until(const std::string& path, int64_t step) {
  Kept kept;
  if (!std::filesystem::exists(path)) return kept;
  std::istringstream in(read_file(path));
  for (std::string line; std::getline(in, line);) {
    const Json j = parse_json<Json>(line);
    if (!j.is_object() || !j.contains("step") || !j["step"].is_number_integer()) continue;
    if (j["step"].get<int64_t>() > step) continue;
    kept.lines += line + '\n';
    if (j.contains("seconds") && j["seconds"].is_number())
      kept.seconds = std::max(kept.seconds, j["seconds"].get<double>());
  }
  return kept;
}

}  // namespace

MetricsLog::MetricsLog(const std::string& dir, int64_t resumed_step) : path_(dir + "/metrics.jsonl") {
  make_directory(dir);
  const Kept kept = resumed_step < 0 ? Kept{} : keep_until(path_, resumed_step);
  seconds_ = kept.seconds;
  write_file(path_, kept.lines);
  fd_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd_ < 0) throw BadFile(text(path_, ": cannot open for appending: ", std::strerror(errno)));
}

MetricsLog::~MetricsLog() {
  if (fd_ >= 0) ::close(fd_);
}

void MetricsLog::append(const Json& j) {
  const std::string line = json_text(j) + '\n';
  ssize_t n = 0;
  do n = ::write(fd_, line.data(), line.size());
  while (n < 0 && errno == EINTR);
  if (n == ssize_t(line.size())) return;
  throw BadFile(text(path_, ": cannot write: ", n < 0 ? std::strerror(errno) : "the disk is full",
                     "; free some space there or choose another --output"));
}

void MetricsLog::write(const RunEvent& e) {
  append({{"event", "run"},
          {"step", e.step},
          {"seconds", e.seconds},
          {"workers", e.workers},
          {"global_batch", e.global_batch},
          {"steps_per_epoch", e.steps_per_epoch},
          {"total_steps", e.total_steps},
          {"environment", e.environment},
          {"config", e.config}});
}

void MetricsLog::write(const StepEvent& e) {
  Json j = {{"event", "step"}, {"step", e.step}, {"epoch", e.epoch}, {"seconds", e.seconds}};
  put(j, "loss", e.loss);
  put(j, "top1", e.top1);
  j["learning_rate"] = e.learning_rate;
  j["images_per_second"] = e.images_per_second;
  put(j, "data_wait", e.data_wait);
  put(j, "peer_wait", e.peer_wait);
  put(j, "bytes", e.bytes);
  put(j, e.scaling);
  if (e.workers) j["workers"] = *e.workers;
  append(j);
}

void MetricsLog::write(const EpochEvent& e) {
  Json j = {{"event", "epoch"}, {"step", e.step}, {"epoch", e.epoch}, {"seconds", e.seconds}};
  put(j, "loss", e.loss);
  put(j, "top1", e.top1);
  j["images_per_second"] = e.images_per_second;
  j["unreadable"] = e.unreadable;
  put(j, "bytes", e.bytes);
  append(j);
}

void MetricsLog::write(const EvalEvent& e) {
  Json j = {{"event", "eval"},      {"step", e.step}, {"epoch", e.epoch},
            {"seconds", e.seconds}, {"loss", e.loss}, {"top1", e.top1}};
  put(j, "top5", e.top5);
  if (e.worker_top1) put(j, "worker_top1", *e.worker_top1);
  put(j, "consensus_distance", e.consensus_distance);
  put(j, "bytes", e.bytes);
  put(j, "ema_loss", e.ema_loss);
  put(j, "ema_top1", e.ema_top1);
  append(j);
}

Json to_json(const LostEvent& e) {
  return {{"step", e.step},     {"epoch", e.epoch}, {"seconds", e.seconds},
          {"worker", e.worker}, {"left", e.left},   {"why", e.why}};
}

void MetricsLog::write(const LostEvent& e) {
  Json j = {{"event", "lost"}};
  j.update(to_json(e));
  append(j);
}

Json to_json(const ChangeEvent& e) {
  const char* const cause = e.lost.empty() ? "joined" : e.joined ? "lost and joined" : "lost";
  Json j = {{"cause", cause},       {"who", e.lost},  {"joined", e.joined}, {"membership", e.number},
            {"workers", e.workers}, {"step", e.step}, {"epoch", e.epoch},   {"seconds", e.seconds}};
  put(j, "detected_s", e.detected);
  j.update({{"agreed_s", e.agreed},
            {"healed_s", e.healed},
            {"steps_redone", e.steps_redone},
            {"images_redealt", e.images_redealt},
            {"weight_lost", e.weight_lost}});
  return j;
}

ChangeEvent change_of(const Json& j) {
  ChangeEvent e;
  e.step = j.at("step"), e.epoch = j.at("epoch"), e.seconds = j.at("seconds");
  e.number = j.at("membership"), e.workers = j.at("workers"), e.joined = j.at("joined");
  e.lost = j.at("who").get<std::vector<std::string>>();
  if (j.contains("detected_s")) e.detected = j.at("detected_s").get<double>();
  e.agreed = j.at("agreed_s"), e.healed = j.at("healed_s");
  e.steps_redone = j.at("steps_redone"), e.images_redealt = j.at("images_redealt");
  e.weight_lost = j.at("weight_lost");
  return e;
}

void MetricsLog::write(const ChangeEvent& e) {
  Json j = {{"event", "membership"}};
  j.update(to_json(e));
  append(j);
}

void MetricsLog::write(const SharesEvent& e) {
  Json j = {{"event", "shares"},
            {"step", e.step},
            {"epoch", e.epoch},
            {"seconds", e.seconds},
            {"shares", e.shares}};
  if (!e.speeds.empty()) j["speeds"] = e.speeds;
  j["why"] = e.why;
  append(j);
}

Json Summary::to_json() const {
  Json j = {{"version", version}, {"interrupted", interrupted}, {"steps", steps}, {"epochs", epochs}};
  put(j, "top1", model.top1);
  put(j, "top5", model.top5);
  put(j, "loss", model.loss);
  put(j, "best_top1", model.best_top1);
  if (!model.best.empty()) j["best"] = model.best;
  put(j, "ema_top1", model.ema_top1);
  put(j, "ema_top5", model.ema_top5);
  put(j, "ema_loss", model.ema_loss);
  j["images_per_second"] = costs.images_per_second;
  j["seconds"] = costs.seconds;
  Json& work = j["seconds_by_work"] = Json::object();
  for (const auto& [kind, s] : costs.seconds_by_work) work[kind] = s;
  for (size_t kind = 0; kind < costs.seconds_by_work.size() && !costs.seconds_by_worker.empty(); ++kind) {
    Json& each = j["seconds_by_worker"][costs.seconds_by_work[kind].first] = Json::array();
    for (const std::vector<double>& worker : costs.seconds_by_worker) each.push_back(worker.at(kind));
  }
  if (!data.seconds_by_stage.empty()) {
    Json& stage = j["seconds_by_stage"] = Json::object();
    for (const auto& [name, s] : data.seconds_by_stage) stage[name] = s;
  }
  j["workers"] = workers.count;
  if (workers.global_batch > 0) j["global_batch"] = workers.global_batch;
  if (workers.shares) j["shares"] = workers.shares->shares;
  if (workers.shares && !workers.shares->speeds.empty()) j["speeds"] = workers.shares->speeds;
  for (const LostEvent& e : workers.lost) j["lost"].push_back(skein::apps::to_json(e));
  for (const ChangeEvent& e : workers.changes) j["recoveries"].push_back(skein::apps::to_json(e));
  j["parameters"] = model.parameters;
  j["hash"] = model.hash;
  if (!model.ema_hash.empty()) j["ema_hash"] = model.ema_hash;
  if (!model.worker_hashes.empty()) j["worker_hashes"] = model.worker_hashes;
  put(j, "consensus_distance", model.consensus_distance);
  put(j, "hidden_share", costs.hidden_share);
  put(j, "bytes_per_step", costs.bytes_per_step);
  if (costs.predicted) {
    Json& p = j["predicted"] = {{"images_per_second", costs.predicted->images_per_second}};
    put(p, "hidden_share", costs.predicted->hidden_share);
    put(p, "bytes_per_step", costs.predicted->bytes_per_step);
  }
  put(j, scaling);
  if (!data.labels.empty()) j["shards"] = {{"classes", data.classes}, {"labels", data.labels}};
  j["unreadable"] = data.unreadable;
  if (!data.unreadable_names.empty()) j["unreadable_names"] = data.unreadable_names;
  if (!data.odd_files.empty()) j["odd_files"] = data.odd_files;
  j["environment"] = environment;
  j["config"] = config;
  return j;
}

void write_summary(const std::string& dir, const Summary& s) {
  write_file(dir + "/summary.json", json_text(s.to_json(), 2) + '\n');
}

Json describe_environment() {
  utsname system{};
  ::uname(&system);
  std::string name = value_in("/etc/os-release", "PRETTY_NAME");
  if (name.empty()) name = system.sysname;
  return {{"skein", SKEIN_VERSION},
          {"host", system.nodename},
          {"system", text(name, ", kernel ", system.release, ", ", system.machine)},
          {"processor", value_in("/proc/cpuinfo", "model name")},
          {"cores", std::thread::hardware_concurrency()},
          {"compiler", text("C++ ", __VERSION__)},
          {"cuda_devices", cuda_device_count()}};
}

}  // namespace skein::apps
