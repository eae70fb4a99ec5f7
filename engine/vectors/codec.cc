// The sizes of codes and the words for codecs.
#include "engine/vectors/codec.h"

#include <algorithm>
#include <cmath>

#include "engine/words/number.h"

namespace skein {

int64_t Codec::kept(int64_t n) const {
  return n == 0 ? 0 : std::clamp<int64_t>(std::llround(keep * double(n)), 1, n);
}

int64_t Codec::bytes(int64_t n) const {
  const int64_t blocks = (n + kBlock - 1) / kBlock, chunks = n / kChunk;
  switch (kind) {
    case kInt8:
      return 4 * blocks + n;
    case kInt4:
      return 4 * blocks + (n / kBlock) * (kBlock / 2) + (n % kBlock + 1) / 2;
    case kTopK:
      return 4 * (chunks * kept(kChunk) + kept(n % kChunk));
    case kNone:
      break;
  }
  return 4 * n;
}

Codec parse_codec(const std::string& word) {
  if (word == "int8") return {Codec::kInt8};
  if (word == "int4") return {Codec::kInt4};
  const std::string prefix = "topk:";
  if (!word.starts_with(prefix)) return {};
  const auto part = number_in<double>(word.substr(prefix.size()));
  if (!part || !(*part > 0 && *part <= 1))
    throw BadOption("--wire " + word +
                    ": topk:P sends the P-th part of the numbers, above 0 and at most 1, as topk:0.01");
  return {Codec::kTopK, *part};
}

}  // namespace skein
