// Codecs: f32 numbers in fewer bits, and what is lost on the way kept for the next time.
#pragma once
#include <string>

#include "engine/tensor.h"

namespace skein {

// How numbers travel. Blocks of kBlock numbers share a scale, max |v| / 127 or / 7, and each number is a multiple of it;
// kTopK sends of each kChunk numbers the `keep`-th part that is largest, as positions and bf16 values.
struct Codec {
  enum Kind : uint8_t { kNone, kInt8, kInt4, kTopK };
  static constexpr int64_t kBlock = 256, kChunk = 4096;

  Kind kind = kNone;
  double keep = 0;  // of kTopK

  explicit operator bool() const { return kind != kNone; }
  bool operator==(const Codec&) const = default;
  // The size of n numbers as they travel. n is a multiple of kChunk, except for what ends a vector.
  int64_t bytes(int64_t n) const;
  int64_t kept(int64_t n) const;  // of kTopK: how many of the n <= kChunk numbers of a chunk travel
};
// "int8", "int4", "topk:0.01"; nothing (kNone) for a word that names no codec. Throws BadOption for a part of topk
// that is not above 0 and at most 1.
Codec parse_codec(const std::string& word);

// codes <- Q(x + e); e <- x + e - what the codes say; y <- what they say, if y is given; y may be x. In one pass over
// memory. codes: u8, Codec::bytes; x, e, y: f32. All on one device, whose current stream does the work; they do not
// overlap otherwise. Equal numbers give equal codes on every device. Where x is not finite, the codes say so and e stays.
void encode(const Codec&, const Tensor& codes, const Tensor& x, const Tensor& e, const Tensor& y = {});
// y <- what the codes say, or y <- y + that.
void decode(const Codec&, const Tensor& y, const Tensor& codes);
void decode_add(const Codec&, const Tensor& y, const Tensor& codes);

}  // namespace skein
