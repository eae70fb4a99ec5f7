// Blocks with a scale, and chunks whose largest numbers travel. A team works on one block or chunk at a time,
// which stays in the first-level cache for all its passes.
#include "engine/vectors/codec.h"

#include <cfloat>
#include <cmath>

#include "engine/loops/launch.h"
#include "engine/vectors/elementwise.h"

namespace skein {
namespace {

constexpr int64_t kBlock = Codec::kBlock, kChunk = Codec::kChunk;

// Rounds to nearest, ties to even, for |v| < 2^22: adding 1.5 * 2^23 leaves the integer in the lowest bits.
HD int32_t nearest(float v) {
  const float shifted = v + 12582912.f;
  int32_t bits;
  memcpy(&bits, &shifted, 4);
  return bits - 0x4B400000;
}
HD uint32_t magnitude(float v) {
  uint32_t bits;
  memcpy(&bits, &v, 4);
  return bits & 0x7FFFFFFF;
}

// ---- blocks with a scale ----------------------------------------------------------------------------------

// kPairs: a byte holds one number of each half of the block; otherwise each number has a byte of its own.
struct Int8 {
  static constexpr float kMost = 127;
  static constexpr bool kPairs = false;
};
struct Int4 {
  static constexpr float kMost = 7;
  static constexpr bool kPairs = true;
};
HD int64_t bytes_of(const Int8&, int64_t n) { return n; }
HD int64_t bytes_of(const Int4&, int64_t n) { return (n + 1) / 2; }

template <class Q>
struct EncodeBlocks {
  float* scales;
  uint8_t* codes;
  const float* x;
  float *e, *y;  // y may be null
  int64_t n;

  template <class Team>
  HD void operator()(int64_t b, Team team) const {
    const int64_t begin = b * kBlock, left = n - begin, length = left < kBlock ? left : kBlock;
    const float* const from = x + begin;
    float *const kept = e + begin, *const to = y ? y + begin : nullptr;
    float most = 0, bad = 0;
#pragma omp simd reduction(max : most) reduction(+ : bad)
    for (int64_t i = team.lane(); i < length; i += Team::kLanes) {
      const float v = fabsf(from[i] + kept[i]);
      most = v > most ? v : most;
      bad += v <= FLT_MAX ? 0.f : 1.f;
    }
    most = team.max(most), bad = team.sum(bad);
    const float scale = bad > 0 ? NAN : most / Q::kMost;
    // A block of subnormal numbers may have no finite 1 / scale: it travels as zeros, and stays in e.
    const float inverse = most > 0 && 1 / scale <= FLT_MAX ? 1 / scale : 0.f;
    if (team.lane() == 0) scales[b] = inverse > 0 || bad > 0 ? scale : 0.f;
    if (bad > 0)
      refuse(team, from, to, length);
    else
      write(team, codes + b * bytes_of(Q(), kBlock), from, kept, to, length, scale, inverse);
  }
  template <class Team>
  HD void refuse(Team team, const float* from, float* to, int64_t length) const {
    for (int64_t i = team.lane(); to && i < length; i += Team::kLanes) to[i] = from[i] + NAN;
  }
  // Returns the code of one number and stores its rounding error.
  HD static int32_t code(const float* from, float* kept, float* to, int64_t i, float scale, float inverse) {
    const float v = from[i] + kept[i];
    const int32_t q = nearest(v * inverse);
    const float said = float(q) * scale;
    kept[i] = v - said;
    if (to) to[i] = said;
    return q;
  }
  template <class Team>
  HD void write(Team team, uint8_t* bytes, const float* from, float* kept, float* to, int64_t length,
                float scale, float inverse) const {
    if constexpr (Q::kPairs) {
      const int64_t half = (length + 1) / 2, whole = length / 2;
#pragma omp simd
      for (int64_t i = team.lane(); i < whole; i += Team::kLanes) {
        const int32_t low = code(from, kept, to, i, scale, inverse) + 8;
        const int32_t high = code(from, kept, to, i + half, scale, inverse) + 8;
        bytes[i] = uint8_t(low | high << 4);
      }
      if (half > whole && team.lane() == 0)
        bytes[whole] = uint8_t(code(from, kept, to, whole, scale, inverse) + 8);
    } else {
#pragma omp simd
      for (int64_t i = team.lane(); i < length; i += Team::kLanes)
        bytes[i] = uint8_t(int8_t(code(from, kept, to, i, scale, inverse)));
    }
  }
};

template <class Q, bool kAdd>
struct DecodeBlocks {
  float* y;
  const float* scales;
  const uint8_t* codes;
  int64_t n;

  template <class Team>
  HD void operator()(int64_t b, Team team) const {
    const int64_t begin = b * kBlock, left = n - begin, length = left < kBlock ? left : kBlock;
    const uint8_t* const bytes = codes + b * bytes_of(Q(), kBlock);
    float* const to = y + begin;
    const float scale = scales[b];
    if constexpr (Q::kPairs) {
      const int64_t half = (length + 1) / 2, whole = length / 2;
#pragma omp simd
      for (int64_t i = team.lane(); i < whole; i += Team::kLanes) {
        put(to[i], float(int32_t(bytes[i] & 15) - 8) * scale);
        put(to[i + half], float(int32_t(bytes[i] >> 4) - 8) * scale);
      }
      if (half > whole && team.lane() == 0) put(to[whole], float(int32_t(bytes[whole] & 15) - 8) * scale);
    } else {
#pragma omp simd
      for (int64_t i = team.lane(); i < length; i += Team::kLanes)
        put(to[i], float(int8_t(bytes[i])) * scale);
    }
  }
  HD static void put(float& to, float v) { to = kAdd ? to + v : v; }
};

// ---- top-k: the largest elements of each chunk -----------------------------------------------------------

struct Entry {
  uint16_t place;
  bf16 value;
};

// A chunk's entries are sorted by position. Of equally large numbers the first ones travel.
struct EncodeChunks {
  Entry* entries;
  const float* x;
  float *e, *y;                  // y may be null
  int64_t n, of_chunk, of_last;  // entries of a whole chunk, and of the last one

  template <class Team>
  HD void operator()(int64_t c, Team team) const {
    const int64_t begin = c * kChunk, left = n - begin, length = left < kChunk ? left : kChunk;
    const int64_t wanted = left < kChunk ? of_last : of_chunk;
    const float* const from = x + begin;
    float *const kept = e + begin, *const to = y ? y + begin : nullptr;
    // Finds the smallest magnitude that travels, bit by bit; of the numbers equal to it only the first do.
    uint32_t least = 0;
    for (int bit = 30; bit >= 0; --bit) {
      const uint32_t tried = least | 1u << bit;
      if (count(team, from, kept, length, tried) >= wanted) least = tried;
    }
    const int64_t ties = wanted - count(team, from, kept, length, least + 1);
    // Each lane takes one contiguous run, so that entries stay sorted.
    const int64_t run = (length + Team::kLanes - 1) / Team::kLanes, first = team.lane() * run,
                  last = first + run < length ? first + run : length;
    int64_t larger = 0, equal = 0;
    for (int64_t i = first; i < last; ++i) {
      const uint32_t m = magnitude(from[i] + kept[i]);
      larger += m > least, equal += m == least;
    }
    const int64_t equal_before = before(team, equal), larger_before = before(team, larger);
    Entry* to_entry = entries + c * of_chunk + larger_before + (equal_before < ties ? equal_before : ties);
    int64_t seen = equal_before;
    for (int64_t i = first; i < last; ++i) {
      const float v = from[i] + kept[i];
      const uint32_t m = magnitude(v);
      const bool travels = m > least || (m == least && seen < ties);
      seen += m == least;
      const bf16 value(v);
      if (travels) *to_entry++ = {uint16_t(i), value};
      const float said = travels ? float(value) : 0.f;
      if (m <= 0x7F7FFFFF) kept[i] = v - said;
      if (to) to[i] = said;
    }
  }
  template <class Team>
  HD static int64_t count(Team team, const float* from, const float* kept, int64_t length, uint32_t least) {
    int32_t c = 0;
#pragma omp simd reduction(+ : c)
    for (int64_t i = team.lane(); i < length; i += Team::kLanes)
      c += magnitude(from[i] + kept[i]) >= least ? 1 : 0;
    return int64_t(team.sum(float(c)));  // exact up to 2^24
  }
  // The sum of `mine` over the lanes before this one.
  template <class Team>
  HD static int64_t before(Team team, int64_t mine) {
    float sum = 0;
    for (int lane = 0; lane + 1 < Team::kLanes; ++lane) {
      const float theirs = team.sum(team.lane() == lane ? float(mine) : 0.f);
      sum += lane < team.lane() ? theirs : 0.f;
    }
    return int64_t(sum);
  }
};

enum class Put {
  kSet,
  kAdd,
  kCount
};  // what becomes of an element that traveled; with kSet the others become 0

template <Put kPut>
struct DecodeChunks {
  float* y;
  const Entry* entries;
  int64_t n, of_chunk, of_last;

  template <class Team>
  HD void operator()(int64_t c, Team team) const {
    const int64_t begin = c * kChunk, left = n - begin, length = left < kChunk ? left : kChunk;
    float* const to = y + begin;
    if constexpr (kPut == Put::kSet) {
      // Each lane clears the run that it fills.
      const int64_t run = (length + Team::kLanes - 1) / Team::kLanes, first = team.lane() * run;
      for (int64_t i = first; i < first + run && i < length; ++i) to[i] = 0;
    }
    const int64_t run = (length + Team::kLanes - 1) / Team::kLanes;
    const Entry* const of = entries + c * of_chunk;
    for (int64_t i = 0; i < (left < kChunk ? of_last : of_chunk); ++i) {
      const int64_t place = of[i].place;
      if (place >= length || place / run != team.lane()) continue;
      to[place] = (kPut == Put::kSet ? 0.f : to[place]) + (kPut == Put::kCount ? 1.f : float(of[i].value));
    }
  }
};

struct DivideByCounts {
  HD void operator()(float& y, float n) const { y = n > 1 ? y / n : y; }
};

int64_t blocks_of(int64_t n) { return (n + kBlock - 1) / kBlock; }
int64_t chunks_of(int64_t n) { return (n + kChunk - 1) / kChunk; }

void check(const Codec& c, const Tensor& codes, const Tensor& x) {
  CHECK(codes.dtype() == kU8 && x.dtype() == kF32 && codes.size() == c.bytes(x.size()) &&
            codes.device() == x.device(),
        codes.dtype(), codes.size(), c.bytes(x.size()), x.dtype(), codes.device(), x.device());
}

template <class Q>
void encode_blocks(const Tensor& codes, const Tensor& x, const Tensor& e, const Tensor& y) {
  const int64_t n = x.size(), blocks = blocks_of(n);
  uint8_t* const bytes = codes.out<uint8_t>();
  for_each_team(x.device(), blocks, n,
                EncodeBlocks<Q>{reinterpret_cast<float*>(bytes), bytes + 4 * blocks, x.in<float>(),
                                e.out<float>(), y ? y.out<float>() : nullptr, n});
}
template <class Q, bool kAdd>
void decode_blocks(const Tensor& y, const Tensor& codes) {
  const int64_t n = y.size(), blocks = blocks_of(n);
  const uint8_t* const bytes = codes.in<uint8_t>();
  for_each_team(
      y.device(), blocks, n,
      DecodeBlocks<Q, kAdd>{y.out<float>(), reinterpret_cast<const float*>(bytes), bytes + 4 * blocks, n});
}

template <Put kPut>
void decode_chunks(const Codec& c, const Tensor& y, const Tensor& codes) {
  CHECK(c.kind == Codec::kTopK, int(c.kind));
  const int64_t n = y.size();
  for_each_team(y.device(), chunks_of(n), n,
                DecodeChunks<kPut>{y.out<float>(), reinterpret_cast<const Entry*>(codes.in<uint8_t>()), n,
                                   c.kept(kChunk), c.kept(n % kChunk)});
}

template <bool kAdd>
void decode_any(const Codec& c, const Tensor& y, const Tensor& codes) {
  check(c, codes, y);
  const int64_t n = y.size();
  if (n == 0) return;
  if (c.kind == Codec::kInt8) return decode_blocks<Int8, kAdd>(y, codes);
  if (c.kind == Codec::kInt4) return decode_blocks<Int4, kAdd>(y, codes);
  decode_chunks<kAdd ? Put::kAdd : Put::kSet>(c, y, codes);
}

}  // namespace

void encode(const Codec& c, const Tensor& codes, const Tensor& x, const Tensor& e, const Tensor& y) {
  check(c, codes, x);
  CHECK(e.size() == x.size() && e.device() == x.device() && e.dtype() == kF32, e.shape(), x.shape(),
        e.device());
  CHECK(!y || (y.size() == x.size() && y.device() == x.device() && y.dtype() == kF32), y.shape(), x.shape());
  const int64_t n = x.size();
  if (n == 0) return;
  if (c.kind == Codec::kInt8) return encode_blocks<Int8>(codes, x, e, y);
  if (c.kind == Codec::kInt4) return encode_blocks<Int4>(codes, x, e, y);
  CHECK(c.kind == Codec::kTopK, int(c.kind));
  for_each_team(x.device(), chunks_of(n), n,
                EncodeChunks{reinterpret_cast<Entry*>(codes.out<uint8_t>()), x.in<float>(), e.out<float>(),
                             y ? y.out<float>() : nullptr, n, c.kept(kChunk), c.kept(n % kChunk)});
}

void decode(const Codec& c, const Tensor& y, const Tensor& codes) { decode_any<false>(c, y, codes); }
void decode_add(const Codec& c, const Tensor& y, const Tensor& codes) { decode_any<true>(c, y, codes); }

void count_sent(const Codec& c, const Tensor& n, const Tensor& codes) {
  check(c, codes, n);
  if (n.size() > 0) decode_chunks<Put::kCount>(c, n, codes);
}

void divide_by_counts(const Tensor& y, const Tensor& n) {
  CHECK(y.size() == n.size() && y.device() == n.device(), y.shape(), n.shape(), y.device(), n.device());
  each_element(y, DivideByCounts(), Change(y), Read(n));
}

}  // namespace skein
