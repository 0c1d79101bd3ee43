// lib/verify/parity_bundle.h - parity bundles: a package, inputs and reference outputs in one
// folder, which another machine can check with one command.
//
//   DIR/parity.json            the fields below, the XXH3-128 of each file, the budgets and the floors
//   DIR/NAME.mlpackage         the package
//   DIR/inputs/INPUT.npy, DIR/reference/OUTPUT.npy, DIR/reference/states/STATE.npy
//   DIR/result.json            the result of running the bundle, on this or another machine
//   DIR/outputs/OUTPUT.npy, DIR/outputs/states/STATE.npy
//
// With several functions, each has a folder of its own (DIR/inputs/FUNCTION/INPUT.npy); with
// several steps, each step has a numbered folder (DIR/inputs/FUNCTION/0/INPUT.npy). Both JSON files
// have a format version; only version 3 is supported.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/verify/compare_functions.h"

namespace mlc::verify {

struct ParityFile {
  std::string function;
  int64_t step = 0;
  bool state = false;
  std::string name;                 // name of the input, output or state in the source
  std::string file;                 // path relative to the bundle
  std::string hash;                 // XXH3-128 of the contents, in hex
  std::optional<Floor> floor = {};  // for outputs and states; complements the budget of that name
};

struct Parity {
  std::string checksum;               // checksum of parity.json
  std::string package, package_hash;  // path relative to the bundle; content hash from the manifest
  std::string reference;              // the program that computed the reference outputs
  Budgets budgets;
  // Ordered by function and step; outputs and states together.
  std::vector<ParityFile> inputs, outputs;
};

// The inputs and the expected results of one function of the package, step by step. Unknown
// references are empty Tensors.
struct ParityFunction {
  std::string name;
  std::vector<NamedTensors> inputs;
  std::vector<StepResults> references;
  Budgets budgets;  // provides the floors of outputs and states; the limits come from Parity
};

// Creates the folder, or replaces a folder that has a parity.json, atomically. Copies the package
// and fills in the lists of `parity`. Error "file-io", "file-exists".
void WriteParity(const std::filesystem::path& folder, const std::filesystem::path& package,
                 Parity parity, const std::vector<ParityFunction>& functions);
// Error "file-io" for a missing file; "check-failed" names the first modified file; "bad-file" for
// another format version. The caller compares the hash of the package.
Parity ReadParity(const std::filesystem::path& folder);

inline constexpr std::string_view kParityResult = "result.json";
struct ParityResult {
  std::string bundle, package_hash;     // `bundle` is the checksum of its parity.json
  std::string units, machine, version;  // compute units, machine, and version of mlc
  double milliseconds = 0;
  std::vector<Compared> outputs;
  // True if the reader compared the outputs again; otherwise the figures are those of the run.
  bool compared_again = false;
};

// Compares the outputs, which are in the order of Parity::outputs, and writes `file` and a folder
// of outputs beside it: result.json with outputs/ in the bundle, NAME.json with NAME.outputs/
// elsewhere. An empty Tensor means that the package lacks the output.
ParityResult WriteResult(const std::filesystem::path& folder, const std::filesystem::path& file,
                         const Parity& parity, ParityResult result,
                         const std::vector<Tensor>& outputs);
// Reads a result file. If its outputs are available, they are compared again with the references of
// `bundle`; the default is the folder of the file, if that is a bundle. Throws the errors above,
// and "check-failed" if the result belongs to another bundle.
ParityResult ReadResult(const std::filesystem::path& file, const std::filesystem::path& bundle);

}  // namespace mlc::verify
