// SPDX-License-Identifier: Apache-2.0
#include "tests/support/plugin/plugin_process.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <boost/json/parse.hpp>
#include <cstdlib>
#include <filesystem>

#include "host/base/status.h"
#include "tests/support/wait_for.h"

namespace outrigger::tests {
namespace {

// The address of each "serving" line of a log.
std::vector<std::string> ServingAddresses(const std::string& log) {
  std::vector<std::string> addresses;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(log, '\n'))) {
    boost::system::error_code error;
    const boost::json::value value = boost::json::parse(line, error);
    if (error || !value.is_object()) continue;
    const auto* message = value.as_object().if_contains("msg");
    const auto* address = value.as_object().if_contains("address");
    if (message == nullptr || address == nullptr || *message != "serving") continue;
    addresses.emplace_back(address->as_string().c_str());
  }
  return addresses;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PluginProcess>> PluginProcess::Start(Options options) {
  std::unique_ptr<PluginProcess> plugin(new PluginProcess(std::move(options)));
  RETURN_IF_ERROR(plugin->Launch());
  return plugin;
}

std::string PluginProcess::folder() const {
  return options_.folder.empty() ? temp_.path() : options_.folder;
}

std::string PluginProcess::socket() const {
  return absl::StrCat(folder(), "/", options_.name, "/scaler.sock");
}

std::string PluginProcess::socket_address() const { return absl::StrCat("unix:", socket()); }

std::string PluginProcess::Output() const { return ReadFile(temp_.File("output")).value_or(""); }

absl::Status PluginProcess::Restart() {
  if (process_) process_->Kill(9);
  process_ = nullptr;
  return Launch();
}

absl::Status PluginProcess::Launch() {
  const char* bin = std::getenv("OUTRIGGER_BIN_DIR");
  if (bin == nullptr) return absl::FailedPreconditionError("OUTRIGGER_BIN_DIR is not set");
  const std::filesystem::path own = std::filesystem::path(socket()).parent_path();
  std::filesystem::create_directories(own);
  std::filesystem::permissions(own, std::filesystem::perms::owner_all);
  const size_t before = ServingAddresses(Output()).size();
  Process::Options process;
  process.argv = {absl::StrCat(bin, "/", options_.binary), "--listen-socket", socket()};
  if (options_.tcp) {
    process.argv.insert(process.argv.end(), {"--listen", "127.0.0.1:0"});
  }
  process.argv.insert(process.argv.end(), options_.flags.begin(), options_.flags.end());
  process.stdout_file = temp_.File("output");
  ASSIGN_OR_RETURN(process_, Process::Start(std::move(process)));
  const size_t wanted = before + (options_.tcp ? 2 : 1);
  RETURN_IF_ERROR(
      WaitFor([&] { return ServingAddresses(Output()).size() >= wanted || !process_->Running(); },
              absl::Seconds(20), "the plugin serves", [&] { return process_->OutputTail(); }));
  const std::vector<std::string> addresses = ServingAddresses(Output());
  if (addresses.size() < wanted) {
    return absl::FailedPreconditionError(
        absl::StrCat(options_.binary, " ended: ", process_->OutputTail()));
  }
  if (options_.tcp) tcp_address_ = addresses.back();
  return absl::OkStatus();
}

}  // namespace outrigger::tests
