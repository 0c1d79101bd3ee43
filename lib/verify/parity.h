// lib/verify/parity.h - parity bundles: a package, inputs and reference outputs in one folder, to
// be checked on another machine with one command.
//
//   DIR/parity.json            what is below, with the XXH3-128 of every file, the budgets and the floors
//   DIR/NAME.mlpackage         the package
//   DIR/inputs/INPUT.npy, DIR/reference/OUTPUT.npy, DIR/reference/states/STATE.npy
//   DIR/result.json            what a run of it computed: written by that run, here or elsewhere
//   DIR/outputs/OUTPUT.npy, DIR/outputs/states/STATE.npy
//
// Where there are several functions, each has its folder (DIR/inputs/FUNCTION/INPUT.npy), and where
// a function does several steps, each step has its number (DIR/inputs/FUNCTION/0/INPUT.npy). Both
// files have a format version; only version 3 is read.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/verify/functions.h"

namespace mlc {

struct ParityFile {
  std::string function;
  int64_t step = 0;
  bool state = false;
  std::string name;                 // of the input, output or state in the source
  std::string file;                 // relative to the folder
  std::string hash;                 // XXH3-128 of its bytes, hex
  std::optional<Floor> floor = {};  // of an output or state; goes with the budget of its name
};

struct Parity {
  std::string checksum;               // of parity.json
  std::string package, package_hash;  // relative to the folder; the manifest's content hash
  std::string reference;              // what computed the reference outputs
  Budgets budgets;
  // By function and step, in order; outputs and states together.
  std::vector<ParityFile> inputs, outputs;
};

// What a function of the package is given and shall compute, step by step. References that are not
// known are empty Tensors.
struct ParityFunction {
  std::string name;
  std::vector<NamedTensors> inputs;
  std::vector<StepResults> references;
  Budgets budgets;  // floors of outputs and states are taken from here, limits from the Parity
};

// Makes the folder, or replaces one that has a parity.json, in one step. The package is copied; the
// lists of `parity` are filled in. Error "file-io", "file-exists".
void WriteParity(const std::filesystem::path& folder, const std::filesystem::path& package,
                 Parity parity, const std::vector<ParityFunction>& functions);
// Error "file-io" for what is missing; "check-failed" names the first file that is not what was
// written; "bad-file" for another format version. Whoever runs the package compares its hash.
Parity ReadParity(const std::filesystem::path& folder);

inline constexpr std::string_view kParityResult = "result.json";
struct ParityResult {
  std::string bundle, package_hash;     // the checksum of its parity.json
  std::string units, machine, version;  // what computed, on what, by which mlc
  double milliseconds = 0;
  std::vector<Compared> outputs;
  bool compared_again = false;  // by the reader; else the figures are those of the run
};

// Compares the outputs, in the order of the parity's, and writes `file` with a folder of them
// beside it: result.json with outputs/ in the bundle, NAME.json with NAME.outputs/ elsewhere. An
// empty Tensor: the package does not have it.
ParityResult WriteResult(const std::filesystem::path& folder, const std::filesystem::path& file,
                         const Parity& parity, ParityResult result,
                         const std::vector<Tensor>& outputs);
// What a result file says. Outputs that lie beside it are compared again with the references of
// `bundle`, by default the file's own folder where that is one. Errors as above, and "check-failed"
// for the result of another bundle.
ParityResult ReadResult(const std::filesystem::path& file, const std::filesystem::path& bundle);

}  // namespace mlc
