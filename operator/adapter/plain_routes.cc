// SPDX-License-Identifier: Apache-2.0
#include "operator/adapter/plain_routes.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>

#include <memory>

namespace outrigger::controller::adapter {
namespace {

constexpr char kPlainText[] = "text/plain; charset=utf-8";
constexpr char kPrometheusText[] = "text/plain; version=0.0.4; charset=utf-8";

HttpResponse Text(int code, std::string body) {
  return {.code = code, .body = std::move(body), .content_type = kPlainText};
}

HttpResponse NoSuchPath(absl::string_view path) {
  return Text(404, absl::StrCat("the server has no path ", path, "\n"));
}

bool IsRead(const HttpRequest& request) {
  return request.method == "GET" || request.method == "HEAD";
}

HttpResponse WrongMethod(const HttpRequest& request) {
  return Text(405, absl::StrCat("want GET, got ", request.method, "\n"));
}

struct Target {
  absl::string_view path;
  bool verbose = false;
};

Target SplitTarget(absl::string_view target) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(target, absl::MaxSplits('?', 1));
  Target split{.path = parts.first};
  for (absl::string_view parameter : absl::StrSplit(parts.second, '&')) {
    const absl::string_view name = parameter.substr(0, parameter.find('='));
    split.verbose = split.verbose || name == "verbose";
  }
  return split;
}

std::string LineOf(const std::string& name, const absl::Status& status) {
  if (status.ok()) return absl::StrCat("[+]", name, " ok\n");
  return absl::StrCat("[-]", name, " failed: ", status.message(), "\n");
}

HttpResponse Readiness(const NamedChecks& checks, bool verbose) {
  std::string lines;
  bool ready = true;
  for (const auto& [name, check] : checks) {
    const absl::Status status = check();
    ready = ready && status.ok();
    absl::StrAppend(&lines, LineOf(name, status));
  }
  if (!ready) return Text(500, absl::StrCat(lines, "readyz check failed\n"));
  return Text(200, verbose ? absl::StrCat(lines, "readyz check passed\n") : "ok");
}

HttpResponse OneCheck(const NamedChecks& checks, absl::string_view wanted, absl::string_view path) {
  for (const auto& [name, check] : checks) {
    if (name != wanted) continue;
    const absl::Status status = check();
    return status.ok() ? Text(200, "ok") : Text(500, LineOf(name, status));
  }
  return NoSuchPath(path);
}

HttpResponse Probe(const NamedChecks& checks, const HttpRequest& request) {
  const Target target = SplitTarget(request.target);
  if (!IsRead(request)) return WrongMethod(request);
  if (target.path == "/healthz" || target.path == "/livez")
    return Text(200, target.verbose ? "[+]ping ok\nhealthz check passed\n" : "ok");
  if (target.path == "/readyz") return Readiness(checks, target.verbose);
  absl::string_view name = target.path;
  if (absl::ConsumePrefix(&name, "/readyz/")) return OneCheck(checks, name, target.path);
  return NoSuchPath(target.path);
}

}  // namespace

HttpHandler MetricsRoutes(std::function<std::string()> render) {
  return [render = std::move(render)](
             std::shared_ptr<const HttpRequest> request) -> host::Task<HttpResponse> {
    const Target target = SplitTarget(request->target);
    if (target.path != "/metrics") co_return NoSuchPath(target.path);
    if (!IsRead(*request)) co_return WrongMethod(*request);
    HttpResponse response;
    response.body = render();
    response.content_type = kPrometheusText;
    co_return response;
  };
}

HttpHandler ProbeRoutes(NamedChecks checks) {
  return [checks = std::move(checks)](
             std::shared_ptr<const HttpRequest> request) -> host::Task<HttpResponse> {
    co_return Probe(checks, *request);
  };
}

}  // namespace outrigger::controller::adapter
