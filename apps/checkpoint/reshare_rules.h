// The rules by which the state of one set of workers becomes that of another, one row per field.
#pragma once
#include <cstdint>
#include <string>

namespace skein::apps {

enum class How : uint8_t {
  // Of tensors and real numbers the mean over the workers that have the field, which changes nothing if all
  // have the same; of whole numbers the largest; of strings that of the lowest worker.
  kMean,
  kLargest,        // the same, but no worker keeps its own: all must have one number
  kSum,            // worker 0 gets the sum, the others 0
  kCenter,         // the center's vector, as a joining worker pulls it
  kCenterVersion,  // the center's version
  kNumerator,      // sum of all X / sum of all w, including messages in flight
  kNumeratorTail,  // the part of X behind the parameters: the running statistics that travel with them
  kLeast,          // elementwise minimum
  // The mean, as kMean. A single worker sends nothing and so keeps no state of a codec
  // (comm/communicator/coding.h); if no worker has the field, it becomes:
  kOwed,    // zeros, since nothing is owed
  kCommon,  // x, which is the same on all workers then
  kOne,
  kZero,
};

// An empty algorithm has the rows that hold for all. A field without a row is kMean.
How how_of(const std::string& algorithm, const std::string& field);

}  // namespace skein::apps
