// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>

#include "host/base/clock.h"
#include "host/base/logging.h"
#include "host/base/mutex.h"

namespace boost::asio::ssl {
class context;
}

namespace outrigger::controller::adapter {

// The certificate with which an HttpServer answers, from two PEM files that are read again when
// they change, at most every 2 s and only when somebody connects. A broken file, or a key that is
// not the certificate's, leaves the old one in use and is logged once.
//
// Thread-safe. Reads small local files, nothing else.
class ServingCertificate {
 public:
  ServingCertificate(std::string cert_file, std::string key_file, host::Clock& clock,
                     host::Logger log)
      : cert_file_(std::move(cert_file)),
        key_file_(std::move(key_file)),
        clock_(clock),
        log_(std::move(log)) {}

  // The first read. INVALID_ARGUMENT names the flag and the file.
  absl::Status Load();
  // For the next handshake; whoever has it keeps it. Load() was OK.
  std::shared_ptr<boost::asio::ssl::context> Current();

 private:
  absl::StatusOr<std::shared_ptr<boost::asio::ssl::context>> Read() const;
  std::string Stamp() const;

  const std::string cert_file_;
  const std::string key_file_;
  host::Clock& clock_;
  const host::Logger log_;
  host::Mutex mutex_;
  std::shared_ptr<boost::asio::ssl::context> context_ ABSL_GUARDED_BY(mutex_);
  std::string stamp_ ABSL_GUARDED_BY(mutex_);  // of the files that were read last, good or bad
  host::SteadyTime checked_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace outrigger::controller::adapter
