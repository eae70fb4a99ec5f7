// Rule: the local optimizer on flat vectors.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/archive.h"
#include "engine/vectors/segments.h"
#include "engine/vectors/vec.h"
#include "optim/options.h"

namespace skein::optim {

// Owns its state (momentum, moments). One rule serves one vector; all calls take tensors of the size it
// was made for.
class Rule {
 public:
  virtual ~Rule() = default;
  // x <- x - lr * u(g), u evaluated with weight decay at `at`, the point where g was taken. `at` may be x.
  virtual void step(const Tensor& x, const Tensor& g, const Tensor& at, Scalar lr) = 0;
  void step(const Tensor& x, const Tensor& g, Scalar lr) { step(x, g, x, lr); }
  // Its weight decay, for algorithms that have a momentum of their own: of elements [0, elements) or, if
  // there are segments, of what they say.
  struct Decay {
    float rate = 0;
    int64_t elements = 0;
    const Segments* segments = nullptr;  // the rule's own
  };
  virtual Decay decay() const { return {}; }
  // A flag in device memory: step() does nothing where it is 0. Null: it always does.
  virtual const float* on() const { return nullptr; }
  // Some rules take gradients at another point than the model that they mean. If so, y <- that model minus x,
  // and returns true. y has the size and the device of x.
  virtual bool evaluated_beside(const Tensor&) const { return false; }
  // How far uphill from x, along the gradient there, the gradient of a step is to be taken (SAM); 0: at x.
  virtual float ascent() const { return 0; }
  virtual void reset() = 0;  // state back to zero
  virtual void visit(Archive&) = 0;
};

struct SgdOptions {
  float momentum = 0, weight_decay = 0;
  bool nesterov = false;
  int64_t decayed = 0;        // elements [0, decayed) decay
  const float* on = nullptr;  // Rule::on(); must outlive the rule
  Segments segments = {};     // if there are any, they say what decays, and at which rates
};
// d = g + lambda * at; v <- mu v + d; u = nesterov ? d + mu v : v.   algorithms.md, "Local optimizer".
std::unique_ptr<Rule> sgd(const Tensor& like, const SgdOptions&);

// What a rule is made for.
struct RuleTask {
  Tensor like;                // a vector of this size, on this device
  Segments segments;          // of it: rates and decays
  float weight_decay = 0;     // of segments whose decay is 1
  const float* on = nullptr;  // Rule::on(); must outlive the rule
};

struct RuleRow {
  const char* name;     // as on the command line
  const char* source;   // citation
  double lr;            // default rate for a global batch of 256 images
  double growth;        // the rate grows with this power of the batch
  double weight_decay;  // default
  std::unique_ptr<Rule> (*make)(const Options&, const RuleTask&);
  const char* flags;  // those that it reads
};
const std::vector<RuleRow>& rules();

// Throws BadOption that names the nearest valid name.
const RuleRow& rule_row(const std::string& name);
// Throws BadOption.
std::unique_ptr<Rule> make_rule(const std::string& name, const Options&, const RuleTask&);
// Every option that the rule reads, with the value it will use. Throws what make_rule throws.
Values values_of_rule(const std::string& name, Options);

}  // namespace skein::optim
