// lib/coreml/unknown_fields.h - finds what a file says in fields that the schema in proto/ does not
// have.
#pragma once

namespace google::protobuf {
class Message;
}

namespace mlc {

// Throws Error "unsupported-field" that names the path of the first unknown field, e.g.
// "Model.description.input[0].type.imageType: field 21", or an enumeration's unknown number.
void CheckKnownFields(const google::protobuf::Message& message);

}  // namespace mlc
