// Process-wide choices about arithmetic on devices with faster, less exact ways. Set before work begins.
#pragma once

namespace skein {

struct Numerics {
  bool tf32 = false;           // f32 products on tensor cores, with 10 bits of mantissa; off: f32 means f32
  bool deterministic = false;  // only algorithms that repeat themselves bit for bit
  // The fastest of a library's ways for each shape, measured at its first use, not the library's guess:
  // another run may choose otherwise and differ in the last bits.
  bool measure = false;
};
inline Numerics& numerics() {
  static Numerics n;
  return n;
}

}  // namespace skein
