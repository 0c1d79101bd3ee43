#include "tools/driver/verify.h"

#include <algorithm>
#include <limits>
#include <ranges>
#include <set>

#include "backends/coreml/manifest.h"
#include "lib/coreml/package_layout.h"
#include "lib/engine/engine.h"
#include "lib/ir/input_conversion.h"
#include "lib/ir/port_index.h"
#include "lib/support/edit_distance.h"
#include "lib/verify/fp16_floor.h"
#include "lib/verify/parity_bundle.h"
#include "lib/verify/quantisation_ties.h"
#include "tools/driver/frontends.h"
#include "tools/driver/image_inputs.h"
#include "tools/driver/options.h"
#include "tools/driver/run_tokens.h"
#include "tools/driver/supplied_tensors.h"
#include "tools/driver/tokenizer.h"

namespace fs = std::filesystem;

namespace mlc::driver {
namespace {

// A pair of functions that are compared, with their inputs and results.
struct Check {
  const Function *source, *package;
  std::vector<verify::StepInputs> source_steps, package_steps;
  std::vector<verify::NamedTensors> shared;  // inputs of the package, by name in the source
  std::vector<verify::StepResults> references, values;
  std::map<std::string, analysis::InputRange> made;  // ranges of generated inputs, over all steps
  std::vector<EncodedText> texts;
  verify::FollowedChoices followed;
  verify::Budgets budgets;
};

// Returns the tensors of `given` that are inputs of the function, by the function's names. The keys
// of `given` may be these names or those of the source model.
std::map<std::string, Tensor> TakenBy(const Function& function,
                                      const std::map<std::string, Tensor>& given) {
  std::map<std::string, Tensor> taken;
  for (const Port& port : function.inputs)
    for (const std::string* name : {&port.source_name, &port.name})
      if (auto it = given.find(*name); it != given.end()) taken.emplace(port.name, it->second);
  return taken;
}

// Renames inputs to the names of the source.
std::map<std::string, Tensor> BySourceName(const Function& function,
                                           const std::map<std::string, Tensor>& inputs) {
  std::map<std::string, Tensor> named;
  for (const Port& port : function.inputs) named[verify::UserName(port)] = inputs.at(port.name);
  return named;
}

// Renames the shapes of inputs from names of `from` to names of `to`.
std::map<std::string, Dims> Renamed(const std::map<std::string, Dims>& shapes, const Function& from,
                                    const Function& to) {
  std::map<std::string, Dims> renamed;
  const PortIndex ports(to.inputs, verify::UserName);
  for (const Port& port : from.inputs)
    if (auto it = shapes.find(port.name); it != shapes.end())
      if (const Port* own = ports.Find(verify::UserName(port))) renamed[own->name] = it->second;
  return renamed;
}

// Returns whether the function accepts inputs of these shapes, by its own names.
bool Takes(const Function& function, const std::map<std::string, Dims>& shapes) {
  std::map<std::string, int64_t> sizes;
  auto takes = [&](const Dim& declared, int64_t size) {
    auto open = declared.symbol_and_offset();
    if (!open) return !declared.is_constant() || declared.constant() == size;
    const Symbol& symbol = function.symbols.at(open->first);
    const int64_t value = sizes.emplace(open->first, size - open->second).first->second;
    return value == size - open->second && symbol.low <= value && value <= symbol.high &&
           (symbol.enumerated.empty() || std::ranges::count(symbol.enumerated, value));
  };
  for (const auto& input : function.body.inputs)
    if (auto it = shapes.find(input->name); it != shapes.end())
      if (!std::ranges::equal(input->type.shape, it->second, takes)) return false;
  for (const Port& port : function.inputs)
    if (auto it = shapes.find(port.name); it != shapes.end() && !port.enumerated_shapes.empty())
      if (!std::ranges::count(port.enumerated_shapes, it->second)) return false;
  return true;
}

// Returns the shapes of generated inputs by the source's names: those at which the compiler would
// measure the source, if the package, which may have fixed sizes, accepts them; otherwise the
// package's.
std::map<std::string, Dims> ShapesOf(const Function& source, const Function& package,
                                     const std::map<std::string, Tensor>& given,
                                     const analysis::GeneratedInputOptions& make_up) {
  try {
    std::map<std::string, Dims> measured =
        analysis::GeneratedShapes(source, TakenBy(source, given), make_up);
    if (Takes(package, Renamed(measured, source, package))) return measured;
  } catch (const Error&) {
    // The package may fix a size that is open in the source.
  }
  return Renamed(analysis::GeneratedShapes(package, TakenBy(package, given), make_up), package,
                 source);
}

// Adds the inputs of one step, identical for both functions. `given` is by names of the source.
void AddStep(const std::map<std::string, Tensor>& given, analysis::GeneratedInputOptions make_up,
             Check& check) {
  const Function &source = *check.source, &package = *check.package;
  make_up.shapes = ShapesOf(source, package, given, make_up);
  std::map<std::string, analysis::InputRange> made;
  verify::StepInputs source_inputs = MakeInputs(source, given, make_up, &made);
  for (auto& [name, range] : made) {
    auto [it, first] = check.made.emplace(name, range);
    it->second.low = std::min(it->second.low, range.low);
    it->second.high = std::max(it->second.high, range.high);
  }
  std::map<std::string, Tensor> shared = given;
  for (const auto& [port, value] : InputPorts(source))
    shared[verify::UserName(port)] = source_inputs.at(value.name);
  const PortIndex by_user(package.inputs, verify::UserName);
  for (const Port& port : source.inputs)
    if (const Port* own = by_user.Find(verify::UserName(port)))
      if (own->feature != port.feature)
        throw Error("usage",
                    "input \"{}\" is a different kind of image or array in "
                    "the package than in the source",
                    verify::UserName(port))
            .Help("pass the --image {}=... option of the compilation", verify::UserName(port));
  const PortIndex by_name(package.inputs);
  std::erase_if(shared, [&](const auto& entry) {
    return !by_user.Find(entry.first) && !by_name.Find(entry.first);
  });
  // Packages of other converters do not declare source types; those of the source apply.
  for (const auto& [own, value] : InputPorts(package)) {
    auto it = shared.find(verify::UserName(own));
    if (it != shared.end() && own.source_dtype == DType::kNone &&
        own.feature == Port::Feature::kMultiArray)
      it->second = ConvertInput(it->second, it->second.dtype(), value.type.dtype,
                                {"bad-input", fmt::format("input \"{}\"", verify::UserName(own))});
  }
  check.package_steps.push_back(MakeInputs(package, shared, make_up));
  check.source_steps.push_back(std::move(source_inputs));
  check.shared.push_back(verify::NamedTensors(shared.begin(), shared.end()));
}

// Returns the results in the types and under the names that `source` declares: outputs and states
// in the order of its ports, with an empty Tensor for those that the package lacks.
verify::StepResults BySource(const verify::StepResults& step, const Function& function,
                             const Function& source) {
  verify::StepResults named;
  auto take = [&](const verify::NamedTensors& tensors, const std::vector<Port>& own,
                  const std::vector<Port>& ports, verify::NamedTensors& out) {
    const PortIndex by_user(own, verify::UserName), by_name(own);
    for (const Port& port : ports) {
      const Port* one = by_user.Find(verify::UserName(port));
      if (!one) one = by_name.Find(port.name);
      out.emplace_back(verify::UserName(port),
                       one ? ToSourceType(tensors[one - own.data()].second, *one) : Tensor());
    }
  };
  take(step.outputs, function.outputs, source.outputs, named.outputs);
  take(step.states, function.states, source.states, named.states);
  return named;
}

std::vector<verify::StepResults> Run(const Function& function,
                                     const std::vector<verify::StepInputs>& steps,
                                     const engine::EngineOptions& options, const Function& source,
                                     const std::function<void()>& done = {}) {
  std::vector<verify::StepResults> results;
  for (const verify::StepResults& step : verify::RunSteps(function, steps, options, done))
    results.push_back(BySource(step, function, source));
  return results;
}

// Packages of other converters do not declare source types; their inputs take those of the source.
void TakeSourceTypes(const Program& source, Program& package) {
  for (const auto& function : package.functions) {
    const Function* from = source.functions.size() == 1 ? source.functions[0].get() : nullptr;
    for (const auto& other : source.functions)
      if (other->name == function->name) from = other.get();
    if (!from) continue;
    const PortIndex by_user(from->inputs, verify::UserName);
    for (Port& own : function->inputs)
      if (const Port* port = by_user.Find(verify::UserName(own));
          port && own.source_dtype == DType::kNone)
        own.source_dtype = port->source_dtype;
  }
}

// Returns the inputs of the source for each text of the file.
std::vector<std::map<std::string, Tensor>> TextSamples(const VerifyOptions& options,
                                                       const fs::path& source, Check& check) {
  RequireEncoder(*check.source, "--text");
  const TextEncoder encoder(*check.package, source, options.tokenizer, "--text");
  const int64_t most = EncoderSizes(*check.source).tokens;
  std::vector<std::map<std::string, Tensor>> samples;
  for (const TextLine& line : ReadTextLines(options.text)) {
    const EncodedText& text = check.texts.emplace_back(
        encoder.Encode(line.text, line.pair ? &*line.pair : nullptr, most));
    CheckTokens(*check.source, text.tokens.ids, false);
    samples.push_back(BySourceName(*check.package, EncoderInputs(*check.package, text.tokens)));
  }
  return samples;
}

// Returns the pairs to compare, with their inputs.
std::vector<Check> Checks(const Program& source, const Program& package, const fs::path& model,
                          const VerifyOptions& options) {
  std::vector<Check> checks;
  if (options.function) {
    const std::string& name = *options.function;
    checks.push_back({&FindFunction(source, name, source.functions.size() == 1),
                      &FindFunction(package, name, package.functions.size() == 1)});
    if (checks[0].source->name != name && checks[0].package->name != name)
      FindFunction(package, name, false);
  } else {
    for (const verify::FunctionPair& pair : verify::MatchFunctions(source, package)) {
      if (!pair.a || !pair.b)
        throw Error("check-failed", "the {} has no function {}", pair.a ? "package" : "source",
                    (pair.a ? pair.a : pair.b)->name)
            .Help("--function NAME compares a single function");
      checks.push_back({pair.a, pair.b});
    }
  }
  CheckRanges(options.make_up, source);
  analysis::GeneratedInputOptions make_up = options.make_up;
  const fs::path &inputs = options.inputs, &references = options.reference;
  bool several = source.functions.size() > 1, any = inputs.empty();
  for (Check& check : checks) {
    std::vector<std::map<std::string, Tensor>> given;
    if (!inputs.empty()) given = ReadSamples(*check.source, inputs, several, options.fit);
    any = any || std::ranges::any_of(given, [](const auto& step) { return !step.empty(); });
    if (!references.empty())
      check.references = ReadReferences(*check.source, *check.package,
                                        FunctionFolder(references, *check.source, several));
    if (!options.tokens.empty() && IsEncoder(*check.source) && IsEncoder(*check.package)) {
      if (!given.empty()) throw Error("usage", "--tokens cannot be combined with --inputs");
      CheckTokens(*check.source, options.tokens, false);
      CheckTokens(*check.package, options.tokens, false);
      given = {BySourceName(*check.package, EncoderInputs(*check.package, {options.tokens}))};
    }
    if (!options.text.empty() && IsEncoder(*check.package))
      given = TextSamples(options, model, check);
    size_t steps = 1;
    if (verify::HasStates(*check.source) || verify::HasStates(*check.package))
      steps = verify::kStatefulSteps;
    else if (given.empty() || given[0].size() < check.source->inputs.size())
      steps = static_cast<size_t>(analysis::DefaultSamples(*check.source));
    if (!check.references.empty()) steps = check.references.size();
    if (given.size() > 1) steps = given.size();
    if (options.samples) {
      if (*options.samples < 1) throw Error("usage", "--samples must be at least 1");
      steps = static_cast<size_t>(*options.samples);
    }
    if (given.size() > 1 && steps > given.size())
      throw Error("usage", "--inputs has {} samples of function {}, but {} are required",
                  given.size(), check.source->name, steps);
    if (check.references.size() > steps)
      throw Error("usage", "--reference has {} samples of function {}, but only {} are run",
                  check.references.size(), check.source->name, steps);
    for (size_t step = 0; step < steps; ++step) {
      make_up.sample = static_cast<int>(step);
      AddStep(given.empty()       ? std::map<std::string, Tensor>()
              : given.size() == 1 ? given[0]
                                  : given[step],
              make_up, check);
    }
  }
  if (!any)
    throw Error("usage", "--inputs: \"{}\" contains no inputs", inputs.string())
        .Expected(
            "NAME.npy, NAME.png, in_NAME.npy or input_<k>.pb, in DIR/FUNCTION for several "
            "functions")
        .Help("without --inputs, inputs are generated");
  return checks;
}

// Budgets without floors. `half`: whether the package computes in fp16.
verify::Budgets BudgetsOf(const VerifyOptions& options, bool half) {
  verify::Budgets budgets = verify::ParseBudgets(options.budget ? *options.budget
                                                 : half         ? "fp16"
                                                                : "fp32");
  auto set = [&](verify::Budget& budget) {
    if (options.per_axis) budget.per_axis = options.per_axis;
    if (options.atol) budget.atol = options.atol;
    if (options.rtol) budget.rtol = options.rtol;
  };
  set(budgets.all);
  for (auto& [name, budget] : budgets.outputs) set(budget);
  return budgets;
}

// Budgets with the floors of all outputs of the function. `rounded`: result of RoundConstants on
// its program.
verify::Budgets WithFloors(const verify::Budgets& budgets, const Check& check,
                           const Program& rounded, engine::EngineOptions exact, bool by_source,
                           const std::function<void()>& done, Diagnostics& diagnostics) {
  try {
    const Function &source = *check.source, &of_rounded = FindFunction(rounded, source.name);
    const std::vector<verify::StepResults> references =
        by_source ? check.references : Run(source, check.source_steps, exact, source);
    verify::FollowedChoices ignored;
    if (!check.followed.made.empty())
      exact.observe = verify::FollowChoices(of_rounded, check.followed.made, ignored);
    return Fp16Budgets(budgets, references,
                       Run(of_rounded, check.source_steps, exact, source, done));
  } catch (const Error& error) {
    if (error.id() == "timeout" || error.id() == "resource-limit") throw;
    // Rounded constants may be invalid where they determine sizes.
    diagnostics.Note("function {} has no floor: {}", check.source->name, error.text());
    return budgets;
  }
}

// Searches for ties of quantisation if outputs exceed their budget.
std::vector<verify::Compared> CompareWithTies(const Check& check,
                                              const engine::EngineOptions& exact, bool ties,
                                              bool by_source, double usual) {
  auto compare = [&](const std::vector<verify::StepResults>& references) {
    return CompareSteps(check.package->name, check.values, references, verify::Match::kByPlace,
                        check.budgets);
  };
  std::vector<verify::Compared> list = compare(check.references);
  const Function& source = *check.source;
  if (!ties || !verify::HasSteps(source) ||
      std::ranges::all_of(
          list, [](const verify::Compared& one) { return one.comparison.max_error == 0; }))
    return list;
  std::vector<verify::StepResults> others, references = check.references;
  for (const verify::StepResults& step :
       verify::OtherSides(source, check.source_steps, exact, usual))
    others.push_back(BySource(step, source, source));
  const auto taken = verify::TakeTies(
      check.values, by_source ? check.references : Run(source, check.source_steps, exact, source),
      others, references);
  list = compare(references);
  for (verify::Compared& one : list)
    for (size_t i = 0; i < references[one.step].outputs.size(); ++i)
      if (!one.state && references[one.step].outputs[i].first == one.name)
        one.ties = taken[one.step][i];
  return list;
}

// Checks that all outputs named in the budgets exist, and so does the dimension `per_axis`.
void CheckBudgets(std::optional<int64_t> per_axis, const verify::Budgets& budgets,
                  const std::vector<Check>& checks) {
  std::vector<std::string> names;
  bool axis = false;
  int rank = 0;  // the largest
  for (const Check& check : checks)
    for (const verify::StepResults& step : check.values)
      for (const verify::NamedTensors* tensors : {&step.outputs, &step.states})
        for (const auto& [name, tensor] : *tensors) {
          names.push_back(name);
          int64_t wanted = per_axis.value_or(0);
          if (tensor) rank = std::max(rank, tensor.rank());
          axis = axis || (tensor && wanted < tensor.rank() && wanted >= -tensor.rank());
        }
  if (per_axis && !axis)
    throw Error("usage", "--per-axis: no output has an axis {}", *per_axis)
        .Expected("{} to {}", -rank, rank - 1);
  for (const auto& [name, budget] : budgets.outputs)
    if (std::ranges::find(names, name) == names.end())
      throw Error("bad-name", "the model has no output \"{}\"{}", name, DidYouMean(names, name))
          .At({budgets.name, "budget"});
}

void WriteBundle(const fs::path& folder, const fs::path& package, const VerifyResult& result,
                 const std::vector<Check>& checks) {
  verify::Parity parity{.package_hash = coreml::PackageHash(package),
                        .reference = result.reference,
                        .budgets = result.budgets};
  std::vector<verify::ParityFunction> functions;
  for (const Check& check : checks)
    functions.push_back({check.package->name, check.shared, check.references, check.budgets});
  verify::WriteParity(folder, package, std::move(parity), functions);
}

// Returns the name in INPUT=1,2 or SYMBOL=4.
std::string NameIn(const Option& option, const std::string& value) {
  return option.name == "--image" ? ParseImageOption(value).first
                                  : value.substr(0, value.rfind('='));
}

// Adds the import options that the package was compiled with, as stated in its manifest, unless
// they are given.
ImportOptions AsCompiled(ImportOptions options, const fs::path& source, const fs::path& package,
                         Diagnostics& diagnostics) {
  const std::optional<coreml::Stated> stated = coreml::StatedOf(package);
  const Frontend& frontend = FrontendOf(source);
  if (!stated || !frontend.IsSource() || stated->source_format != frontend.name) return options;
  options.compress_in_fp32 = stated->precision == "fp32";
  std::string taken;
  const std::vector<Option> table = ImportTable(options);
  // --compress and its short form exclude each other. Weights that were compressed for inputs are
  // not compressed anew: the package is compared with the plain source.
  const auto rules = stated->options.find("--compress");
  const bool by_data =
      stated->options.contains("--calibrate") ||
      (rules != stated->options.end() &&
       std::ranges::any_of(compress::ParseRules(rules->second.at(0)),
                           [](const compress::Rule& rule) {
                             return rule.scheme.values == compress::Scheme::Values::kAuto ||
                                    rule.scheme.activations;
                           }));
  const bool compressed = !options.compress.empty() || !options.requant.empty() || by_data;
  if (by_data && options.compress.empty())
    diagnostics.Note(
        "the weights of the package were compressed for inputs; it is compared with the source as "
        "it is, and may differ by what the manifest states that compression cost");
  // --shape and --dim determine the same dimensions: if one of them is given, the manifest's values
  // of the other are ignored.
  auto is_given = [&](std::string_view name) {
    return std::ranges::any_of(
        table, [&](const Option& option) { return option.name == name && option.field.get(); });
  };
  const bool shapes = is_given("--shape"), symbols = is_given("--dim");
  for (const Option& option : table) {
    if ((option.name == "--dim" && shapes) || (option.name == "--shape" && symbols)) continue;
    if (compressed && (option.name == "--compress" || option.name == "--requant")) continue;
    const auto it = stated->options.find(option.key());
    // The manifest stores these two incompletely.
    if (it == stated->options.end() || option.name == "--const" || option.name == "--data-root")
      continue;
    // The source is compared in its own types; only whether its inputs are images matters.
    if (option.name == "--io" && it->second.at(0) != "tensor") continue;
    if (option.name == "--lora") {
      if (options.loras.empty())
        throw Error("usage", "the package was compiled with --lora {}",
                    fmt::join(it->second, " --lora "))
            .Help("pass the same --lora DIR, so that the source is imported with it");
      continue;
    }
    const auto given = option.field.get();
    if (given && !option.repeat) continue;
    std::set<std::string> names;
    if (given)
      for (const std::string& value : *given) names.insert(NameIn(option, value));
    if (it->second.empty() && !given) {
      option.field.set("");
      taken += fmt::format("{}{}", taken.empty() ? "" : " ", option.name);
    }
    for (const std::string& value : it->second) {
      if (names.contains(NameIn(option, value))) continue;
      option.field.set(value);
      taken += fmt::format("{}{} {}", taken.empty() ? "" : " ", option.name, value);
    }
  }
  if (!taken.empty())
    diagnostics.Note("the source is imported with {}, according to the package's manifest", taken);
  return options;
}

// Imports a language model with the context length of its package, if possible.
Program ImportSource(const fs::path& path, ImportOptions options, const Program& package,
                     Diagnostics& diagnostics) {
  if (FrontendOf(path).Takes("--context") && !options.context && IsLanguageModel(*package.main())) {
    options.context = LanguageSizes(*package.main()).context;
    try {
      return ImportToRun(path, options, false, diagnostics);
    } catch (const Error& error) {
      if (error.id() != "usage") throw;
      options.context.reset();
    }
  }
  return ImportToRun(path, options, false, diagnostics);
}

// Returns the folder with the tokenizer of the package if that is the source's. A missing or different
// tokenizer is appended to `outputs` as a mismatch.
std::string VerifyTokenizer(const fs::path& source, const fs::path& package,
                            std::vector<verify::Compared>& outputs, Diagnostics& diagnostics) {
  const std::optional<std::string> difference = TokenizerDifference(source, package, diagnostics);
  if (!difference) return "";
  if (difference->empty()) return TokenizerBeside(package).string();
  verify::Compared& compared = outputs.emplace_back();
  compared.function = outputs[0].function;
  compared.name = "tokenizer";
  compared.comparison.mismatch = *difference;
  compared.comparison.exact = true;
  compared.comparison.equal_fraction = 0;
  compared.comparison.max_error = compared.comparison.rmse =
      std::numeric_limits<double>::infinity();
  return "";
}

}  // namespace

void RequireOrder(const fs::path& source, const fs::path& package) {
  const Frontend &of_source = FrontendOf(source), &of_package = FrontendOf(package);
  if (of_package.IsSource())
    throw Error("usage", "PACKAGE \"{}\" is a source model (.{})", package.string(),
                of_package.name)
        .Expected("mlc verify SOURCE PACKAGE")
        .Help(of_source.IsSource()
                  ? "`mlc compile` makes a package from it"
                  : "swap the arguments: mlc verify " + package.string() + " " + source.string());
}

// Both models must be readable.
void RequireTwo(const fs::path& source, const fs::path& package) {
  std::error_code ignored;
  auto same_files = [&] {
    try {
      return coreml::PackageHash(source) == coreml::PackageHash(package);
    } catch (const Error&) {  // e.g. a cycle of symbolic links
      return false;
    }
  };
  bool packages = fs::is_directory(source, ignored) && fs::is_directory(package, ignored);
  if (fs::equivalent(source, package, ignored) || (packages && same_files()))
    throw Error("usage", "SOURCE and PACKAGE are the same model")
        .Help(
            "pass the model that the package was compiled from, or outputs that were computed "
            "elsewhere: --reference DIR");
}

bool TakesTexts(const fs::path& model) {
  Diagnostics ignored;
  const Program program = ImportToRun(model, {}, true, ignored);
  return IsEncoder(*program.main());
}

bool ComputesInFp16(const Program& package) {
  bool half = false;
  for (const auto& function : package.functions)
    ForEachOperation(*function, [&](Operation* op) {
      for (const auto& result : op->results)
        half = half || (result->type.is_tensor() && result->type.dtype == DType::kFp16);
    });
  return half;
}

VerifyResult Verify(const fs::path& source_path, const fs::path& package_path,
                    const VerifyOptions& options, Diagnostics& diagnostics) {
  RequireOrder(source_path, package_path);
  const auto report = [&](std::string_view step) {
    if (options.progress) options.progress({.name = step, .share = kUnknownShare});
  };
  report("importing");
  const ImportOptions sizes{.shapes = options.import.shapes, .dims = options.import.dims};
  Program package = ImportToRun(package_path, sizes, true, diagnostics);
  const ImportOptions import = AsCompiled(options.import, source_path, package_path, diagnostics);
  auto source = std::make_shared<Program>(ImportSource(source_path, import, package, diagnostics));
  bool by_source = options.reference.empty();
  if (by_source) RequireTwo(source_path, package_path);
  VerifyResult result;
  result.source = source;
  result.reference = by_source ? "mlc import" : options.reference.string();
  result.exact = by_source;
  bool half = ComputesInFp16(package);
  result.budgets = BudgetsOf(options, half);
  const bool by_default = half && !options.budget && !options.atol && !options.rtol;
  const std::optional<coreml::Stated> stated = coreml::StatedOf(package_path);
  result.floors = by_default && !(stated && stated->precision == "mixed");
  // Errors that the manifest states.
  std::map<std::string, double> errors;
  if (stated && result.floors) errors = stated->exceeded;
  if (stated && !options.budget && !options.atol && !options.rtol)
    for (const auto& [name, error] : stated->lost) errors[name] = std::max(errors[name], error);
  std::optional<Program> rounded;
  if (by_default) rounded = verify::RoundConstants(*source);
  TakeSourceTypes(*source, package);
  engine::EngineOptions exact, faithful;
  exact.arithmetic = engine::EngineOptions::Arithmetic::kExact;
  faithful.arithmetic = engine::EngineOptions::Arithmetic::kFaithful;

  std::vector<Check> checks = Checks(*source, package, source_path, options);
  // Each sample runs in the package, in the source, and with rounded constants.
  uint64_t run = 0, runs = 0;
  for (const Check& check : checks)
    runs += check.package_steps.size() * (1 + (by_source ? 1 : 0) + (result.floors ? 1 : 0));
  const auto done = [&] {
    if (options.progress)
      options.progress(StepOf("running samples", std::min(++run, runs), runs, "runs"));
  };
  for (Check& check : checks) {
    const bool language =
        by_source && IsLanguageModel(*check.source) && IsLanguageModel(*check.package);
    const bool routers =
        language && verify::HasRouters(*check.source) && verify::HasRouters(*check.package);
    engine::EngineOptions recording = faithful, following = exact;
    verify::RouterChoices chosen;
    if (routers) {
      recording.observe = verify::RecordChoices(chosen);
      following.observe = verify::FollowChoices(*check.source, chosen, check.followed);
    }
    check.values = Run(*check.package, check.package_steps, recording, *check.source, done);
    if (by_source)
      check.references = Run(*check.source, check.source_steps, following, *check.source, done);
    check.budgets = result.floors ? WithFloors(result.budgets, check, *rounded, exact, by_source,
                                               done, diagnostics)
                                  : result.budgets;
    const auto state_error = [&](verify::Budgets& budgets, const std::string& name, double error) {
      auto [budget, first] = budgets.outputs.try_emplace(name, budgets.all);
      budget->second.stated = error;
    };
    for (const auto& [name, error] : errors) state_error(check.budgets, name, error);
    // The manifest states nothing of states, which may differ as much as the worst output.
    if (stated && !stated->lost.empty() && !errors.empty())
      for (const auto& [name, tensor] : check.references[0].states)
        state_error(check.budgets, name, std::ranges::max(std::views::values(errors)));
    std::vector<verify::Compared> own =
        CompareWithTies(check, exact, !language, by_source, result.budgets.all.max_error / 10);
    result.outputs.insert(result.outputs.end(), own.begin(), own.end());
    VerifyResult::OfFunction& function = result.functions.emplace_back();
    function.name = check.package->name;
    function.samples = static_cast<int>(check.source_steps.size());
    function.generated = check.made;
    function.source = check.source;
    for (const auto& [name, tensor] : check.references[0].outputs)
      if (!tensor) function.not_compared.push_back(name);
    function.followed = check.followed;
    function.texts = check.texts;
    if (language) {
      verify::Budgets budgets = result.budgets;
      for (const auto& [name, error] : errors) state_error(budgets, name, error);
      function.language =
          VerifyLanguage({check.source, check.package, rounded ? &*rounded : nullptr, result.floors,
                          exact, faithful},
                         options.tokens, options.make_up.seed, budgets, result.outputs);
    }
    if (options.layers) {
      report("comparing layers");
      function.layers =
          verify::CompareLayers(*check.source, check.source_steps, exact, *check.package,
                                check.package_steps, faithful, result.budgets.all);
    }
  }
  if (!options.tokens.empty() && std::ranges::none_of(result.functions, [](const auto& function) {
        return function.language.has_value() || IsEncoder(*function.source);
      }))
    throw Error("usage", "--tokens requires a language model or an encoder; the source is neither")
        .Help("pass inputs with --inputs, or omit --tokens");
  CheckBudgets(options.per_axis, result.budgets, checks);
  result.tokenizer = VerifyTokenizer(source_path, package_path, result.outputs, diagnostics);
  if (!options.bundle.empty()) WriteBundle(options.bundle, package_path, result, checks);
  std::set<std::pair<std::string, std::string>> resized;
  for (const verify::Compared& compared : result.outputs) {
    if (compared.tells || compared.within) continue;
    std::string what = fmt::format("{} \"{}\"", compared.state ? "state" : "output", compared.name),
                figures = Describe(compared.comparison);
    if (!compared.comparison.discriminating)
      diagnostics.Warn(
          Error("check-failed", "{} differs from its constant reference: {}", what, figures)
              .Help("verify with inputs for which outputs differ"));
    else if (compared.comparison.resized && resized.emplace(compared.function, what).second)
      diagnostics.Warn(Error(
          "check-failed", "the size of {} depends on data: {}; fp16 constants alone change it, too",
          what, figures));
  }
  return result;
}

}  // namespace mlc::driver
