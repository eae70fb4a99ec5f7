// Secret: bytes that core dumps, swap space and freed memory do not keep.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace skein::comm {

// Memory of its own pages between guards: left out of core dumps, locked where the limits allow it, and
// wiped when it is freed. At the end of its page, so n must be a multiple of the alignment that it
// needs. Throws Error.
void* secret_memory(size_t n);
void free_secret_memory(void*) noexcept;

// Copies share the memory of the first, which is never written again. Thread-safe.
class Secret {
 public:
  Secret() = default;
  // Copies bytes. The caller's own copy is as visible as before.
  explicit Secret(const std::string& bytes);
  // `fill` writes n bytes. What it throws passes through.
  static Secret made(size_t n, const std::function<void(unsigned char*)>& fill);
  static Secret random(size_t n);
  // Throws Error, without the digits, unless they are pairs of hexadecimal digits.
  static Secret from_hex(const char* digits, size_t n);

  const unsigned char* data() const { return bytes_.get(); }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::string hex() const;  // as visible as any string

 private:
  std::shared_ptr<unsigned char> bytes_;
  size_t size_ = 0;
};

void wipe(std::string&);  // overwrites all that it has room for, and empties it
void wipe(void*, size_t);
void wipe_stack();   // what functions that have returned left below the caller, such as registers they saved
struct WipedAtEnd {  // of its scope
  std::string& s;
  ~WipedAtEnd() { wipe(s); }
};

}  // namespace skein::comm
