// Which flags and algorithms a flat run has no use for.
#pragma once
#include <string>

#include "apps/config/config.h"
#include "apps/launch/world_file.h"

namespace skein::apps {

const char* gradient_word(const GradientPlan&);  // as the world file has it: "ghost" or "quadratic"

// Throws BadOption for flags without effect, a run that resumes another, and as refuse_flat_algorithm() does.
void refuse_flat(const Config&, const GradientPlan&, bool resumes);
// Throws BadOption for algorithms that need what only a model's gradients tell. `gradients` names these.
void refuse_flat_algorithm(const Config&, const GradientPlan&, const std::string& gradients);
// --lr is taken as it is, unless --reference-batch is given.
void settle_flat(Config&);

}  // namespace skein::apps
