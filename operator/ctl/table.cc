// SPDX-License-Identifier: Apache-2.0
#include "operator/ctl/table.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cstdint>

namespace outrigger::controller::ctl {
namespace {

constexpr int kGap = 2;               // columns between two columns
constexpr int kWidestCell = 28;       // of all but the last of a row
constexpr int kNarrowestReason = 40;  // with less room it stands on a line of its own
constexpr size_t kFewestSteps = 3;    // that are shown although objects do not fit

// One character of UTF-8 as it stands on a terminal.
struct Glyph {
  absl::string_view bytes;
  int columns = 1;
};

// The first character of `text`, which is not empty. A byte that is no UTF-8 counts alone.
Glyph FirstGlyph(absl::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x20 || lead == 0x7f) return {"?", 1};
  if (lead < 0x80) return {text.substr(0, 1), 1};
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 0;
  if (length == 0 || length > text.size()) return {"?", 1};
  uint32_t code = lead & (0xffU >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0) != 0x80) return {"?", 1};
    code = code << 6 | (next & 0x3fU);
  }
  if (code < 0xa0) return {"?", 1};  // the control characters beyond ASCII
  constexpr uint32_t kFirstWide = 0x1100;
  const bool arrows_and_signs = code >= 0x2000 && code < 0x2e80;
  return {text.substr(0, length), code >= kFirstWide && !arrows_and_signs ? 2 : 1};
}

// How many bytes of `text` the first glyph stands for.
size_t BytesOf(const Glyph& glyph) { return glyph.bytes == "?" ? 1 : glyph.bytes.size(); }

struct Fitted {
  std::string text;
  int columns = 0;
};

Fitted Fit(absl::string_view text, int width) {
  Fitted fitted;
  size_t bytes_with_mark = 0;  // of the text, if the mark must come
  while (!text.empty()) {
    const Glyph glyph = FirstGlyph(text);
    if (fitted.columns + glyph.columns > width) {
      if (width < 1) return {};
      return {absl::StrCat(fitted.text.substr(0, bytes_with_mark), "…"), width};
    }
    absl::StrAppend(&fitted.text, glyph.bytes);
    fitted.columns += glyph.columns;
    if (fitted.columns < width) bytes_with_mark = fitted.text.size();
    text.remove_prefix(BytesOf(glyph));
  }
  return fitted;
}

int ColumnsOf(absl::string_view text) { return Fit(text, INT32_MAX).columns; }

using Row = std::vector<std::string>;

// Rows with their columns one below the other, none but the last wider than `widest_cell`. The last
// cell has the rest of the line.
std::vector<std::string> Align(const std::vector<Row>& rows, int width,
                               int widest_cell = kWidestCell) {
  std::vector<int> widths(rows.front().size(), 0);
  for (const Row& row : rows) {
    for (size_t i = 0; i + 1 < row.size(); ++i) {
      widths[i] = std::max(widths[i], std::min(ColumnsOf(row[i]), widest_cell));
    }
  }
  std::vector<std::string> lines;
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const bool last = i + 1 == row.size();
      const Fitted cell = Fit(row[i], last ? INT32_MAX : widths[i]);
      absl::StrAppend(&line, cell.text,
                      last ? "" : std::string(widths[i] - cell.columns + kGap, ' '));
    }
    lines.push_back(FitColumns(std::string(absl::StripTrailingAsciiWhitespace(line)), width));
  }
  return lines;
}

std::string Age(absl::Duration age) {
  age = std::max(absl::ZeroDuration(), absl::Trunc(age, absl::Seconds(1)));
  if (age < absl::Minutes(2)) return absl::StrCat(absl::ToInt64Seconds(age), "s");
  if (age < absl::Hours(2)) return absl::StrCat(absl::ToInt64Minutes(age), "m");
  return absl::StrCat(absl::ToInt64Hours(age), "h");
}

std::string Values(const std::vector<local::TriggerView>& triggers) {
  if (triggers.empty()) return "-";
  return absl::StrJoin(triggers, " ", [](std::string* out, const local::TriggerView& trigger) {
    absl::StrAppend(out, trigger.value ? absl::StrCat(*trigger.value) : "?",
                    trigger.failed ? "!" : "", "/",
                    trigger.target ? absl::StrCat(*trigger.target) : "?");
  });
}

std::string ActiveWord(const std::string& status) {
  return status == "True" ? "yes" : status == "False" ? "no" : "unknown";
}

// The most important of what there is to say of an object.
std::string Why(const local::ObjectView& object) {
  if (!object.not_ready.empty()) return absl::StrCat("not ready: ", object.not_ready);
  const bool by_hpa = object.active == "True" && object.hpa_replicas == object.replicas;
  if (!by_hpa) return object.outcome.empty() ? "nothing decided yet" : object.outcome;
  absl::string_view reason = object.hpa_message;
  const size_t semicolon = reason.find("; reason: ");
  if (semicolon != absl::string_view::npos) reason.remove_prefix(semicolon + 10);
  return absl::StrCat("HPA to ", object.replicas, ": ", reason);
}

std::vector<std::string> ObjectLines(const local::LocalState& state, int width) {
  std::vector<Row> rows = {
      {"SCALEDOBJECT", "TARGET", "ACTIVE", "REPLICAS", "VALUE/TARGET", "SINCE", "LAST DECISION"}};
  for (const local::ObjectView& object : state.objects) {
    rows.push_back({object.name, object.target, ActiveWord(object.active),
                    absl::StrCat(object.running, "→", object.replicas), Values(object.triggers),
                    Age(state.now - object.since), Why(object)});
  }
  const std::vector<std::string> wide = Align(rows, INT32_MAX);
  const int before_reason = ColumnsOf(wide.front()) - ColumnsOf(rows.front().back());
  if (width - before_reason >= kNarrowestReason) return Align(rows, width);

  std::vector<std::string> reasons = {""};
  for (size_t i = 1; i < rows.size(); ++i) {
    reasons.push_back(FitColumns(absl::StrCat("  ", rows[i].back()), width));
    rows[i].back().clear();
  }
  const std::vector<std::string> aligned = Align(rows, width);
  std::vector<std::string> lines = {aligned.front()};
  for (size_t i = 1; i < aligned.size(); ++i) {
    lines.push_back(aligned[i]);
    lines.push_back(reasons[i]);
  }
  return lines;
}

std::vector<std::string> PluginLines(const local::LocalState& state, int width) {
  std::vector<Row> rows = {{"PLUGIN", "STATE", "SINCE", "RESTARTS", "REASON"}};
  for (const local::PluginView& plugin : state.plugins) {
    rows.push_back({plugin.name, plugin.state, Age(state.now - plugin.since),
                    absl::StrCat(plugin.restarts), plugin.reason});
  }
  const bool any_reason =
      std::any_of(state.plugins.begin(), state.plugins.end(),
                  [](const local::PluginView& plugin) { return !plugin.reason.empty(); });
  if (!any_reason) rows.front().back().clear();
  return Align(rows, width);
}

// Cuts a block that has no room, and says how much is missing.
void CutTo(size_t count, std::vector<std::string>& lines, int width) {
  if (lines.size() <= count) return;
  if (count == 0) return lines.clear();
  const size_t missing = lines.size() - (count - 1);
  lines.resize(count - 1);
  lines.push_back(FitColumns(absl::StrCat("  … ", missing, " more lines"), width));
}

}  // namespace

std::vector<std::string> AlignColumns(const std::vector<std::vector<std::string>>& rows) {
  return Align(rows, INT32_MAX, INT32_MAX);
}

std::string FitColumns(const std::string& text, int width) { return Fit(text, width).text; }

std::vector<std::string> RenderTable(const std::string& title, const local::LocalState& state,
                                     const std::vector<std::string>& steps, TableSize size) {
  const auto height = static_cast<size_t>(std::max(size.height, 1));
  std::vector<std::string> plugins = PluginLines(state, size.width);
  std::vector<std::string> objects = ObjectLines(state, size.width);
  // Title, three empty lines, plugins and a few steps always stand; objects have the rest.
  const size_t others = 4 + plugins.size() + std::min(steps.size(), kFewestSteps);
  CutTo(std::max(height, others + 2) - others, objects, size.width);

  std::vector<std::string> lines = {FitColumns(title, size.width), ""};
  lines.insert(lines.end(), objects.begin(), objects.end());
  lines.emplace_back();
  lines.insert(lines.end(), plugins.begin(), plugins.end());
  lines.emplace_back();
  const size_t room = height > lines.size() ? height - lines.size() : 0;
  const size_t first = steps.size() > room ? steps.size() - room : 0;
  for (size_t i = first; i < steps.size(); ++i) lines.push_back(FitColumns(steps[i], size.width));
  if (lines.size() > height) lines.resize(height);
  return lines;
}

}  // namespace outrigger::controller::ctl
