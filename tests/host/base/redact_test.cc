// SPDX-License-Identifier: Apache-2.0
#include "host/base/redact.h"

#include <gmock/gmock.h>
#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

#include <string>

#include "outrigger/scaler/v1/scaler.pb.h"

namespace outrigger::host {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kCanary[] = "canary-7f3a";

scaler::v1::Trigger TriggerWithSecrets() {
  scaler::v1::Trigger trigger;
  trigger.set_type("redis");
  (*trigger.mutable_metadata())["listName"] = "orders";
  (*trigger.mutable_environment())["password"] = kCanary;
  (*trigger.mutable_authentication())["username"] = kCanary;
  return trigger;
}

TEST(PrintRedactedTest, ATriggerShowsWhichSecretsItHasButNotWhatTheyAre) {
  const scaler::v1::Trigger trigger = TriggerWithSecrets();
  const std::string text = PrintRedacted(trigger);
  EXPECT_THAT(text,
              AllOf(HasSubstr("\"redis\""), HasSubstr("\"orders\""), HasSubstr("\"password\""),
                    HasSubstr("\"username\""), HasSubstr("<redacted>")));
  EXPECT_THAT(text, Not(HasSubstr(kCanary)));
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_EQ(trigger.environment().at("password"), kCanary) << "the message itself was changed";
}

TEST(PrintRedactedTest, SecretsOfNestedMessagesGoToo) {
  scaler::v1::BatchGetMetricsRequest batch;
  *batch.add_entries()->mutable_request()->mutable_trigger() = TriggerWithSecrets();
  (*batch.add_credentials()->mutable_authentication())["password"] = kCanary;
  scaler::v1::WatchMetricsRequest watch;
  *watch.mutable_add()->mutable_trigger() = TriggerWithSecrets();
  for (const std::string& text : {PrintRedacted(batch), PrintRedacted(watch)}) {
    EXPECT_THAT(text, AllOf(HasSubstr("<redacted>"), Not(HasSubstr(kCanary))));
  }
}

TEST(PrintRedactedTest, AFieldThatThisBuildDoesNotKnowIsNotPrinted) {
  scaler::v1::Trigger trigger = TriggerWithSecrets();
  trigger.GetReflection()->MutableUnknownFields(&trigger)->AddLengthDelimited(900, kCanary);
  EXPECT_THAT(PrintRedacted(trigger), Not(HasSubstr(kCanary)));
}

}  // namespace
}  // namespace outrigger::host
