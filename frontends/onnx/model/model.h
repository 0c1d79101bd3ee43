// frontends/onnx/model/model.h - an ONNX model as plain structs; its tensors are views of the file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/ir/tensor.h"
#include "lib/support/error.h"

namespace mlc {
class ByteWindow;
}

namespace mlc::onnx {

// TensorProto::DataType as mlc's element type; kNone where it has none (complex, fp8 FNUZ, fp4, 2
// bits ...).
DType ToDType(int data_type);
// "float8e5m2fnuz", for messages about types that mlc cannot hold.
std::string DataTypeName(int data_type);

// A tensor of the file. What is wrong with it is said when someone uses it; tensors of one file of
// external data that cannot be used share one Error.
struct Constant {
  std::string name;
  Tensor tensor;
  std::shared_ptr<const Error> error;
  const Tensor& Get() const;  // throws `error` when there is one
};

struct Graph;

struct Attribute {
  // AttributeProto::AttributeType
  enum class Kind {
    kNone,
    kFloat,
    kInt,
    kString,
    kTensor,
    kGraph,
    kFloats,
    kInts,
    kStrings,
    kTensors,
    kGraphs,
    kSparse,
    kSparses,
    kType,
    kTypes
  };
  std::string name;
  std::string reference;  // inside a function: the attribute of the call that stands here
  Kind kind = Kind::kNone;
  // Those of `kind`; a single one is a vector of one.
  std::vector<double> floats;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
  std::vector<Constant> tensors;
  std::vector<std::shared_ptr<const Graph>> graphs;
};

struct NodeDef {
  std::string name, op, domain;              // domain "ai.onnx" is ""
  std::vector<std::string> inputs, outputs;  // "" where an optional one is left out
  std::vector<Attribute> attributes;
  std::string overload = {};  // which of the functions of one name
};

struct Dimension {
  std::optional<int64_t> value;
  std::string symbol;  // "" when unnamed
};

struct ValueInfo {
  std::string name;
  std::string_view kind = "a tensor";  // or "a sequence", "a map", "an optional", ...
  int data_type = 0;                   // of a tensor; 0: not declared
  std::optional<std::vector<Dimension>> shape;
};

struct Graph {
  std::string name;
  std::vector<NodeDef> nodes;
  std::vector<Constant> initializers;
  std::vector<ValueInfo> inputs, outputs;
};

using Opsets = std::map<std::string, int64_t>;

// A model-local function.
struct FunctionDef {
  std::string name, domain, overload;
  std::vector<std::string> inputs, outputs, attributes;
  std::vector<Attribute> defaults;
  std::vector<NodeDef> nodes;
  Opsets opsets;
};

struct Model {
  int64_t ir_version = 0;
  std::string producer;
  Opsets opsets;
  Graph graph;
  std::vector<FunctionDef> functions;
  std::map<std::string, std::filesystem::path> data;  // external, by its name in the model
};

// Throws Error "bad-file", "resource-limit" or "unsupported-field". `data_root` as in ImportOptions;
// without `check_data` external data is mapped, and not read for its checksum.
Model ReadModel(const std::filesystem::path& path, const std::filesystem::path& data_root = {},
                bool check_data = true);
Model ReadModel(std::span<const std::byte> bytes);  // copies what it needs

// A ModelProto (or TensorProto) without raw tensor data: each raw_data field is replaced by 16
// bytes, the offset and the size (little-endian uint64) of the data in `bytes`. Training
// information, value_info and documentation are left out. Reads only the fields around the data, so
// that a file stays on disk. Throws Error "bad-file" with an offset, or "resource-limit" for
// deep nesting.
std::string StripRawData(ByteWindow& bytes, bool is_tensor = false);
// The contents of every occurrence of a length-delimited field in a message.
std::vector<std::string_view> FieldBytes(std::string_view message, uint32_t number);

}  // namespace mlc::onnx
