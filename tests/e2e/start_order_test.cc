// SPDX-License-Identifier: Apache-2.0
// Operator, plugin, ScaledObject, Deployment and Redis come in every order, and each of them comes
// once: whatever was missing, the rest heals by itself.
#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/cluster/deployed.h"
#include "tests/e2e/hpa_watch.h"
#include "tests/e2e/scene.h"
#include "tests/support/free_port.h"
#include "tests/support/redis_server.h"
#include "tests/support/wait_for.h"

namespace outrigger::tests {
namespace {

constexpr absl::string_view kParts = "DOPRS";  // Deployment, operator, plugin, Redis, ScaledObject
constexpr size_t kOwnParts = 3;                // of an order: all but operator and plugin
constexpr char kReady[] =
    "{range .items[*]}{.metadata.namespace} "
    "{.status.conditions[?(@.type==\"Ready\")].status}\n{end}";
constexpr char kActive[] =
    "{range .items[*]}{.metadata.namespace} "
    "{.status.conditions[?(@.type==\"Active\")].status}\n{end}";
constexpr char kReplicas[] = "{range .items[*]}{.metadata.namespace} {.spec.replicas}\n{end}";

// One order, in a namespace and with a Redis of its own.
struct Order {
  explicit Order(absl::string_view parts)
      : name(absl::StrCat("order-", absl::AsciiStrToLower(parts))), redis_port(FreePort()) {
    const std::vector<std::string> split = absl::StrSplit(parts, absl::ByAnyChar("OP"));
    std::copy(split.begin(), split.end(), stretches.begin());
  }

  std::string name;                      // and namespace
  std::array<std::string, 3> stretches;  // what comes before, between and after operator and plugin
  const uint16_t redis_port;             // known before anybody listens there
  std::unique_ptr<RedisServer> redis;
  size_t own_parts = 0;  // that have come
};

// One operator serves one folder of plugins, so these two come once for all orders that have them
// in the same sequence: half of the 120, side by side.
class StartOrderTest : public testing::TestWithParam<const char*> {
 protected:
  StartOrderTest()
      : scene_(DeployedControlPlane(), absl::StrCat("orders-", absl::AsciiStrToLower(GetParam()))) {
    std::string parts(kParts);
    do {
      if (parts.find(GetParam()[0]) < parts.find(GetParam()[1])) orders_.emplace_back(parts);
    } while (std::next_permutation(parts.begin(), parts.end()));
  }

  void SetUp() override {
    std::vector<std::string> documents;
    for (const Order& order : orders_) {
      documents.push_back(
          absl::StrCat("{apiVersion: v1, kind: Namespace, metadata: {name: ", order.name, "}}"));
    }
    scene_.Apply(absl::StrJoin(documents, "\n---\n"));
  }

  // While there is an operator that takes their finalizers off.
  void TearDown() override {
    (void)scene_.plane().Kubectl({"delete", "so", "--all", "-A", "--wait=false"});
    WaitUntilAll("no ScaledObject is left", "so", kReady,
                 [](const std::string&, const std::string&) { return false; });
  }

  // Operator or plugin.
  void Start(char part) {
    if (part == 'O') scene_.StartOperator();
    if (part == 'P') scene_.StartPlugin();
    ++shared_parts_;
    WaitUntilOnlyTheCompleteAreReady();
  }

  // One stretch of every order: the first parts of all of them, then the second, then the third.
  void StartStretch(size_t stretch) {
    for (size_t i = 0; i < kOwnParts; ++i) {
      std::vector<std::string> documents;
      for (Order& order : orders_) {
        if (i < order.stretches[stretch].size()) {
          StartOwn(order, order.stretches[stretch][i], documents);
        }
      }
      if (!documents.empty()) scene_.Apply(absl::StrJoin(documents, "\n---\n"));
      WaitUntilOnlyTheCompleteAreReady();
    }
  }

  // Leaves to the caller what is a document.
  void StartOwn(Order& order, char part, std::vector<std::string>& documents) {
    ++order.own_parts;
    if (part == 'D') documents.push_back(DeploymentYaml(order.name, "worker", 0));
    if (part == 'S') {
      documents.push_back(ScaledObjectYaml(order.name, "worker", "orders",
                                           absl::StrCat("127.0.0.1:", order.redis_port)));
    }
    if (part != 'R') return;
    absl::StatusOr<std::unique_ptr<RedisServer>> redis =
        RedisServer::Start({.port = order.redis_port});
    ASSERT_TRUE(redis.ok()) << redis.status();
    order.redis = *std::move(redis);
  }

  // So the part that comes next comes to something that was found wrong, and must heal it.
  void WaitUntilOnlyTheCompleteAreReady() {
    if (scene_.operator_ == nullptr || HasFatalFailure()) return;
    std::set<std::string> complete;
    for (const Order& order : orders_) {
      if (shared_parts_ == 2 && order.own_parts == kOwnParts) complete.insert(order.name);
    }
    WaitUntilAll("Ready=True where nothing is missing, else Ready=False", "so", kReady,
                 [&](const std::string& name, const std::string& ready) {
                   return ready == (complete.contains(name) ? "True" : "False");
                 });
  }

  // Of all objects of that kind; `what` prints the namespace and a word of each.
  void WaitUntilAll(const std::string& wanted, const std::string& kind, const std::string& what,
                    const std::function<bool(const std::string&, const std::string&)>& holds) {
    std::vector<std::string> wrong;
    const absl::Status reached = WaitFor(
        [&] {
          const absl::StatusOr<std::string> said =
              scene_.plane().MustKubectl({"get", kind, "-A", "-o", "jsonpath=" + what});
          if (!said.ok()) {
            wrong = {said.status().ToString()};
            return false;
          }
          wrong = absl::StrSplit(*said, '\n', absl::SkipEmpty());
          std::erase_if(wrong, [&](const std::string& line) {
            const std::pair<std::string, std::string> parts =
                absl::StrSplit(line, absl::MaxSplits(' ', 1));
            return !parts.first.starts_with("order-") || holds(parts.first, parts.second);
          });
          return wrong.empty();
        },
        absl::Seconds(60), wanted,
        [&] { return absl::StrCat(absl::StrJoin(wrong, "\n"), "\n", OperatorTail()); });
    ASSERT_TRUE(reached.ok()) << reached;
  }
  std::string OperatorTail() {
    return scene_.operator_ == nullptr ? "" : scene_.operator_->process().OutputTail();
  }

  std::vector<Order> orders_;
  Scene scene_;  // of operator and plugin
  int shared_parts_ = 0;
};

// Shows R4. Case B033. Case B156.
TEST_P(StartOrderTest, ReachesTheSameEndAndNoHpaWithoutMetricsEverExists) {
  ASSERT_EQ(orders_.size(), 60U);
  const HpaWatch watch(scene_.plane(), {"-A"}, "{.metadata.namespace} {.spec.metrics[*].type}");
  StartStretch(0);
  Start(GetParam()[0]);
  StartStretch(1);
  Start(GetParam()[1]);
  StartStretch(2);
  ASSERT_FALSE(HasFatalFailure());

  std::set<std::string> all;
  for (Order& order : orders_) {
    all.insert(order.name);
    const absl::Status pushed =
        order.redis->Command({"RPUSH", "orders", "1", "2", "3", "4", "5", "6", "7", "8"}).status();
    ASSERT_TRUE(pushed.ok()) << pushed;
  }
  WaitUntilAll("2 replicas", "deployments", kReplicas,
               [](const std::string&, const std::string& replicas) { return replicas == "2"; });
  WaitUntilAll("Active=True", "so", kActive,
               [](const std::string&, const std::string& active) { return active == "True"; });
  WaitUntilOnlyTheCompleteAreReady();

  std::set<std::string> with_hpa;
  for (const std::string& seen : watch.Seen()) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(seen, ' ');
    if (!all.contains(parts.first)) continue;
    EXPECT_EQ(parts.second, "External") << "of an HPA in " << parts.first;
    with_hpa.insert(parts.first);
  }
  EXPECT_EQ(with_hpa, all) << "the watch did not see the HPA of each order";
}

INSTANTIATE_TEST_SUITE_P(Operator, StartOrderTest, testing::Values("OP", "PO"),
                         [](const testing::TestParamInfo<const char*>& info) {
                           return std::string(info.param[0] == 'O' ? "BeforePlugin"
                                                                   : "AfterPlugin");
                         });

}  // namespace
}  // namespace outrigger::tests
