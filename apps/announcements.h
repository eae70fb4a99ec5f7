// Messages of a run: what it trains and where, which workers continue after a change, and which
// files it leaves.
#pragma once
#include <string>

#include "apps/launch/job.h"
#include "apps/report/progress.h"
#include "apps/setup/setup.h"
#include "apps/train/outcome.h"

namespace skein::apps {

// Says model, data, batch, device and learning rate, and warns of settings that a run of this
// length never reaches.
void say_beginning(const Config&, const Setup&, const std::string& directory, Progress&);
// After a change of the membership: says which workers continue, and from which step. Silent if there
// was no change.
void say_change(const Member&, const Legacy&, Progress&);
// The scores, the files in the run's directory, and how to continue; ends with a newline.
std::string words_at_end(const Outcome&, const Config&, const std::string& directory);

}  // namespace skein::apps
