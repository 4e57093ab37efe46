// SPDX-License-Identifier: Apache-2.0
#include "host/kit/serve.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_replace.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <future>
#include <thread>

#include "host/base/status.h"
#include "host/kit/dispatcher.h"
#include "host/kit/plugin_server.h"

namespace outrigger::host::kit {
namespace {

constexpr absl::Duration kGrace = absl::Seconds(5);

struct Flags {
  PluginServerOptions server;
  LogOptions log;
  uint32_t max_concurrent_calls = 64;
  bool print_reference = false;
};

std::string EnvironmentName(const std::string& flag) {
  return absl::StrCat("OUTRIGGER_", absl::AsciiStrToUpper(absl::StrReplaceAll(flag, {{"-", "_"}})));
}

template <typename T>
void AddFlag(CLI::App& app, const std::string& name, T& value, const std::string& help) {
  app.add_option("--" + name, value, help)->envname(EnvironmentName(name))->capture_default_str();
}

void AddFlags(CLI::App& app, Flags& flags) {
  AddFlag(app, "listen-socket", flags.server.socket_path, "Unix socket to serve on (0660)");
  AddFlag(app, "listen", flags.server.listen_address,
          "host:port to serve on; only loopback without mutual TLS; port 0: any free one");
  AddFlag(app, "tls-cert-file", flags.server.tls.certificate,
          "server certificate (PEM) of --listen");
  AddFlag(app, "tls-key-file", flags.server.tls.key, "its key (PEM)");
  AddFlag(app, "tls-client-ca-file", flags.server.tls.client_ca,
          "CA (PEM) whose certificate a client must show");
  AddFlag(app, "max-concurrent-calls", flags.max_concurrent_calls,
          "calls at once; above, RESOURCE_EXHAUSTED");
  AddFlag(app, "log-level", flags.log.level, "debug, info, warning or error");
  AddFlag(app, "log-format", flags.log.format, "json or text");
  app.add_flag("--print-reference", flags.print_reference,
               "print the parameters of every trigger type as Markdown and exit");
  app.set_version_flag("--version", OUTRIGGER_VERSION);
}

// A signal handler may touch nothing but this: an eventfd that wakes main().
int stop_event = -1;

void OnStopSignal(int) {
  const int saved = errno;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(stop_event, &one, sizeof(one));
  errno = saved;
}

// Not a blocked signal mask: the clock's thread exists already and would take the signal.
void CatchStopSignals() {
  stop_event = eventfd(0, EFD_CLOEXEC);
  struct sigaction action = {};
  action.sa_handler = OnStopSignal;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
}

void WaitForStopSignal() {
  uint64_t count = 0;
  while (read(stop_event, &count, sizeof(count)) < 0 && errno == EINTR) {
  }
}

// The one thread that all I/O of scalers runs on.
class IoThread {
 public:
  explicit IoThread(Clock& clock)
      : clock_(clock),
        work_(boost::asio::make_work_guard(context_)),
        thread_([this] { context_.run(); }) {}
  // The scalers are gone and have cancelled their timers; one that runs just now may still post
  // here, so it is waited for: the clock runs timers one after another.
  ~IoThread() {
    Stop();
    std::promise<void> passed;
    clock_.AddTimer(clock_.SteadyNow(), [&passed] { passed.set_value(); });
    passed.get_future().wait();
  }

  Executor executor() { return context_.get_executor(); }
  void Stop() {
    context_.stop();
    if (thread_.joinable()) thread_.join();
  }

 private:
  Clock& clock_;
  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::thread thread_;
};

absl::Status Serve(PluginOptions& options, Flags& flags, Clock& clock) {
  ASSIGN_OR_RETURN(std::shared_ptr<LogSink> sink, MakeStderrSink(flags.log));
  const Logger logger = Logger(std::move(sink)).With({{"plugin", options.name}});
  if (flags.max_concurrent_calls < 1) {
    return absl::InvalidArgumentError("--max-concurrent-calls: want a number > 0, got 0");
  }
  if (flags.server.socket_path.empty() && flags.server.listen_address.empty()) {
    return absl::InvalidArgumentError("want --listen-socket PATH, --listen HOST:PORT or both");
  }
  // Destroyed in reverse: the scalers (in the dispatcher) go before the context that their frames
  // live in, after its thread has ended.
  IoThread io(clock);
  DispatcherOptions dispatcher_options;
  dispatcher_options.name = options.name;
  dispatcher_options.version = OUTRIGGER_VERSION;
  dispatcher_options.max_message_bytes = flags.server.max_message_bytes;
  dispatcher_options.max_concurrent_calls = flags.max_concurrent_calls;
  dispatcher_options.check_answers = options.check_answers;
  dispatcher_options.cached_triggers = options.cached_triggers;
  Dispatcher dispatcher(std::move(dispatcher_options), clock, logger,
                        options.make_scalers({clock, io.executor(), logger}));
  flags.server.extra_services = options.extra_services;
  CatchStopSignals();
  ASSIGN_OR_RETURN(const std::unique_ptr<PluginServer> server,
                   PluginServer::Start(flags.server, dispatcher, clock));
  for (const std::string& address : server->addresses()) {
    logger.Info("serving", {{"address", address},
                            {"triggerTypes", absl::StrJoin(dispatcher.TriggerTypes(), ",")},
                            {"version", OUTRIGGER_VERSION}});
  }
  WaitForStopSignal();
  logger.Info("draining");
  server->Drain(kGrace);
  io.Stop();
  logger.Info("stopped");
  return absl::OkStatus();
}

void PrintReferences(PluginOptions& options, Clock& clock) {
  IoThread io(clock);
  const PluginContext context{clock, io.executor(), Logger(MakeNullSink())};
  for (const auto& scaler : options.make_scalers(context)) {
    std::printf("%s\n", PrintReference(scaler->schema()).c_str());
  }
}

}  // namespace

int ServePlugin(PluginOptions options, int argc, char** argv, Clock& clock) {
  CLI::App app(options.description, options.name);
  Flags flags;
  AddFlags(app, flags);
  if (options.add_flags) options.add_flags(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  if (flags.print_reference) {
    PrintReferences(options, clock);
    return 0;
  }
  const absl::Status served = Serve(options, flags, clock);
  if (served.ok()) return 0;
  std::fprintf(stderr, "%s: %s\n", options.name.c_str(), std::string(served.message()).c_str());
  return 1;
}

}  // namespace outrigger::host::kit
