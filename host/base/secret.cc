// SPDX-License-Identifier: Apache-2.0
#include "host/base/secret.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <cstdlib>

namespace outrigger::host {

Secret& Secret::operator=(Secret&& other) noexcept {
  if (this != &other) {
    OPENSSL_cleanse(text_.data(), text_.size());
    text_ = std::exchange(other.text_, {});
  }
  return *this;
}

Secret::~Secret() { OPENSSL_cleanse(text_.data(), text_.size()); }

std::string HmacSha256(absl::string_view key, absl::string_view text) {
  std::string out(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(),
       reinterpret_cast<unsigned char*>(out.data()), &size);
  out.resize(size);
  return out;
}

std::string RandomBytes(size_t size) {
  std::string out(size, '\0');
  // Without a generator no key may be made; there is nothing to fall back to.
  if (RAND_bytes(reinterpret_cast<unsigned char*>(out.data()), static_cast<int>(size)) != 1)
    std::abort();
  return out;
}

}  // namespace outrigger::host
