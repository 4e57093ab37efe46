// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/bad_input_scene.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <csignal>
#include <filesystem>
#include <regex>
#include <utility>

#include "tests/cluster/cache.h"
#include "tests/cluster/deployed.h"
#include "tests/support/garbage_server.h"
#include "tests/support/wait_for.h"

namespace outrigger::tests {
namespace {

constexpr char kTitle[] = "# ";

std::string Golden() {
  return ReadFile(SourcePath("tests/e2e/golden/messages.txt")).value_or("(no golden file)");
}

// Ports, moments and counts of a run.
std::string Normalised(std::string text) {
  const std::pair<const char*, const char*> replacements[] = {
      {"127\\.0\\.0\\.1:[0-9]+", "127.0.0.1:PORT"},
      {"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(Z|[+]00:00)", "TIME"},
      {"last error: .*", "last error: (as gRPC saw it)"},  // depends on who was faster
      {"larger than max \\([0-9]+ vs", "larger than max (N vs"},
      {"used: ([^=]*)=[0-9]+", "used: $1=N"},
  };
  for (const auto& [pattern, replacement] : replacements) {
    text = std::regex_replace(text, std::regex(pattern), replacement);
  }
  return text;
}

std::string Manifest(const std::string& name, const BadInputScene::Object& object) {
  return absl::StrCat("{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: ", name,
                      ", namespace: ", object.namespace_name, "}, spec: {pollingInterval: 1, ",
                      object.spec, ", triggers: [", object.triggers, "]}}");
}

// Message and these fields of a line of the log; "" when it is none.
std::string Told(absl::string_view line, const std::vector<std::string>& fields) {
  boost::system::error_code error;
  const boost::json::value entry = boost::json::parse({line.data(), line.size()}, error);
  if (error || !entry.is_object()) return "";
  const auto text = [&](const std::string& key) {
    const boost::json::value* value = entry.get_object().if_contains(key);
    return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
  };
  std::string told = text("msg");
  for (const std::string& field : fields) absl::StrAppend(&told, "; ", field, ": ", text(field));
  return told;
}

void MustBeOk(const absl::Status& status) { ASSERT_TRUE(status.ok()) << status; }

}  // namespace

void Messages::Add(const std::string& what, std::string message) {
  message = std::string(absl::StripTrailingAsciiWhitespace(Normalised(std::move(message))));
  absl::StrAppend(&text_, "\n## ", what, "\n", message, "\n");
}

std::string GoldenChapter(const std::string& title) {
  const std::string golden = Golden();
  const std::string heading = absl::StrCat(kTitle, title, "\n");
  const size_t begin = absl::StrCat("\n", golden).find("\n" + heading);
  if (begin == std::string::npos) return "(no such chapter)";
  const size_t text = begin + heading.size();
  const size_t end = golden.find(absl::StrCat("\n\n", kTitle), text);
  return end == std::string::npos ? golden.substr(text) : golden.substr(text, end + 1 - text);
}

std::vector<std::string> GoldenTitles() {
  std::vector<std::string> titles;
  for (absl::string_view line : absl::StrSplit(Golden(), '\n')) {
    if (absl::ConsumePrefix(&line, kTitle)) titles.emplace_back(line);
  }
  return titles;
}

BadInputScene::BadInputScene() : scene_(DeployedControlPlane(), kNamespace) { StartParts(); }

void BadInputScene::StartParts() {
  absl::StatusOr<std::unique_ptr<RedisServer>> redis =
      RedisServer::Start({.users = {absl::StrCat("reader on >right-", kCanary, " ~* +@all")}});
  ASSERT_TRUE(redis.ok()) << redis.status();
  scene_.redis_ = *std::move(redis);
  MustBeOk(scene_.redis().Command({"SET", "text", "not a list"}).status());
  absl::StatusOr<std::unique_ptr<Process>> plugin =
      StartPlugin(scene_.plugins(), "redis", "outrigger-scaler-redis", {"--log-level=debug"});
  ASSERT_TRUE(plugin.ok()) << plugin.status();
  scene_.plugin_ = *std::move(plugin);
  absl::StatusOr<std::unique_ptr<ScriptedPlugin>> scripted =
      ScriptedPlugin::Start({.name = "scripted", .folder = scene_.plugins().path()});
  ASSERT_TRUE(scripted.ok()) << scripted.status();
  scripted_ = *std::move(scripted);
  absl::StatusOr<std::unique_ptr<ScriptedPlugin>> squatter = ScriptedPlugin::Start(
      {.name = "squatter", .folder = scene_.plugins().path(), .announce = "redis"});
  ASSERT_TRUE(squatter.ok()) << squatter.status();
  squatter_ = *std::move(squatter);
  scene_.StartOperator({.plane = scene_.plane(),
                        .plugin_dir = scene_.plugins().path(),
                        .arguments = {"--log-level=debug"}});
  scene_.ApplyDeployment("worker", 1);
}

void BadInputScene::ApplyAll(const std::map<std::string, Object>& objects) {
  std::string documents;
  for (const auto& [name, object] : objects) {
    absl::StrAppend(&documents, Manifest(name, object), "\n---\n");
  }
  MustBeOk(scene_.plane().MustKubectl({"apply", "-f", "-"}, documents).status());
}

std::string BadInputScene::Ready(const std::string& name, const Object& object,
                                 const std::string& wanted) {
  const absl::StatusOr<CommandResult> applied =
      scene_.plane().Kubectl({"apply", "-f", "-"}, Manifest(name, object));
  if (!applied.ok()) return applied.status().ToString();
  if (!applied->ok()) return absl::StrCat("refused by the API server: ", applied->stderr_text);
  const std::string ready = "{.status.conditions[?(@.type=='Ready')]";
  std::string text;
  const absl::Status said = WaitFor(
      [&] {
        // All three of one moment.
        text = scene_.plane()
                   .MustKubectl({"-n", object.namespace_name, "get", "so", name, "-o",
                                 absl::StrCat("jsonpath=", ready, ".status} ", ready,
                                              ".reason}: ", ready, ".message}")})
                   .value_or("");
        return absl::StartsWith(text, wanted);
      },
      absl::Seconds(60), absl::StrCat(name, ": Ready ", wanted),
      [&] { return absl::StrCat(text, "\n", scene_.operator_->process().OutputTail()); });
  EXPECT_TRUE(said.ok()) << said;
  return text;
}

std::string BadInputScene::WhatIsWrongWithTheLogin(const std::string& name) {
  scene_.Apply(absl::StrCat(
      "{apiVersion: v1, kind: Secret, metadata: {name: login, namespace: ", kNamespace,
      "}, stringData: {password: wrong-", kCanary, "}}\n---\n",
      "{apiVersion: keda.sh/v1alpha1, kind: TriggerAuthentication, metadata: {name: login, "
      "namespace: ",
      kNamespace,
      "}, spec: {secretTargetRef: [{parameter: password, name: login, key: password}]}}"));
  return WhatIsWrong(name, {.triggers = absl::StrCat(
                                "{type: redis, metadata: {address: \"", scene_.redis_->address(),
                                "\", username: reader, listName: a}, authenticationRef: "
                                "{name: login}}")});
}

std::string BadInputScene::RedisTrigger(const std::string& metadata) const {
  return absl::StrCat("{type: redis, metadata: {address: \"", scene_.redis_->address(), "\", ",
                      metadata, "}}");
}

std::string BadInputScene::ScriptedTrigger(const std::string& script) {
  return absl::StrCat("{type: scripted, metadata: {script: ", script, "}}");
}

std::string BadInputScene::WhatIsWrongWithGarbage(const std::string& name) {
  absl::StatusOr<std::unique_ptr<ScriptedPlugin>> plugin = ScriptedPlugin::Start(
      {.name = "turncoat", .folder = scene_.plugins().path(), .announce = "turncoat"});
  if (!plugin.ok()) return plugin.status().ToString();
  const Object object{.triggers = "{type: turncoat, metadata: {script: a}}"};
  Ready(name, object, "True ");
  (*plugin)->plugin().process().Kill(SIGKILL);
  MustBeOk((*plugin)->plugin().process().Wait(absl::Seconds(5)).status());
  const std::string socket = (*plugin)->plugin().socket();
  std::filesystem::remove(socket);
  const GarbageServer garbage(socket);
  std::string said = Ready(name, object, "False TriggerError");
  scene_.Delete("so", name);
  return said;
}

std::string BadInputScene::WaitForLog(const std::string& message,
                                      const std::vector<std::string>& fields) {
  std::string found;
  const absl::Status logged = WaitFor(
      [&] {
        for (const absl::string_view line : absl::StrSplit(scene_.operator_->Log(), '\n')) {
          if (absl::StrContains(line, message)) found = Told(line, fields);
        }
        return !found.empty();
      },
      absl::Seconds(30), absl::StrCat("the operator logs \"", message, "\""),
      [&] { return scene_.operator_->process().OutputTail(); });
  EXPECT_TRUE(logged.ok()) << logged;
  return found;
}

MetricDoor BadInputScene::door() const {
  return DirectlyAt(DeployedControlPlane(), "127.0.0.1", scene_.operator_->metrics_api_port());
}

}  // namespace outrigger::tests
