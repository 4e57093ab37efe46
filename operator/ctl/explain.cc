// SPDX-License-Identifier: Apache-2.0
#include "operator/ctl/explain.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "operator/ctl/table.h"

namespace outrigger::controller::ctl {
namespace {

namespace pb = ::outrigger::introspection::v1;

std::string Ago(const google::protobuf::Timestamp& time, absl::Time now) {
  const absl::Time then = absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
  const absl::Duration age = std::max(now - then, absl::ZeroDuration());
  return absl::StrCat(absl::FormatDuration(absl::Trunc(age, absl::Seconds(1))), " ago");
}

// "  inputs:    text": messages of plugins included, so nothing in it may move the cursor.
void AddLine(std::string& out, absl::string_view label, absl::string_view text) {
  constexpr size_t kLabelColumns = 11;
  std::string line = absl::StrCat("  ", label);
  line.resize(std::max(line.size() + 1, kLabelColumns + 2), ' ');
  absl::StrAppend(&line, text);
  absl::StrAppend(&out, FitColumns(line, INT32_MAX), "\n");
}

std::string NameOf(const pb::TriggerState& trigger) {
  return trigger.metric().empty()
             ? absl::StrCat("trigger ", trigger.index(), " (", trigger.type(), ")")
             : trigger.metric();
}

std::string Input(const pb::TriggerState& trigger, absl::Time now) {
  std::string text = NameOf(trigger);
  if (trigger.has_value()) {
    absl::StrAppend(&text, " = ", trigger.value(), ", ", trigger.active() ? "active" : "inactive",
                    ", measured ", Ago(trigger.measured_at(), now));
  } else {
    absl::StrAppend(&text, " without a value so far");
  }
  absl::StrAppend(&text, trigger.plugin().empty() ? ", which no plugin serves"
                                                  : absl::StrCat(", by ", trigger.plugin()));
  if (!trigger.error().empty())
    absl::StrAppend(&text, "; the last answer failed: ", trigger.error());
  if (trigger.failed_cycles() > 0) {
    absl::StrAppend(&text, "; ", trigger.failed_cycles(), " failed polls in a row");
    if (trigger.fallback_threshold() > 0 && !trigger.has_fallback_replicas()) {
      absl::StrAppend(&text, ", falls back at ", trigger.fallback_threshold());
    }
  }
  return text;
}

// What the HPA's rule makes of a trigger's value, or its fallback asks for; nothing if there is no
// value or no target.
struct Wish {
  std::string formula;
  double replicas = 0;
};
std::optional<Wish> WishOf(const pb::TriggerState& trigger, int32_t current_replicas) {
  if (trigger.has_fallback_replicas()) {
    return Wish{.formula = absl::StrCat(NameOf(trigger), " falls back to ",
                                        trigger.fallback_replicas(), " replicas, since ",
                                        trigger.fallback_threshold(), " polls in a row failed"),
                .replicas = static_cast<double>(trigger.fallback_replicas())};
  }
  if (!trigger.has_value() || !trigger.has_target() || trigger.target() <= 0) return std::nullopt;
  const bool per_replica = trigger.metric_type() != "Value";
  const double factor = per_replica ? 1 : current_replicas;
  Wish wish{.replicas = std::ceil(factor * trigger.value() / trigger.target())};
  wish.formula =
      absl::StrCat(NameOf(trigger), " asks for ceil(",
                   per_replica ? "" : absl::StrCat(current_replicas, " replicas * "), "value ",
                   trigger.value(), " / target ", trigger.target(), ") = ", wish.replicas);
  return wish;
}

// Of 1 and more; from 0 and to 0 it is the operator that decides.
std::string Limits(const pb::Object& object, const std::vector<Wish>& wishes) {
  std::string text = absl::StrCat("min ", object.min_replicas(), ", max ", object.max_replicas());
  if (wishes.empty()) return text;
  double wanted = 0;
  for (const Wish& wish : wishes) wanted = std::max(wanted, wish.replicas);
  const double least = std::max(object.min_replicas(), 1);
  const double limited = std::max(least, std::min(wanted, double{1} * object.max_replicas()));
  return absl::StrCat(text, "; so while it is active the HPA is asked for ", limited);
}

std::string Result(const pb::Decision& decision, absl::Time now) {
  std::string text =
      absl::StrCat(decision.outcome().empty() ? decision.explanation() : decision.outcome(), " (",
                   Ago(decision.at(), now));
  if (decision.has_current_replicas()) {
    absl::StrAppend(&text, ", at ", decision.current_replicas(), " replicas");
  }
  return absl::StrCat(text, ")");
}

std::string ExplainObject(const pb::Object& object, absl::Time now) {
  std::string out = absl::StrCat(object.kind(), " ", object.namespace_(), "/", object.name());
  if (!object.target().empty()) absl::StrAppend(&out, " scales ", object.target());
  absl::StrAppend(&out, "\n");
  if (object.ready() != "True") {
    AddLine(
        out, "ready:",
        absl::StrCat(object.ready() == "False" ? "no: " : "unknown: ",
                     object.ready_message().empty() ? "not judged yet" : object.ready_message()));
  }
  std::vector<Wish> wishes;
  for (const pb::TriggerState& trigger : object.triggers()) {
    AddLine(out, &trigger == &object.triggers(0) ? "inputs:" : "", Input(trigger, now));
    const std::optional<Wish> wish = WishOf(trigger, object.decision().current_replicas());
    if (wish) wishes.push_back(*wish);
  }
  for (size_t i = 0; i < wishes.size(); ++i) {
    AddLine(out, i == 0 ? "formula:" : "", wishes[i].formula);
  }
  AddLine(out, "limits:", Limits(object, wishes));
  AddLine(out, "result:",
          object.has_decision() ? Result(object.decision(), now) : "nothing decided yet");
  return out;
}

}  // namespace

std::string ExplainObjects(const pb::ListObjectsResponse& response, absl::Time now) {
  if (response.objects().empty()) {
    return "no ScaledObject is known here (only the leader of several operators knows them)\n";
  }
  return absl::StrJoin(response.objects(), "\n", [&](std::string* out, const pb::Object& object) {
    absl::StrAppend(out, ExplainObject(object, now));
  });
}

std::string DescribePlugins(const pb::ListPluginsResponse& response, absl::Time now) {
  if (response.plugins().empty()) return "no plugin is known here\n";
  std::vector<std::vector<std::string>> rows = {
      {"NAME", "STATE", "SINCE", "VERSION", "TYPES", "ADDRESS"}};
  for (const pb::Plugin& plugin : response.plugins()) {
    const std::string types = absl::StrJoin(plugin.trigger_types(), ",");
    rows.push_back({plugin.name(), plugin.state(), Ago(plugin.since(), now),
                    plugin.version().empty() ? "-" : plugin.version(), types.empty() ? "-" : types,
                    plugin.address()});
  }
  const std::vector<std::string> lines = AlignColumns(rows);
  std::string out = absl::StrCat(lines.front(), "\n");
  for (int i = 0; i < response.plugins_size(); ++i) {
    absl::StrAppend(&out, lines[static_cast<size_t>(i) + 1], "\n");
    const pb::Plugin& plugin = response.plugins(i);
    if (!plugin.reason().empty()) AddLine(out, "reason:", plugin.reason());
    if (!plugin.ignored_types().empty()) {
      AddLine(out, "ignored:",
              absl::StrCat(absl::StrJoin(plugin.ignored_types(), ","),
                           ", which it announces and another plugin serves"));
    }
  }
  return out;
}

}  // namespace outrigger::controller::ctl
