// SPDX-License-Identifier: Apache-2.0
#include "operator/adapter/serving_certificate.h"

#include <absl/strings/str_cat.h>
#include <sys/stat.h>

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/verify_context.hpp>

namespace outrigger::controller::adapter {
namespace {

namespace ssl = boost::asio::ssl;

constexpr absl::Duration kCheckInterval = absl::Seconds(2);

// Changes when a file is replaced, also through the symbolic links of a mounted Secret.
std::string StampOf(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return "absent";
  return absl::StrCat(info.st_ino, "/", info.st_size, "/", info.st_mtim.tv_sec, ".",
                      info.st_mtim.tv_nsec);
}

// Asks for a client certificate and takes any: who it is, is decided for each request, by the
// authorities of that moment. A resumed session would come without the certificate.
void AskForClientCertificate(ssl::context& context) {
  boost::system::error_code ignored;
  context.set_verify_mode(ssl::verify_peer, ignored);
  context.set_verify_callback([](bool, ssl::verify_context&) { return true; }, ignored);
  SSL_CTX_set_session_cache_mode(context.native_handle(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context.native_handle(), SSL_OP_NO_TICKET);
}

}  // namespace

std::string ServingCertificate::Stamp() const {
  return absl::StrCat(StampOf(cert_file_), " ", StampOf(key_file_));
}

absl::StatusOr<std::shared_ptr<ssl::context>> ServingCertificate::Read() const {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  context->set_options(ssl::context::default_workarounds | ssl::context::no_tlsv1 |
                       ssl::context::no_tlsv1_1);
  boost::system::error_code error;
  context->use_certificate_chain_file(cert_file_, error);
  if (error)
    return absl::InvalidArgumentError(
        absl::StrCat("--tls-cert-file ", cert_file_, ": ", error.message()));
  context->use_private_key_file(key_file_, ssl::context::pem, error);
  if (error)
    return absl::InvalidArgumentError(
        absl::StrCat("--tls-key-file ", key_file_, ": ", error.message()));
  if (SSL_CTX_check_private_key(context->native_handle()) != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tls-key-file ", key_file_, ": is not the key of ", cert_file_));
  }
  AskForClientCertificate(*context);
  return context;
}

absl::Status ServingCertificate::Load() {
  const std::string stamp = Stamp();  // before the read: a change meanwhile is seen later
  absl::StatusOr<std::shared_ptr<ssl::context>> read = Read();
  if (!read.ok()) return read.status();
  host::MutexLock lock(&mutex_);
  context_ = *std::move(read);
  stamp_ = stamp;
  checked_ = clock_.SteadyNow();
  return absl::OkStatus();
}

std::shared_ptr<ssl::context> ServingCertificate::Current() {
  host::MutexLock lock(&mutex_);
  const host::SteadyTime now = clock_.SteadyNow();
  if (now - checked_ < kCheckInterval) return context_;
  checked_ = now;
  std::string stamp = Stamp();
  if (stamp == stamp_) return context_;
  stamp_ = std::move(stamp);
  absl::StatusOr<std::shared_ptr<ssl::context>> read = Read();
  if (read.ok()) {
    context_ = *std::move(read);
    log_.Info("serving certificate was read again", {{"file", cert_file_}});
  } else {
    log_.Error("the new serving certificate is not usable; the old one stays in use",
               {{"error", read.status().message()}});
  }
  return context_;
}

}  // namespace outrigger::controller::adapter
