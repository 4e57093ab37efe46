// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/http_load.h"

#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <curl/curl.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace outrigger::bench {
namespace {

constexpr long kRequestTimeoutSeconds = 30;
constexpr int kPollMilliseconds = 1000;

struct HandleDeleter {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct MultiDeleter {
  void operator()(CURLM* handle) const { curl_multi_cleanup(handle); }
};
struct HeadersDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

size_t AppendTo(char* data, size_t size, size_t count, void* text) {
  static_cast<std::string*>(text)->append(data, size * count);
  return size * count;
}

}  // namespace

double LoadResult::Rate() const {
  return seconds > 0 ? static_cast<double>(latencies_ms.size()) / seconds : 0;
}

// One easy handle, which keeps its connection between requests.
struct HttpLoad::Connection {
  std::unique_ptr<CURL, HandleDeleter> handle;
  std::unique_ptr<curl_slist, HeadersDeleter> headers;
  std::string answer;
  absl::Time sent_at;

  explicit Connection(const tests::ControlPlane& plane) : handle(curl_easy_init()) {
    CURL* const curl = handle.get();
    curl_easy_setopt(curl, CURLOPT_CAINFO, plane.ca_file().c_str());
    curl_easy_setopt(curl, CURLOPT_SSLCERT, plane.pki().admin().certificate.c_str());
    curl_easy_setopt(curl, CURLOPT_SSLKEY, plane.pki().admin().key.c_str());
    // One connection each, where HTTP/2 would put all requests on one.
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, kRequestTimeoutSeconds);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &AppendTo);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer);
    curl_easy_setopt(curl, CURLOPT_PRIVATE, this);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  }

  void Prepare(const std::string& url, const HttpRequest& request) {
    CURL* const curl = handle.get();
    curl_easy_setopt(curl, CURLOPT_URL, absl::StrCat(url, request.path).c_str());
    curl_slist* list = curl_slist_append(nullptr, "Content-Type: application/json");
    list = curl_slist_append(
        list, absl::StrCat("Accept: ", request.accept.empty() ? "application/json" : request.accept)
                  .c_str());
    headers.reset(list);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, list);
    if (request.body.empty()) {
      curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
    } else {
      curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, static_cast<long>(request.body.size()));
      curl_easy_setopt(curl, CURLOPT_COPYPOSTFIELDS, request.body.c_str());
    }
    answer.clear();
    sent_at = absl::Now();
  }

  int64_t Code() const {
    long code = 0;
    curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &code);
    return code;
  }
};

// One Send() or Repeat(): puts a request on each connection and a new one on each that is free
// again, until `next` has none left.
class HttpLoad::Run {
 public:
  using Next = std::function<const HttpRequest*()>;

  Run(HttpLoad& load, Next next) : load_(load), next_(std::move(next)), multi_(curl_multi_init()) {}

  LoadResult Finish() {
    const absl::Time start = absl::Now();
    for (const auto& connection : load_.connections_) Begin(*connection);
    while (under_way_ > 0) {
      int running = 0;
      curl_multi_perform(multi_.get(), &running);
      TakeAnswers();
      if (under_way_ > 0) curl_multi_poll(multi_.get(), nullptr, 0, kPollMilliseconds, nullptr);
    }
    result_.seconds = absl::ToDoubleSeconds(absl::Now() - start);
    std::sort(result_.latencies_ms.begin(), result_.latencies_ms.end());
    return std::move(result_);
  }

 private:
  void Begin(Connection& connection) {
    const HttpRequest* request = next_();
    if (request == nullptr) return;
    connection.Prepare(load_.url_, *request);
    curl_multi_add_handle(multi_.get(), connection.handle.get());
    ++under_way_;
  }

  void TakeAnswers() {
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      Connection* connection = nullptr;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &connection);
      const CURLcode ended = message->data.result;
      curl_multi_remove_handle(multi_.get(), connection->handle.get());
      --under_way_;
      Record(*connection, ended);
      Begin(*connection);
    }
  }

  void Record(const Connection& connection, CURLcode ended) {
    const int64_t code = ended == CURLE_OK ? connection.Code() : 0;
    ++result_.codes[code];
    result_.latencies_ms.push_back(absl::ToDoubleMilliseconds(absl::Now() - connection.sent_at));
    if (code >= 200 && code < 300) return;
    if (!result_.first_failure.empty()) return;
    result_.first_failure = code == 0 ? curl_easy_strerror(ended)
                                      : absl::StrCat("HTTP ", code, ": ", connection.answer);
  }

  HttpLoad& load_;
  const Next next_;
  const std::unique_ptr<CURLM, MultiDeleter> multi_;
  int under_way_ = 0;
  LoadResult result_;
};

HttpLoad::HttpLoad(const tests::ControlPlane& plane, int connections) : url_(plane.url()) {
  for (int i = 0; i < connections; ++i) {
    connections_.push_back(std::make_unique<Connection>(plane));
  }
}

HttpLoad::~HttpLoad() = default;

absl::StatusOr<std::string> HttpLoad::Ask(const HttpRequest& request) {
  Connection& connection = *connections_.front();
  connection.Prepare(url_, request);
  const CURLcode ended = curl_easy_perform(connection.handle.get());
  if (ended != CURLE_OK) {
    return absl::UnavailableError(absl::StrCat(request.path, ": ", curl_easy_strerror(ended)));
  }
  const int64_t code = connection.Code();
  if (code < 200 || code > 299) {
    return absl::UnavailableError(
        absl::StrCat(request.path, ": HTTP ", code, ": ", connection.answer));
  }
  return connection.answer;
}

LoadResult HttpLoad::Send(const std::vector<HttpRequest>& requests) {
  size_t sent = 0;
  return Run(*this, [&] { return sent < requests.size() ? &requests[sent++] : nullptr; }).Finish();
}

LoadResult HttpLoad::Repeat(const std::vector<HttpRequest>& requests, absl::Duration time) {
  const absl::Time end = absl::Now() + time;
  size_t sent = 0;
  return Run(*this,
             [&] { return absl::Now() < end ? &requests[sent++ % requests.size()] : nullptr; })
      .Finish();
}

}  // namespace outrigger::bench
