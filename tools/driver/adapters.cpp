#include "tools/driver/adapters.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "lib/support/edit_distance.h"
#include "tools/driver/lora.h"
#include "tools/driver/weights.h"

namespace fs = std::filesystem;

namespace mlc::driver {

namespace {

using networks::LowRank;

// Whether a pair can stay beside its weight.
bool StaysApart(Program& program, const LowRank& pair) {
  return !pair.magnitude && !pair.outputs_are_columns && TakesLora(program, pair.weight);
}

// The pair in the shape of the weight.
Tensor DownOf(const LowRank& pair, Program& program) {
  Dims dims = FindWeight(program, pair.weight).operation->val.dims();
  dims[0] = pair.down.dims()[0];
  return pair.down.Reshaped(std::move(dims));
}

class AdapterImporter {
 public:
  AdapterImporter(const Frontend& frontend, const fs::path& path, const ImportOptions& options,
                  Diagnostics& diagnostics, SourceFacts* facts)
      : frontend_(frontend),
        path_(path),
        options_(options),
        diagnostics_(diagnostics),
        facts_(facts) {}

  Program AsInputs() {
    if (options_.loras.size() != 1)
      throw Error("usage", "--lora-inputs: {} adapters are given", options_.loras.size())
          .Expected("one --lora, whose ranks the inputs have");
    const ImportOptions::Lora& lora = options_.loras[0];
    const networks::Adapter adapter = frontend_.adapter(path_, lora, diagnostics_);
    AddFiles(adapter);
    Program program = Import({});
    std::vector<std::string> merged;
    for (const auto& [name, tensor] : adapter.whole) merged.push_back(name);
    for (const LowRank& pair : adapter.pairs)
      if (!StaysApart(program, pair)) merged.push_back(pair.weight);
    if (!merged.empty())
      throw Error("usage", "--lora-inputs: {} of the adapter's changes cannot be inputs: {}",
                  merged.size(), Quoted(merged))
          .Expected(
              "pairs for linear layers and convolutions, without magnitudes (DoRA) and whole "
              "tensors (modules_to_save, bias)")
          .Help("without --lora-inputs the adapter is merged; --functions keeps several adapters");
    for (const LowRank& pair : adapter.pairs) {
      const std::string name = FindWeight(program, pair.weight).name;
      AddLoraInputs(program, name, pair.down.dims()[0], pair.scale, diagnostics_);
    }
    for (const auto& function : program.functions)
      for (Port& port : function->inputs)
        if (port.name.ends_with("_lora_down") || port.name.ends_with("_lora_up")) {
          port.optional = true;
          port.default_value = 0;
        }
    diagnostics_.Decide("adapter", networks::NameOf(lora),
                        fmt::format("{} pairs are inputs", adapter.pairs.size()));
    return program;
  }

  Program AsFunctions() {
    Program program = Import({});
    for (const ImportOptions::Lora& lora : options_.loras) {
      const std::string name = LegalName(networks::NameOf(lora));
      for (const auto& function : program.functions)
        if (function->name == name)
          throw Error("usage", "--functions: there are two functions \"{}\"", name)
              .Help("rename the folder or file of one adapter: its function has the same name");
      AddFunction(program, lora, name);
    }
    return program;
  }

 private:
  // Imports the model with one adapter, or without any.
  Program Import(std::vector<ImportOptions::Lora> loras) {
    ImportOptions options = options_;
    options.loras = std::move(loras);
    Program program = frontend_.import(path_, options, diagnostics_, facts_);
    program.interface.states_sources = true;
    return program;
  }

  void AddFunction(Program& program, const ImportOptions::Lora& lora, const std::string& name) {
    const networks::Adapter adapter = frontend_.adapter(path_, lora, diagnostics_);
    ImportOptions::Lora beside = lora;
    for (const LowRank& pair : adapter.pairs)
      if (!adapter.whole.contains(pair.weight) && StaysApart(program, pair))
        beside.apart.insert(pair.weight);
    Program changed = Import({beside});
    if (changed.functions.size() != 1)
      throw Error("usage", "--functions: the model has {} functions already",
                  changed.functions.size())
          .Help("without --functions the adapters are merged");
    for (const LowRank& pair : adapter.pairs)
      if (beside.apart.contains(pair.weight))
        AddLora(changed, pair.weight, DownOf(pair, changed), pair.up, pair.scale, diagnostics_);
    diagnostics_.Decide(
        "adapter", networks::NameOf(lora),
        fmt::format("{} pairs are constants beside shared weights", beside.apart.size()));
    std::unique_ptr<Function> function = std::move(changed.functions[0]);
    function->name = name;
    function->program = &program;
    program.functions.push_back(std::move(function));
  }

  void AddFiles(const networks::Adapter& adapter) {
    if (!facts_) return;
    for (const fs::path& file : adapter.files) facts_->Add(path_, file);
  }

  const Frontend& frontend_;
  const fs::path& path_;
  const ImportOptions& options_;
  Diagnostics& diagnostics_;
  SourceFacts* facts_;
};

}  // namespace

Program ImportWithAdapters(const Frontend& frontend, const fs::path& path,
                           const ImportOptions& options, Diagnostics& diagnostics,
                           SourceFacts* facts) {
  if (options.loras.empty() && (options.lora_inputs || options.lora_functions))
    throw Error("usage", "{} requires an adapter",
                options.lora_inputs ? "--lora-inputs" : "--functions")
        .Expected("--lora DIR");
  if (options.lora_inputs && options.lora_functions)
    throw Error("usage", "--lora-inputs and --functions exclude each other");
  AdapterImporter importer(frontend, path, options, diagnostics, facts);
  if (options.lora_inputs) return importer.AsInputs();
  if (options.lora_functions) return importer.AsFunctions();
  return frontend.import(path, options, diagnostics, facts);
}

}  // namespace mlc::driver
