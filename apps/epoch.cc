// Trains from a checkpoint, or from the other members' state, until the run or the epoch of
// the membership ends.
#include "apps/epoch.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/announcements.h"
#include "apps/base/together.h"
#include "apps/beginning.h"
#include "apps/checkpoint/reshare.h"
#include "apps/config/algorithm_values.h"
#include "apps/launch/crew/superior.h"
#include "apps/launch/device_choice.h"
#include "apps/launch/epochs.h"
#include "apps/launch/interrupt.h"
#include "apps/launch/launch.h"
#include "apps/launch/requeue.h"
#include "apps/launch/simulated.h"
#include "apps/model/export_onnx.h"
#include "apps/serving.h"
#include "apps/train/trainer.h"
#include "comm/communicator/words.h"
#include "comm/membership/council.h"

namespace skein::apps {
namespace {

// Called after an interruption, when the checkpoint is written. Rank 0 asks SLURM to requeue the job,
// whichever worker SIGUSR1 has reached. The others wait for it, because a step whose tasks end may end the
// job. A job that made no progress is not requeued, because it would come back forever.
void end_interrupted(const Member& me, const Config& c, int64_t steps_taken) try {
  const auto of_all = comm::gather_numbers(me.comm, {double(c.requeue && asked_to_come_again())});
  const bool wanted = std::any_of(of_all.begin(), of_all.end(), [](const auto& one) { return one[0] != 0; });
  if (wanted && me.rank == 0) {
    if (steps_taken > 0)
      requeue_job();
    else
      say(stdout,
          "--requeue: no step was taken since the start, so the job is not put in the queue again; "
          "it needs more time\n");
  }
  me.comm.barrier();
} catch (const comm::PeerLost&) {   // the lost peer was in an asynchronous run that has continued without it
} catch (const comm::EpochEnds&) {  // a worker was lost that was no longer needed
}

// Members may have been lost before any of them had begun the run.
bool goes_on(const Member& me, const Kept& kept) {
  return is_later_epoch(me) && kept.legacy.goes_on(me.comm, me.council->now().step);
}

// For a run that these workers begin after others were lost: takes over its directory and its global batch.
void begin_again(const Member& me, Kept& kept) {
  const std::string path = first_said(me.comm, kept.home->path());
  if (!path.empty() && kept.home->path().empty()) kept.home->join(path);
  if (!path.empty() && me.rank == 0) kept.home->take_over();
  const std::string workers =
      first_said(me.comm, kept.legacy.founder ? text(kept.legacy.workers_at_first) : "");
  kept.legacy.workers_at_first = int(std::stol(workers));
}

// Newcomers get the run's facts from rank 0, which now also owns the run's directory.
void begin_epoch(const Member& me, Kept& kept) {
  const bool newcomer = kept.legacy.directory.empty();
  if (newcomer) kept.legacy.left_at = clock_seconds();
  kept.legacy.share(me.comm, me.council->now());
  if (newcomer) kept.home->join(kept.legacy.directory);
  if (me.rank == 0) kept.home->take_over();
}

// Trains as one worker.
class Epoch {
 public:
  Epoch(const Command& command, const Member& me, Kept& kept)
      : command_(command),
        me_(me),
        kept_(kept),
        later_(goes_on(me, kept)),
        again_(is_later_epoch(me) && !later_),
        c_(command.config),
        checkpoint_(later_ ? "" : start_from()),
        survivors_(me.comm, me.hub, optim::strategy_row(c_.algorithm).center() && !me.council),
        progress_(me.rank == 0 ? stdout : nullptr, showing(c_.progress, stdout)) {
    if (me.simulated) progress_.pace_by([&world = me.simulated->world] { return world.real_seconds(); });
  }
  int train();

 private:
  std::string start_from();
  void enter_directory();
  void share_whole_batch();
  void on_all(const std::function<void()>&);
  void set_up();
  void adapt();
  void connect_devices();
  std::unique_ptr<Trainer> make_trainer();
  void load_state(Trainer&);
  int end(const Outcome&);

  const Command& command_;
  const Member& me_;
  Kept& kept_;
  const bool later_, again_;  // it goes on with a run; it begins the run that an earlier epoch has not
  Config c_;
  const std::string checkpoint_;  // to continue from; empty: from step 0, or from the other members' state
  Survivors survivors_;
  Progress progress_;
  std::string directory_;
  Setup setup_;
  std::string adapted_;   // what had to change in the algorithm for this number of workers
  int64_t begun_at_ = 0;  // steps taken before
};

std::string Epoch::start_from() {
  if (again_) begin_again(me_, kept_);
  return checkpoint_to_start_from(command_, me_.comm, *kept_.home);
}

void Epoch::enter_directory() {
  if (later_) {
    begin_epoch(me_, kept_);
    directory_ = kept_.legacy.directory;
  } else {
    survivors_.wholly([&] { directory_ = directory_to_train_in(command_, survivors_.comm(), *kept_.home); });
  }
}

// The batch of a run that begins, or begins again with other workers than it was meant for.
void Epoch::share_whole_batch() {
  const int64_t meant_for = again_ ? kept_.legacy.workers_at_first : me_.world;
  const bool as_given = c_.global_batch == 0 || !c_.batch_size.shares.empty();
  if (meant_for == me_.world && as_given) return;
  const int64_t whole = global_batch_of(c_, meant_for);
  if (whole < me_.world)
    throw BadOption(text(c_.origin("global-batch").place, " ", whole, " is less than an image for each of ",
                         me_.world, " workers"));
  share_batch(c_, whole, me_.world);
}

void Epoch::set_up() {
  const auto open = [&] {
    if (setup_.model) return;  // an earlier attempt has set it up
    if (!checkpoint_.empty()) keep_global_batch(c_, read_sound_manifest(checkpoint_), me_.world);
    if (checkpoint_.empty() && !later_) share_whole_batch();
    if (later_) share_batch(c_, kept_.legacy.global_batch, me_.world, kept_.legacy.shares);
    if (later_ || again_) adapt();
    c_.workers = me_.world;
    setup_ = open_setup(c_, me_, kept_.legacy.data);
  };
  survivors_.wholly([&] { on_all(open); });
}

// What fails on a worker fails the beginning. Later it ends this worker alone, and the others go on without
// it: a newcomer may lack the device that it was given.
void Epoch::on_all(const std::function<void()>& f) { later_ ? f() : together(survivors_.comm(), f); }

// Of a later epoch, which may have more workers, or fewer, or no server.
void Epoch::adapt() {
  const auto servers = c_.of_algorithm.find("servers");
  const bool lost = servers != c_.of_algorithm.end() && servers->second == "dedicated" && !me_.has_server;
  if (lost) servers->second = "inline";
  adapted_ = adapt_algorithm(c_, me_.world);
  if (lost) adapted_ += text(adapted_.empty() ? "" : "; ", "the server is lost: worker 0 takes its place");
}

// The workers' GPUs, and those of other hosts.
void Epoch::connect_devices() {
  progress_.say(fmt::format("{} worker{}{} by {}; {}", me_.world, me_.world == 1 ? "" : "s",
                            me_.has_server ? " and a server" : "", c_.algorithm, one_line(me_.ways)));
  std::string sums;
  survivors_.wholly([&] {
    sums = join_gpus(survivors_.comm(), c_, setup_.device);
    setup_.messages = join_messages(survivors_.comm(), c_, setup_.device, nn::count_params(*setup_.model));
  });
  setup_.place.ways = with_sums(setup_.place.ways, sums);
  for (const std::string& way : {sums, setup_.messages})
    if (!way.empty()) progress_.say(way);
}

std::unique_ptr<Trainer> Epoch::make_trainer() {
  std::unique_ptr<Trainer> made;
  survivors_.wholly([&] {
    on_all([&] {
      if (!made) made = std::make_unique<Trainer>(c_, std::move(setup_), directory_, progress_, survivors_);
    });
  });
  return made;
}

void Epoch::load_state(Trainer& trainer) {
  if (later_) return trainer.inherit(kept_.legacy);
  if (checkpoint_.empty()) return again_ ? trainer.begin_again() : void();
  trainer.resume(checkpoint_);
  begun_at_ = trainer.step_number();
  progress_.say("going on from " + checkpoint_);
  for (const std::string& change : command_.changes) progress_.say("changed since: " + change);
  for (const std::string& line : trainer.changes_of_data()) progress_.say(line);
  if (command_.config.workers != me_.world)
    progress_.say(fmt::format("changed since: workers {} -> {}", command_.config.workers, me_.world));
}

int Epoch::end(const Outcome& out) {
  if (out.legacy) {
    kept_.legacy = std::move(*out.legacy);
    return kNextEpoch;
  }
  if (out.bereaved) {
    if (!out.why.empty()) say(stderr, fmt::format("train_imagenet: {}\n", out.why));
    return kExitRuntime;
  }
  if (me_.rank == 0) {
    if (!out.interrupted && !c_.export_onnx.empty()) export_onnx(c_, directory_ + "/model.safetensors");
    say(stdout, words_at_end(out, c_, directory_));
  }
  if (!out.interrupted) return 0;
  end_interrupted(me_, c_, out.step - begun_at_);
  return kExitInterrupted;
}

int Epoch::train() {
  enter_directory();
  set_up();
  later_ ? say_change(me_, kept_.legacy, progress_) : say_beginning(c_, setup_, directory_, progress_);
  if (again_)
    progress_.say(fmt::format("{} of {} workers were left before the first step; {} begin", me_.world,
                              kept_.legacy.workers_at_first, me_.world));
  if (!adapted_.empty()) progress_.say(adapted_);
  c_.output = directory_;
  if (me_.announce) together(survivors_.comm(), [&] { me_.announce(directory_); });
  tell_server(me_, directory_);
  if (!setup_.alone) connect_devices();
  const std::unique_ptr<Trainer> trainer = make_trainer();
  load_state(*trainer);
  catch_interrupts(me_.council ? Termination::kLeaves : Termination::kStopsAll);
  const bool too_few = me_.council && me_.world < c_.min_workers;
  if (too_few)
    progress_.say(
        fmt::format("{} of at least {} workers are left; the run stops", me_.world, c_.min_workers));
  const Outcome out = trainer->run([too_few] { return too_few || interrupted(); }, told_to_leave);
  progress_.finish();
  return end(out);
}

}  // namespace

// If a change of the membership interrupts the beginning of an epoch, `kept` is unchanged for the next one.
int work(const Command& command, const Member& me, Kept& kept) try {
  outlive_readers();
  if (me.serves()) {
    catch_interrupts();  // on which the workers act
    return serve(command.config, me, kept.served);
  }
  if (!kept.home) kept.home.emplace(me.rank);
  if (me.council && !is_later_epoch(me)) kept.legacy.founder = true, kept.legacy.workers_at_first = me.world;
  return Epoch(command, me, kept).train();
} catch (const comm::EpochEnds&) {
  if (!me.council) throw;
  return kNextEpoch;
} catch (const comm::PeerLost&) {
  if (!me.council) throw;
  return kNextEpoch;
} catch (const comm::GivenUp&) {
  if (!me.council || !told_to_leave()) throw;
  report_leaving();
  say(stdout, fmt::format("worker {} has left; the others continue\n", me.rank));
  return 0;
} catch (...) {
  kept.home.reset();  // before the register, which lies in that directory, is removed
  throw;
}

}  // namespace skein::apps
