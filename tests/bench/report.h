// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

#include <string>
#include <utility>
#include <vector>

namespace outrigger::bench {

// The figures of a run, in the order of their coming: tables that a person can read, and JSON.
class Report {
 public:
  // `aim`: what the figure should be, in words ("<= 15"); "" when there is none. A figure that has
  // been added for other columns of the section gets one more column.
  void Add(const std::string& section, const std::string& column, const std::string& figure,
           const std::string& unit, double value, const std::string& aim = "");

  std::string Table() const;
  // {"machine": …, "sections": {section: {figure: {"unit", "aim", "values": {column: number}}}}}
  absl::Status WriteJson(const std::string& path) const;

 private:
  struct Row {
    std::string figure;
    std::string unit;
    std::string aim;
    std::vector<std::pair<std::string, double>> values;  // by column
  };
  struct Section {
    std::string name;
    std::vector<std::string> columns;
    std::vector<Row> rows;
  };
  Section& At(const std::string& name);
  static std::string Print(const Section& section);

  std::vector<Section> sections_;
};

}  // namespace outrigger::bench
