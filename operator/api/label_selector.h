// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <map>
#include <string>
#include <vector>

namespace outrigger::controller::api {

using Labels = std::map<std::string, std::string>;

// A label selector in the text grammar of Kubernetes: "a=b,c!=d,e in (x,y),f notin (z),g,!h,i>5".
// Empty selects all.
//
// A value type. Source: k8s.io/apimachinery/pkg/labels (selector.go): keys are qualified names,
// values label values.
class LabelSelector {
 public:
  enum class Operator {
    kEquals,
    kDoubleEquals,
    kNotEquals,
    kIn,
    kNotIn,
    kExists,
    kDoesNotExist,
    kGreaterThan,
    kLessThan
  };
  struct Requirement {
    std::string key;
    Operator op = Operator::kEquals;
    std::vector<std::string> values;  // sorted, without duplicates

    bool Matches(const Labels& labels) const;
    friend bool operator==(const Requirement&, const Requirement&) = default;
  };

  LabelSelector() = default;  // selects everything

  // INVALID_ARGUMENT with the place and what was wanted there.
  static absl::StatusOr<LabelSelector> Parse(absl::string_view text);
  static LabelSelector FromLabels(const Labels& labels);

  bool Matches(const Labels& labels) const;

  // The same selector in canonical text: keys sorted, values sorted. Parse(Print()) selects the
  // same.
  std::string Print() const;

  const std::vector<Requirement>& requirements() const { return requirements_; }

 private:
  std::vector<Requirement> requirements_;
};

// The label map of a selector that consists of "key=value" only, as the metrics API takes it.
// Set-based requirements,
// "!=" and "==" are refused with INVALID_ARGUMENT. A key given twice keeps the last value. Source:
// spec/adapter.md section 2, k8s.io/apimachinery/pkg/labels.ConvertSelectorToLabelsMap.
absl::StatusOr<Labels> ParseEqualitySelector(absl::string_view text);

// Why `value` cannot be a label value (at most 63 characters, alphanumeric at both ends, - _ .
// between), or empty.
std::string LabelValueFault(absl::string_view value);

}  // namespace outrigger::controller::api
