#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "lib/coreml/package.h"
#include "lib/engine/engine.h"
#include "lib/ir/given.h"
#include "lib/verify/functions.h"
#include "lib/verify/layers.h"
#include "lib/verify/parity.h"
#include "tools/mlc/made_up.h"
#include "tools/mlc/model.h"
#include "tools/mlc/parity.h"
#include "tools/mlc/sizes.h"

namespace fs = std::filesystem;

namespace mlc {
namespace {

using Json = nlohmann::ordered_json;

// A function of the source, what is compared with it, and what both do.
struct Check {
  const Function *source, *package;
  std::vector<StepInputs> source_steps, package_steps;
  std::vector<NamedTensors> shared;  // what the package is given, by name in the source
  std::vector<StepResults> references, values;
  std::map<std::string, InputRange> made;  // of what is made up, over all steps
};

// Shapes of inputs that are not given, by the source's names, as the package takes them, which may
// have been made for one of many.
std::map<std::string, Dims> ShapesOf(const Function& source, const Function& package,
                                     const std::map<std::string, Tensor>& given,
                                     const MadeUpOptions& make_up) {
  std::map<std::string, Tensor> taken;  // by the package's names
  for (const Port& port : package.inputs)
    for (const std::string* name : {&port.source_name, &port.name})
      if (auto it = given.find(*name); it != given.end()) taken.emplace(port.name, it->second);
  std::map<std::string, Dims> shapes;
  for (const auto& [name, dims] : MadeUpShapes(package, taken, make_up))
    for (const Port& port : package.inputs)
      for (const Port& own : source.inputs)
        if (port.name == name && UserName(own) == UserName(port)) shapes[own.name] = dims;
  return shapes;
}

// The inputs of one step of both, the very same tensors by name in the source. `given` by names of
// the source.
void AddStep(const std::map<std::string, Tensor>& given, MadeUpOptions make_up, Check& check) {
  const Function &source = *check.source, &package = *check.package;
  make_up.shapes = ShapesOf(source, package, given, make_up);
  std::map<std::string, InputRange> made;
  StepInputs source_inputs = MakeInputs(source, given, make_up, &made);
  for (auto& [name, range] : made) {
    auto [it, first] = check.made.emplace(name, range);
    it->second.low = std::min(it->second.low, range.low);
    it->second.high = std::max(it->second.high, range.high);
  }
  std::map<std::string, Tensor> shared = given;
  std::vector<const Value*> values = InputValues(source);
  for (size_t i = 0; i < source.inputs.size(); ++i)
    shared[UserName(source.inputs[i])] = source_inputs.at(values[i]->name);
  for (const Port& port : source.inputs)
    for (const Port& own : package.inputs)
      if (UserName(own) == UserName(port) && own.feature != port.feature)
        throw Error("usage", fmt::format("input \"{}\" is an image in the package, and as such "
                                         "another in the source",
                                         UserName(port)))
            .Help(fmt::format("pass the --image {}=... of the compilation", UserName(port)));
  std::erase_if(shared, [&](const auto& entry) {
    return std::none_of(package.inputs.begin(), package.inputs.end(), [&](const Port& port) {
      return port.source_name == entry.first || port.name == entry.first;
    });
  });
  // What others wrote does not say which type the source declares: the source does.
  std::vector<const Value*> own_values = InputValues(package);
  for (size_t i = 0; i < own_values.size(); ++i) {
    const Port& own = package.inputs[i];
    auto it = shared.find(UserName(own));
    if (it != shared.end() && own.source_dtype == DType::kNone &&
        own.feature == Port::Feature::kMultiArray)
      it->second = TakeGiven(it->second, it->second.dtype(), own_values[i]->type.dtype,
                             {"bad-input", fmt::format("input \"{}\"", UserName(own))});
  }
  check.package_steps.push_back(MakeInputs(package, shared, make_up));
  check.source_steps.push_back(std::move(source_inputs));
  check.shared.push_back(NamedTensors(shared.begin(), shared.end()));
}

// As the ports of `source` declare them and call them: outputs and states by the names of its own
// ports, an empty Tensor where the package has none.
StepResults BySource(const StepResults& step, const Function& function, const Function& source) {
  StepResults named;
  auto take = [&](const NamedTensors& tensors, const std::vector<Port>& own,
                  const std::vector<Port>& ports, NamedTensors& out) {
    for (const Port& port : ports) {
      Tensor found;
      for (size_t i = 0; i < own.size(); ++i)
        if (UserName(own[i]) == UserName(port) || own[i].name == port.name)
          found = ToSourceType(tensors[i].second, own[i]);
      out.emplace_back(UserName(port), std::move(found));
    }
  };
  take(step.outputs, function.outputs, source.outputs, named.outputs);
  take(step.states, function.states, source.states, named.states);
  return named;
}

std::vector<StepResults> Run(const Function& function, const std::vector<StepInputs>& steps,
                             const EngineOptions& options, const Function& source) {
  std::vector<StepResults> results;
  for (const StepResults& step : RunSteps(function, steps, options))
    results.push_back(BySource(step, function, source));
  return results;
}

// What others wrote does not say which types the source declares: its inputs take the same values.
void TakeSourceTypes(const Program& source, Program& package) {
  for (const auto& function : package.functions) {
    const Function* from = source.functions.size() == 1 ? source.functions[0].get() : nullptr;
    for (const auto& other : source.functions)
      if (other->name == function->name) from = other.get();
    for (Port& own : function->inputs)
      for (const Port& port : from ? from->inputs : std::vector<Port>())
        if (own.source_dtype == DType::kNone && UserName(own) == UserName(port))
          own.source_dtype = port.source_dtype;
  }
}

// The pairs that shall be compared, with their inputs.
std::vector<Check> Checks(const Program& source, const Program& package,
                          const Invocation& invocation) {
  std::vector<Check> checks;
  if (invocation.has("--function")) {
    std::string name = invocation.get("--function");
    checks.push_back({&FindFunction(source, name, source.functions.size() == 1),
                      &FindFunction(package, name, package.functions.size() == 1)});
    if (checks[0].source->name != name && checks[0].package->name != name)
      FindFunction(package, name, false);
  } else {
    for (const FunctionPair& pair : MatchFunctions(source, package)) {
      if (!pair.a || !pair.b)
        throw Error("check-failed",
                    fmt::format("the {} has no function {}", pair.a ? "package" : "source",
                                (pair.a ? pair.a : pair.b)->name))
            .Help("--function NAME compares one function alone");
      checks.push_back({pair.a, pair.b});
    }
  }
  MadeUpOptions make_up = ReadMadeUp(invocation, source);
  fs::path inputs = invocation.get("--inputs"), references = invocation.get("--reference");
  bool several = source.functions.size() > 1, any = inputs.empty();
  for (Check& check : checks) {
    std::vector<std::map<std::string, Tensor>> given;
    if (!inputs.empty())
      for (const fs::path& folder : StepFolders(FunctionFolder(inputs, *check.source, several)))
        given.push_back(ReadInputFolder(*check.source, folder));
    any = any ||
          std::any_of(given.begin(), given.end(), [](const auto& step) { return !step.empty(); });
    if (!references.empty())
      check.references =
          ReadReferences(*check.source, FunctionFolder(references, *check.source, several));
    size_t steps = 1;
    if (HasStates(*check.source) || HasStates(*check.package))
      steps = kStatefulSteps;
    else if (given.empty() || given[0].size() < check.source->inputs.size())
      steps = static_cast<size_t>(UsualSamples(*check.package));
    if (!check.references.empty()) steps = check.references.size();
    if (given.size() > 1) steps = given.size();
    if (invocation.has("--samples")) {
      int64_t wanted = invocation.Int("--samples", 1);
      if (wanted < 1) throw Error("usage", "--samples must be at least 1");
      steps = static_cast<size_t>(wanted);
    }
    if (given.size() > 1 && steps > given.size())
      throw Error("usage", fmt::format("--inputs has {} steps of {}, not {}", given.size(),
                                       check.source->name, steps));
    if (check.references.size() > steps)
      throw Error("usage", fmt::format("--reference has {} steps of {}, and {} are run",
                                       check.references.size(), check.source->name, steps));
    for (size_t step = 0; step < steps; ++step) {
      make_up.sample = static_cast<int>(step);
      AddStep(given.empty()       ? std::map<std::string, Tensor>()
              : given.size() == 1 ? given[0]
                                  : given[step],
              make_up, check);
    }
  }
  if (!any)
    throw Error("usage", fmt::format("--inputs: \"{}\" holds no input", inputs.string()))
        .Expected("NAME.npy, in_NAME.npy or input_<k>.pb, in DIR/FUNCTION for several functions")
        .Help("without --inputs they are made up");
  return checks;
}

std::string DefaultBudget(const Program& package) {
  bool half = false;
  for (const auto& function : package.functions)
    ForEachOperation(*function, [&](Operation* op) {
      for (const auto& result : op->results)
        half = half || (result->type.is_tensor() && result->type.dtype == DType::kFp16);
    });
  return half ? "fp16" : "fp32";
}

double Number(const Invocation& invocation, std::string_view flag) {
  std::string text = invocation.get(flag);
  double number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !(number >= 0) ||
      number > std::numeric_limits<double>::max())
    throw Error("usage", fmt::format("{}: \"{}\" is no number of at least 0", flag, text));
  return number;
}

// What the flags say holds for all outputs.
Budgets BudgetsOf(const Invocation& invocation, const Program& package) {
  Budgets budgets = ParseBudgets(invocation.get("--budget", DefaultBudget(package)));
  auto set = [&](Budget& budget) {
    if (invocation.has("--per-axis")) budget.per_axis = invocation.Int("--per-axis", 0);
    if (invocation.has("--atol")) budget.atol = Number(invocation, "--atol");
    if (invocation.has("--rtol")) budget.rtol = Number(invocation, "--rtol");
  };
  set(budgets.all);
  for (auto& [name, budget] : budgets.outputs) set(budget);
  return budgets;
}

// Every output that a budget speaks of is there, and so is the dimension of --per-axis.
void CheckBudgets(const Invocation& invocation, const Budgets& budgets,
                  const std::vector<Check>& checks) {
  std::vector<std::string> names;
  bool axis = false;
  for (const Check& check : checks)
    for (const StepResults& step : check.values)
      for (const NamedTensors* tensors : {&step.outputs, &step.states})
        for (const auto& [name, tensor] : *tensors) {
          names.push_back(name);
          int64_t wanted = invocation.Int("--per-axis", 0);
          axis = axis || (tensor && wanted < tensor.rank() && wanted >= -tensor.rank());
        }
  if (invocation.has("--per-axis") && !axis)
    throw Error("usage",
                fmt::format("--per-axis: no output has an axis {}", invocation.get("--per-axis")));
  for (const auto& [name, budget] : budgets.outputs)
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw Error("bad-name", fmt::format("the model has no output \"{}\"", name))
          .At({budgets.name, "budget"});
}

void RequireOrder(const Invocation& invocation) {
  fs::path source = invocation.get("SOURCE"), package = invocation.get("PACKAGE");
  Format of_source = DetectFormat(source), of_package = DetectFormat(package);
  if (of_package == Format::kOnnx)
    throw Error("usage", fmt::format("PACKAGE \"{}\" is a source model (.{})", package.string(),
                                     Name(of_package)))
        .Expected("mlc verify SOURCE PACKAGE")
        .Help(of_source == Format::kOnnx
                  ? "mlc compile makes a package of it"
                  : "the other way round: mlc verify " + package.string() + " " + source.string());
}

// Once both can be read.
void RequireTwo(const Invocation& invocation) {
  if (invocation.has("--reference")) return;
  fs::path source = invocation.get("SOURCE"), package = invocation.get("PACKAGE");
  std::error_code ignored;
  auto same_files = [&] {
    try {
      return PackageHash(source) == PackageHash(package);
    } catch (const Error&) {  // links in a circle
      return false;
    }
  };
  bool packages = fs::is_directory(source, ignored) && fs::is_directory(package, ignored);
  if (fs::equivalent(source, package, ignored) || (packages && same_files()))
    throw Error("usage", "SOURCE and PACKAGE are the same: that says nothing")
        .Help(
            "name the model that the package was made of, or outputs that were computed "
            "elsewhere: --reference DIR");
}

// Returns a line for people.
std::string WriteBundle(const Invocation& invocation, const std::string& reference,
                        const Budgets& budgets, const std::vector<Check>& checks) {
  Parity parity;
  parity.reference = reference;
  parity.budgets = budgets;
  parity.package_hash = PackageHash(invocation.get("PACKAGE"));
  std::vector<ParityFunction> functions;
  for (const Check& check : checks)
    functions.push_back({check.package->name, check.shared, check.references});
  WriteParity(invocation.get("--bundle"), invocation.get("PACKAGE"), std::move(parity), functions);
  return fmt::format("bundle: {0}, to be checked on another machine: mlc-run --bundle {0}\n",
                     invocation.get("--bundle"));
}

int VerifyCommandRun(const Invocation& invocation) {
  if (invocation.has("--result")) return CheckResult(invocation);
  for (std::string_view name : {"SOURCE", "PACKAGE"})
    if (!invocation.has(name))
      throw Error("usage", fmt::format("{} is required", name)).Help("mlc verify --help");
  RequireOrder(invocation);
  int64_t worst = invocation.Int("--worst", 10);
  if (worst < 1) throw Error("usage", "--worst must be at least 1");
  OnnxOptions options = ImportOptions(invocation), sizes;
  sizes.shapes = options.shapes;
  sizes.dims = options.dims;
  Program source = ImportToRun(invocation.get("SOURCE"), options, false, invocation.diagnostics);
  Program package = ImportToRun(invocation.get("PACKAGE"), sizes, true, invocation.diagnostics);
  RequireTwo(invocation);
  Budgets budgets = BudgetsOf(invocation, package);
  TakeSourceTypes(source, package);
  EngineOptions exact, faithful;
  exact.arithmetic = EngineOptions::Arithmetic::kExact;
  faithful.arithmetic = EngineOptions::Arithmetic::kFaithful;
  std::string reference = invocation.get("--reference", "mlc import");

  std::vector<Check> checks = Checks(source, package, invocation);
  std::vector<Compared> list;
  MadeUpOptions make_up = ReadMadeUp(invocation, source);
  std::string made_text, unread_text, layers_text;
  for (const Check& check : checks)
    made_text +=
        MadeUpText(*check.source, check.made, make_up, static_cast<int>(check.source_steps.size()));
  Json unread = Json::array(), layers = Json::array();
  for (Check& check : checks) {
    if (!invocation.has("--reference"))
      check.references = Run(*check.source, check.source_steps, exact, *check.source);
    check.values = Run(*check.package, check.package_steps, faithful, *check.source);
    std::vector<Compared> own =
        CompareSteps(check.package->name, check.values, check.references, Match::kByPlace, budgets);
    list.insert(list.end(), own.begin(), own.end());
    for (const auto& [name, tensor] : check.references[0].outputs) {
      if (tensor) continue;
      unread.push_back(name);
      unread_text +=
          fmt::format("-    {:<32} not compared: {} does not have it\n", name, reference);
    }
    if (!invocation.has("--layers")) continue;
    Layers of_function = CompareLayers(*check.source, check.source_steps, exact, *check.package,
                                       check.package_steps, faithful, budgets.all);
    for (Json& layer : Json::parse(LayersJson(of_function))) layers.push_back(std::move(layer));
    if (checks.size() > 1) layers_text += fmt::format("function {}, ", check.package->name);
    layers_text += LayersText(of_function, static_cast<size_t>(worst));
  }
  CheckBudgets(invocation, budgets, checks);
  std::string bundle;
  if (invocation.has("--bundle")) bundle = WriteBundle(invocation, reference, budgets, checks);
  for (const Compared& compared : list)
    if (!compared.comparison.discriminating && !compared.within)
      invocation.diagnostics.Warn(
          Error("check-failed", fmt::format("{} \"{}\" is not what its constant reference says: {}",
                                            compared.state ? "state" : "output", compared.name,
                                            Describe(compared.comparison)))
              .Help("verify with inputs for which outputs differ"));
  bool ok = Judge(list) == Verdict::kPassed;
  if (invocation.json()) {
    Json budget = Json::parse(ToJson(budgets));
    budget["name"] = budgets.name;
    Json json{{"reference", reference},
              {"figure", kErrorFigure},
              {"budget", budget},
              {"ok", ok},
              {"verdict", VerdictText(list)},
              {"outputs", Json::parse(ReportJson(list))}};
    for (const Check& check : checks)
      if (!check.made.empty())
        json["made_up"].push_back(Json::parse(MadeUpJson(
            *check.source, check.made, make_up, static_cast<int>(check.source_steps.size()))));
    if (!unread.empty()) json["not_compared"] = unread;
    if (invocation.has("--layers")) json["layers"] = layers;
    fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    fmt::print("reference: {}\nbudget: {} ({})\nerror: {}\n{}{}{}{}{}{}\n", reference, budgets.name,
               Describe(budgets.all), kErrorFigure, made_text, bundle, ReportText(list),
               unread_text, layers_text, VerdictText(list));
  }
  return ok ? 0 : ExitCode("check-failed");
}

}  // namespace

Command VerifyCommand() {
  std::vector<Flag> flags = {
      {"SOURCE", "", "the source model"},
      {"PACKAGE", "", "what was made of it"},
      {"--function", "NAME", "compare this function alone (default: all, which both must have)"},
      {"--inputs", "DIR",
       "tensors to run both on: NAME.npy, in_NAME.npy or input_<k>.pb; in DIR/FUNCTION where there "
       "are several functions, and in folders 0, 1, ... of those for several steps"},
      {"--samples", "N",
       "runs of each function, each with the states that the one before left and with made-up "
       "inputs of its own: the first has open dimensions at their lower bounds, the second at the "
       "largest that run soon, the others between (default: as many as are given; 3 where there "
       "are states; where inputs are made up 16, less for large models)"},
      {"--reference", "DIR|NPZ",
       "outputs computed elsewhere, and states in a folder states, in folders as for --inputs "
       "(default: mlc's own reading of the source)"},
      {"--budget", "fp32|fp16|int8|FILE",
       "error that is allowed (default: by the package's precision); below"},
      {"--per-axis", "N", "judge each slice of this axis by its own size"},
      {"--atol", "X", "judge each element: |difference| <= atol + rtol |reference|"},
      {"--rtol", "X", "as --atol; one that is not given is 0"},
      {"--layers", "", "compare inner values too and name the first that is outside the budget"},
      {"--worst", "N", "how many of them --layers shows (default 10)"},
      {"--bundle", "DIR",
       "write package, inputs and reference outputs into a folder that `mlc-run --bundle DIR` "
       "checks "
       "on another machine"},
      {"--result", "FILE",
       "instead: check and show the result.json that such a run wrote; it must be of PACKAGE, if "
       "one is given as the only argument, and of the bundle in its folder or in --bundle DIR"},
  };
  flags.insert(flags.begin() + 4, MadeUpFlags().begin(), MadeUpFlags().end());
  flags.insert(flags.end(), ImportFlags().begin(), ImportFlags().end());
  flags.push_back({"--json", "", "one JSON document on stdout"});
  std::string budgets;
  for (const char* name : {"fp32", "fp16", "int8"})
    budgets += fmt::format("{}{}: {}", budgets.empty() ? "" : "; ", name,
                           Describe(ParseBudgets(name).all));
  return {"verify",
          "Compare what a package computes with its source or with given outputs",
          "mlc verify model.onnx model.mlpackage --inputs samples --reference samples",
          flags,
          VerifyCommandRun,
          fmt::format(
              "Error of an output: {}. RMSE by the same measure. Integers and booleans must be "
              "equal. An output whose reference is constant counts for nothing, and where no other "
              "was compared nothing passes.\nBudgets: {}. A FILE is JSON: base (one of these), "
              "max_error, rmse, per_axis, atol, rtol, and outputs: the same for outputs by "
              "name.\n\n",
              kErrorFigure, budgets)};
}

}  // namespace mlc
