// SPDX-License-Identifier: Apache-2.0
#include "host/base/secret.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <cstdlib>
#include <utility>

namespace outrigger::host {

namespace {

// The whole buffer, not only the text in it: a short text that was moved from stays in its object
// but for the first byte, and one that became shorter leaves its tail. Never allocates.
void Wipe(std::string& text) {
  text.resize(text.capacity());
  OPENSSL_cleanse(text.data(), text.size());
  text.clear();
}

}  // namespace

Secret::Secret(std::string text) : text_(std::move(text)) { Wipe(text); }

Secret::Secret(Secret&& other) noexcept : text_(std::move(other.text_)) { Wipe(other.text_); }

Secret& Secret::operator=(const Secret& other) {
  if (this != &other) {
    Wipe(text_);
    text_ = other.text_;
  }
  return *this;
}

Secret& Secret::operator=(Secret&& other) noexcept {
  if (this != &other) {
    Wipe(text_);
    text_ = std::move(other.text_);
    Wipe(other.text_);
  }
  return *this;
}

Secret::~Secret() { Wipe(text_); }

std::string HmacSha256(absl::string_view key, absl::string_view text) {
  std::string out(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  // OpenSSL takes a null key for "the key of before" and fails; an empty one is a key.
  if (key.data() == nullptr) key = "";
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
