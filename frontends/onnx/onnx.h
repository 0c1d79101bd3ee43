// frontends/onnx/onnx.h - imports .onnx files as Programs.
//
// Float inputs and outputs keep their type, except that double and bfloat16 become fp32. Integer
// and bool ones become int32, and scalars become vectors of one element. Port::source_name,
// source_dtype and source_shape record the model's declarations. Inside the program, run-time
// integers of every width are int32 values; constants keep their exact type.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "lib/ir/import_options.h"
#include "lib/ir/program.h"
#include "lib/support/error.h"

namespace mlc {
class ByteWindow;
}  // namespace mlc

namespace mlc::onnx {

// Facts about the file for the manifest and reports.
struct OnnxFacts {
  int64_t ir_version = 0;
  std::string producer;                   // "pytorch 2.1"
  std::map<std::string, int64_t> opsets;  // version by domain; "" is ai.onnx
  std::vector<std::string> inputs;
  std::map<std::string, int64_t>
      operators;  // node counts by operator ("domain::Name" outside ai.onnx),
                  // including subgraphs and functions
  struct File {
    std::string name;  // the name used in the model
    std::filesystem::path path;
  };
  std::vector<File> data;  // external data files that were found, by name
};

// Imports a model. All bad nodes, and each bad external data file once, are collected and thrown
// together as Errors; other fatal problems are thrown immediately as Error. External data must lie
// in the model's folder. A symbolic link there may also lead into `data_root` or, if the model is
// itself a link, into the folder of its target. Checksums of external data are verified. `facts` is
// filled in unless null.
Program ImportOnnx(const std::filesystem::path& path, const ImportOptions& options,
                   Diagnostics& diagnostics, OnnxFacts* facts = nullptr);
// Imports a model from memory; external data is refused.
Program ImportOnnx(std::span<const std::byte> bytes, const ImportOptions& options,
                   Diagnostics& diagnostics);

// Finds external data like ImportOnnx, but does not read it.
OnnxFacts ReadOnnxFacts(const std::filesystem::path& path,
                        const std::filesystem::path& data_root = {});
// Reads a file that contains a single TensorProto, such as input_0.pb in ONNX's test data.
Tensor ReadOnnxTensor(const std::filesystem::path& path);
// Returns whether the content has the protobuf fields of a ModelProto with a graph. Never throws
// for damaged files.
bool LooksLikeOnnx(ByteWindow& bytes);

// A row of the table of supported operators.
struct OnnxOperator {
  std::string_view domain, name;
  int since, until;       // opset versions, inclusive; `until` is 0 for the current version
  std::string_view kind;  // "direct", "decomposed", "folded", "conditional" or "impossible"
  std::string_view
      condition;  // the condition of a conditional operator, or why an operator is impossible
};
std::vector<OnnxOperator> OnnxOperators();  // sorted by domain, name, since

}  // namespace mlc::onnx
