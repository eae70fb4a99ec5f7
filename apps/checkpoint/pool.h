// Pool: the state of all workers of a run, united, from which another set of workers goes on. It comes from
// the files of a checkpoint, or from the workers' memory.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "apps/checkpoint/checkpoint.h"
#include "comm/communicator/communicator.h"
#include "optim/snapshot.h"

namespace skein::apps {

struct PoolTable;

// Of every field that any worker has:
//   tensors of f32  the mean over the workers that have it: summed in double in the order of ranks, divided
//                   and then rounded once. So equal bits stay as they are. Of a loss scale it is the
//                   elementwise minimum; of push-sum's X the sum over workers and messages in flight, divided
//                   by the sum of all w.
//   other tensors   that of the lowest worker; strings are U8 tensors
//   numbers         those of all workers, in the order of ranks
// Both origins give the same bits, except that a worker adds its messages in flight to its own X (osgp), in
// f32, before it tells the others, where files are summed in double.
class Pool {
 public:
  Pool() = default;
  // Reads the files of all workers. Throws BadFile.
  Pool(const std::string& checkpoint, const Manifest&);

  // What this worker has saved. Its tensors are not copied: they must not change as long as this exists.
  void add(const optim::Snapshot::Fields&);
  // Unites what the workers of `comm` have added. Afterwards all have the same bits. A newcomer has no state:
  // what it has added counts for nothing, but its own counters may stay with it (reshare.h). Collective.
  //
  // What travels: of each field its name, size and BLAKE2b. A tensor that all have alike is sent only to
  // those that lack it, by those that have it, a part each; the BLAKE2b is checked there. Others are summed,
  // each part by one of those that have it, and sent to all. It travels unrounded on any wire. Throws Error
  // on all workers if none has state, a field has two sizes, or bytes were damaged on the way. PeerLost and
  // Timeout as any collective.
  void unite(comm::Communicator& comm, bool has_state);
  // Then: the sum of push-sum's w over the workers that had state and their messages in flight;
  // 0 without push-sum.
  double weight() const { return weight_; }

  const std::map<std::string, Tensor>& tensors() const { return tensors_; }  // in the host's memory
  const std::map<std::string, std::vector<int64_t>>& wholes() const { return wholes_; }
  const std::map<std::string, std::vector<double>>& reals() const { return reals_; }
  const optim::Snapshot::Fields& own() const { return own_; }  // what this worker itself has
  // Throws what must be said if the new workers cannot go on from this.
  [[noreturn]] void refuse(const std::string& why) const;

 private:
  double take_numbers(const std::vector<PoolTable>&);
  std::string checkpoint_;  // empty: it comes from memory
  double weight_ = 0;
  std::map<std::string, Tensor> tensors_;
  std::map<std::string, std::vector<int64_t>> wholes_;
  std::map<std::string, std::vector<double>> reals_;
  optim::Snapshot::Fields own_;
};

// The f32 numbers of one field, pooled in the order in which they are added.
class PooledNumbers {
 public:
  // -0 is the sum of nothing: unlike 0 it changes no number.
  PooledNumbers(const std::string& field, int64_t size);
  int64_t size() const { return int64_t(numbers_.size()); }
  void add(const float* x);
  // y <- the numbers, a sum divided by `by`. A minimum is not divided.
  void write(float* y, double by) const;

 private:
  const bool least_;
  std::vector<double> numbers_;
};

// "strategy.flight3.x" of osgp: a message in flight, which is part of the sum of all X.
bool is_flight(const std::string& field, const char* part);
// By what the sum of a field over so many workers is divided. `weight` is that of all workers and messages in
// flight, 0 without push-sum.
double divisor_of(const std::string& field, int64_t workers, double weight);
// The part of `weight` that the number of this name is.
bool is_weight(const std::string& field);

}  // namespace skein::apps
