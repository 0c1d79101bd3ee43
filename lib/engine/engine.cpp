#include "lib/engine/engine.h"

#include <unistd.h>

#include <algorithm>
#include <new>
#include <thread>

#include "lib/engine/kernels.h"

namespace mlc {

namespace {

using Clock = std::chrono::steady_clock;
using Args = std::vector<std::vector<OpContext::Arg>>;

Type TypeOf(const Tensor& tensor) { return Type::Tensor(tensor.dtype(), ToShape(tensor.dims())); }

// Where a step finds an operand: a constant, or the slot of a value that is computed at run time.
struct Source {
  int slot = -1;
  Tensor constant;
};

// One operation.
struct Step {
  const Operation* op = nullptr;
  std::vector<std::vector<Source>> args;  // by canonical parameter
  std::vector<bool> constant;             // by canonical parameter
  std::vector<int> results;               // slots
  std::vector<DType> dtypes;              // of results
  std::vector<int> last_uses;             // slots that nobody needs after this step
  std::vector<Type> types;                // of results, when they are the same in every run
  PrepareKernel prepare = nullptr;
  Kernel kernel;
  std::vector<Type> prepared_for;  // types of all operands
};

// The steps of a block. An operation with nested blocks would hold their plans; slots are numbered
// through all of them.
struct BlockPlan {
  std::vector<int> inputs;
  std::vector<Step> steps;
  std::vector<Source> outputs;
};

// Throws `error` again with the operation's location, or with its name when it has none.
[[noreturn]] void Locate(Error error, const Operation& op) {
  if (!error.has_location()) {
    if (op.location && !op.location->empty())
      error.At(*op.location);
    else
      error.At({"", fmt::format("operation {} \"{}\"", op.def->name, op.name)});
  }
  throw error;
}

int64_t PhysicalMemory() {
  static const int64_t bytes = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  return bytes > 0 ? bytes : int64_t{1} << 34;
}

// A hostile shape is refused before somebody allocates it.
void CheckSize(const Type& type) {
  if (!type.is_tensor() || !IsStatic(type.shape) || type.dtype == DType::kString) return;
  int64_t elements = ElementCount(StaticDims(type.shape));
  if (elements > PhysicalMemory() / std::max(1, Bits(type.dtype) / 8))
    throw Error("resource-limit",
                fmt::format("a result of type {} does not fit into memory", type.ToString()));
}

std::string InputText(const Function& function, const Value& value) {
  for (const Port& port : function.inputs)
    if (port.name == value.name && !port.source_name.empty() && port.source_name != value.name)
      return fmt::format("\"{}\" (\"{}\" in the source)", value.name, port.source_name);
  return fmt::format("\"{}\"", value.name);
}

}  // namespace

struct Engine::Plan {
  const Function& function;
  EngineOptions options;
  std::map<const Value*, Source> sources;
  std::vector<Type>
      static_types;  // by slot; kind kTensor with dtype kNone when not known before a run
  BlockPlan body;
  std::vector<Tensor> values;  // by slot, during a run
  int threads = 1;

  Plan(const Function& f, EngineOptions o) : function(f), options(std::move(o)) {
    threads = options.threads > 0
                  ? options.threads
                  : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    for (const auto& input : function.body.inputs)
      body.inputs.push_back(NewSlot(input.get(), input->type));
    for (const auto& op : function.body.operations()) {
      try {
        AddStep(*op);
      } catch (const Error& error) {
        Locate(error, *op);
      }
    }
    for (const Value* output : function.body.outputs()) body.outputs.push_back(SourceOf(output));
    FindLastUses();
  }

  bool exact() const { return options.arithmetic == EngineOptions::Arithmetic::kExact; }
  DType Retyped(DType dtype) const {
    return exact() && dtype == DType::kFp16 ? DType::kFp32 : dtype;
  }
  Tensor Retyped(const Tensor& constant) const { return constant.Cast(Retyped(constant.dtype())); }

  int NewSlot(const Value* value, Type type) {
    type.dtype = Retyped(type.dtype);
    if (!type.is_tensor() || !IsStatic(type.shape)) type = Type();
    int slot = static_cast<int>(static_types.size());
    static_types.push_back(std::move(type));
    sources[value] = {slot, {}};
    return slot;
  }

  const Source& SourceOf(const Value* value) const {
    auto it = sources.find(value);
    MLC_CHECK(it != sources.end(), "value {} is used before it is computed", value->name);
    return it->second;
  }

  void AddStep(const Operation& op) {
    if (op.is("const")) {
      sources[op.result()] = {-1, op.val.dtype() == DType::kString ? op.val : Retyped(op.val)};
      return;
    }
    if (!op.def->eval || !op.blocks.empty())
      throw Error("unsupported-operator", fmt::format("the engine cannot run {}", op.def->name));
    Step step{.op = &op};
    size_t params = op.def->canonical().params.size();
    step.args.resize(params);
    step.constant.resize(params);
    bool all_constant = true, all_static = true;
    for (size_t p = 0; p < op.args().size(); ++p) {
      step.constant[p] = !op.args()[p].empty();
      for (const Operand& operand : op.args()[p]) {
        Source source = operand.value ? SourceOf(operand.value) : Source{-1, operand.literal};
        if (!operand.value && source.constant.dtype() != DType::kString)
          source.constant = Retyped(source.constant);
        if (source.slot >= 0) {
          step.constant[p] = all_constant = false;
          all_static = all_static && static_types[source.slot].dtype != DType::kNone;
        }
        step.args[p].push_back(std::move(source));
      }
    }
    // The one operand that names a float type as text.
    if (exact() && op.is("cast"))
      for (Source& source : step.args[op.def->Find("dtype")])
        if (source.constant && source.constant.strings()[0] == "fp16")
          source.constant = Tensor::String("fp32");
    for (const auto& result : op.results) step.dtypes.push_back(Retyped(result->type.dtype));

    if (all_static) step.types = StaticResults(step);
    if (all_constant && op.def->pure && !step.types.empty()) {
      EvalContext context(*op.def, ArgsOf(step, false), step.types, &op);
      for (const Type& type : step.types) CheckSize(type);
      op.def->eval(context);
      for (size_t i = 0; i < op.results.size(); ++i)
        sources[op.result(static_cast<int>(i))] = {-1, context.results.at(i)};
      return;
    }
    for (size_t i = 0; i < op.results.size(); ++i)
      step.results.push_back(
          NewSlot(op.result(static_cast<int>(i)), step.types.empty() ? Type() : step.types[i]));
    if (options.use_kernels) step.prepare = FindKernel(op.def->name);
    body.steps.push_back(std::move(step));
  }

  // Result types that hold in every run; empty when they depend on values.
  std::vector<Type> StaticResults(const Step& step) {
    InferContext context(*step.op->def, ArgsOf(step, true));
    try {
      step.op->def->infer(context);
    } catch (const Error& error) {
      if (error.id() == "needs-constant") return {};
      throw;
    }
    std::vector<Type> types = WithDTypes(step, std::move(context.results));
    for (const Type& type : types)
      if (!type.is_tensor() || !IsStatic(type.shape)) return {};
    return types;
  }

  // Element types are the program's: inference alone cannot tell which operand of a product was the
  // constant.
  static std::vector<Type> WithDTypes(const Step& step, std::vector<Type> types) {
    MLC_CHECK(types.size() == step.dtypes.size(), "{} infers {} results, has {}",
              step.op->Describe(), types.size(), step.dtypes.size());
    for (size_t i = 0; i < types.size(); ++i)
      if (types[i].is_tensor()) types[i].dtype = step.dtypes[i];
    return types;
  }

  // Operands; before a run, values that are not constant are unknown.
  Args ArgsOf(const Step& step, bool before_run) const {
    Args args(step.args.size());
    for (size_t p = 0; p < args.size(); ++p)
      for (const Source& source : step.args[p]) {
        if (source.slot < 0)
          args[p].push_back({TypeOf(source.constant), source.constant, nullptr});
        else if (before_run)
          args[p].push_back({static_types[source.slot], {}, nullptr});
        else
          args[p].push_back({TypeOf(values[source.slot]), values[source.slot], nullptr});
      }
    return args;
  }

  void FindLastUses() {
    std::vector<int> last(static_types.size(), -1);
    for (size_t i = 0; i < body.steps.size(); ++i) {
      for (int slot : body.steps[i].results) last[slot] = static_cast<int>(i);
      for (const auto& list : body.steps[i].args)
        for (const Source& source : list)
          if (source.slot >= 0) last[source.slot] = static_cast<int>(i);
    }
    for (const Source& output : body.outputs)
      if (output.slot >= 0) last[output.slot] = -1;
    for (size_t slot = 0; slot < last.size(); ++slot)
      if (last[slot] >= 0) body.steps[last[slot]].last_uses.push_back(static_cast<int>(slot));
  }

  // What to declare so that this tensor would be an input: --dim for a symbol, else --shape.
  std::string Declaration(const Value& value, const Tensor& tensor,
                          const std::string* symbol) const {
    std::string source = value.name;
    for (const Port& port : function.inputs)
      if (port.name == value.name && !port.source_name.empty()) source = port.source_name;
    std::string shape = fmt::format("--shape {}={}", source, fmt::join(tensor.dims(), ","));
    if (!symbol) return fmt::format("compile with {} for inputs of this shape", shape);
    const Symbol& bounds = function.program->symbols.at(*symbol);
    const Shape& dims = value.type.shape;
    auto axis = std::find(dims.begin(), dims.end(), Dim::Symbol(*symbol)) - dims.begin();
    int64_t size = tensor.dims()[axis];
    std::string sizes =
        fmt::format("{}..{}", std::min(bounds.low, size), std::max(bounds.high, size));
    if (!bounds.enumerated.empty())
      sizes = fmt::format("{},{}", fmt::join(bounds.enumerated, ","), size);
    return fmt::format("compile with --dim {}={}, or with {} for this shape alone", *symbol, sizes,
                       shape);
  }

  void CheckSymbols(const Value& value, const Tensor& tensor,
                    std::map<std::string, int64_t>& symbols) const {
    for (size_t d = 0; d < value.type.shape.size(); ++d) {
      const Dim& declared = value.type.shape[d];
      int64_t size = tensor.dims()[d];
      auto fail = [&](const std::string& expected, const std::string* symbol) {
        throw Error("bad-input", fmt::format("input {}: dimension {} is {}",
                                             InputText(function, value), d, size))
            .Expected(expected)
            .Help(Declaration(value, tensor, symbol));
      };
      std::optional<std::string> symbol = declared.symbol();
      if (symbol && !symbols.contains(*symbol)) {
        auto known = function.program->symbols.find(*symbol);
        if (known != function.program->symbols.end()) {
          const Symbol& bounds = known->second;
          if (size < bounds.low || size > bounds.high)
            fail(fmt::format("{} from {} to {}", *symbol, bounds.low, bounds.high), &*symbol);
          if (!bounds.enumerated.empty() &&
              !std::count(bounds.enumerated.begin(), bounds.enumerated.end(), size))
            fail(fmt::format("one of {}", fmt::join(bounds.enumerated, ", ")), &*symbol);
        }
        symbols[*symbol] = size;
        continue;
      }
      std::optional<int64_t> expected = declared.Evaluate(symbols);
      if (expected && *expected != size)
        fail(declared.is_constant() ? std::to_string(*expected)
                                    : fmt::format("{} = {}", declared.ToString(), *expected),
             nullptr);
    }
  }

  void TakeInputs(const std::map<std::string, Tensor>& inputs) {
    std::map<std::string, int64_t> symbols;
    for (size_t i = 0; i < body.inputs.size(); ++i) {
      const Value& value = *function.body.inputs[i];
      auto it = inputs.find(value.name);
      if (it == inputs.end() || !it->second)
        throw Error("bad-input", fmt::format("input {} is missing", InputText(function, value)))
            .Expected(value.type.ToString());
      Tensor tensor = it->second;
      bool retyped = exact() && value.type.dtype == DType::kFp16 && tensor.dtype() == DType::kFp32;
      if ((tensor.dtype() != value.type.dtype && !retyped) || tensor.rank() != value.type.rank())
        throw Error("bad-input", fmt::format("input {} is {}", InputText(function, value),
                                             TypeOf(tensor).ToString()))
            .Expected(value.type.ToString());
      CheckSymbols(value, tensor, symbols);
      values[body.inputs[i]] = Retyped(tensor);
    }
    for (const auto& [name, tensor] : inputs)
      if (std::none_of(function.body.inputs.begin(), function.body.inputs.end(),
                       [&](const auto& input) { return input->name == name; }))
        throw Error("bad-input", fmt::format("there is no input \"{}\"", name));
  }

  void RunStep(Step& step) {
    const Operation& op = *step.op;
    Args args = ArgsOf(step, false);
    std::vector<Type> types = step.types;
    if (types.empty()) {
      InferContext context(*op.def, args);
      op.def->infer(context);
      types = WithDTypes(step, std::move(context.results));
    }
    for (const Type& type : types) CheckSize(type);
    if (step.prepare && (step.types.empty() || step.prepared_for.empty())) {
      std::vector<Type> operand_types;
      for (const auto& list : args)
        for (const OpContext::Arg& arg : list) operand_types.push_back(arg.type);
      if (operand_types != step.prepared_for) {
        step.kernel = step.prepare({EvalContext(*op.def, args, types), step.constant, threads});
        step.prepared_for = std::move(operand_types);
      }
    }
    EvalContext context(*op.def, std::move(args), std::move(types), &op);
    if (step.kernel)
      step.kernel(context);
    else
      op.def->eval(context);
    Store(step, std::move(context.results));
    if (options.observe) {
      std::vector<Tensor> results;
      for (int slot : step.results) results.push_back(values[slot]);
      options.observe(op, results);
    }
    for (int slot : step.last_uses) values[slot] = Tensor();
  }

  void Store(const Step& step, std::vector<Tensor> results) {
    MLC_CHECK(results.size() == step.results.size(), "{} computed {} results", step.op->Describe(),
              results.size());
    for (size_t i = 0; i < results.size(); ++i) {
      MLC_CHECK(results[i].dtype() == step.dtypes[i] ||
                    !step.op->result(static_cast<int>(i))->type.is_tensor(),
                "{} computed {}, expected {}", step.op->Describe(), Name(results[i].dtype()),
                Name(step.dtypes[i]));
      if (results[i].is_lazy())
        results[i].bytes();  // now, so that no chain of views outlives its operands
      values[step.results[i]] = std::move(results[i]);
    }
  }

  std::map<std::string, Tensor> Run(const std::map<std::string, Tensor>& inputs) {
    Clock::time_point start = Clock::now();
    values.assign(static_types.size(), Tensor());
    TakeInputs(inputs);
    auto check_time = [&](const Step& step) {
      if (options.timeout && Clock::now() - start > *options.timeout)
        throw Error("timeout",
                    fmt::format("the run took longer than {} ms", options.timeout->count()))
            .Note(fmt::format("it had come to {}", step.op->Describe()));
    };
    for (Step& step : body.steps) {
      try {
        RunStep(step);
      } catch (const Error& error) {
        Locate(error, *step.op);
      } catch (const std::bad_alloc&) {
        Locate(Error("resource-limit", fmt::format("{} ran out of memory", step.op->def->name)),
               *step.op);
      }
      check_time(step);
    }
    std::map<std::string, Tensor> outputs;
    for (size_t i = 0; i < body.outputs.size(); ++i) {
      const Source& source = body.outputs[i];
      outputs[function.body.outputs()[i]->name] =
          source.slot < 0 ? source.constant : values[source.slot];
    }
    values.clear();
    return outputs;
  }
};

Engine::Engine(const Function& function, EngineOptions options)
    : plan_(std::make_unique<Plan>(function, std::move(options))) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

std::map<std::string, Tensor> Engine::Run(const std::map<std::string, Tensor>& inputs) {
  return plan_->Run(inputs);
}

std::map<std::string, Tensor> Execute(const Program& program,
                                      const std::map<std::string, Tensor>& inputs,
                                      const EngineOptions& options) {
  return Engine(*program.main(), options).Run(inputs);
}

}  // namespace mlc
