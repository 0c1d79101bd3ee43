#include "lib/coreml/schema.h"

#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>

#include <string>
#include <vector>

#include "lib/support/error.h"
#include "lib/support/utf8.h"

namespace mlc::coreml {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// The path is a chain of parents on the stack; names are composed only for an error.
struct Step {
  const Step* parent;
  const FieldDescriptor* field;
  int index;
  std::string Path() const {
    std::string path = parent ? parent->Path() : std::string();
    if (!field) return path;
    path = fmt::format("{}.{}", path, field->name());
    return field->is_repeated() ? fmt::format("{}[{}]", path, index) : path;
  }
};

[[noreturn]] void Fail(const Message& root, const Step& step, const std::string& what) {
  throw Error("unsupported-field", "{}{}: {}", root.GetDescriptor()->name(), step.Path(), what)
      .Help("the file is newer than this version of mlc, or of an unsupported kind");
}

// Every bytes field except RepeatedBytes.values is text.
void CheckText(const Message& root, const Step& step, const Message& message,
               const FieldDescriptor* field) {
  if (field->containing_type()->name() == "RepeatedBytes") return;
  const google::protobuf::Reflection* reflection = message.GetReflection();
  int count = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
  for (int i = 0; i < count; ++i) {
    std::string scratch;
    const std::string& text =
        field->is_repeated() ? reflection->GetRepeatedStringReference(message, field, i, &scratch)
                             : reflection->GetStringReference(message, field, &scratch);
    if (FirstBadUtf8(text) != std::string_view::npos)  // composes the name only for an error
      RequireUtf8(text, "bad-file", fmt::format("{}{}", root.GetDescriptor()->name(), step.Path()));
  }
}

void CheckEnum(const Message& root, const Step& step, const Message& message,
               const FieldDescriptor* field) {
  if (field->is_repeated()) return;
  int number = message.GetReflection()->GetEnumValue(message, field);
  if (!field->enum_type()->FindValueByNumber(number))
    Fail(root, step, fmt::format("unknown {} {}", field->enum_type()->name(), number));
}

void Check(const Message& root, const Message& message, const Step& step) {
  const google::protobuf::Reflection* reflection = message.GetReflection();
  const google::protobuf::UnknownFieldSet& unknown = reflection->GetUnknownFields(message);
  if (!unknown.empty()) Fail(root, step, fmt::format("field {}", unknown.field(0).number()));
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM)
      CheckEnum(root, {&step, field, 0}, message, field);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING)
      CheckText(root, {&step, field, 0}, message, field);
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      Check(root, reflection->GetMessage(message, field), {&step, field, 0});
      continue;
    }
    int size = reflection->FieldSize(message, field);
    for (int i = 0; i < size; ++i)
      Check(root, reflection->GetRepeatedMessage(message, field, i), {&step, field, i});
  }
}

}  // namespace

void CheckSchema(const Message& message) { Check(message, message, {nullptr, nullptr, 0}); }

}  // namespace mlc::coreml
