// test/frontends/onnx/wire.h - writes ONNX files field by field, including malformed ones that no
// library would write.
//
//   std::string model = Model({Node("Relu", {"x"}, {"y"})}, {Info("x", 1, {"n", 3})}, {Info("y")});
//
// Field numbers are those of onnx.proto.
#pragma once

#include <bit>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ir/tensor.h"

namespace mlc::test {

inline std::string Varint(uint64_t value) {
  std::string out;
  for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
  return out + static_cast<char>(value);
}
inline std::string Number(int field, int64_t value) {
  return Varint(static_cast<uint64_t>(field) << 3) + Varint(static_cast<uint64_t>(value));
}
inline std::string Bytes(int field, std::string_view bytes) {
  return Varint(static_cast<uint64_t>(field) << 3 | 2) + Varint(bytes.size()) + std::string(bytes);
}
template <class T>
std::string Raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// A TensorProto with raw data. `type` is a TensorProto::DataType: 1 float, 6 int32, 7 int64, 9 bool
// ...
inline std::string Proto(const std::string& name, int type, const Dims& dims,
                         std::string_view raw) {
  std::string out;
  for (int64_t dim : dims) out += Number(1, dim);
  return out + Number(2, type) + Bytes(8, name) + Bytes(9, raw);
}
template <class T>
std::string Proto(const std::string& name, const Dims& dims, const std::vector<T>& values) {
  int type = std::is_same_v<T, float> ? 1 : std::is_same_v<T, int32_t> ? 6 : 7;
  return Proto(name, type, dims, Raw(values));
}

// AttributeProto messages.
inline std::string Int(const std::string& name, int64_t value) {
  return Bytes(1, name) + Number(3, value) + Number(20, 2);
}
inline std::string Float(const std::string& name, float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  return Bytes(1, name) + Varint(2 << 3 | 5) + std::string(reinterpret_cast<char*>(&bits), 4) +
         Number(20, 1);
}
inline std::string Text(const std::string& name, const std::string& value) {
  return Bytes(1, name) + Bytes(4, value) + Number(20, 3);
}
inline std::string IntList(const std::string& name, const std::vector<int64_t>& values) {
  std::string out = Bytes(1, name);
  for (int64_t value : values) out += Number(8, value);
  return out + Number(20, 7);
}
inline std::string TensorAttribute(const std::string& name, const std::string& proto) {
  return Bytes(1, name) + Bytes(5, proto) + Number(20, 4);
}
inline std::string GraphAttribute(const std::string& name, const std::string& graph) {
  return Bytes(1, name) + Bytes(6, graph) + Number(20, 5);
}
inline std::string Reference(const std::string& name, const std::string& of, int kind) {
  return Bytes(1, name) + Bytes(21, of) + Number(20, kind);
}

// A NodeProto message.
inline std::string Node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs,
                        const std::vector<std::string>& attributes = {},
                        const std::string& domain = "", const std::string& name = "") {
  std::string out;
  for (const std::string& input : inputs) out += Bytes(1, input);
  for (const std::string& output : outputs) out += Bytes(2, output);
  if (!name.empty()) out += Bytes(3, name);
  out += Bytes(4, op);
  for (const std::string& attribute : attributes) out += Bytes(5, attribute);
  if (!domain.empty()) out += Bytes(7, domain);
  return out;
}

// A dimension of a ValueInfoProto: a number, a symbol, or unknown ("").
struct Dimension {
  std::string proto;
  Dimension(int value) : proto(Number(1, value)) {}                    // NOLINT
  Dimension(const char* name) : proto(*name ? Bytes(2, name) : "") {}  // NOLINT
};
inline std::string Info(const std::string& name, int type, const std::vector<Dimension>& dims) {
  std::string shape;
  for (const Dimension& dim : dims) shape += Bytes(1, dim.proto);
  return Bytes(1, name) + Bytes(2, Bytes(1, Number(1, type) + Bytes(2, shape)));
}
inline std::string Info(const std::string& name) { return Bytes(1, name); }

inline std::string Graph(const std::vector<std::string>& nodes,
                         const std::vector<std::string>& inputs,
                         const std::vector<std::string>& outputs,
                         const std::vector<std::string>& initializers = {}) {
  std::string out;
  for (const std::string& node : nodes) out += Bytes(1, node);
  for (const std::string& tensor : initializers) out += Bytes(5, tensor);
  for (const std::string& input : inputs) out += Bytes(11, input);
  for (const std::string& output : outputs) out += Bytes(12, output);
  return out;
}
inline std::string Opset(int version, const std::string& domain = "") {
  return Bytes(8, (domain.empty() ? "" : Bytes(1, domain)) + Number(2, version));
}
inline std::string ModelOf(const std::string& graph, int opset = 17, const std::string& more = "") {
  return Number(1, 8) + Bytes(7, graph) + Opset(opset) + more;
}
inline std::string Model(const std::vector<std::string>& nodes,
                         const std::vector<std::string>& inputs,
                         const std::vector<std::string>& outputs,
                         const std::vector<std::string>& initializers = {}, int opset = 17,
                         const std::string& more = "") {
  return ModelOf(Graph(nodes, inputs, outputs, initializers), opset, more);
}

inline std::span<const std::byte> AsBytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

}  // namespace mlc::test
