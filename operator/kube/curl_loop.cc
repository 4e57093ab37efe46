// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/curl_loop.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace outrigger::controller::kube {
namespace {

constexpr long kConnectTimeoutMs = 10'000;
constexpr int kTcpUserTimeoutMs = 30'000;
constexpr long kKeepAliveSeconds = 15;
constexpr long kUploadBufferBytes = 16 << 10;  // curl's least; each write under way has one
constexpr size_t kErrorBodyBytes = 64 << 10;   // of a stream that was refused
constexpr absl::Duration kSilentAfter = absl::Seconds(3);
constexpr absl::Duration kLongestPoll = absl::Seconds(10);

struct EasyDeleter {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct ListDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using HeaderList = std::unique_ptr<curl_slist, ListDeleter>;

CURLM* NewMulti(bool multiplex) {
  // Once per process, thread-safe by the language; curl's own counter would do as well.
  static const CURLcode global = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (global != CURLE_OK) std::abort();  // no TLS library, or out of memory
  CURLM* const multi = curl_multi_init();
  if (multi == nullptr) std::abort();  // out of memory
  curl_multi_setopt(multi, CURLMOPT_PIPELINING, multiplex ? CURLPIPE_MULTIPLEX : CURLPIPE_NOTHING);
  return multi;
}

int SetUserTimeout(void*, curl_socket_t fd, curlsocktype) {
  // Best effort: a socket without it is still found dead by keep-alive.
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kTcpUserTimeoutMs, sizeof kTcpUserTimeoutMs);
  return CURL_SOCKOPT_OK;
}

void Append(HeaderList& list, const std::string& line) {
  // Returns the head, which is new for an empty list only; null when out of memory.
  curl_slist* const head = curl_slist_append(list.get(), line.c_str());
  if (list == nullptr) list.reset(head);
}

std::string Header(CURL* easy, const char* name) {
  curl_header* header = nullptr;
  if (curl_easy_header(easy, name, 0, CURLH_HEADER, -1, &header) != CURLHE_OK) return "";
  return header->value;
}

curl_blob Blob(const std::string& text) {
  return {const_cast<char*>(text.data()), text.size(), CURL_BLOB_COPY};
}

}  // namespace

struct CurlLoop::Transfer {
  uint64_t id = 0;
  HttpRequest request;
  OnBytes on_bytes;
  OnDone on_done;
  std::string url;
  HeaderList headers;
  HttpAnswer answer;
  host::Clock* clock = nullptr;
  host::SteadyTime* loop_last_byte = nullptr;
  size_t max_body_bytes = 0;
  host::SteadyTime started;
  host::SteadyTime last_byte;
  absl::Status refused;  // why OnWrite() wanted no more
  char error[CURL_ERROR_SIZE] = "";
  std::unique_ptr<CURL, EasyDeleter> easy;  // last: it refers to the others

  host::SteadyTime Expiry() const {
    return std::min(request.deadline.time(), last_byte + request.longest_silence);
  }

  void NoteBytes() { *loop_last_byte = last_byte = clock->SteadyNow(); }

  static size_t OnHeader(char*, size_t size, size_t count, void* self) {
    static_cast<Transfer*>(self)->NoteBytes();
    return size * count;
  }

  static size_t OnWrite(char* data, size_t size, size_t count, void* self) {
    return static_cast<Transfer*>(self)->Take({data, size * count}) ? size * count : 0;
  }

  bool Take(absl::string_view bytes) {
    NoteBytes();
    long code = 0;
    curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &code);
    if (on_bytes && code == 200) {
      if (on_bytes(bytes)) return true;
      refused = absl::CancelledError("no more was wanted");
      return false;
    }
    const size_t limit = on_bytes ? kErrorBodyBytes : max_body_bytes;
    if (answer.body.size() + bytes.size() > limit) {
      refused = absl::UnavailableError(absl::StrCat("the answer is longer than ", limit, " bytes"));
      return false;
    }
    answer.body.append(bytes.data(), bytes.size());
    return true;
  }
};

void CurlLoop::MultiDeleter::operator()(void* multi) const { curl_multi_cleanup(multi); }

CurlLoop::CurlLoop(host::Clock& clock, Options options)
    : clock_(clock),
      options_(std::move(options)),
      multi_(NewMulti(options_.multiplex)),
      certificate_authority_(options_.config.certificate_authority),
      client_certificate_(options_.config.client_certificate),
      client_key_(options_.config.client_key),
      token_(options_.config.token),
      thread_([this] { Run(); }) {}

CurlLoop::~CurlLoop() { Stop(); }

uint64_t CurlLoop::Start(HttpRequest request, OnBytes on_bytes, OnDone on_done) {
  auto transfer = std::make_unique<Transfer>();
  transfer->request = std::move(request);
  transfer->on_bytes = std::move(on_bytes);
  transfer->on_done = std::move(on_done);
  std::unique_ptr<Transfer> refused;
  uint64_t id = 0;
  {
    host::MutexLock lock(&mutex_);
    id = transfer->id = next_id_++;
    if (stopped_) {
      refused = std::move(transfer);
    } else {
      pending_.starts.push_back(std::move(transfer));
    }
  }
  if (refused != nullptr) {
    refused->on_done({.transport = absl::UnavailableError("the client was stopped")});
  } else {
    curl_multi_wakeup(multi_.get());
  }
  return id;
}

void CurlLoop::Cancel(uint64_t id) {
  {
    host::MutexLock lock(&mutex_);
    if (stopped_) return;
    pending_.cancels.push_back(id);
  }
  curl_multi_wakeup(multi_.get());
}

void CurlLoop::Stop() {
  {
    host::MutexLock lock(&mutex_);
    stopped_ = true;
    pending_.stopping = true;
  }
  curl_multi_wakeup(multi_.get());
  if (thread_.joinable()) thread_.join();
}

CurlLoop::Pending CurlLoop::TakePending() {
  host::MutexLock lock(&mutex_);
  const bool stopping = pending_.stopping;
  Pending taken = std::exchange(pending_, {});
  pending_.stopping = stopping;
  return taken;
}

void CurlLoop::Run() {
  while (true) {
    Pending pending = TakePending();
    for (std::unique_ptr<Transfer>& transfer : pending.starts) Begin(std::move(transfer));
    for (const uint64_t id : pending.cancels) {
      Finish(id, absl::CancelledError("no more was wanted"));
    }
    if (pending.stopping) break;
    ExpireDue();  // right before sending: see the class comment
    int running = 0;
    curl_multi_perform(multi_.get(), &running);
    ReadMessages();
    WaitForWork();
  }
  while (!transfers_.empty()) {
    Finish(transfers_.begin()->first, absl::UnavailableError("the client was stopped"));
  }
}

void CurlLoop::Begin(std::unique_ptr<Transfer> owned) {
  Transfer& transfer = *owned;
  transfers_.emplace(transfer.id, std::move(owned));
  if (transfer.request.deadline.Expired(clock_)) {
    return Finish(transfer.id, absl::DeadlineExceededError("the deadline had passed before it was "
                                                           "sent"));
  }
  const absl::Status prepared = Prepare(transfer);
  if (!prepared.ok()) return Finish(transfer.id, prepared);
  next_expiry_ = std::min(next_expiry_, transfer.Expiry());
  curl_multi_add_handle(multi_.get(), transfer.easy.get());
}

absl::Status CurlLoop::RefreshCredentials() {
  for (Credential* credential :
       {&certificate_authority_, &client_certificate_, &client_key_, &token_}) {
    absl::Status refreshed = credential->Refresh();
    if (!refreshed.ok()) return refreshed;
  }
  return absl::OkStatus();
}

absl::Status CurlLoop::Prepare(Transfer& transfer) {
  absl::Status refreshed = RefreshCredentials();
  if (!refreshed.ok()) return refreshed;
  transfer.easy.reset(curl_easy_init());
  CURL* const easy = transfer.easy.get();
  if (easy == nullptr) return absl::UnavailableError("libcurl: out of memory");
  transfer.clock = &clock_;
  transfer.loop_last_byte = &last_byte_;
  transfer.max_body_bytes = options_.max_body_bytes;
  transfer.started = transfer.last_byte = clock_.SteadyNow();
  transfer.url = options_.config.server + transfer.request.path;

  for (const std::string& header : transfer.request.headers) Append(transfer.headers, header);
  if (!token_.empty()) {
    Append(transfer.headers, "Authorization: Bearer " + token_.text().Reveal());
  }
  Append(transfer.headers, "Expect:");  // no 100-continue round trip
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer.headers.get());
  curl_easy_setopt(easy, CURLOPT_URL, transfer.url.c_str());
  curl_easy_setopt(easy, CURLOPT_PRIVATE, &transfer);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer.error);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &Transfer::OnHeader);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &Transfer::OnWrite);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &transfer);
  SetBody(transfer);
  SetConnectionOptions(easy);
  SetTlsOptions(easy);
  return absl::OkStatus();
}

void CurlLoop::SetBody(Transfer& transfer) {
  CURL* const easy = transfer.easy.get();
  const HttpRequest& request = transfer.request;
  if (request.deadline.time() != host::SteadyTime::InfiniteFuture()) {
    // ExpireDue() ends it; curl, which counts by another clock, is the second fence, a little
    // later.
    const absl::Duration left = request.deadline.Remaining(clock_) + absl::Milliseconds(100);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(absl::ToInt64Milliseconds(left)));
  }
  if (request.method == "GET") return;
  curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.data());
  curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
}

void CurlLoop::SetConnectionOptions(void* easy) {
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, kUploadBufferBytes);
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  const bool tls = absl::StartsWith(options_.config.server, "https://");
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, tls ? "https" : "http");
  curl_easy_setopt(easy, CURLOPT_USERAGENT, options_.user_agent.c_str());
  curl_easy_setopt(
      easy, CURLOPT_HTTP_VERSION,
      static_cast<long>(options_.multiplex ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
  // Rather wait for the one connection than dial another. Without TLS there is no HTTP/2.
  curl_easy_setopt(easy, CURLOPT_PIPEWAIT, tls && options_.multiplex ? 1L : 0L);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, kConnectTimeoutMs);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, kKeepAliveSeconds);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, kKeepAliveSeconds);
  curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, &SetUserTimeout);
  if (!options_.config.proxy_url.empty()) {
    curl_easy_setopt(easy, CURLOPT_PROXY, options_.config.proxy_url.c_str());
  }
}

// curl reuses a connection only for a request with equal TLS settings. So a rotated CA or client
// certificate opens new connections by itself, and a comment in the CA text (PEM ignores it) keeps
// requests off connections that were found silent.
void CurlLoop::SetTlsOptions(void* easy) {
  curl_easy_setopt(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (!certificate_authority_.empty()) {
    certificate_authority_pem_ =
        absl::StrCat(certificate_authority_.text().Reveal(), "\n# generation ", generation_, "\n");
    curl_blob blob = Blob(certificate_authority_pem_);
    curl_easy_setopt(easy, CURLOPT_CAINFO_BLOB, &blob);
  }
  if (client_certificate_.empty()) return;
  curl_blob certificate = Blob(client_certificate_.text().Reveal());
  curl_blob key = Blob(client_key_.text().Reveal());
  curl_easy_setopt(easy, CURLOPT_SSLCERTTYPE, "PEM");
  curl_easy_setopt(easy, CURLOPT_SSLCERT_BLOB, &certificate);
  curl_easy_setopt(easy, CURLOPT_SSLKEYTYPE, "PEM");
  curl_easy_setopt(easy, CURLOPT_SSLKEY_BLOB, &key);
}

void CurlLoop::ExpireDue() {
  const host::SteadyTime now = clock_.SteadyNow();
  if (now < next_expiry_) return;
  std::vector<uint64_t> due;
  next_expiry_ = host::SteadyTime::InfiniteFuture();
  for (const auto& [id, transfer] : transfers_) {
    if (transfer->Expiry() <= now) {
      due.push_back(id);
    } else {
      next_expiry_ = std::min(next_expiry_, transfer->Expiry());
    }
  }
  for (const uint64_t id : due) {
    const Transfer& transfer = *transfers_.at(id);
    NoteSilentPeer(transfer);
    if (transfer.request.deadline.Expired(clock_)) {
      Finish(id, absl::DeadlineExceededError("no answer within " +
                                             absl::FormatDuration(absl::Trunc(
                                                 now - transfer.started, absl::Milliseconds(1)))));
    } else {
      transfers_.at(id)->answer.silent = true;
      Finish(id, absl::UnavailableError("no byte for " +
                                        absl::FormatDuration(transfer.request.longest_silence)));
    }
  }
}

// One slow answer among others that come says nothing about the connection.
void CurlLoop::NoteSilentPeer(const Transfer& transfer) {
  const bool answered = transfer.last_byte > transfer.started;
  const bool silent = !answered || clock_.SteadyNow() - transfer.last_byte >= kSilentAfter;
  if (silent && last_byte_ <= transfer.last_byte) ++generation_;
}

void CurlLoop::ReadMessages() {
  int left = 0;
  while (CURLMsg* const message = curl_multi_info_read(multi_.get(), &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    char* owner = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &owner);
    const auto* const transfer = reinterpret_cast<const Transfer*>(owner);
    const CURLcode result = message->data.result;  // the message goes with the handle
    Finish(transfer->id, TransportStatus(*transfer, result));
  }
}

absl::Status CurlLoop::TransportStatus(const Transfer& transfer, int curl_code) const {
  if (curl_code == CURLE_OK) return absl::OkStatus();
  if (!transfer.refused.ok()) return transfer.refused;
  const auto code = static_cast<CURLcode>(curl_code);
  // An error answer that broke off is that error still: kube-apiserver closes the connection after
  // a 401, at times before its body has come.
  long http_code = 0;
  curl_easy_getinfo(transfer.easy.get(), CURLINFO_RESPONSE_CODE, &http_code);
  if (http_code >= 400 && code != CURLE_OPERATION_TIMEDOUT) return absl::OkStatus();
  const absl::string_view text =
      *transfer.error != '\0' ? absl::string_view(transfer.error) : curl_easy_strerror(code);
  const std::string message = absl::StrCat(options_.config.server, ": ", text);
  if (code == CURLE_OPERATION_TIMEDOUT && transfer.request.deadline.Expired(clock_)) {
    return absl::DeadlineExceededError(message);
  }
  return absl::UnavailableError(message);
}

void CurlLoop::Finish(uint64_t id, absl::Status transport) {
  const auto found = transfers_.find(id);
  if (found == transfers_.end()) return;
  const std::unique_ptr<Transfer> transfer = std::move(found->second);
  transfers_.erase(found);
  if (CURL* const easy = transfer->easy.get()) {
    long code = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &code);
    transfer->answer.code = static_cast<int>(code);
    transfer->answer.retry_after = Header(easy, "Retry-After");
    transfer->answer.location = Header(easy, "Location");
    curl_multi_remove_handle(multi_.get(), easy);
  }
  transfer->answer.transport = std::move(transport);
  transfer->on_done(std::move(transfer->answer));
}

void CurlLoop::WaitForWork() {
  const absl::Duration until_expiry = next_expiry_ - clock_.SteadyNow();
  const absl::Duration wait = std::clamp(until_expiry, absl::ZeroDuration(), kLongestPoll);
  // Rounded up: waking a moment too soon would spin.
  const int milliseconds =
      static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(wait, absl::Milliseconds(1))));
  curl_multi_poll(multi_.get(), nullptr, 0, milliseconds, nullptr);
}

}  // namespace outrigger::controller::kube
