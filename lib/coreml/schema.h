// lib/coreml/schema.h - detects content of a file that the schema in proto/ does not cover.
#pragma once

namespace google::protobuf {
class Message;
}

namespace mlc::coreml {

// Throws Error "unsupported-field" with the path of the first unknown field, e.g.
// "Model.description.input[0].type.imageType: field 21", or unknown enumerator. Error "bad-file"
// for strings that are not UTF-8.
void CheckSchema(const google::protobuf::Message& message);

}  // namespace mlc::coreml
