// The table of rules as code.
#include "optim/rule.h"

#include "engine/words/find_row.h"

namespace skein::optim {

#define RULE(name, source, lr, growth, decay, flags) \
  std::unique_ptr<Rule> make_##name##_rule(const Options&, const RuleTask&);
#include "optim/rules.def"
#undef RULE

const std::vector<RuleRow>& rules() {
  static const std::vector<RuleRow> rows = {
#define RULE(name, source, lr, growth, decay, flags) \
  {#name, source, lr, growth, decay, &make_##name##_rule, flags},
#include "optim/rules.def"
#undef RULE
  };
  return rows;
}

const RuleRow& rule_row(const std::string& name) {
  if (const RuleRow* row = find_row(rules(), name)) return *row;
  throw BadOption(text("--optimizer ", name,
                       ": there is no such optimizer; train_imagenet --list optimizers shows all",
                       did_you_mean(name, names_of(rules()))));
}

std::unique_ptr<Rule> make_rule(const std::string& name, const Options& o, const RuleTask& task) {
  CHECK(task.like.dtype() == kF32 && task.segments.size() == task.like.size(), task.like.dtype(),
        task.segments.size(), task.like.shape());
  if (!(task.weight_decay >= 0))
    throw BadOption(text("--weight-decay ", task.weight_decay, ": must not be negative"));
  return rule_row(name).make(o, task);
}

Values values_of_rule(const std::string& name, Options options) {
  Values values;
  options.report_to(values);
  const Tensor one = Tensor::zeros({1});
  make_rule(name, options, {.like = one, .segments = Segments::one(one)});
  return values;
}

}  // namespace skein::optim
