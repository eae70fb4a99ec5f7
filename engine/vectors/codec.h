// Codecs: f32 numbers in fewer bits; the rounding error is kept and added to the next message.
#pragma once
#include <string>

#include "engine/tensor.h"

namespace skein {

// With kInt8 and kInt4, kBlock numbers share a scale, max |v| / 127 or / 7, and each travels as an integer
// multiple of it. kTopK sends the largest numbers of each kChunk, a fraction `keep` of them, as positions
// and bf16 values.
struct Codec {
  enum Kind : uint8_t { kNone, kInt8, kInt4, kTopK };
  static constexpr int64_t kBlock = 256, kChunk = 4096;

  Kind kind = kNone;
  double keep = 0;  // of kTopK

  explicit operator bool() const { return kind != kNone; }
  bool operator==(const Codec&) const = default;
  // The size of n coded numbers. n is a multiple of kChunk, except at the end of a vector.
  int64_t bytes(int64_t n) const;
  int64_t kept(int64_t n) const;  // of kTopK: how many of the n <= kChunk numbers of a chunk travel
};
// "int8", "int4", "topk:0.01"; kNone for a word that names no codec. Throws BadOption if topk's fraction is
// not above 0 and at most 1.
Codec parse_codec(const std::string& word);

// codes <- Q(x + e); e <- x + e - decode(codes); y <- decode(codes), if y is given. codes: u8,
// Codec::bytes; x, e, y: f32, on one device, in its current stream. Only x and y may overlap, if they are
// one tensor. Equal numbers give equal codes on every device. Where x is not finite, neither is the decoded
// number, and e stays.
void encode(const Codec&, const Tensor& codes, const Tensor& x, const Tensor& e, const Tensor& y = {});
// decode(): y <- the decoded numbers; decode_add() adds them to y.
void decode(const Codec&, const Tensor& y, const Tensor& codes);
void decode_add(const Codec&, const Tensor& y, const Tensor& codes);
// Of kTopK: n <- n + 1 where the codes say something.
void count_sent(const Codec&, const Tensor& n, const Tensor& codes);
void divide_by_counts(const Tensor& y, const Tensor& n);  // y <- y / n where n > 1; f32

}  // namespace skein
