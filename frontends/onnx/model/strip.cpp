// Walks the protobuf wire format of an ONNX file without reading its tensor data. See
// https://protobuf.dev/programming-guides/encoding/; the field numbers are those of onnx.proto.
#include <fmt/format.h>

#include "frontends/onnx/model/model.h"
#include "frontends/onnx/onnx.h"
#include "lib/support/byte_window.h"
#include "lib/support/regular_file.h"

namespace mlc::onnx {

namespace {

enum Message : int8_t {
  kModel,
  kGraph,
  kNode,
  kAttribute,
  kTensor,
  kSparse,
  kFunction,
  kLift,
  kDrop,
  kCopy
};

// What to do with a length-delimited field: descend into the message, replace the bytes by their
// position (lift), drop the field, or copy it.
struct Rule {
  Message in;
  uint32_t field;
  Message action;
};
constexpr Rule kRules[] = {
    {kModel, 6, kDrop},           // doc_string
    {kModel, 7, kGraph},          // graph
    {kModel, 20, kDrop},          // training_info
    {kModel, 25, kFunction},      // functions
    {kGraph, 1, kNode},           // node
    {kGraph, 5, kTensor},         // initializer
    {kGraph, 10, kDrop},          // doc_string
    {kGraph, 13, kDrop},          // value_info
    {kGraph, 14, kDrop},          // quantization_annotation
    {kGraph, 15, kSparse},        // sparse_initializer
    {kNode, 5, kAttribute},       // attribute
    {kNode, 6, kDrop},            // doc_string
    {kNode, 9, kDrop},            // metadata_props
    {kAttribute, 5, kTensor},     // t
    {kAttribute, 6, kGraph},      // g
    {kAttribute, 10, kTensor},    // tensors
    {kAttribute, 11, kGraph},     // graphs
    {kAttribute, 13, kDrop},      // doc_string
    {kAttribute, 22, kSparse},    // sparse_tensor
    {kAttribute, 23, kSparse},    // sparse_tensors
    {kTensor, 9, kLift},          // raw_data
    {kTensor, 12, kDrop},         // doc_string
    {kSparse, 1, kTensor},        // values
    {kSparse, 2, kTensor},        // indices
    {kFunction, 7, kNode},        // node
    {kFunction, 8, kDrop},        // doc_string
    {kFunction, 11, kAttribute},  // attribute_proto
    {kFunction, 12, kDrop},       // value_info
};

Message ActionFor(Message in, uint32_t field) {
  for (const Rule& rule : kRules)
    if (rule.in == in && rule.field == field) return rule.action;
  return kCopy;
}

// The protobuf parser accepts 100 nested messages.
constexpr int kMaxDepth = 90;

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

struct Field {
  uint32_t number = 0;
  uint32_t type = 0;
  uint64_t begin = 0;  // offset of the tag
  uint64_t payload = 0,
           end = 0;  // range of a length-delimited field's bytes; `end` is valid for all fields
};

// Walks the fields of bytes[position, end).
class Fields {
 public:
  Fields(ByteWindow& bytes, uint64_t begin, uint64_t end)
      : bytes_(bytes), position_(begin), end_(end) {}

  bool Next(Field& field) {
    if (position_ == end_) return false;
    field.begin = position_;
    uint64_t tag = Varint();
    field.type = tag & 7;
    if (tag >> 3 == 0 || tag >> 3 >= 1u << 29) Bad("invalid protobuf field number");
    field.number = static_cast<uint32_t>(tag >> 3);
    uint64_t size = 0;
    switch (field.type) {
      case kVarint:
        Varint();
        break;
      case kFixed64:
        size = 8;
        break;
      case kFixed32:
        size = 4;
        break;
      case kLengthDelimited:
        size = Varint();
        break;
      default:
        Bad("invalid protobuf wire type");
    }
    field.payload = position_;
    if (size > end_ - position_)
      Bad("a field extends past the end of its message: the file is truncated or damaged");
    position_ += size;
    field.end = position_;
    return true;
  }

 private:
  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (position_ == end_) Bad("a number is incomplete: the file is truncated or damaged");
      uint64_t byte = std::to_integer<uint64_t>(bytes_[position_++]);
      if (shift < 64) value |= (byte & 127) << shift;
      if (byte < 128) return value;
    }
    Bad("a number has more than ten bytes");
  }
  [[noreturn]] void Bad(std::string_view text) const {
    throw Error("bad-file", "not a valid ONNX file: {}", text)
        .At({"", fmt::format("offset {}", position_)});
  }
  ByteWindow& bytes_;
  uint64_t position_, end_;
};

void AppendVarint(std::string& out, uint64_t value) {
  for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
  out += static_cast<char>(value);
}

void AppendField(std::string& out, uint32_t number, std::string_view bytes) {
  AppendVarint(out, uint64_t{number} << 3 | kLengthDelimited);
  AppendVarint(out, bytes.size());
  out += bytes;
}

std::string Strip(ByteWindow& bytes, uint64_t begin, uint64_t end, Message message, int depth) {
  if (depth > kMaxDepth)
    throw Error("resource-limit", "messages are nested more than {} levels deep", kMaxDepth)
        .At({"", fmt::format("offset {}", begin)});
  std::string out;
  Fields fields(bytes, begin, end);
  for (Field field; fields.Next(field);) {
    Message action = field.type == kLengthDelimited ? ActionFor(message, field.number) : kCopy;
    if (action == kDrop) continue;
    if (action == kCopy) {
      constexpr uint64_t kPart = 1 << 20;
      for (uint64_t at = field.begin; at < field.end; at += kPart)
        out += AsText(bytes.At(at, std::min(kPart, field.end - at)));
    } else if (action == kLift) {
      uint64_t slice[2] = {field.payload, field.end - field.payload};
      AppendField(out, field.number, {reinterpret_cast<const char*>(slice), sizeof slice});
    } else {
      AppendField(out, field.number, Strip(bytes, field.payload, field.end, action, depth + 1));
    }
  }
  return out;
}

}  // namespace

std::string StripRawData(ByteWindow& bytes, bool is_tensor) {
  return Strip(bytes, 0, bytes.size(), is_tensor ? kTensor : kModel, 0);
}

std::vector<std::string_view> FieldBytes(std::string_view message, uint32_t number) {
  std::vector<std::string_view> found;
  ByteWindow bytes(std::as_bytes(std::span(message)));
  Fields fields(bytes, 0, bytes.size());
  for (Field field; fields.Next(field);)
    if (field.number == number && field.type == kLengthDelimited)
      found.push_back(message.substr(field.payload, field.end - field.payload));
  return found;
}

bool LooksLikeOnnx(ByteWindow& bytes) {
  // The known fields of ModelProto and their wire types; newer fields have higher numbers.
  bool graph = false;
  Field field;
  try {
    Fields fields(bytes, 0, bytes.size());
    for (int i = 0; i < 1000 && fields.Next(field); ++i) {
      bool number = field.number == 1 || field.number == 5;
      if (field.number > 100 || field.type != (number ? kVarint : kLengthDelimited)) return false;
      graph = graph || field.number == 7;
    }
    return graph;
  } catch (const Error&) {
    // A truncated model still counts as ONNX; the reader reports the truncation.
    return graph || field.number == 7;
  }
}

}  // namespace mlc::onnx
