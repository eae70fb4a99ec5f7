// Rank 0 looks for the checkpoint and locks the directory; the others follow it.
#include "apps/beginning.h"

#include <algorithm>
#include <filesystem>

#include "apps/base/together.h"
#include "apps/checkpoint/checkpoint.h"
#include "apps/launch/interrupt.h"

namespace skein::apps {
namespace {

namespace fs = std::filesystem;

void say_line(const std::string& line) { say(stdout, line + '\n'); }

bool continues_in_place(const Command& c) {
  std::error_code none;
  return !c.run.empty() && fs::weakly_canonical(c.run, none) == fs::weakly_canonical(c.config.output, none);
}

// Called on rank 0. What a run has recorded that was stopped before its first checkpoint is discarded.
std::string look_again(const Command& command) {
  const auto all = list_checkpoints(command.run);
  if (!all.empty()) return command.newest || command.checkpoint.empty() ? all.back() : command.checkpoint;
  if (fs::remove(fs::path(command.run) / "metrics.jsonl"))
    say_line(command.run + " has no checkpoint: training starts from the beginning");
  return {};
}

}  // namespace

std::string checkpoint_to_start_from(const Command& command, comm::Communicator& comm, RunDirectory& home) {
  std::string checkpoint = command.checkpoint;
  if (continues_in_place(command)) {
    const double patience = command.resume_if_there ? std::min(30.0, command.config.deadline / 2) : 0;
    together(comm, [&] {
      if (comm.rank() != 0) return;
      if (home.path().empty())  // else an earlier attempt has found it
        home.hold(command.run, patience, say_line);
      checkpoint = look_again(command);
    });
    if (comm.rank() != 0) home.join(command.run);
  }
  return from_rank_zero(comm, checkpoint);
}

std::string directory_to_train_in(const Command& command, comm::Communicator& comm, RunDirectory& home) {
  const Config& c = command.config;
  const bool held = continues_in_place(command);
  together(comm, [&] {
    if (held || comm.rank() != 0 || !home.path().empty()) return;  // an earlier attempt has made it
    if (c.output.empty()) return home.make(c.model, c.data);
    home.hold(c.output, 0, say_line);
    refuse_a_run(c.output);
  });
  const std::string directory = from_rank_zero(comm, home.path());
  if (!held && comm.rank() != 0) home.join(directory);
  return directory;
}

}  // namespace skein::apps
