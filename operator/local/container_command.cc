// SPDX-License-Identifier: Apache-2.0
#include "operator/local/container_command.h"

#include <absl/strings/str_cat.h>

#include <utility>

#include "host/base/status.h"
#include "operator/api/object_reader.h"
#include "operator/api/workload.h"

namespace outrigger::controller::local {
namespace {

namespace json = boost::json;
using api::ObjectReader;

absl::Status NotLocal(absl::string_view path) {
  return absl::UnimplementedError(absl::StrCat(path, ": a local process cannot have this"));
}

const json::value& OrEmpty(const json::value* object) {
  static const auto* const kEmpty = new json::value(json::object());
  return object == nullptr ? *kEmpty : *object;
}

absl::Status ReadEnv(ObjectReader& container, std::map<std::string, std::string>& out) {
  const json::array* items = container.FindArray("env");
  if (items == nullptr) return container.status();
  for (size_t i = 0; i < items->size(); ++i) {
    ObjectReader reader(container.PathOf(absl::StrCat("env[", i, "]")), (*items)[i]);
    std::string name;
    std::string value;
    reader.Read("name", name);
    reader.Require("name", name);
    reader.Read("value", value);
    RETURN_IF_ERROR(reader.status());
    if (reader.Find("valueFrom") != nullptr) return NotLocal(reader.PathOf("valueFrom"));
    out[name] = api::ExpandVariables(value, out);
  }
  return absl::OkStatus();
}

absl::Status ReadContainer(ObjectReader& container, ContainerCommand& out) {
  std::vector<std::string> command;
  std::vector<std::string> args;
  container.Read("command", command);
  container.Read("args", args);
  container.Read("workingDir", out.working_dir);
  RETURN_IF_ERROR(container.status());
  if (container.Find("envFrom") != nullptr) return NotLocal(container.PathOf("envFrom"));
  if (command.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        container.PathOf("command"),
        ": want the command to run as a local process (images are not used), got none"));
  }
  RETURN_IF_ERROR(ReadEnv(container, out.env));
  command.insert(command.end(), args.begin(), args.end());
  for (const std::string& part : command) out.argv.push_back(api::ExpandVariables(part, out.env));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ContainerCommand> ParseContainerCommand(const json::object& spec) {
  const json::value whole = spec;  // readers borrow
  ObjectReader deployment("spec", whole);
  const json::value* pod_template = deployment.FindObject("template");
  RETURN_IF_ERROR(deployment.status());
  ObjectReader reader("spec.template", OrEmpty(pod_template));
  const json::value* pod_spec = reader.FindObject("spec");
  RETURN_IF_ERROR(reader.status());
  ObjectReader pod("spec.template.spec", OrEmpty(pod_spec));
  const json::array* containers = pod.FindArray("containers");
  int64_t grace_seconds = 30;
  pod.Read("terminationGracePeriodSeconds", grace_seconds);
  RETURN_IF_ERROR(pod.status());
  if (pod.Find("initContainers") != nullptr) return NotLocal(pod.PathOf("initContainers"));
  if (containers == nullptr || containers->empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(pod.PathOf("containers"), ": want one container, got none"));
  }
  if (containers->size() > 1) return NotLocal(pod.PathOf("containers[1]"));

  ContainerCommand command{.grace = absl::Seconds(grace_seconds)};
  ObjectReader container(pod.PathOf("containers[0]"), containers->front());
  RETURN_IF_ERROR(ReadContainer(container, command));
  return command;
}

}  // namespace outrigger::controller::local
