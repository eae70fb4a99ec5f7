// By ipsec-mb, whose expanded keys lie where the caller wants them.
#include "comm/seal/aes_gcm.h"

#include <intel-ipsec-mb.h>
#include <sodium.h>

#include <cstring>

#include "comm/seal/cipher.h"

namespace skein::comm {
namespace {

static_assert(sizeof(gcm_key_data) <= sizeof(AesKey) && alignof(gcm_key_data) <= alignof(AesKey));

// The library's functions for this processor; null: it has no instructions for AES.
const IMB_MGR* functions() {
  static const IMB_MGR* const all = []() -> const IMB_MGR* {
    IMB_MGR* const m = alloc_mb_mgr(0);  // until the program ends
    if (!m) return nullptr;
    init_mb_mgr_auto(m, nullptr);
    constexpr uint64_t kNeeded = IMB_FEATURE_AESNI | IMB_FEATURE_PCLMULQDQ;
    return imb_get_errno(m) == 0 && (m->features & kNeeded) == kNeeded ? m : nullptr;
  }();
  return all;
}

const gcm_key_data* expanded(const AesKey& k) { return reinterpret_cast<const gcm_key_data*>(k.bytes); }

}  // namespace

bool has_aes() { return functions() != nullptr; }

void expand(const unsigned char* key, AesKey& to) {
  functions()->gcm256_pre(key, reinterpret_cast<gcm_key_data*>(to.bytes));
}

void aes_seal(const AesKey& k, const unsigned char* nonce, std::span<const unsigned char> hidden,
              std::span<const unsigned char> shown, unsigned char* out, unsigned char* tag) {
  gcm_context_data context;
  functions()->gcm256_enc(expanded(k), &context, out, hidden.data(), hidden.size(), nonce, shown.data(),
                          shown.size(), tag, kTagBytes);
}

bool aes_open(const AesKey& k, const unsigned char* nonce, std::span<unsigned char> hidden,
              std::span<const unsigned char> shown, const unsigned char* tag) {
  gcm_context_data context;
  unsigned char expected[kTagBytes];
  functions()->gcm256_dec(expanded(k), &context, hidden.data(), hidden.data(), hidden.size(), nonce,
                          shown.data(), shown.size(), expected, kTagBytes);
  if (sodium_memcmp(tag, expected, kTagBytes) == 0) return true;
  if (!hidden.empty()) std::memset(hidden.data(), 0, hidden.size());
  return false;
}

}  // namespace skein::comm
