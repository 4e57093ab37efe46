// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/api_config.h"

#include <absl/strings/escaping.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "host/base/status.h"

namespace outrigger::controller::kube {
namespace {

constexpr absl::string_view kServiceAccountFolder = "/var/run/secrets/kubernetes.io/serviceaccount";

// One kubeconfig file while it is read; makes the messages.
class Kubeconfig {
 public:
  Kubeconfig(std::string path, const YAML::Node& root) : path_(std::move(path)), root_(root) {}

  absl::StatusOr<ApiConfig> Load(absl::string_view context) const;

 private:
  absl::Status Fault(absl::StatusCode code, absl::string_view where, absl::string_view what) const {
    return {code, absl::StrCat("kubeconfig ", path_, ": ", where, ": ", what)};
  }

  absl::StatusOr<std::string> Text(const YAML::Node& map, const std::string& where,
                                   const char* key) const;
  absl::StatusOr<YAML::Node> Named(const char* list, const char* member,
                                   absl::string_view name) const;
  absl::StatusOr<CredentialRef> FileOrData(const YAML::Node& map, const std::string& where,
                                           const std::string& key) const;
  absl::Status ReadCluster(const std::string& name, ApiConfig& config) const;
  absl::Status ReadUser(const std::string& name, ApiConfig& config) const;
  absl::Status ReadToken(const YAML::Node& user, const std::string& where, ApiConfig& config) const;
  absl::Status Refuse(const YAML::Node& map, const std::string& where, const char* key,
                      absl::string_view why) const;
  absl::Status CheckServer(const std::string& where, const std::string& server) const;
  std::string Absolute(const std::string& file) const {
    return (std::filesystem::path(path_).parent_path() / file).string();
  }

  const std::string path_;
  const YAML::Node root_;
};

absl::StatusOr<std::string> Kubeconfig::Text(const YAML::Node& map, const std::string& where,
                                             const char* key) const {
  const YAML::Node node = map[key];
  if (!node || node.IsNull()) return std::string();
  if (!node.IsScalar()) {
    return Fault(absl::StatusCode::kInvalidArgument, absl::StrCat(where, key), "want a text");
  }
  return node.Scalar();
}

absl::StatusOr<YAML::Node> Kubeconfig::Named(const char* list, const char* member,
                                             absl::string_view name) const {
  const YAML::Node entries = root_[list];
  if (entries && !entries.IsSequence()) {
    return Fault(absl::StatusCode::kInvalidArgument, list, "want a list");
  }
  for (const YAML::Node& entry : entries) {
    if (!entry.IsMap() || !entry["name"].IsScalar() ||
        entry["name"].Scalar() != std::string(name)) {
      continue;
    }
    YAML::Node found = entry[member];
    if (found && found.IsMap()) return found;
    return Fault(absl::StatusCode::kInvalidArgument, absl::StrCat(list, " \"", name, "\""),
                 absl::StrCat(member, ": want a map"));
  }
  return Fault(absl::StatusCode::kNotFound, list,
               absl::StrCat("no entry is named \"", absl::CEscape(name), "\""));
}

absl::StatusOr<CredentialRef> Kubeconfig::FileOrData(const YAML::Node& map,
                                                     const std::string& where,
                                                     const std::string& key) const {
  CredentialRef ref;
  ASSIGN_OR_RETURN(const std::string data, Text(map, where, (key + "-data").c_str()));
  ASSIGN_OR_RETURN(const std::string file, Text(map, where, key.c_str()));
  if (!data.empty()) {  // as kubectl: the data wins
    std::string decoded;
    if (!absl::Base64Unescape(data, &decoded)) {
      return Fault(absl::StatusCode::kInvalidArgument, absl::StrCat(where, key, "-data"),
                   "want base64");
    }
    ref.text = host::Secret(std::move(decoded));
  } else if (!file.empty()) {
    ref.file = Absolute(file);
  }
  return ref;
}

absl::Status Kubeconfig::Refuse(const YAML::Node& map, const std::string& where, const char* key,
                                absl::string_view why) const {
  const YAML::Node node = map[key];
  if (!node || node.IsNull()) return absl::OkStatus();
  if (node.IsScalar() && (node.Scalar().empty() || node.Scalar() == "false")) {
    return absl::OkStatus();
  }
  return Fault(absl::StatusCode::kUnimplemented, absl::StrCat(where, key),
               absl::StrCat("is not supported: ", why));
}

absl::Status Kubeconfig::CheckServer(const std::string& where, const std::string& server) const {
  if (absl::StartsWith(server, "https://")) return absl::OkStatus();
  for (const absl::string_view local : {"http://127.0.0.1", "http://localhost", "http://[::1]"}) {
    absl::string_view rest = server;
    if (absl::ConsumePrefix(&rest, local) && (rest.empty() || rest[0] == ':' || rest[0] == '/')) {
      return absl::OkStatus();
    }
  }
  return Fault(
      absl::StatusCode::kInvalidArgument, where + "server",
      absl::StrCat("want an https:// URL (http:// only on this machine), got \"", server, "\""));
}

absl::Status Kubeconfig::ReadCluster(const std::string& name, ApiConfig& config) const {
  ASSIGN_OR_RETURN(const YAML::Node cluster, Named("clusters", "cluster", name));
  const std::string where = absl::StrCat("cluster \"", name, "\": ");
  ASSIGN_OR_RETURN(config.server, Text(cluster, where, "server"));
  RETURN_IF_ERROR(CheckServer(where, config.server));
  while (absl::EndsWith(config.server, "/")) config.server.pop_back();
  ASSIGN_OR_RETURN(config.proxy_url, Text(cluster, where, "proxy-url"));
  ASSIGN_OR_RETURN(config.certificate_authority,
                   FileOrData(cluster, where, "certificate-authority"));
  RETURN_IF_ERROR(Refuse(cluster, where, "insecure-skip-tls-verify",
                         "the token goes to the API server and nowhere else; set "
                         "certificate-authority"));
  return Refuse(cluster, where, "tls-server-name", "use a server name that the certificate holds");
}

absl::Status Kubeconfig::ReadToken(const YAML::Node& user, const std::string& where,
                                   ApiConfig& config) const {
  ASSIGN_OR_RETURN(std::string token, Text(user, where, "token"));
  ASSIGN_OR_RETURN(const std::string file, Text(user, where, "tokenFile"));
  if (!file.empty()) {  // as kubectl: the file wins
    config.token.file = Absolute(file);
  } else {
    config.token.text = host::Secret(std::move(token));
  }
  return absl::OkStatus();
}

absl::Status Kubeconfig::ReadUser(const std::string& name, ApiConfig& config) const {
  ASSIGN_OR_RETURN(const YAML::Node user, Named("users", "user", name));
  const std::string where = absl::StrCat("user \"", name, "\": ");
  for (const char* plugin : {"exec", "auth-provider"}) {
    RETURN_IF_ERROR(Refuse(user, where, plugin, "use a token or a client certificate"));
  }
  for (const char* key : {"username", "password", "as", "as-groups", "as-uid", "as-user-extra"}) {
    RETURN_IF_ERROR(Refuse(user, where, key, "use a user of its own"));
  }
  RETURN_IF_ERROR(ReadToken(user, where, config));
  ASSIGN_OR_RETURN(config.client_certificate, FileOrData(user, where, "client-certificate"));
  ASSIGN_OR_RETURN(config.client_key, FileOrData(user, where, "client-key"));
  if (config.client_certificate.empty() != config.client_key.empty()) {
    return Fault(absl::StatusCode::kInvalidArgument,
                 where + (config.client_key.empty() ? "client-key" : "client-certificate"),
                 "is missing: a client certificate needs both");
  }
  return absl::OkStatus();
}

absl::StatusOr<ApiConfig> Kubeconfig::Load(absl::string_view context) const {
  if (!root_.IsMap()) return Fault(absl::StatusCode::kInvalidArgument, "file", "want a YAML map");
  std::string context_name(context);
  if (context_name.empty()) {
    ASSIGN_OR_RETURN(context_name, Text(root_, "", "current-context"));
    if (context_name.empty()) {
      return Fault(absl::StatusCode::kInvalidArgument, "current-context", "is empty");
    }
  }
  ASSIGN_OR_RETURN(const YAML::Node chosen, Named("contexts", "context", context_name));
  const std::string where = absl::StrCat("context \"", context_name, "\": ");
  ASSIGN_OR_RETURN(const std::string cluster, Text(chosen, where, "cluster"));
  ASSIGN_OR_RETURN(const std::string user, Text(chosen, where, "user"));
  ASSIGN_OR_RETURN(const std::string namespace_name, Text(chosen, where, "namespace"));
  ApiConfig config;
  if (!namespace_name.empty()) config.namespace_name = namespace_name;
  RETURN_IF_ERROR(ReadCluster(cluster, config));
  if (!user.empty()) RETURN_IF_ERROR(ReadUser(user, config));
  return config;
}

absl::StatusOr<std::string> ReadWhole(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (in) text << in.rdbuf();
  if (!in) return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  return text.str();
}

}  // namespace

absl::StatusOr<ApiConfig> LoadKubeconfig(const std::string& path, absl::string_view context) {
  ASSIGN_OR_RETURN(const std::string text, ReadWhole(path));
  try {
    return Kubeconfig(path, YAML::Load(text)).Load(context);
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("kubeconfig ", path, ": line ", error.mark.line + 1, ": ", error.msg));
  }
}

absl::StatusOr<ApiConfig> InClusterConfig() {
  const char* const host = std::getenv("KUBERNETES_SERVICE_HOST");
  const char* const port = std::getenv("KUBERNETES_SERVICE_PORT");
  if (host == nullptr || port == nullptr || *host == '\0' || *port == '\0') {
    return absl::FailedPreconditionError(
        "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: not in a Pod; use "
        "--kubeconfig");
  }
  const bool ipv6 = absl::StrContains(host, ":");
  ApiConfig config;
  config.server = ipv6 ? absl::StrCat("https://[", host, "]:", port)
                       : absl::StrCat("https://", host, ":", port);
  config.token.file = absl::StrCat(kServiceAccountFolder, "/token");
  config.certificate_authority.file = absl::StrCat(kServiceAccountFolder, "/ca.crt");
  for (const std::string& file : {config.token.file, config.certificate_authority.file}) {
    if (access(file.c_str(), R_OK) != 0) {
      return absl::FailedPreconditionError(
          absl::StrCat(file, ": cannot be read; automountServiceAccountToken is off?"));
    }
  }
  absl::StatusOr<std::string> name = ReadWhole(absl::StrCat(kServiceAccountFolder, "/namespace"));
  if (name.ok() && !name->empty()) config.namespace_name = *name;
  return config;
}

}  // namespace outrigger::controller::kube
