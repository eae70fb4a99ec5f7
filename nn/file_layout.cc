// Exchanges the axes of parameters for files, with one copy each way.
#include "nn/file_layout.h"

namespace skein::nn {
namespace {

// A parameter as outer x rows x columns; the file has rows and columns exchanged.
struct Exchange {
  int64_t outer = 1, rows = 1, columns = 1;
};
Exchange exchange_of(const Param& p) {
  const Shape& s = p.value.shape();
  switch (p.file) {
    case FileLayout::kSame:
      return {1, 1, s.volume()};
    case FileLayout::kOihw:
      return {s[0], s[1] * s[2], s[3]};
    case FileLayout::kLinearFromMap:
      return {s[0], p.map[0] * p.map[1], p.map[2]};
  }
  return {};
}
// y[o][c][r] <- x[o][r][c]
void exchange(const Exchange& e, const float* x, float* y) {
  for (int64_t o = 0; o < e.outer; ++o, x += e.rows * e.columns, y += e.rows * e.columns)
    for (int64_t r = 0; r < e.rows; ++r)
      for (int64_t c = 0; c < e.columns; ++c) y[c * e.rows + r] = x[r * e.columns + c];
}

}  // namespace

Shape file_shape(const Param& p) {
  const Shape& s = p.value.shape();
  return p.file == FileLayout::kOihw ? Shape{s[0], s[3], s[1], s[2]} : s;
}

Tensor to_file(const Param& p, const Tensor& ours) {
  CHECK(ours.shape() == p.value.shape(), p.name, ours.shape(), p.value.shape());
  Tensor host = ours.to(kCpu);
  if (ours.device().is_cuda()) current_stream(ours.device()).sync();
  Tensor y(file_shape(p));
  exchange(exchange_of(p), host.data<float>(), y.data<float>());
  return y;
}

void from_file(const Param& p, const Tensor& file, const Tensor& ours) {
  CHECK(file.shape() == file_shape(p) && ours.shape() == p.value.shape(), p.name, file.shape(), ours.shape());
  Tensor host(ours.shape());
  const Exchange e = exchange_of(p);
  exchange({e.outer, e.columns, e.rows}, file.data<float>(), host.data<float>());
  copy_bytes(ours, host);
}

}  // namespace skein::nn
