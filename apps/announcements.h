// What a run says: what it trains and where, who goes on when the membership changes, and what it leaves.
#pragma once
#include <string>

#include "apps/launch/job.h"
#include "apps/report/progress.h"
#include "apps/setup/setup.h"
#include "apps/train/outcome.h"

namespace skein::apps {

// Model, data, batch, device and learning rate, and warnings about what a run of this length never reaches.
void say_beginning(const Config&, const Setup&, const std::string& directory, Progress&);
// After a change of the membership: who goes on, and from where. Says nothing if none has been recorded.
void say_change(const Member&, const Legacy&, Progress&);
// The scores, the files in the run's directory, and how to continue. It ends with a newline.
std::string words_at_end(const Outcome&, const Config&, const std::string& directory);

}  // namespace skein::apps
