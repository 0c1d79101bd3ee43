// lib/coreml/schema.h - finds what a file says beyond the schema in proto/.
#pragma once

namespace google::protobuf {
class Message;
}

namespace mlc {

// Throws Error "unsupported-field" that names the path of the first unknown field, e.g.
// "Model.description.input[0].type.imageType: field 21", or of an enumeration's unknown number;
// "bad-file" for text that is not UTF-8.
void CheckSchema(const google::protobuf::Message& message);

}  // namespace mlc
