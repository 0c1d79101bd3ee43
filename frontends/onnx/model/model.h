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
#include <vector>

#include "lib/ir/tensor.h"
#include "lib/support/error.h"

namespace mlc {
class ByteWindow;
}  // namespace mlc

namespace mlc::onnx {}

namespace mlc::onnx {

// Maps a TensorProto::DataType to mlc's element type; kNone if there is none (complex, fp8 FNUZ,
// fp4, 2-bit types ...).
DType ToDType(int data_type);
// The ONNX name of a type, such as "float8e5m2fnuz", for messages about unsupported types.
std::string DataTypeName(int data_type);

// A tensor of the file. An error in it is thrown on first use. Tensors in the same unusable
// external data file share one Error.
struct Constant {
  std::string name;
  Tensor tensor;
  std::shared_ptr<const Error> error;
  const Tensor& Get() const;  // throws `error` if set
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
  std::string
      reference;  // inside a function: the name of the call's attribute that replaces this one
  Kind kind = Kind::kNone;
  // The values for `kind`; a single value is a vector of one element.
  std::vector<double> floats;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
  std::vector<Constant> tensors;
  std::vector<std::shared_ptr<const Graph>> graphs;
};

struct NodeDef {
  std::string name, op, domain;              // "ai.onnx" is stored as ""
  std::vector<std::string> inputs, outputs;  // "" for an omitted optional input or output
  std::vector<Attribute> attributes;
  std::string overload = {};  // selects among functions of the same name
};

struct Dimension {
  std::optional<int64_t> value;
  std::string symbol;  // "" when unnamed
};

struct ValueInfo {
  std::string name;
  std::string_view kind = "a tensor";  // or "a sequence", "a map", "an optional" ...
  int data_type = 0;                   // element type of a tensor; 0: not declared
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
  std::map<std::string, std::filesystem::path>
      data;  // external data files by the names used in the model
};

// Throws "bad-file", "resource-limit" or "unsupported-field". `data_root` has the same meaning as
// in ImportOptions. Without `check_data`, external data is mapped but its checksums are not
// verified.
Model ReadModel(const std::filesystem::path& path, const std::filesystem::path& data_root = {},
                bool check_data = true);
Model ReadModel(std::span<const std::byte> bytes);  // copies the data it needs

// Returns the path of an external data file with symbolic links resolved. A location names a file
// in the model's folder. Because a malicious model could come with a link to a private file, the
// target must be in the model's folder, in `data_root`, or in the folder of the model's own link
// target. Error "external-data".
std::filesystem::path FindExternalData(const std::filesystem::path& model,
                                       const std::filesystem::path& data_root,
                                       const std::string& location);

// Returns a ModelProto (or TensorProto) in which each raw_data field is replaced by 16 bytes: the
// offset and the size (little-endian uint64) of the data in `bytes`. Training information,
// value_info and documentation are omitted. Only the fields around the data are read, so the data
// itself stays on disk. Throws "bad-file" with an offset, or "resource-limit" for deep nesting.
std::string StripRawData(ByteWindow& bytes, bool is_tensor = false);
// Returns the contents of every occurrence of a length-delimited field in a message.
std::vector<std::string_view> FieldBytes(std::string_view message, uint32_t number);

}  // namespace mlc::onnx
