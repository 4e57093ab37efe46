// SPDX-License-Identifier: Apache-2.0
#include "operator/ctl/screen.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <errno.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>

#include "operator/ctl/table.h"

namespace outrigger::controller::ctl {
namespace {

constexpr int kNarrowest = 60;
constexpr int kLowest = 10;
constexpr size_t kKeptSteps = 500;
constexpr double kBetweenDraws = 0.2;  // seconds

// What a terminal is told, in the words of ECMA-48 and xterm.
constexpr char kOtherScreen[] = "\x1b[?1049h\x1b[?25l";  // and no cursor
constexpr char kFirstScreen[] = "\x1b[?25h\x1b[?1049l";
constexpr char kClear[] = "\x1b[2J";
constexpr char kHome[] = "\x1b[H";
constexpr char kClearRestOfLine[] = "\x1b[K";
constexpr char kClearBelow[] = "\x1b[J";

// stdout, for as long as somebody reads it. SIGPIPE must be ignored.
class Output {
 public:
  void Write(absl::string_view text) {
    while (!reader_has_gone_ && !text.empty()) {
      const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) {
        // `| head`, a closed terminal: end as if asked to.
        reader_has_gone_ = true;
        kill(getpid(), SIGTERM);
        return;
      }
      text.remove_prefix(static_cast<size_t>(written));
    }
  }

 private:
  bool reader_has_gone_ = false;
};

std::optional<TableSize> TerminalSize() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return std::nullopt;
  return TableSize{.width = size.ws_col, .height = size.ws_row};
}

class Stopwatch {
 public:
  explicit Stopwatch(host::Clock& clock) : clock_(clock), start_(clock.SteadyNow()) {}
  double Seconds() const { return absl::ToDoubleSeconds(clock_.SteadyNow() - start_); }
  std::string Stamp(const std::string& line) const {
    return absl::StrFormat("%6.1fs  %s", Seconds(), line);
  }

 private:
  host::Clock& clock_;
  const host::SteadyTime start_;
};

class LineScreen : public Screen {
 public:
  LineScreen(host::Clock& clock, const Title& title) : watch_(clock) {
    out_.Write(absl::StrCat(watch_.Stamp(title.text), "\n"));
  }
  void AddStep(const std::string& line) override {
    out_.Write(absl::StrCat(FitColumns(watch_.Stamp(line), INT32_MAX), "\n"));
  }
  void Show(const local::LocalState&) override {}

 private:
  Output out_;
  const Stopwatch watch_;
};

class TableScreen : public Screen {
 public:
  TableScreen(host::Clock& clock, Title title) : watch_(clock), title_(std::move(title)) {
    Resume();
  }
  ~TableScreen() override {
    out_.Write(kFirstScreen);
    for (const std::string& step : steps_) out_.Write(absl::StrCat(step, "\n"));
  }

  void AddStep(const std::string& line) override {
    steps_.push_back(FitColumns(watch_.Stamp(line), INT32_MAX));
    if (steps_.size() > kKeptSteps) steps_.pop_front();
    if (watch_.Seconds() - drawn_at_seconds_ >= kBetweenDraws) Draw();  // else the next Show() does
  }
  void Show(const local::LocalState& state) override {
    state_ = state;
    Draw();
  }
  void Redraw() override {
    drawn_.clear();
    out_.Write(kClear);  // what the terminal made of the old lines
    Draw();
  }
  void Suspend() override { out_.Write(kFirstScreen); }
  void Resume() override {
    out_.Write(kOtherScreen);
    Redraw();
  }

 private:
  // In one write and over what stands there, so that nothing flickers.
  void Draw() {
    TableSize size = TerminalSize().value_or(TableSize());
    --size.width;  // behind a full line the cursor stands on its last column, which would be
                   // cleared
    drawn_at_seconds_ = watch_.Seconds();
    const std::string title =
        absl::StrFormat("%s, %.0f s; Ctrl-C ends it", title_.text, watch_.Seconds());
    const std::vector<std::string> steps(steps_.begin(), steps_.end());
    std::vector<std::string> lines = RenderTable(title, state_, steps, size);
    if (lines == drawn_) return;
    std::string text = kHome;
    for (size_t i = 0; i < lines.size(); ++i) {
      // No line break after the last: a full screen would scroll.
      absl::StrAppend(&text, i == 0 ? "" : "\r\n", lines[i], kClearRestOfLine);
    }
    out_.Write(absl::StrCat(text, kClearBelow));
    drawn_ = std::move(lines);
  }

  Output out_;
  const Stopwatch watch_;
  const Title title_;
  local::LocalState state_;
  std::deque<std::string> steps_;
  std::vector<std::string> drawn_;
  double drawn_at_seconds_ = 0;
};

}  // namespace

bool CanShowTable() {
  const char* terminal = std::getenv("TERM");
  if (isatty(STDOUT_FILENO) != 1 || terminal == nullptr) return false;
  if (*terminal == '\0' || std::strcmp(terminal, "dumb") == 0) return false;
  const std::optional<TableSize> size = TerminalSize();
  return size && size->width >= kNarrowest && size->height >= kLowest;
}

std::unique_ptr<Screen> MakeScreen(host::Clock& clock, Title title) {
  if (CanShowTable()) return std::make_unique<TableScreen>(clock, std::move(title));
  return std::make_unique<LineScreen>(clock, title);
}

}  // namespace outrigger::controller::ctl
