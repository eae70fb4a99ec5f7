// Rank 0's lines for the user.
#include "apps/announcements.h"

#include <errno.h>  // program_invocation_name
#include <fmt/format.h>

#include "apps/base/printable.h"
#include "apps/config/algorithm_values.h"
#include "apps/launch/placement.h"
#include "apps/model/class_words.h"
#include "apps/report/report.h"
#include "engine/device/processor.h"
#include "optim/schedule.h"

namespace skein::apps {

void say_beginning(const Config& c, const Setup& s, const std::string& directory, Progress& progress) {
  progress.say(fmt::format("{} on {}: {} training and {} test images of {} classes, {}x{}x{}", c.model,
                           c.data, s.data.train->size(), s.data.test->size(), s.data.train->classes().size(),
                           s.image.height, s.image.width, s.image.channels));
  for (const std::string& line : describe_classes(s.data)) progress.say(line);
  const std::string batch = s.portions->even() ? describe_batch(s.global_batch, s.place.world)
                                               : describe_batch(s.portions->shares());
  progress.say(fmt::format("{} step{}, {} an epoch, batch {}, {} on {}, {} thread{}; {}", s.total_steps,
                           s.total_steps == 1 ? "" : "s", s.steps_per_epoch, batch, c.precision,
                           text(s.device), s.threads, s.threads == 1 ? "" : "s", directory));
  if (c.reference_batch > 0)
    progress.say(fmt::format("learning rate {}, {}",
                             optim::scaled_rate_in_words(c.lr, s.global_batch, c.reference_batch,
                                                         optim::rule_row(c.optimizer).growth),
                             c.lr_schedule));
  if (!s.device.is_cuda()) progress.say("instruction sets: " + cpu::describe());
  if (!s.device_note.empty()) progress.say(s.device_note);
  for (const std::string& note : s.data.notes) progress.say(note);
  if (!s.data_cores.empty())
    progress.say(fmt::format("worker 0 computes on cores {} and decodes on cores {}",
                             list_cores(s.compute_cores), list_cores(s.data_cores)));
  std::string sizes;
  for (const auto& shard : s.portions->shards())
    sizes += (sizes.empty() ? "" : ", ") + std::to_string(shard.size());
  if (!sizes.empty()) progress.say(fmt::format("split {}: workers have {} images", c.split, sizes));
  for (const std::string& line : never_reached(c, s.place.world, s.total_steps, s.steps_per_epoch))
    progress.say("warning: " + line);
}

void say_change(const Member& me, const Legacy& legacy, Progress& progress) {
  if (legacy.changes.empty()) return;
  const ChangeEvent& e = legacy.changes.back();
  std::string what;
  for (const std::string& one : e.lost) what += (what.empty() ? "" : "; ") + one;
  if (e.joined) what += fmt::format("{}{} new", what.empty() ? "" : "; ", e.joined);
  if (what.empty()) what = "a newcomer is gone before its first step";
  progress.say(fmt::format("{}: {} worker{} from step {}", what, me.world,
                           me.world == 1 ? " continues" : "s continue", e.step));
}

std::string words_at_end(const Outcome& out, const Config& c, const std::string& directory) {
  const std::string resume =
      fmt::format("{} --resume {}", shell_word(program_invocation_name), shell_word(directory));
  if (out.interrupted) return fmt::format("interrupted after step {}; continue with: {}\n", out.step, resume);
  std::string s;
  if (out.score) s += fmt::format("{}\n", describe(*out.score));
  if (out.ema) s += fmt::format("moving average: {}\n", describe(*out.ema));
  CostFigures costs;
  costs.images_per_second = out.images_per_second, costs.predicted = Predicted::parse(c.predicted);
  costs.bytes_per_step = out.bytes_per_step, costs.hidden_share = out.hidden_share;
  s += in_words(costs, out.training_seconds);
  s += fmt::format("  {}/report.html        curves, for a browser\n", directory);
  s += fmt::format("  {}/summary.json       figures\n", directory);
  s += fmt::format("  {}/model.safetensors  the model\n", directory);
  if (!c.export_onnx.empty()) s += fmt::format("  {}  the same as ONNX\n", c.export_onnx);
  if (out.ema) s += fmt::format("  {}/model_ema.safetensors  the moving average of its weights\n", directory);
  if (out.best && (out.best->step != out.step || out.best->ema))
    s += fmt::format("  {}/{}  the best model: top-1 {:.2f} % after epoch {:.4g}{}\n", directory,
                     BestModel::kFile, out.best->top1, out.best->epoch,
                     out.best->ema ? ", of the moving average" : "");
  if (c.tensorboard) s += fmt::format("  tensorboard --logdir {}\n", shell_word(directory));
  const std::string more = out.out_of_patience ? "--patience 0"
                           : c.steps > 0       ? fmt::format("--steps {}", 2 * c.steps)
                                               : fmt::format("--epochs {}", 2 * c.epochs);
  s += fmt::format("train longer with: {} {}\n", resume, more);
  return s;
}

}  // namespace skein::apps
