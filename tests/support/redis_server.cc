// SPDX-License-Identifier: Apache-2.0
#include "tests/support/redis_server.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>
#include <signal.h>

#include <utility>

#include "host/base/status.h"
#include "tests/support/free_port.h"
#include "tests/support/wait_for.h"

namespace outrigger::tests {
namespace {

constexpr absl::Duration kStartTimeout = absl::Seconds(20);
constexpr absl::Duration kCommandTimeout = absl::Seconds(10);

void Append(std::vector<std::string>& list, std::vector<std::string> more) {
  for (std::string& text : more) list.push_back(std::move(text));
}

}  // namespace

RedisServer::RedisServer(Options options)
    : options_(std::move(options)), port_(options_.port != 0 ? options_.port : FreePort()) {}

absl::StatusOr<std::unique_ptr<RedisServer>> RedisServer::Start() { return Start(Options{}); }

absl::StatusOr<std::unique_ptr<RedisServer>> RedisServer::Start(Options options) {
  std::unique_ptr<RedisServer> server(new RedisServer(std::move(options)));
  if (server->options_.tls) RETURN_IF_ERROR(server->MakeCertificates());
  RETURN_IF_ERROR(server->Launch());
  return server;
}

std::string RedisServer::address() const { return absl::StrCat("127.0.0.1:", port_); }

std::string RedisServer::unix_socket() const { return dir_.File("redis.sock"); }

absl::Status RedisServer::MakeCertificates() {
  ASSIGN_OR_RETURN(ca_, CertificateAuthority::Create("redis test CA"));
  ASSIGN_OR_RETURN(
      const KeyPair served,
      ca_->Issue({.common_name = "redis", .dns_names = {"localhost"}, .ips = {"127.0.0.1"}}));
  ASSIGN_OR_RETURN(client_, ca_->Issue({.common_name = "redis-client"}));
  dir_.Write("ca.crt", ca_->certificate());
  dir_.Write("server.crt", served.certificate);
  dir_.Write("server.key", served.key);
  dir_.Write("client.crt", client_.certificate);
  dir_.Write("client.key", client_.key);
  return absl::OkStatus();
}

// A file and not the command line: every process of the machine can read that one.
std::string RedisServer::Configuration() const {
  std::string text =
      absl::StrCat("bind 127.0.0.1\nsave \"\"\nappendonly no\ndir ", dir_.path(), "\n");
  if (options_.tls) {
    absl::StrAppend(&text, "port 0\ntls-port ", port_, "\ntls-ca-cert-file ", dir_.File("ca.crt"),
                    "\ntls-cert-file ", dir_.File("server.crt"), "\ntls-key-file ",
                    dir_.File("server.key"), "\ntls-auth-clients ",
                    options_.require_client_certificate ? "yes" : "optional", "\n");
  } else {
    absl::StrAppend(&text, "port ", port_, "\n");
  }
  if (!options_.password.empty()) absl::StrAppend(&text, "requirepass ", options_.password, "\n");
  for (const std::string& user : options_.users) absl::StrAppend(&text, "user ", user, "\n");
  if (options_.unix_socket) absl::StrAppend(&text, "unixsocket ", unix_socket(), "\n");
  for (const std::string& line : options_.configuration) absl::StrAppend(&text, line, "\n");
  return text;
}

std::vector<std::string> RedisServer::ClientArguments() const {
  std::vector<std::string> result = {"redis-cli",        "--raw", "-e", "-h", "127.0.0.1", "-p",
                                     absl::StrCat(port_)};
  if (options_.tls) {
    Append(result, {"--tls", "--cacert", dir_.File("ca.crt"), "--cert", dir_.File("client.crt"),
                    "--key", dir_.File("client.key")});
  }
  return result;
}

absl::Status RedisServer::Launch() {
  const std::string file = dir_.Write("redis.conf", Configuration());
  ASSIGN_OR_RETURN(
      process_, Process::Start({.argv = {"redis-server", file}, .stdout_file = dir_.File("log")}));
  RETURN_IF_ERROR(WaitForOk(
      [this] { return process_->Running() ? Command({"PING"}).status() : absl::OkStatus(); },
      kStartTimeout, "redis-server to answer PING"));
  if (process_->Running()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("redis-server ended at its start: ", process_->OutputTail()));
}

absl::StatusOr<std::string> RedisServer::Command(std::vector<std::string> arguments) {
  std::vector<std::string> argv = ClientArguments();
  Append(argv, std::move(arguments));
  Process::Options client{.argv = std::move(argv)};
  // Not on the command line, where every process of the machine can read it.
  if (!options_.password.empty()) client.env["REDISCLI_AUTH"] = options_.password;
  ASSIGN_OR_RETURN(const CommandResult result, RunCommand(std::move(client), "", kCommandTimeout));
  if (!result.ok()) return absl::FailedPreconditionError(result.Describe());
  return std::string(absl::StripSuffix(result.stdout_text, "\n"));
}

absl::Status RedisServer::Stop() {
  process_->Kill(SIGCONT);  // a stopped process would not hear SIGTERM
  return process_->Stop().status();
}

absl::Status RedisServer::Restart() {
  if (process_->Running()) RETURN_IF_ERROR(Stop());
  return Launch();
}

}  // namespace outrigger::tests
