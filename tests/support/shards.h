// Tar shards for tests, and the errors that bad ones give.
#pragma once
#include "data/sources/tar.h"
#include "tests/support/data_files.h"
#include "tools/write_tar.h"

namespace skein::data {

// Samples first .. first + n - 1: picture i is all gray i, with label i modulo 3.
inline TarBytes shard(int first, int n) {
  TarBytes tar;
  for (int i = first; i < first + n; ++i) {
    const std::string key = text("a/", i);
    tar.add(key + ".png", png_bytes({8, 8, 3, Bytes(192, uint8_t(i))}));
    tar.add(key + ".cls", text(i % 3, '\n'));
  }
  return tar;
}

inline std::string error(const std::string& spec) {
  return message_of<Error>([&] { open_data("webdataset:" + spec, 0); });
}

inline std::string error_of(const Bytes& tar) {
  const TemporaryDirectory d;
  d.write("x.tar", tar);
  return error(d / "x.tar");
}

}  // namespace skein::data
