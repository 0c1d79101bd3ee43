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

#include "lib/ir/program.h"
#include "lib/support/error.h"

namespace mlc {

struct OnnxOptions {
  std::map<std::string, Dims> shapes;  // --shape INPUT=1,3,224,224
  std::map<std::string, Symbol> dims;  // --dim SYMBOL=4 | 1..8 | 1,2,4 (low == high: fixed)
  std::map<std::string, Tensor>
      constants;  // --const INPUT=FILE; what the type that the input declares holds exactly
  std::vector<std::string>
      outputs;  // --outputs A,B: any values of the graph; empty: the model's own
  struct Replacement {
    std::string op, attribute, value;  // --replace Resize.antialias=0; a list is written 1,2,3
  };
  std::vector<Replacement> replacements;
  // --image INPUT=rgb,SCALE,BIAS: the input is an image; the model gets pixel * scale + bias.
  struct Image {
    Port::Feature feature = Port::Feature::kImageRgb;
    std::vector<float> scale = {1}, bias = {0};  // one, or one per channel
  };
  std::map<std::string, Image> images;
  // --io: the type of float inputs and outputs; kNone: as in the source. Images have their own.
  DType io = DType::kNone;
  // --target: what it lacks is not made where something older does the same. Absent: anything.
  std::optional<Opset> target;
  // --data-root: where external data is looked up that is not beside the model, and where links of
  // it may lead. Empty: none.
  std::filesystem::path data_root;
};

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
Program ImportOnnx(const std::filesystem::path& path, const OnnxOptions& options,
                   Diagnostics& diagnostics, OnnxFacts* facts = nullptr);
// From memory; external data is refused.
Program ImportOnnx(std::span<const std::byte> bytes, const OnnxOptions& options,
                   Diagnostics& diagnostics);

// External data is found as above, and not read.
OnnxFacts ReadOnnxFacts(const std::filesystem::path& path,
                        const std::filesystem::path& data_root = {});
// A TensorProto in a file of its own, as ONNX's test data has them (input_0.pb).
Tensor ReadOnnxTensor(const std::filesystem::path& path);
// By content: protobuf fields as a ModelProto has them, with a graph. Never throws for damaged
// files.
bool LooksLikeOnnx(std::span<const std::byte> bytes);

// A row of the table of operators that are lowered.
struct OnnxOperator {
  std::string_view domain, name;
  int since, until;            // opset versions of the domain, inclusive; until 0: still valid
  std::string_view kind;       // "direct", "decomposed", "folded", "conditional" or "impossible"
  std::string_view condition;  // what a conditional one takes, why one is impossible
};
std::vector<OnnxOperator> OnnxOperators();  // sorted by domain, name, since

}  // namespace mlc
