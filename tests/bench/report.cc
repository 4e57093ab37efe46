// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/report.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <fstream>
#include <thread>

namespace outrigger::bench {
namespace json = boost::json;

namespace {

// Counts as they are, other figures with three digits that matter.
std::string Number(double value) {
  if (value == std::floor(value)) return absl::StrFormat("%.0f", value);
  if (value < 10) return absl::StrFormat("%.3g", value);
  return value < 100 ? absl::StrFormat("%.1f", value) : absl::StrFormat("%.0f", value);
}

std::string ValueOf(const std::vector<std::pair<std::string, double>>& values,
                    const std::string& column) {
  for (const auto& [name, value] : values) {
    if (name == column) return Number(value);
  }
  return "-";
}

}  // namespace

Report::Section& Report::At(const std::string& name) {
  for (Section& section : sections_) {
    if (section.name == name) return section;
  }
  Section& section = sections_.emplace_back();
  section.name = name;
  return section;
}

void Report::Add(const std::string& section_name, const std::string& column,
                 const std::string& figure, const std::string& unit, double value,
                 const std::string& aim) {
  Section& section = At(section_name);
  if (std::find(section.columns.begin(), section.columns.end(), column) == section.columns.end()) {
    section.columns.push_back(column);
  }
  auto row = std::find_if(section.rows.begin(), section.rows.end(),
                          [&](const Row& known) { return known.figure == figure; });
  if (row == section.rows.end()) {
    row = section.rows.insert(section.rows.end(), {.figure = figure, .unit = unit, .aim = aim});
  }
  row->values.emplace_back(column, value);
}

std::string Report::Print(const Section& section) {
  std::string text = absl::StrFormat("\n%-52s %-8s", section.name, "unit");
  for (const std::string& column : section.columns) absl::StrAppendFormat(&text, " %10s", column);
  absl::StrAppend(&text, "   aim\n");
  for (const Row& row : section.rows) {
    absl::StrAppendFormat(&text, "%-52s %-8s", row.figure, row.unit);
    for (const std::string& column : section.columns) {
      absl::StrAppendFormat(&text, " %10s", ValueOf(row.values, column));
    }
    absl::StrAppend(&text, "   ", row.aim, "\n");
  }
  return text;
}

std::string Report::Table() const {
  std::string text;
  for (const Section& section : sections_) absl::StrAppend(&text, Print(section));
  return text;
}

absl::Status Report::WriteJson(const std::string& path) const {
  json::object sections;
  for (const Section& section : sections_) {
    json::object& figures = sections[section.name].emplace_object();
    for (const Row& row : section.rows) {
      json::object& figure = figures[row.figure].emplace_object();
      figure["unit"] = row.unit;
      if (!row.aim.empty()) figure["aim"] = row.aim;
      json::object& values = figure["values"].emplace_object();
      for (const auto& [column, value] : row.values) values[column] = value;
    }
  }
  json::object all;
  all["processors"] = std::thread::hardware_concurrency();
  all["sections"] = std::move(sections);
  std::ofstream file(path);
  file << json::serialize(all) << "\n";
  file.close();
  return file.fail() ? absl::InternalError(absl::StrCat("cannot write ", path)) : absl::OkStatus();
}

}  // namespace outrigger::bench
