// frontends/onnx/onnx.h - .onnx files to Programs.
//
// Float inputs and outputs keep their type (double and bfloat16 become fp32); integers and bool
// become int32 at the border and rank 0 becomes [1]. Port::source_name, source_dtype and
// source_shape hold what the model declared. Inside, run-time integers of every width are int32
// values; constants keep their exact type.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/ir/import_options.h"
#include "lib/ir/program.h"
#include "lib/support/error.h"

namespace mlc {

class ByteWindow;

// Facts of the file for manifest and reports.
struct OnnxFacts {
  int64_t ir_version = 0;
  std::string producer;                      // "pytorch 2.1"
  std::map<std::string, int64_t> opsets;     // by domain; ai.onnx is ""
  std::map<std::string, int64_t> operators;  // nodes by operator, "domain::Name" outside ai.onnx;
                                             // subgraphs and functions included
  struct File {
    std::string name;  // as the model names it
    std::filesystem::path path;
  };
  std::vector<File> data;  // files of external data that were found, by name
};

// Every bad node is reported, every bad file of external data once: throws Errors at the end when
// there is at least one, else Error at the first fatal problem. External data lies in the model's
// folder; links may lead out of it into the folder in which the model itself is, if that is a link
// too, and into `data_root`. A `checksum` of it is checked. `facts`, if any, are filled in.
Program ImportOnnx(const std::filesystem::path& path, const ImportOptions& options,
                   Diagnostics& diagnostics, OnnxFacts* facts = nullptr);
// From memory; external data is refused.
Program ImportOnnx(std::span<const std::byte> bytes, const ImportOptions& options,
                   Diagnostics& diagnostics);

// External data is found as above, and not read.
OnnxFacts ReadOnnxFacts(const std::filesystem::path& path,
                        const std::filesystem::path& data_root = {});
// A TensorProto in a file of its own, as ONNX's test data has them (input_0.pb).
Tensor ReadOnnxTensor(const std::filesystem::path& path);
// By content: protobuf fields as a ModelProto has them, with a graph. Never throws for damaged
// files.
bool LooksLikeOnnx(ByteWindow& bytes);

// A row of the table of operators that are lowered.
struct OnnxOperator {
  std::string_view domain, name;
  int since, until;            // opset versions of the domain, inclusive; until 0: still valid
  std::string_view kind;       // "direct", "decomposed", "folded", "conditional" or "impossible"
  std::string_view condition;  // what a conditional one takes, why one is impossible
};
std::vector<OnnxOperator> OnnxOperators();  // sorted by domain, name, since

}  // namespace mlc
