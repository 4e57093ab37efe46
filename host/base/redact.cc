// SPDX-License-Identifier: Apache-2.0
#include "host/base/redact.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/text_format.h>

#include <memory>
#include <vector>

#include "outrigger/scaler/v1/scaler.pb.h"

namespace outrigger::host {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

void RedactMessage(Message& message);

void RedactSecretField(Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  if (field.is_map()) {
    // Keys stay (they are parameter names), values go.
    const FieldDescriptor* value = field.message_type()->map_value();
    for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
      Message* entry = reflection.MutableRepeatedMessage(&message, &field, i);
      if (value->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
        entry->GetReflection()->SetString(entry, value, "<redacted>");
      } else {
        entry->GetReflection()->ClearField(entry, value);
      }
    }
  } else if (!field.is_repeated() && field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    reflection.SetString(&message, &field, "<redacted>");
  } else {
    reflection.ClearField(&message, &field);
  }
}

void RedactMessage(Message& message) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->options().GetExtension(scaler::v1::secret)) {
      RedactSecretField(message, *field);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && field->is_repeated()) {
      for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
        RedactMessage(*reflection.MutableRepeatedMessage(&message, field, i));
      }
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      RedactMessage(*reflection.MutableMessage(&message, field));
    }
  }
}

}  // namespace

std::string PrintRedacted(const Message& message) {
  std::unique_ptr<Message> copy(message.New());
  copy->CopyFrom(message);
  // A field that a newer peer added may be a secret, and only its descriptor would say so.
  copy->DiscardUnknownFields();
  RedactMessage(*copy);
  std::string text;
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  printer.PrintToString(*copy, &text);
  return text;
}

}  // namespace outrigger::host
