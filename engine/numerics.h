// Process-wide choices for devices that offer faster, less exact arithmetic. They are set before work begins.
#pragma once

namespace skein {

struct Numerics {
  bool tf32 = false;           // f32 products on tensor cores, with 10 bits of mantissa; off: f32 means f32
  bool deterministic = false;  // use only algorithms whose results repeat bit for bit
  // Measure which of a library's algorithms is fastest for each shape, at its first use, instead of trusting
  // the library's guess. Another run may choose differently and differ in the last bits.
  bool measure = false;
};
inline Numerics& numerics() {
  static Numerics n;
  return n;
}

}  // namespace skein
