// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/api_config.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/support/temp_dir.h"

namespace outrigger::controller::kube {
namespace {

using testing::HasSubstr;

// Two contexts over one cluster, as kubectl writes them; cluster and user are the given YAML flow
// maps.
std::string Kubeconfig(const std::string& cluster, const std::string& user) {
  return absl::StrCat(R"(apiVersion: v1
kind: Config
current-context: first
contexts:
- name: first
  context: {cluster: c, user: u, namespace: team}
- name: second
  context: {cluster: c, user: other}
clusters:
- name: c
  cluster: )",
                      cluster, R"(
users:
- name: u
  user: )",
                      user, R"(
- name: other
  user: {token: second-token}
)");
}

class KubeconfigTest : public testing::Test {
 protected:
  absl::StatusOr<ApiConfig> Load(const std::string& text, absl::string_view context = "") {
    return LoadKubeconfig(dir_.Write("kubeconfig", text), context);
  }
  tests::TempDir dir_;
};

constexpr char kServer[] = "{server: 'https://api:6443/'}";

TEST_F(KubeconfigTest, ReadsDataOfTheCurrentContext) {
  const absl::StatusOr<ApiConfig> config =
      Load(Kubeconfig("{server: 'https://api:6443/', certificate-authority-data: Q0E=,"
                      " proxy-url: 'http://proxy:3128'}",
                      "{client-certificate-data: Q0VSVA==, client-key-data: S0VZ}"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->server, "https://api:6443");
  EXPECT_EQ(config->proxy_url, "http://proxy:3128");
  EXPECT_EQ(config->namespace_name, "team");
  EXPECT_EQ(config->certificate_authority.text.Reveal(), "CA");
  EXPECT_EQ(config->client_certificate.text.Reveal(), "CERT");
  EXPECT_EQ(config->client_key.text.Reveal(), "KEY");
  EXPECT_TRUE(config->token.empty());
}

TEST_F(KubeconfigTest, FilesAreRelativeToItsFolder) {
  const absl::StatusOr<ApiConfig> config =
      Load(Kubeconfig("{server: 'https://api', certificate-authority: ca.crt}",
                      "{tokenFile: sub/token, client-certificate: /abs/c, client-key: k}"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->certificate_authority.file, dir_.File("ca.crt"));
  EXPECT_EQ(config->token.file, dir_.File("sub/token"));
  EXPECT_EQ(config->client_certificate.file, "/abs/c");
  EXPECT_EQ(config->client_key.file, dir_.File("k"));
}

TEST_F(KubeconfigTest, NamedContextWins) {
  const absl::StatusOr<ApiConfig> config = Load(Kubeconfig(kServer, "{}"), "second");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->token.text.Reveal(), "second-token");
  EXPECT_EQ(config->namespace_name, "default");
}

TEST_F(KubeconfigTest, MissingFileIsNamed) {
  const absl::Status status = LoadKubeconfig(dir_.File("absent"), "").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr(dir_.File("absent")));
}

struct Case {
  const char* name;
  const char* cluster;
  const char* user;
  const char* context;
  absl::StatusCode want;
  const char* message;
};
class KubeconfigFaultTest : public KubeconfigTest, public testing::WithParamInterface<Case> {};

TEST_P(KubeconfigFaultTest, NamesFileAndField) {
  const absl::Status status =
      Load(Kubeconfig(GetParam().cluster, GetParam().user), GetParam().context).status();
  EXPECT_EQ(status.code(), GetParam().want) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
  EXPECT_THAT(std::string(status.message()), HasSubstr(dir_.File("kubeconfig")));
  EXPECT_THAT(std::string(status.message()), testing::Not(HasSubstr("hunter2")));
}

INSTANTIATE_TEST_SUITE_P(
    Faults, KubeconfigFaultTest,
    testing::ValuesIn<Case>({
        {"NoSuchContext", kServer, "{}", "third", absl::StatusCode::kNotFound,
         "contexts: no entry is named \"third\""},
        {"NoServer", "{}", "{}", "", absl::StatusCode::kInvalidArgument,
         "cluster \"c\": server: want an https:// URL"},
        {"PlainHttpElsewhere", "{server: 'http://10.0.0.1:8080'}", "{}", "",
         absl::StatusCode::kInvalidArgument, "got \"http://10.0.0.1:8080\""},
        {"PlainHttpLookalike", "{server: 'http://127.0.0.1.evil.org'}", "{}", "",
         absl::StatusCode::kInvalidArgument, "server: want an https:// URL"},
        {"SkipVerify", "{server: 'https://api', insecure-skip-tls-verify: true}", "{}", "",
         absl::StatusCode::kUnimplemented, "cluster \"c\": insecure-skip-tls-verify"},
        {"TlsServerName", "{server: 'https://api', tls-server-name: x}", "{}", "",
         absl::StatusCode::kUnimplemented, "tls-server-name"},
        {"BadBase64", "{server: 'https://api', certificate-authority-data: '!'}", "{}", "",
         absl::StatusCode::kInvalidArgument, "certificate-authority-data: want base64"},
        {"Exec", kServer, "{exec: {command: aws}}", "", absl::StatusCode::kUnimplemented,
         "user \"u\": exec: is not supported"},
        {"Password", kServer, "{username: a, password: hunter2}", "",
         absl::StatusCode::kUnimplemented, "username"},
        {"Impersonation", kServer, "{as: admin}", "", absl::StatusCode::kUnimplemented, "as: "},
        {"KeyMissing", kServer, "{client-certificate: c}", "", absl::StatusCode::kInvalidArgument,
         "user \"u\": client-key: is missing"},
        {"TokenIsAMap", kServer, "{token: {a: hunter2}}", "", absl::StatusCode::kInvalidArgument,
         "user \"u\": token: want a text"},
        {"BrokenYaml", "{server: [", "{}", "", absl::StatusCode::kInvalidArgument, "line "},
        {"ClusterIsAText", "text", "{}", "", absl::StatusCode::kInvalidArgument,
         "clusters \"c\": cluster: want a map"},
    }),
    [](const testing::TestParamInfo<Case>& info) { return std::string(info.param.name); });

TEST(InClusterConfigTest, SaysThatThisIsNoPod) {
  unsetenv("KUBERNETES_SERVICE_HOST");
  const absl::Status status = InClusterConfig().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("KUBERNETES_SERVICE_HOST"));
}

}  // namespace
}  // namespace outrigger::controller::kube
