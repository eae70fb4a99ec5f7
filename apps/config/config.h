// Config: the options of train_imagenet, made from the table in flags.def.
#pragma once
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "apps/base/json.h"
#include "apps/config/batch_size.h"
#include "engine/dtype.h"

namespace skein::apps {

using Word = std::string;
using Count = int64_t;
using Real = double;
using Switch = bool;
using Batch = BatchSize;

// Where a value comes from, weakest first: a stronger source overrides a weaker one.
enum class Source : uint8_t { kDefault, kResumed, kRecipe, kFile, kCommandLine };
struct Origin {
  Source source = Source::kDefault;
  std::string place;                // how an error about it begins: "--lr", or "recipe.toml:3: lr"
  bool by_default = false;          // the algorithm's default, not the user's choice
  Source since = Source::kDefault;  // the weakest source from which on the value has been this one
};

// The effective configuration. Fields are named as flags, with underscores.
struct Config {
#define FLAG(group, Type, name, otherwise, allowed, resume, help) Type name = otherwise;
#define OWN_FLAG(Type, name, allowed, help)
#include "apps/config/flags.def"
#undef OWN_FLAG
#undef FLAG

  // Flags of algorithms, without dashes: those given and, after settle_algorithm(), all that
  // this algorithm reads. The strategy is made from them.
  std::map<std::string, std::string> of_algorithm;
  std::map<std::string, Origin> origins;  // of the given flags

  Origin origin(const std::string& flag) const;  // for a flag that was not given: kDefault, "--flag"
};

// One row of the table. A flag of algorithms has no field and is kept as text.
struct Flag {
  enum Kind : uint8_t { kWord, kCount, kReal, kSwitch, kBatch };
  using Field = std::variant<std::monostate, Word Config::*, Count Config::*, Real Config::*,
                             Switch Config::*, Batch Config::*>;
  std::string group, name;  // name: with hyphens, without dashes
  Kind kind = kWord;
  Field field;
  std::string allowed;
  bool fixed_on_resume = false;
  std::string help;
  std::vector<std::string> algorithms = {};   // the algorithms that alone read it; empty: all runs do
  std::vector<std::string> required_by = {};  // the algorithms that have no default for it
  std::vector<std::string> optimizers =
      {};  // the optimizers that alone read it; empty: it is not of optimizers
  bool of_algorithm() const { return std::holds_alternative<std::monostate>(field); }
};
using Flags = std::vector<Flag>;
const Flags& flags();
const Flag* find_flag(const Flags&,
                      const std::string& name);  // with hyphens or underscores; null if there is none

// The type of its value, for a reader: "N", "NUMBER", "TEXT" or "fp32|bf16|fp16".
std::string type_of(const Flag&);

// Sets one flag from text. Throws BadOption, beginning with the place, if the text is of the wrong kind or
// out of range, or if it contradicts a resumed run in something that a run cannot change.
void assign(Config&, const Flag&, const std::string& text, const Origin&);
// The value as text; empty for an algorithm's own flag that has none in `of_algorithm`.
std::string value_of(const Config&, const Flag&);
// Whether this run's user has asked for something by it: a value that is not the default, because a file of
// to_toml() gives defaults, too.
bool asks_for(const Config&, const Flag&);
bool asks_for(const Config&, const std::string& name);

// Sets what the TOML file gives, one key a flag. Throws BadFile (unreadable, not TOML) or BadOption, which
// begin with file and line. Skips the keys in `skip`.
void read_toml(Config&, const std::string& path, Source, const Flags& = flags(),
               const std::vector<std::string>& skip = {});
// The same for TOML in memory; `from` names the source in messages.
void parse_toml(Config&, const std::string& toml, const std::string& from, Source, const Flags& = flags(),
                const std::vector<std::string>& skip = {});
// The whole configuration with defaults, except flags that algorithm and optimizer do not
// read; read_toml() restores it.
std::string to_toml(const Config&, const Flags& = flags());
Json to_json(const Config&, const Flags& = flags());

// What --predict should do, besides the flags of the table.
struct Prediction {
  std::vector<std::string> paths;  // files and directories
  int64_t top = 5;                 // classes to name for each picture
  bool json = false;               // print one JSON object per line
  std::string logits;              // .npy file for the logits of the readable pictures, [pictures, classes]
};

// An error's message, with file and line in front if it begins with a flag that a file gave.
std::string with_place(const Config&, const std::string& message);

// The images of a step over so many workers. Throws BadOption if --batch-size is for another number of them.
Count global_batch_of(const Config&, Count workers);
// Divides this global batch among so many workers: into these shares, or as evenly as it goes: 22, 21 and
// 21 of 64.
void share_batch(Config&, Count global_batch, Count workers, const std::vector<Count>& shares = {});

// The type that --precision names.
DType activations_of(const Config&);
// The N of --device cuda:N; -1 for cuda, auto and cpu. Throws BadOption for anything else.
int gpu_of(const Config&);

// --checkpoint-every: a number of epochs or of steps; both 0 means only at the end.
struct Every {
  int64_t epochs = 0, steps = 0;
};
Every parse_every(const Config&);

}  // namespace skein::apps
