// lib/verify/parity.h - parity bundles: a package, inputs and reference outputs in one folder, to
// be checked on another machine with one command.
//
//   DIR/parity.json            what is below, with the XXH3-128 of every file and the budget
//   DIR/NAME.mlpackage         the package
//   DIR/inputs/INPUT.npy, DIR/reference/OUTPUT.npy
//   DIR/result.json            what a run of it computed: written by that run
//   DIR/outputs/OUTPUT.npy
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "lib/verify/compare.h"

namespace mlc {

struct ParityFile {
  std::string name;  // of the input or output in the source
  std::string file;  // relative to the folder
  std::string hash;  // XXH3-128 of its bytes, hex
};

struct Parity {
  std::string checksum;               // of parity.json
  std::string package, package_hash;  // relative to the folder; the manifest's content hash
  std::string reference;              // what computed the reference outputs
  Budget budget;
  std::vector<ParityFile> inputs, outputs;
};

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// Makes the folder, or replaces one that has a parity.json, in one step. The package is copied; the
// lists of `parity` are filled in. Error "file-io", "file-exists".
void WriteParity(const std::filesystem::path& folder, const std::filesystem::path& package,
                 Parity parity, const NamedTensors& inputs, const NamedTensors& references);
// Error "file-io" for what is missing; "check-failed" names the first file that is not what was
// written. Whoever runs the package compares its hash.
Parity ReadParity(const std::filesystem::path& folder);

inline constexpr std::string_view kParityResult = "result.json";
struct ParityResult {
  struct Output {
    std::string name;
    Comparison comparison;
    bool within = false;
  };
  std::string bundle, package_hash;     // the checksum of its parity.json
  std::string units, machine, version;  // what computed, on what, by which mlc
  double milliseconds = 0;
  std::vector<Output> outputs;
  bool compared_again = false;  // by the reader; else the figures are those of the run
  // Within the budget wherever the reference tells anything.
  bool ok() const;
};

// Compares the outputs, in the order of the parity's, and writes result.json and outputs/ into the
// folder.
ParityResult WriteResult(const std::filesystem::path& folder, const Parity& parity,
                         ParityResult result, const NamedTensors& outputs);
// What a result file says. Outputs that lie beside it are compared again with the references of
// `bundle`, by default the file's own folder where that is one. Errors as above, and "check-failed"
// for the result of another bundle.
ParityResult ReadResult(const std::filesystem::path& file, const std::filesystem::path& bundle);

}  // namespace mlc
