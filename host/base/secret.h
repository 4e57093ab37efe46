// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/strings/string_view.h>

#include <ostream>
#include <string>

namespace outrigger::host {

// A text that does not print: streams, logs and test failures show "<redacted>". Wiped when it
// goes, is moved from or overwritten. Whoever needs the text says so with Reveal(), which a
// reviewer can grep for.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string text);
  Secret(const Secret&) = default;
  Secret& operator=(const Secret& other);
  Secret(Secret&& other) noexcept;
  Secret& operator=(Secret&& other) noexcept;
  ~Secret();

  const std::string& Reveal() const { return text_; }
  bool empty() const { return text_.empty(); }
  friend bool operator==(const Secret& a, const Secret& b) { return a.text_ == b.text_; }
  friend std::ostream& operator<<(std::ostream& out, const Secret&) { return out << "<redacted>"; }

 private:
  std::string text_;
};

// HMAC-SHA256 of `text` under `key`: 32 bytes. Lets secrets take part in cache keys without being
// in them.
std::string HmacSha256(absl::string_view key, absl::string_view text);
// `size` bytes from the system's generator; for keys.
std::string RandomBytes(size_t size);

}  // namespace outrigger::host
