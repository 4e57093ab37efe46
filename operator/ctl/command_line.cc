// SPDX-License-Identifier: Apache-2.0
#include "operator/ctl/command_line.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <numeric>
#include <utility>

#include "host/base/status.h"

namespace outrigger::controller::ctl {
namespace {

constexpr char kAbout[] =
    "outriggerctl: event-driven autoscaling from the command line, without a cluster and beside "
    "one";
constexpr char kExamples[] = R"(Examples:
  outriggerctl local -f worker.yaml -f scaledobject.yaml
      no cluster: a queue drives local processes
  outriggerctl explain shop/orders
      why the ScaledObject has the replicas that it has
  outriggerctl plugin list
      are the scalers there?
)";
constexpr char kAboutLocal[] =
    R"(Runs manifests without a cluster: each replica of a Deployment is a local process
(its command runs, images are not used), the scaler plugins are child processes,
and an API server in memory with an HPA controller drives them as a cluster would.
A terminal shows a table, anything else gets a line per step. Ctrl-C ends it all;
a second one kills what takes its time to end.)";
constexpr char kLocalExample[] = R"(Kinds: Deployment, ScaledObject, TriggerAuthentication,
ClusterTriggerAuthentication, Secret, ConfigMap. A DURATION is 500ms, 3s or 2m.

Example, a worker per five entries of a Redis list (redis-server runs already):
  outriggerctl local -f examples/redis-queue/worker.yaml \
                     -f examples/redis-queue/scaledobject.yaml
  redis-cli RPUSH orders a b c d e f g        # in another terminal
)";
constexpr char kAboutExplain[] =
    "Says what the operator decided last about ScaledObjects, and why.";
constexpr char kRemoteExample[] =
    R"(The operator's gRPC port listens on its own machine only. In a cluster:
  kubectl -n outrigger port-forward deployment/outrigger-operator 9666
`outriggerctl local` prints the address of its own at the start.
)";
constexpr char kSeeHelp[] = "; for help: ";

int EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<int> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = std::exchange(row[0], static_cast<int>(i));
    for (size_t j = 1; j <= b.size(); ++j) {
      const int substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({substituted, row[j] + 1, row[j - 1] + 1}));
    }
  }
  return row.back();
}

// " (did you mean local?)", if a name is near enough.
std::string DidYouMean(const std::string& given, const std::vector<std::string>& names) {
  constexpr int kFarthest = 2;
  const auto nearest =
      std::min_element(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
        return EditDistance(given, a) < EditDistance(given, b);
      });
  if (nearest == names.end() || EditDistance(given, *nearest) > kFarthest) return "";
  return absl::StrCat(" (did you mean ", *nearest, "?)");
}

// The command that was given, down to its last word: "outriggerctl plugin list".
const CLI::App& Selected(const CLI::App& app) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  return chosen.empty() ? app : Selected(*chosen.front());
}

std::string NameOf(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name()
                                     : absl::StrCat(NameOf(*app.get_parent()), " ", app.get_name());
}

std::vector<std::string> SubcommandsOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(sub->get_name());
  }
  return names;
}

std::vector<std::string> FlagsOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back(absl::StrCat("--", name));
  }
  return names;
}

absl::Status Wrong(const CLI::App& command, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(what, kSeeHelp, NameOf(command), " --help"));
}

// What the command does not know, or that a command is missing.
absl::Status CheckUnderstood(const CLI::App& app) {
  const CLI::App& command = Selected(app);
  const std::vector<std::string> subcommands = SubcommandsOf(command);
  const std::vector<std::string> unknown = app.remaining(/*recurse=*/true);
  const std::string wanted = absl::StrCat("want one of ", absl::StrJoin(subcommands, ", "));
  if (!subcommands.empty() && !unknown.empty() && !absl::StartsWith(unknown.front(), "-")) {
    return Wrong(command, absl::StrCat(wanted, ", got \"", unknown.front(), "\"",
                                       DidYouMean(unknown.front(), subcommands)));
  }
  const auto flag = std::find_if(unknown.begin(), unknown.end(), [](const std::string& word) {
    return absl::StartsWith(word, "-");
  });
  if (flag != unknown.end()) {
    const std::string name = flag->substr(0, flag->find('='));
    return Wrong(command, absl::StrCat("unknown flag ", name, DidYouMean(name, FlagsOf(command))));
  }
  if (!subcommands.empty()) return Wrong(command, absl::StrCat(wanted, ", got nothing"));
  if (unknown.empty()) return absl::OkStatus();
  return Wrong(command, absl::StrCat("want nothing more, got \"", unknown.front(), "\""));
}

absl::Status ParseDuration(const char* flag, const std::string& text,
                           std::optional<absl::Duration>& out) {
  if (text.empty()) return absl::OkStatus();
  absl::Duration duration;
  if (!absl::ParseDuration(text, &duration) || duration <= absl::ZeroDuration() ||
      duration == absl::InfiniteDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": want a duration above 0 such as 3s, got \"", text, "\""));
  }
  out = duration;
  return absl::OkStatus();
}

// The command line as CLI11 reads it; what it does not check is checked in Finish().
class Parser {
 public:
  Parser() {
    app_.footer(kExamples);
    AddLocal();
    AddExplain();
    AddPlugin();
    version_->allow_extras();
    app_.allow_extras();
  }

  absl::StatusOr<Command> Parse(const std::vector<std::string>& arguments) {
    try {
      app_.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    } catch (const CLI::Success&) {
      return PrintText{app_.help()};
    } catch (const CLI::ParseError& error) {
      return Wrong(Selected(app_), error.what());
    }
    RETURN_IF_ERROR(CheckUnderstood(app_));
    if (local_->parsed()) return FinishLocal();
    if (explain_->parsed()) return FinishExplain();
    if (list_->parsed()) return plugin_list_flags_;
    return PrintText{absl::StrCat("outriggerctl ", OUTRIGGER_VERSION, "\n")};
  }

 private:
  void AddLocal() {
    local_->footer(kLocalExample);
    local_->allow_extras();
    local_->add_option("-f,--file", local_flags_.files, "YAML file; repeatable")->type_name("FILE");
    local_->add_option("--plugin", plugins_, "a plugin that runs already; repeatable")
        ->type_name("NAME=ADDRESS");
    local_
        ->add_option("--plugin-bin-dir", local_flags_.plugin_bin_dir,
                     "folder of the outrigger-scaler-* programs; none: ours")
        ->type_name("DIR");
    local_
        ->add_option("--address", local_flags_.address,
                     "of our gRPC port, for `explain`; none: any free one of 127.0.0.1")
        ->type_name("HOST:PORT");
    local_
        ->add_option("--log-dir", local_flags_.log_dir,
                     "folder for what replicas and plugins print; none: dropped")
        ->type_name("DIR");
    local_
        ->add_option("--exit-after-idle", exit_after_idle_,
                     "end once something ran and all is back at 0 for this long")
        ->type_name("DURATION");
    local_
        ->add_option("--timeout", timeout_,
                     "end after this long; with --exit-after-idle that is a failure")
        ->type_name("DURATION");
    local_
        ->add_option("--log-level", local_flags_.log_level,
                     "debug, info, warning or error; none: error")
        ->type_name("LEVEL");
  }

  void AddExplain() {
    explain_->allow_extras();
    explain_->footer(kRemoteExample);
    explain_->add_option("NAME", name_, "[NAMESPACE/]NAME of a ScaledObject; none: all");
    AddAddress(explain_, explain_flags_.address);
  }

  void AddPlugin() {
    plugin_->allow_extras();
    list_->allow_extras();
    list_->footer(kRemoteExample);
    AddAddress(list_, plugin_list_flags_.address);
  }

  static void AddAddress(CLI::App* command, std::string& address) {
    command
        ->add_option("--address", address,
                     absl::StrCat("of the operator's gRPC port; none: ", kOperatorAddress))
        ->type_name("HOST:PORT|unix:PATH");
  }

  absl::StatusOr<Command> FinishLocal() {
    if (local_flags_.files.empty()) return Wrong(*local_, "-f: want a YAML file, got none");
    for (const std::string& text : plugins_) {
      ASSIGN_OR_RETURN(host::PluginAddress plugin, host::ParsePluginFlag(text));
      local_flags_.plugins.push_back(std::move(plugin));
    }
    RETURN_IF_ERROR(
        ParseDuration("--exit-after-idle", exit_after_idle_, local_flags_.exit_after_idle));
    RETURN_IF_ERROR(ParseDuration("--timeout", timeout_, local_flags_.timeout));
    return local_flags_;
  }

  absl::StatusOr<Command> FinishExplain() {
    const std::vector<std::string> parts = absl::StrSplit(name_, '/');
    if (parts.size() > 2 || (parts.size() == 2 && (parts[0].empty() || parts[1].empty()))) {
      return Wrong(*explain_, absl::StrCat("want [NAMESPACE/]NAME, got \"", name_, "\""));
    }
    explain_flags_.name = parts.back();
    if (parts.size() == 2) explain_flags_.namespace_name = parts.front();
    return explain_flags_;
  }

  CLI::App app_{kAbout, "outriggerctl"};
  CLI::App* const local_ = app_.add_subcommand("local", kAboutLocal);
  CLI::App* const explain_ = app_.add_subcommand("explain", kAboutExplain);
  CLI::App* const plugin_ = app_.add_subcommand("plugin", "About the operator's plugins.");
  CLI::App* const list_ =
      plugin_->add_subcommand("list", "Lists the operator's plugins with their state.");
  CLI::App* const version_ = app_.add_subcommand("version", "Prints the version.");

  LocalFlags local_flags_;
  std::vector<std::string> plugins_;
  std::string exit_after_idle_;
  std::string timeout_;
  ExplainFlags explain_flags_;
  std::string name_;
  PluginListFlags plugin_list_flags_;
};

}  // namespace

absl::StatusOr<Command> ParseCommandLine(const std::vector<std::string>& arguments) {
  return Parser().Parse(arguments);
}

}  // namespace outrigger::controller::ctl
