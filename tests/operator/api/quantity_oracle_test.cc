// SPDX-License-Identifier: Apache-2.0
// Compares Quantity with the Go original on generated texts. Builds the Go program of
// quantity_oracle/ in a temporary folder first.
#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "operator/api/quantity.h"

namespace outrigger::controller::api {
namespace {

namespace fs = std::filesystem;

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "quantity-oracle-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// One text: sign, digits, fraction and suffix, each sometimes missing, sometimes odd. Exponents
// stay small where Go would compute a power of ten with as many digits.
class TextGenerator {
 public:
  std::string Next() {
    std::string text = Pick({"", "", "", "", "-", "+"});
    text += Digits(Pick({0, 1, 1, 2, 3, 5, 9, 17, 18, 19, 20, 28}));
    if (Chance(3)) absl::StrAppend(&text, ".", Digits(Pick({0, 1, 2, 3, 4, 8, 9, 10, 12, 20})));
    text += Suffix();
    return text;
  }

 private:
  template <typename T>
  T Pick(const std::vector<T>& from) {
    return from[random_() % from.size()];
  }
  int Pick(std::initializer_list<int> from) { return Pick(std::vector<int>(from)); }
  std::string Pick(std::initializer_list<const char*> from) {
    return Pick(std::vector<std::string>(from.begin(), from.end()));
  }
  bool Chance(unsigned one_in) { return random_() % one_in == 0; }

  std::string Digits(int count) {
    std::string digits;
    const bool round = Chance(3);
    for (int i = 0; i < count; ++i) {
      digits += round && i > 0 ? '0' : static_cast<char>('0' + random_() % 10);
    }
    return digits;
  }

  std::string Suffix() {
    switch (random_() % 8) {
      case 0:
      case 1:
        return "";
      case 2:
      case 3:
        return Pick({"n", "u", "m", "k", "M", "G", "T", "P", "E"});
      case 4:
        return Pick({"Ki", "Mi", "Gi", "Ti", "Pi", "Ei"});
      case 5:
      case 6:
        return absl::StrCat(Pick({"e", "E", "e+", "E-", "e-"}), random_() % 45);
      default:
        return Pick({"K",   "i",  "ki", "mi",  "e",   "e+", "ee3", "e3.0", "x",  " ",
                     "Kii", "e-", "m5", "k-1", "5k5", "EE", "1e1", "+5",   "\"", "é"});
    }
  }

  std::mt19937 random_{20261};
};

std::vector<std::string> Texts() {
  std::vector<std::string> texts = {"0",
                                    "00",
                                    "-0",
                                    "+0",
                                    ".",
                                    "-",
                                    "+",
                                    "",
                                    "k",
                                    "Ti",
                                    "Pi",
                                    "Ei",
                                    "e-10",
                                    "e-9",
                                    "e5",
                                    ".5",
                                    "5.",
                                    "1.G",
                                    "0.0000000001",
                                    "-0.0000000001",
                                    "1n",
                                    "0.1n",
                                    "1Ki",
                                    "1025",
                                    "1024Ki",
                                    "0.5Ki",
                                    "1.1Ki",
                                    "-2047Ki",
                                    "-1.5Ki",
                                    "8Ei",
                                    "7Ei",
                                    "9223372036854775807",
                                    "9223372036854775808",
                                    "9223372036854775807m",
                                    "1e18",
                                    "1e19",
                                    "1000E",
                                    "1e300",
                                    "12e-3",
                                    "1e4294967297",
                                    "1e9223372036854775808",
                                    "2.500",
                                    "12.346",
                                    "22500m",
                                    "5500e-3",
                                    "10P",
                                    "0.001",
                                    "100m",
                                    "1500m",
                                    "1.0",
                                    "+1",
                                    "--1",
                                    "1 ",
                                    " 1",
                                    "0x10",
                                    "1_000",
                                    "1,000",
                                    "NaN",
                                    "Inf",
                                    "1e",
                                    "1e+",
                                    "1E",
                                    "1EE",
                                    "1e1e1",
                                    "999999999999999999999999999999"};
  TextGenerator generator;
  for (int i = 0; i < 30000; ++i) texts.push_back(generator.Next());
  return texts;
}

std::string Sign(std::strong_ordering order) { return order < 0 ? "-1" : order > 0 ? "1" : "0"; }

// What our own code answers, in the words of the oracle.
class Ours {
 public:
  std::string Answer(const std::string& text) {
    const absl::StatusOr<Quantity> quantity = Quantity::Parse(text);
    if (!quantity.ok()) return "error";
    const Quantity limit = *Quantity::Parse("9e15");
    const std::string milli =
        !quantity->IsNegative() && *quantity < limit ? absl::StrCat(quantity->AsMilli()) : "-";
    const std::string order = Sign(*quantity <=> last_);
    last_ = *quantity;
    return absl::StrCat(quantity->ToString(), "\t", milli, "\t", order);
  }

 private:
  Quantity last_;
};

std::vector<std::string> ReadLines(const fs::path& path) {
  std::vector<std::string> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

int RunShell(const std::string& command) {
  return std::system(command.c_str());
}  // NOLINT(concurrency-mt-unsafe): one thread

TEST(QuantityOracleTest, AgreesWithGoOnGeneratedTexts) {
  const char* source = std::getenv("OUTRIGGER_SOURCE_DIR");
  ASSERT_NE(source, nullptr) << "OUTRIGGER_SOURCE_DIR is not set; run this through ctest";
  const TemporaryFolder folder;
  const std::string program = (folder.path() / "oracle").string();
  ASSERT_EQ(
      RunShell(absl::StrCat("cd '", source, "/tests/operator/api/quantity_oracle' && go build -o '",
                            program, "' .")),
      0)
      << "the Go original does not build";

  const std::vector<std::string> texts = Texts();
  {
    std::ofstream in(folder.path() / "in");
    for (const std::string& text : texts) in << text << '\n';
  }
  ASSERT_EQ(RunShell(absl::StrCat("'", program, "' <'", (folder.path() / "in").string(), "' >'",
                                  (folder.path() / "out").string(), "'")),
            0);
  const std::vector<std::string> wanted = ReadLines(folder.path() / "out");
  ASSERT_EQ(wanted.size(), texts.size());

  Ours ours;
  int accepted = 0;
  int different = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string got = ours.Answer(texts[i]);
    accepted += got != "error";
    if (got == wanted[i]) continue;
    ADD_FAILURE() << "\"" << absl::CHexEscape(texts[i]) << "\": Go says " << wanted[i]
                  << ", we say " << got;
    if (++different == 20) FAIL() << "stopping at 20 differences";
  }
  EXPECT_GT(accepted, 15000) << "the generator makes too few good texts";
}

}  // namespace
}  // namespace outrigger::controller::api
