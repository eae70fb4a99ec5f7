// Scalars of each kind of event. The part of a tag before the slash is the group TensorBoard shows it in.
#include "apps/report/tensorboard.h"

#include "apps/report/report_data.h"

namespace skein::apps {
namespace {

// Workers' extremes are in a separate group, away from the main curves.
void put(Scalars& s, const std::string& tag, const Spread& v) {
  s.emplace_back(tag, v.mean);
  if (v.min) s.emplace_back("spread/" + tag + "_min", *v.min);
  if (v.max) s.emplace_back("spread/" + tag + "_max", *v.max);
}
void put(Scalars& s, const std::string& tag, const std::optional<double>& v) {
  if (v) s.emplace_back(tag, *v);
}

}  // namespace

Tensorboard::Tensorboard(const std::string& dir, int64_t resumed_step) : file_(dir, resumed_step + 1) {}

void Tensorboard::write(const RunEvent& e) {
  std::string table = "| flag | value |\n|---|---|\n";
  for (const auto& [key, value] : e.config.items())
    table += "| " + key + " | " + word(e.config, key) + " |\n";
  for (const auto& [key, value] : e.environment.items())
    table += "| " + key + " | " + word(e.environment, key) + " |\n";
  file_.write_text(e.step, "run", table);
}

void Tensorboard::write(const StepEvent& e) {
  Scalars s;
  put(s, "train/loss", e.loss);
  put(s, "train/top1", e.top1);
  put(s, "train/epoch", Spread(e.epoch));
  put(s, "train/learning_rate", Spread(e.learning_rate));
  put(s, "speed/images_per_second", Spread(e.images_per_second));
  put(s, "speed/data_wait", e.data_wait);
  put(s, "speed/peer_wait", e.peer_wait);
  put(s, "speed/bytes_sent", e.bytes);
  file_.write(e.step, s);
}

void Tensorboard::write(const EpochEvent& e) {
  Scalars s;
  put(s, "epoch/loss", e.loss);
  put(s, "epoch/top1", e.top1);
  put(s, "epoch/images_per_second", Spread(e.images_per_second));
  file_.write(e.step, s);
}

void Tensorboard::write(const EvalEvent& e) {
  Scalars s;
  put(s, "eval/loss", Spread(e.loss));
  put(s, "eval/top1", Spread(e.top1));
  put(s, "eval/top5", e.top5);
  if (e.worker_top1) put(s, "eval/worker_top1", *e.worker_top1);
  put(s, "eval/consensus_distance", e.consensus_distance);
  put(s, "eval/ema_loss", e.ema_loss);
  put(s, "eval/ema_top1", e.ema_top1);
  file_.write(e.step, s);
}

}  // namespace skein::apps
