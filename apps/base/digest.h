// Digest: BLAKE2b-256 of bytes, to check that a file is whole and that two models are equal.
#pragma once
#include <memory>
#include <string>

namespace skein::apps {

// Takes the bytes in pieces and returns 64 hexadecimal digits.
class Digest {
 public:
  Digest();
  ~Digest();
  void add(const void* data, size_t bytes);
  std::string hex();  // may be called once

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The digest of a whole file, read in pieces. Throws BadFile.
std::string digest_of_file(const std::string& path);

}  // namespace skein::apps
