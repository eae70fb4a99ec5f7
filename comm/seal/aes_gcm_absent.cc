// In builds without ipsec-mb.
#include "comm/seal/aes_gcm.h"
#include "engine/base.h"

namespace skein::comm {
namespace {
[[noreturn]] void refuse() { throw Error("AES-256-GCM was asked of a build without ipsec-mb"); }
}  // namespace

bool has_aes() { return false; }
void expand(const unsigned char*, AesKey&) { refuse(); }
void aes_seal(const AesKey&, const unsigned char*, std::span<const unsigned char>,
              std::span<const unsigned char>, unsigned char*, unsigned char*) {
  refuse();
}
bool aes_open(const AesKey&, const unsigned char*, std::span<unsigned char>, std::span<const unsigned char>,
              const unsigned char*) {
  refuse();
}

}  // namespace skein::comm
