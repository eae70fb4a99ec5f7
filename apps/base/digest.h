// Digest: BLAKE2b-256 of some bytes, by which a file is known to be whole and two models to be equal.
#pragma once
#include <memory>
#include <string>

namespace skein::apps {

// As 64 hexadecimal digits; fed in pieces.
class Digest {
 public:
  Digest();
  ~Digest();
  void add(const void* data, size_t bytes);
  std::string hex();  // once

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Of a whole file, read in pieces. Throws BadFile.
std::string digest_of_file(const std::string& path);

}  // namespace skein::apps
