// SPDX-License-Identifier: Apache-2.0
// Any JSON is refused with a message or becomes an object that can be validated, and whose status
// is printed so that it reads back the same. The other parsers of this room get the same bytes.
#include <boost/json/parse.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "operator/api/hpa.h"
#include "operator/api/scale_target.h"
#include "operator/api/scaled_object.h"
#include "operator/api/trigger_authentication.h"
#include "operator/api/validation.h"

namespace {

namespace api = outrigger::controller::api;

void Require(bool holds) {
  if (!holds) std::abort();
}

void CheckScaledObject(const boost::json::value& json) {
  const absl::StatusOr<api::ScaledObject> object = api::ParseScaledObject(json);
  if (!object.ok()) return Require(!object.status().message().empty());
  api::ValidateScaledObject(*object);
  api::UnsupportedField(*object);
  api::ResolveTarget(object->spec.scale_target_ref).IgnoreError();
  const boost::json::value status = api::StatusToJson(object->status);
  const absl::StatusOr<api::ScaledObjectStatus> again = api::ParseScaledObjectStatus(status);
  Require(again.ok() && boost::json::value(api::StatusToJson(*again)) == status);
}

void CheckHpa(const boost::json::value& json) {
  const absl::StatusOr<api::HorizontalPodAutoscaler> hpa = api::ParseHpa(json);
  if (!hpa.ok()) return;
  const boost::json::value printed = api::HpaToJson(*hpa);
  const absl::StatusOr<api::HorizontalPodAutoscaler> again = api::ParseHpa(printed);
  Require(again.ok() && boost::json::value(api::HpaToJson(*again)) == printed);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  boost::json::error_code error;
  const boost::json::value json = boost::json::parse(
      boost::json::string_view(reinterpret_cast<const char*>(data), size), error);
  if (error) return 0;
  CheckScaledObject(json);
  CheckHpa(json);
  api::ParseTriggerAuthentication(json).IgnoreError();
  return 0;
}
