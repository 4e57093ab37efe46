// SPDX-License-Identifier: Apache-2.0
#include "host/client/answer_check.h"

#include <absl/strings/escaping.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <google/protobuf/any.pb.h>
#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "host/base/grpc_status.h"
#include "host/base/status.h"

namespace outrigger::host {
namespace {

using scaler::v1::MetricSpec;
using scaler::v1::MetricValue;

// Names come from the plugin: cut and escaped before they stand in a message.
std::string Quoted(absl::string_view name) {
  constexpr size_t kLongest = 100;
  return absl::StrCat("\"", absl::CEscape(name.substr(0, kLongest)),
                      name.size() > kLongest ? "…\"" : "\"");
}

std::string NumberText(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return absl::StrCat(value);
}

absl::Status CheckValue(const MetricValue& value, const MetricQuery& query) {
  if (!query.metric_name.empty() && value.name() != query.metric_name) {
    return absl::InternalError(absl::StrCat("metric ", Quoted(query.metric_name),
                                            ": want its values only, got one of ",
                                            Quoted(value.name())));
  }
  if (!std::isfinite(value.value())) {
    return absl::InternalError(absl::StrCat("metric ", Quoted(value.name()),
                                            ": want a finite number, got ",
                                            NumberText(value.value())));
  }
  return absl::OkStatus();
}

absl::Duration FromProto(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

absl::Duration CutRetryAfter(const google::protobuf::Duration& duration) {
  return std::clamp(FromProto(duration), absl::ZeroDuration(), kMaxRetryAfter);
}

// The fields of that number that hold texts or messages.
std::vector<std::string> Texts(const google::protobuf::UnknownFieldSet& message, int number) {
  std::vector<std::string> texts;
  for (int i = 0; i < message.field_count(); ++i) {
    const google::protobuf::UnknownField& field = message.field(i);
    if (field.number() == number &&
        field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED) {
      texts.push_back(field.length_delimited());
    }
  }
  return texts;
}

absl::Status CheckSpec(const MetricSpec& spec, std::set<std::string>& names) {
  if (spec.name().empty()) return absl::InternalError("metric spec: want a name, got none");
  if (!names.insert(spec.name()).second) {
    return absl::InternalError(
        absl::StrCat("metric spec ", Quoted(spec.name()), ": want each name once, got it twice"));
  }
  if (!std::isfinite(spec.target()) || spec.target() <= 0) {
    return absl::InternalError(absl::StrCat("metric spec ", Quoted(spec.name()),
                                            ": want a finite target > 0, got ",
                                            NumberText(spec.target())));
  }
  return absl::OkStatus();
}

absl::Status CheckNewName(absl::string_view what, const std::string& name,
                          std::set<std::string>& names) {
  if (name.empty()) return absl::InternalError(absl::StrCat(what, ": want a name, got none"));
  if (!names.insert(name).second) {
    return absl::InternalError(
        absl::StrCat(what, " ", Quoted(name), ": want each name once, got it twice"));
  }
  return absl::OkStatus();
}

absl::Status CheckTriggerType(const scaler::v1::TriggerType& type) {
  std::set<std::string> names;
  for (const scaler::v1::Parameter& parameter : type.parameters()) {
    RETURN_IF_ERROR(CheckNewName("parameter", parameter.name(), names));
    for (const std::string& alias : parameter.aliases()) {
      RETURN_IF_ERROR(CheckNewName("parameter alias", alias, names));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<MetricsAnswer> CheckAnswer(scaler::v1::GetMetricsResponse response,
                                          const MetricQuery& query) {
  if (response.values_size() > kMaxValuesPerTrigger) {
    return absl::InternalError(absl::StrCat("want at most ", kMaxValuesPerTrigger, " values, got ",
                                            response.values_size()));
  }
  if (response.values().empty() && query.selector.empty()) {
    return absl::InternalError(
        query.metric_name.empty()
            ? "want at least one value, got none"
            : absl::StrCat("metric ", Quoted(query.metric_name), ": want a value, got none"));
  }
  for (const MetricValue& value : response.values()) {
    RETURN_IF_ERROR(CheckValue(value, query));
  }
  MetricsAnswer answer;
  answer.active = response.active();
  answer.retry_after = CutRetryAfter(response.retry_after());
  answer.values.assign(std::make_move_iterator(response.mutable_values()->begin()),
                       std::make_move_iterator(response.mutable_values()->end()));
  return answer;
}

absl::StatusOr<std::vector<MetricSpec>> CheckSpecs(
    scaler::v1::GetMetricSpecForScalingResponse response) {
  if (response.specs().empty()) {
    return absl::InternalError("want at least one metric spec, got none");
  }
  std::set<std::string> names;
  for (const MetricSpec& spec : response.specs()) {
    RETURN_IF_ERROR(CheckSpec(spec, names));
  }
  return std::vector<MetricSpec>(std::make_move_iterator(response.mutable_specs()->begin()),
                                 std::make_move_iterator(response.mutable_specs()->end()));
}

absl::Status CheckDescription(const scaler::v1::DescribeResponse& response) {
  const auto& revisions = response.revisions();
  if (!revisions.empty() && std::find(revisions.begin(), revisions.end(), 1U) == revisions.end()) {
    return absl::InternalError(
        absl::StrCat("Describe: want contract revision 1, got ", absl::StrJoin(revisions, ", ")));
  }
  std::set<std::string> names;
  for (const scaler::v1::TriggerType& type : response.trigger_types()) {
    RETURN_IF_ERROR(Annotate(CheckNewName("trigger type", type.name(), names), "Describe"));
    RETURN_IF_ERROR(
        Annotate(CheckTriggerType(type), "Describe: trigger type ", Quoted(type.name())));
  }
  return absl::OkStatus();
}

absl::Status EntryStatus(const scaler::v1::EntryError& error) {
  if (error.code() == 0) {
    return absl::InternalError("want an error with a code other than OK, got one with OK");
  }
  absl::Status status = FromGrpcCode(error.code(), error.message());
  if (error.has_retry_after()) SetRetryAfter(status, CutRetryAfter(error.retry_after()));
  return status;
}

// Debian has no library of google.rpc's messages; three field numbers do not need one.
std::optional<absl::Duration> RetryInfoDelay(const std::string& error_details) {
  constexpr int kStatusDetails = 3;
  constexpr int kRetryInfoDelay = 1;
  google::protobuf::UnknownFieldSet status;
  if (!status.ParseFromString(error_details)) return std::nullopt;
  for (const std::string& detail : Texts(status, kStatusDetails)) {
    google::protobuf::Any any;
    google::protobuf::UnknownFieldSet retry_info;
    if (!any.ParseFromString(detail) || !absl::EndsWith(any.type_url(), "/google.rpc.RetryInfo") ||
        !retry_info.ParseFromString(any.value())) {
      continue;
    }
    for (const std::string& delay : Texts(retry_info, kRetryInfoDelay)) {
      google::protobuf::Duration duration;
      if (duration.ParseFromString(delay)) return CutRetryAfter(duration);
    }
  }
  return std::nullopt;
}

}  // namespace outrigger::host
