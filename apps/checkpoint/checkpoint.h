// Checkpoints: everything the next step reads, in
// DIR/checkpoints/step-NNNNNNNN/{manifest.json, rank-0000.safetensors, ...}.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "apps/checkpoint/data_index.h"
#include "apps/checkpoint/state_file.h"

namespace skein::apps {

// What a checkpoint and the run that resumes it must agree on.
struct Identity {
  std::string model;      // "resnet20"
  std::string layout;     // layout_hash(flat)
  std::string algorithm;  // "sgp"
  int world = 1;
  std::string data;  // "fashion-mnist"
  uint64_t seed = 0;
  int64_t global_batch = 0;
};

struct Manifest {
  int64_t step = 0;  // steps taken: the next one is step number `step`
  Identity identity;
  std::vector<std::string> files;    // per rank
  std::vector<std::string> sums;     // their BLAKE2b-256
  DataIndex images;                  // what it was trained and tested on; hashes are empty if not recorded
  std::string leftover = "";         // data::Leftover of an epoch that was dealt again
  std::vector<int64_t> shares = {};  // of the workers in the global batch; empty: as even as can be
};

// The checkpoints of one output directory. Saving is three steps so that the trainer
// can put barriers between:
//   rank 0: begin(step)  | barrier |  every rank: write(step, rank, walk)  | barrier |  rank 0: commit(...)
// A checkpoint is under its final name only when every byte of it is on the disk; older ones are removed only
// after that. Each step throws BadFile (disk full, not writable, directory not shared by the hosts) and
// leaves earlier checkpoints intact; the caller then calls abandon(step) on rank 0, which removes the pieces.
class Checkpoints {
 public:
  explicit Checkpoints(const std::string& output, int keep = 3);
  const std::string& directory() const { return dir_; }  // OUTPUT/checkpoints

  // Numbers another attempt, after a worker was lost in the last one, so that what the lost worker may
  // still write does not interfere. The number must be the same on every rank, and larger than those
  // before. A worker that is stopped and given up, and goes on later, finds its attempt taken away, and
  // leaves later ones alone.
  void attempt(int number) { attempt_ = number; }
  bool is_taken_away(int64_t step) const;  // what begin() made for this step, and nobody has committed
  void begin(int64_t step);
  void write(int64_t step, int rank, const Walk&);
  // Returns the new checkpoint's path. `leftover` and `shares` as in Manifest.
  std::string commit(int64_t step, const Identity&, const DataIndex& = {}, const std::string& leftover = "",
                     const std::vector<int64_t>& shares = {});
  void abandon(int64_t step) noexcept;

 private:
  std::string aside(int64_t step) const;
  bool is_leftover(const std::string& name) const;
  void retire(int64_t newest);
  std::string dir_;
  int keep_, attempt_ = 0;
  std::set<std::string> leftovers_;     // unfinished ones that were there before this
  std::vector<std::string> abandoned_;  // of later steps than that which has begun
};

// Finished checkpoints of an output directory (or of its checkpoints/), oldest first.
std::vector<std::string> list_checkpoints(const std::string& output);
// The checkpoint meant by `--resume PATH`: a checkpoint itself, or an output directory, meaning its newest.
// BadFile if there is none.
std::string find_checkpoint(const std::string& path);

// Reads and checks a manifest. Throws BadFile if it is damaged.
Manifest read_manifest(const std::string& checkpoint);
// Throws BadFile naming the first file that is missing or damaged, and the newest good checkpoint beside it.
// Reads every file; rank 0 calls it before any rank loads.
void verify_checkpoint(const std::string& checkpoint);
// read_manifest(), with the message of verify_checkpoint() if it is damaged.
Manifest read_sound_manifest(const std::string& checkpoint);
// Throws BadFile if the run differs from the checkpoint in model, layout, algorithm, world, data, seed or
// batch; the message names it, both values, and what to do.
void check_identity(const std::string& checkpoint, const Manifest&, const Identity& run);

// Loads one rank's state after checking its bytes against the manifest. The walk writes nothing if the file
// is damaged. Throws BadFile also if a field is missing from the file or from the walk.
Manifest load_checkpoint(const std::string& checkpoint, int rank, const Identity& run, const Walk&);

}  // namespace skein::apps
