// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/metric_reader.h"

#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <curl/curl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <iterator>
#include <memory>
#include <utility>

#include "tests/support/wait_for.h"

namespace outrigger::tests {
namespace {

constexpr long kTimeoutSeconds = 15;
constexpr size_t kPrinted = 10;

struct HandleDeleter {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct ListDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using List = std::unique_ptr<curl_slist, ListDeleter>;

size_t AppendTo(char* data, size_t size, size_t count, void* text) {
  static_cast<std::string*>(text)->append(data, size * count);
  return size * count;
}

List ToList(const std::vector<std::string>& lines) {
  curl_slist* list = nullptr;
  for (const std::string& line : lines) list = curl_slist_append(list, line.c_str());
  return List(list);
}

// A client of one door.
class Client {
 public:
  Client(const MetricDoor& door, const std::string& path, bool keep)
      : handle_(curl_easy_init()),
        headers_(ToList(door.headers)),
        connect_to_(door.connect_to.empty() ? nullptr : ToList({"::" + door.connect_to})) {
    CURL* const curl = handle_.get();
    curl_easy_setopt(curl, CURLOPT_URL, absl::StrCat(door.url, path).c_str());
    curl_easy_setopt(curl, CURLOPT_CAINFO, door.ca_file.c_str());
    if (!door.identity.certificate.empty()) {
      curl_easy_setopt(curl, CURLOPT_SSLCERT, door.identity.certificate.c_str());
      curl_easy_setopt(curl, CURLOPT_SSLKEY, door.identity.key.c_str());
    }
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers_.get());
    curl_easy_setopt(curl, CURLOPT_CONNECT_TO, connect_to_.get());
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    curl_easy_setopt(curl, CURLOPT_FORBID_REUSE, keep ? 0L : 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, kTimeoutSeconds);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &AppendTo);
  }

  MetricAnswer Read() {
    MetricAnswer answer;
    curl_easy_setopt(handle_.get(), CURLOPT_WRITEDATA, &answer.text);
    answer.asked = absl::Now();
    const CURLcode ended = curl_easy_perform(handle_.get());
    answer.came = absl::Now();
    if (ended == CURLE_OK) {
      curl_easy_getinfo(handle_.get(), CURLINFO_RESPONSE_CODE, &answer.code);
    } else {
      answer.text = curl_easy_strerror(ended);
    }
    return answer;
  }

 private:
  const std::unique_ptr<CURL, HandleDeleter> handle_;
  const List headers_;
  const List connect_to_;
};

}  // namespace

MetricDoor ThroughTheApiService(const ControlPlane& plane) {
  return {.url = plane.url(), .ca_file = plane.ca_file(), .identity = plane.pki().admin()};
}

MetricDoor DirectlyAt(const ControlPlane& plane, const std::string& address, uint16_t port) {
  return {.url = absl::StrCat("https://", ControlPlane::kMetricsServerName),
          .connect_to = absl::StrCat(address, ":", port),
          .ca_file = plane.ca_file(),
          .identity = plane.pki().front_proxy(),
          .headers = {"X-Remote-User: admin", "X-Remote-Group: system:masters"}};
}

std::string MetricPath(const std::string& namespace_name, const std::string& metric,
                       const std::string& scaled_object) {
  return absl::StrCat("/apis/external.metrics.k8s.io/v1beta1/namespaces/", namespace_name, "/",
                      metric, "?labelSelector=scaledobject.keda.sh%2Fname%3D", scaled_object);
}

std::string MetricAnswer::Value() const {
  boost::system::error_code error;
  const boost::json::value list = boost::json::parse(text, error);
  if (error || !ok()) return text;
  const boost::json::value* value = list.find_pointer("/items/0/value", error);
  if (value == nullptr || !value->is_string()) return text;
  return std::string(value->get_string());
}

std::string Print(const std::vector<MetricAnswer>& answers) {
  std::string text = absl::StrCat(answers.size(), " reads");
  for (size_t i = 0; i < std::min(answers.size(), kPrinted); ++i) {
    const MetricAnswer& answer = answers[i];
    absl::StrAppend(&text, "\n", absl::FormatTime("%H:%M:%E3S", answer.asked, absl::UTCTimeZone()),
                    " after ", absl::FormatDuration(answer.came - answer.asked), ": ", answer.code,
                    " ", answer.text.substr(0, 300));
  }
  return text;
}

MetricAnswer ReadMetric(const MetricDoor& door, const std::string& path) {
  return Client(door, path, /*keep=*/false).Read();
}

MetricReaders::MetricReaders(MetricDoor door, std::string path, Options options)
    : door_(std::move(door)), path_(std::move(path)), options_(options) {
  for (int i = 0; i < options.keeping + options.dialling; ++i) {
    const bool keep = i < options.keeping;
    threads_.emplace_back([this, keep](const std::stop_token& stop) { Read(stop, keep); });
  }
}

void MetricReaders::Read(const std::stop_token& stop, bool keep) {
  Client client(door_, path_, keep);
  while (!stop.stop_requested()) {
    MetricAnswer answer = client.Read();
    std::unique_lock lock(mutex_);
    answers_.push_back(std::move(answer));
    pause_.wait_for(lock, stop, absl::ToChronoNanoseconds(options_.pause), [] { return false; });
  }
}

size_t MetricReaders::count() const {
  const std::scoped_lock lock(mutex_);
  return answers_.size();
}

std::vector<MetricAnswer> MetricReaders::Answers() const {
  const std::scoped_lock lock(mutex_);
  return answers_;
}

std::vector<MetricAnswer> MetricReaders::Failures(absl::Time since) const {
  std::vector<MetricAnswer> failures;
  const std::scoped_lock lock(mutex_);
  std::copy_if(answers_.begin(), answers_.end(), std::back_inserter(failures),
               [&](const MetricAnswer& answer) { return answer.asked >= since && !answer.ok(); });
  return failures;
}

void MetricReaders::WaitForMore(size_t more) const {
  const size_t before = count();
  const absl::Status read =
      WaitFor([&] { return count() >= before + more; }, absl::Seconds(20),
              absl::StrCat(more, " more reads"), [&] { return absl::StrCat(count() - before); });
  ASSERT_TRUE(read.ok()) << read;
}

void MetricReaders::Stop() { threads_.clear(); }

}  // namespace outrigger::tests
