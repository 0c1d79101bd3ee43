// Operators by name: casts, whose rounding exact arithmetic preserves if the source requests it.
#include "lib/engine/engine.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <ranges>
#include <set>
#include <utility>

#include "lib/engine/check_inputs.h"
#include "lib/engine/elementwise.h"
#include "lib/engine/fp32_view.h"
#include "lib/engine/fusion.h"
#include "lib/engine/kernels.h"
#include "lib/engine/layout.h"
#include "lib/ir/encoding.h"
#include "lib/support/memory_limits.h"
#include "lib/support/threads.h"
#include "lib/support/work_scope.h"

namespace mlc::engine {

namespace {

using Clock = std::chrono::steady_clock;
using Args = OpContext::Args;

Type TypeOf(const Tensor& tensor) { return Type::Tensor(tensor.dtype(), ToShape(tensor.dims())); }

// The source of an operand: a constant, or the slot of a value that is computed at run time.
struct Source {
  int slot = -1;
  Tensor constant;
};

struct Step;

// A kernel, possibly empty, and the operand types that it was prepared for.
struct Prepared {
  std::vector<Type> types;
  Kernel kernel;
};

// The steps of a block. Slots are numbered across all blocks.
struct BlockPlan {
  std::vector<int> inputs;
  std::vector<Step> steps;
  std::vector<Source> outputs;
  std::vector<bool> handed_over;  // per output: the block does not keep a reference
};

// An operation, or several that one kernel computes.
struct Step {
  const Operation* op = nullptr;
  std::vector<std::vector<Source>> args;  // by canonical parameter
  std::vector<bool> constant;             // by canonical parameter
  std::vector<int> results;               // slots
  std::vector<DType> dtypes;              // element types of the results
  std::vector<int> last_uses;             // slots with no use after this step
  std::vector<BlockPlan> blocks;
  std::vector<Type> types;  // types of the results, if they are the same in every run
  std::vector<PrepareKernel> kernels;
  bool any_layout = false;  // accepts operands in any layout, and may return such results
  // The operations of a chain, which run one by one if no kernel supports the chain.
  std::vector<Step> parts = {};
  Chain chain = {};
  bool wide = false;    // whether its fp16 result may be stored as fp32
  int overwrites = -1;  // the slot of the state that the step updates in place
  // For the operand types of the last call; guarded by Plan::mutex.
  mutable std::shared_ptr<const Prepared> prepared = {};
};

// The data of one run.
struct Call {
  std::vector<Tensor> values;  // by slot
  Clock::time_point start;
  std::vector<const Tensor*> given;          // by slot: the caller's tensor for a state
  std::vector<std::function<void()>> undos;  // restore changed states; the latest change is last
};

// Rethrows `error` with the operation's location, or with its name if it has none.
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

constexpr int64_t kMostIterations = int64_t{1} << 24;  // maximum iterations of a loop

// Rejects a shape that exceeds the memory before it is allocated.
void CheckSize(const Type& type) {
  if (!type.is_tensor() || !IsStatic(type.shape) || type.dtype == DType::kString) return;
  int64_t elements = ElementCount(StaticDims(type.shape));
  if (elements > PhysicalMemory() / std::max(1, Bits(type.dtype) / 8))
    throw Error("resource-limit", "a result of type {} does not fit into memory", type.ToString());
}

}  // namespace

struct Engine::Plan {
  const Function& function;
  EngineOptions options;
  std::map<const Value*, Source> sources;
  // By slot; the dtype is kNone if the type is unknown before a run.
  std::vector<Type> static_types;
  std::vector<Type::Kind> kinds;  // by slot
  BlockPlan body;
  int threads = 1;
  std::shared_ptr<PreparedWeights> weights;
  mutable std::mutex mutex;

  Plan(const Function& f, EngineOptions o) : function(f), options(std::move(o)) {
    threads = options.threads > 0 ? options.threads : DefaultThreads();
    weights = options.weights ? options.weights : std::make_shared<PreparedWeights>();
    body = PlanOf(function.body);
  }

  BlockPlan PlanOf(const Block& block) {
    BlockPlan plan;
    for (const auto& input : block.inputs) plan.inputs.push_back(NewSlot(input.get(), input->type));
    for (Operation* op : block.operations()) {
      try {
        AddStep(*op, plan);
      } catch (const Error& error) {
        Locate(error, *op);
      }
    }
    for (const Value* output : block.outputs()) plan.outputs.push_back(SourceOf(output));
    // An observer needs the result of every operation.
    if (options.kernels == EngineOptions::Kernels::kFast && !options.observe) {
      Fuse(block, plan);
      FindWide(plan);
    }
    FindLastUses(plan);
    FindHandedOver(plan);
    FindOverwrites(plan);
    return plan;
  }

  bool exact() const { return options.arithmetic == EngineOptions::Arithmetic::kExact; }
  DType Retyped(DType dtype) const {
    return exact() && dtype == DType::kFp16 ? DType::kFp32 : dtype;
  }
  Tensor Retyped(const Tensor& constant) const { return constant.Cast(Retyped(constant.dtype())); }

  // Returns whether the operation is a cast to fp16 whose users are all casts. No operation
  // computes in fp16 then: the source requests the rounding itself, and exact arithmetic preserves
  // it.
  static bool IsRounding(const Operation* op) {
    if (!op || !op->is("cast") || op->result()->is_output()) return false;
    const auto& users = op->result()->users;
    return op->result()->type.dtype == DType::kFp16 &&
           std::all_of(users.begin(), users.end(),
                       [](const Operation* user) { return user->is("cast"); });
  }
  // Returns the type of the stored elements: the content of a state, the elements of a list or the
  // values of a dictionary.
  DType StoredDType(const Value& value) const {
    const Type& type = value.type;
    DType dtype = (type.is_tensor() ? type : type.elements.back()).dtype;
    return IsRounding(value.def) ? dtype : Retyped(dtype);
  }

  int NewSlot(const Value* value, Type type) {
    kinds.push_back(type.kind);
    if (type.kind == Type::Kind::kState) type = Type(type.elements[0]);
    if (!IsRounding(value->def)) type.dtype = Retyped(type.dtype);
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

  void AddStep(const Operation& op, BlockPlan& plan) {
    if (op.def->is_const()) {
      sources[op.result()] = {-1, op.val.dtype() == DType::kString ? op.val : Retyped(op.val)};
      return;
    }
    bool nested = op.def->runs_blocks();
    if (!op.def->eval && !nested && op.def->effect != Effect::kWritesState)
      throw Error("unsupported-operator", "the engine cannot run {}", op.def->name);
    Step step{.op = &op};
    size_t params = op.def->canonical().params.size();
    step.args.resize(params);
    step.constant.resize(params);
    bool all_constant = true, all_static = true;
    for (size_t p = 0; p < op.args().size(); ++p) {
      step.constant[p] = !op.args()[p].empty();
      for (const Operand& operand : op.args()[p]) {
        Source source = operand.value ? SourceOf(operand.value) : Source{-1, operand.constant()};
        if (!operand.value && source.constant.dtype() != DType::kString)
          source.constant = Retyped(source.constant);
        if (source.slot >= 0) {
          step.constant[p] = all_constant = false;
          all_static = all_static && static_types[source.slot].dtype != DType::kNone;
        }
        step.args[p].push_back(std::move(source));
      }
    }
    // Operands that give a float type as text.
    if (int dtype = op.def->Find("dtype"); exact() && !IsRounding(&op) && dtype >= 0)
      for (Source& source : step.args[dtype])
        if (source.constant && source.constant.strings()[0] == "fp16")
          source.constant = Tensor::String("fp32");
    for (const auto& result : op.results) step.dtypes.push_back(StoredDType(*result));
    if (nested) {
      for (const auto& block : op.blocks) step.blocks.push_back(PlanOf(*block));
      for (const auto& result : op.results)
        step.results.push_back(NewSlot(result.get(), result->type));
      plan.steps.push_back(std::move(step));
      return;
    }

    if (all_static) step.types = StaticResults(step);
    if (all_constant && op.def->pure && !step.types.empty()) {
      EvalContext context(*op.def, ArgsOf(step, nullptr), step.types, &op);
      for (const Type& type : step.types) CheckSize(type);
      op.def->eval(context);
      for (size_t i = 0; i < op.results.size(); ++i)
        sources[op.result(static_cast<int>(i))] = {-1, context.results.at(i)};
      return;
    }
    for (size_t i = 0; i < op.results.size(); ++i) {
      const Value* result = op.result(static_cast<int>(i));
      step.results.push_back(NewSlot(result, !step.types.empty()        ? step.types[i]
                                             : result->type.is_tensor() ? Type()
                                                                        : result->type));
    }
    using enum EngineOptions::Kernels;
    if (options.kernels != kEval)
      step.kernels = FindKernels(op.def->name, options.kernels == kReproducible);
    step.any_layout = options.kernels == kFast && TakesAnyLayout(op.def->name);
    if (op.def->moves == Moves::kNone) HoldConstants(step);
    plan.steps.push_back(std::move(step));
  }

  // Combines operations that one kernel can compute into a step in place of the last one, where all
  // operands are available.
  static void Fuse(const Block& block, BlockPlan& plan) {
    std::map<const Operation*, Step*> steps;
    for (Step& step : plan.steps) steps[step.op] = &step;
    for (Fusion& fusion : FindFusions(block)) {
      if (!std::ranges::all_of(fusion.operations, [&](const Operation* op) {
            auto it = steps.find(op);
            return it != steps.end() && !it->second->types.empty();
          }))
        continue;
      Step whole;
      for (const Operation* op : fusion.operations) {
        Step& part = *steps.at(op);
        whole.results.push_back(part.results.at(0));
        whole.parts.push_back(std::move(part));
        part = Step();
      }
      whole.op = fusion.operations.front();
      whole.types = whole.parts.front().types;
      whole.constant = whole.parts.front().constant;
      whole.kernels = FindChainKernels(whole.op->def->name);
      whole.chain = std::move(fusion.chain);
      *steps.at(fusion.operations.back()) = std::move(whole);
    }
    std::erase_if(plan.steps, [](const Step& step) { return !step.op; });
  }

  // Keeps fp16 results that only fp32 kernels read as rounded fp32: converting them twice would
  // take as long as many kernels.
  void FindWide(BlockPlan& plan) const {
    std::set<int> read_narrow;
    for (const Source& output : plan.outputs) read_narrow.insert(output.slot);
    for (const Step& step : plan.steps)
      if (!TakesWide(step)) ForEachUse(step, [&](int slot) { read_narrow.insert(slot); });
    for (Step& step : plan.steps) {
      if (!TakesWide(step)) continue;
      Step& last = step.parts.empty() ? step : step.parts.back();
      step.wide = last.wide =
          last.dtypes[0] == DType::kFp16 && !read_narrow.contains(last.results[0]);
    }
  }
  static bool TakesWide(const Step& step) {
    auto takes = [](const Step& each) {
      return !each.types.empty() && mlc::engine::TakesWide(each.op->def->name);
    };
    return step.parts.empty() ? takes(step) : std::ranges::all_of(step.parts, takes);
  }

  // Evaluates lazy constants that a step would otherwise evaluate in every run. Data movement reads
  // only the elements that it needs, and kernels store their weights themselves.
  void HoldConstants(Step& step) {
    for (size_t p = 0; p < step.args.size(); ++p)
      for (size_t i = 0; i < step.args[p].size(); ++i) {
        Source& source = step.args[p][i];
        if (source.slot >= 0) continue;
        if (IsWeight(step, p, source.constant)) continue;
        const Value* value = step.op->args()[p][i].value;
        source.constant = source.constant.InMemory();
        if (value) sources.at(value).constant = source.constant;
      }
  }

  static bool IsWeight(const Step& step, size_t param, const Tensor& constant) {
    if (step.kernels.empty() || !IsKernelFloat(constant.dtype())) return false;
    return HoldsWeights(step.op->def->name, step.op->def->canonical().params[param].name);
  }

  // Returns result types that hold in every run; empty if they depend on values.
  std::vector<Type> StaticResults(const Step& step) {
    InferContext context(*step.op->def, ArgsOf(step, nullptr));
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

  // Sets the declared element types: type inference alone cannot tell which operand of a product
  // was the constant.
  static std::vector<Type> WithDTypes(const Step& step, std::vector<Type> types) {
    MLC_CHECK(types.size() == step.dtypes.size(), "{} infers {} results, has {}",
              step.op->Describe(), types.size(), step.dtypes.size());
    for (size_t i = 0; i < types.size(); ++i)
      (types[i].is_tensor() ? types[i] : types[i].elements.back()).dtype = step.dtypes[i];
    return types;
  }

  // Returns the operands; without a call, values that are not constant are unknown.
  Args ArgsOf(const Step& step, const Call* call) const {
    Args args(step.args.size());
    for (size_t p = 0; p < args.size(); ++p)
      for (const Source& source : step.args[p]) {
        if (source.slot < 0)
          args[p].push_back({TypeOf(source.constant), source.constant});
        else if (!call)
          args[p].push_back({Declared(source.slot, static_types[source.slot]), {}});
        else
          args[p].push_back({Declared(source.slot, TypeOf(call->values[source.slot])),
                             call->values[source.slot]});
      }
    return args;
  }

  // Returns the type of a slot's value, whose stored tensor has type `stored`.
  Type Declared(int slot, Type stored) const {
    if (kinds[slot] == Type::Kind::kState) return Type::State(std::move(stored));
    if (kinds[slot] != Type::Kind::kList || stored.shape.empty()) return stored;
    Dim length = stored.shape[0];
    stored.shape.erase(stored.shape.begin());
    // List elements of unknown size are empty until the first write.
    for (Dim& dim : stored.shape)
      if (dim == Dim(0)) dim = Dim::Symbol("unknown") - 1;
    return Type::List(std::move(stored), std::move(length));
  }

  template <class F>
  static void ForEachUse(const Step& step, F&& f) {
    for (const Source& source : std::views::join(step.args))
      if (source.slot >= 0) f(source.slot);
    for (const Step& part : step.parts) ForEachUse(part, f);
    for (const BlockPlan& block : step.blocks) {
      for (const Step& inner : block.steps) ForEachUse(inner, f);
      for (const Source& output : block.outputs)
        if (output.slot >= 0) f(output.slot);
    }
  }

  // Finds the last use of each value computed in a block. Values from outside may be needed in the
  // block's next run.
  void FindLastUses(BlockPlan& plan) {
    std::map<int, size_t> last;
    for (size_t i = 0; i < plan.steps.size(); ++i)
      for (int slot : plan.steps[i].results) last[slot] = i;
    for (int slot : plan.inputs)
      if (kinds[slot] != Type::Kind::kState) last[slot] = 0;
    for (size_t i = 0; i < plan.steps.size(); ++i)
      ForEachUse(plan.steps[i], [&](int slot) {
        if (auto it = last.find(slot); it != last.end()) it->second = i;
      });
    for (const Source& output : plan.outputs) last.erase(output.slot);
    if (plan.steps.empty()) return;
    for (auto [slot, step] : last) plan.steps[step].last_uses.push_back(slot);
  }

  // Finds outputs that only the caller of the block references, so that an operation in a loop may
  // update a loop-carried value in place.
  void FindHandedOver(BlockPlan& plan) const {
    std::set<int> own(plan.inputs.begin(), plan.inputs.end());
    for (const Step& step : plan.steps) {
      own.insert(step.results.begin(), step.results.end());
      for (const Step& part : step.parts) own.insert(part.results.begin(), part.results.end());
    }
    plan.handed_over.resize(plan.outputs.size());
    for (size_t i = plan.outputs.size(); i-- > 0;) {  // at its last use as an output
      int slot = plan.outputs[i].slot;
      plan.handed_over[i] = own.erase(slot) > 0 && kinds[slot] != Type::Kind::kState;
    }
  }

  // Finds steps that read the content of a state for the last time before their result is written
  // to the state, which may then release its content.
  void FindOverwrites(BlockPlan& plan) const {
    std::map<int, int> read;  // maps the slot of a content to that of its state
    for (size_t i = 0; i < plan.steps.size(); ++i) {
      Step& step = plan.steps[i];
      if (step.op->def->effect == Effect::kReadsState)
        read[step.results.at(0)] = step.args.at(0).at(0).slot;
      if (step.results.size() != 1 || !step.parts.empty() || !step.blocks.empty()) continue;
      ForEachUse(step, [&](int slot) {
        auto it = read.find(slot);
        if (it != read.end() && std::ranges::count(step.last_uses, slot) &&
            IsWrittenNext(plan, i, it->second))
          step.overwrites = it->second;
      });
    }
  }
  // Returns whether the next use of a state writes the only result of a step to it.
  static bool IsWrittenNext(const BlockPlan& plan, size_t index, int state) {
    for (size_t i = index + 1; i < plan.steps.size(); ++i) {
      const Step& step = plan.steps[i];
      bool uses = false;
      ForEachUse(step, [&](int slot) { uses |= slot == state; });
      if (!uses) continue;
      const OpDef& def = *step.op->def;
      return def.effect == Effect::kWritesState &&
             step.args[def.Find("data")][0].slot == plan.steps[index].results[0];
    }
    return false;
  }

  void TakeInputs(const std::map<std::string, Tensor>& inputs, Call& call) const {
    CheckInputs(function, inputs, exact());
    for (size_t i = 0; i < body.inputs.size(); ++i) {
      const Value& value = *function.body.inputs[i];
      if (value.type.kind != Type::Kind::kState)
        call.values[body.inputs[i]] = Retyped(inputs.at(value.name)).InMemory();
    }
  }

  void TakeStates(const States& states, Call& call) const {
    size_t known = 0;
    for (const auto& input : function.body.inputs) {
      if (input->type.kind != Type::Kind::kState) continue;
      const Type& held = input->type.elements[0];
      DType dtype = Retyped(held.dtype);
      Tensor& value = call.values[SourceOf(input.get()).slot];
      auto it = states.find(input->name);
      value = it == states.end() ? Tensor::Full(dtype, StaticDims(held.shape), 0)
                                 : it->second.Cast(Retyped(it->second.dtype())).InMemory();
      if (it != states.end()) call.given[SourceOf(input.get()).slot] = &it->second;
      known += it != states.end();
      if (value.dtype() != dtype || ToShape(value.dims()) != held.shape)
        throw Error("bad-input", "state \"{}\" has type {}", input->name, TypeOf(value).ToString())
            .Expected(held.ToString());
    }
    if (known != states.size())
      for (const auto& [name, tensor] : states)
        if (std::ranges::none_of(function.body.inputs, [&](const auto& input) {
              return input->name == name && input->type.kind == Type::Kind::kState;
            }))
          throw Error("bad-input", "unknown state \"{}\"", name);
  }

  void RunStep(const Step& step, Call& call) const {
    const Operation& op = *step.op;
    if (!step.parts.empty()) return RunChain(step, call);
    if (!step.any_layout) BringIntoOrder(step, call);
    if (!step.blocks.empty()) return Finish(step, RunBlocks(step, call), call);
    Args args = ArgsOf(step, &call);
    std::vector<Type> types = step.types;
    if (types.empty()) {
      InferContext context(*op.def, args);
      op.def->infer(context);
      types = WithDTypes(step, std::move(context.results));
    }
    for (const Type& type : types) CheckSize(type);
    std::shared_ptr<const Prepared> prepared;
    if (!step.kernels.empty()) prepared = PreparedFor(step, args, types);
    if (op.def->effect == Effect::kWritesState) {
      call.values[step.args[op.def->Find("input")][0].slot] = args[op.def->Find("data")][0].value;
      return Finish(step, {}, call);
    }
    const bool kernel = prepared && prepared->kernel;
    if (!kernel && Narrow(step, call)) args = ArgsOf(step, &call);
    // From here on, this operation holds the only reference to operands after their last use.
    for (int slot : step.last_uses) call.values[slot] = Tensor();
    EvalContext context(*op.def, std::move(args), std::move(types), &op);
    if (step.overwrites >= 0) HandOver(step, context, call);
    if (kernel)
      prepared->kernel(context);
    else
      op.def->eval(context);
    Finish(step, std::move(context.results), call);
    // The next use of the state writes this result to it.
    if (step.overwrites >= 0) call.values[step.overwrites] = call.values[step.results[0]];
  }

  // Passes the content of a state to the operation. If the caller holds it too, the old elements
  // are restored when the run fails.
  static void HandOver(const Step& step, EvalContext& context, Call& call) {
    const Tensor content = std::exchange(call.values[step.overwrites], Tensor());
    const Tensor* given = call.given[step.overwrites];
    if (!given || given->InPlace(0, 1).data() != content.InPlace(0, 1).data()) return;
    context.holders = 2;
    context.on_change = [&call](std::function<void()> undo) {
      call.undos.push_back(std::move(undo));
    };
  }

  std::shared_ptr<const Prepared> PreparedFor(const Step& step, const Args& args,
                                              const std::vector<Type>& types) const {
    std::shared_ptr<const Prepared> last;
    {
      std::lock_guard lock(mutex);
      last = step.prepared;
    }
    if (last && !step.types.empty()) return last;
    std::vector<Type> operand_types;
    for (const OpContext::Arg& arg : std::views::join(args)) operand_types.push_back(arg.type);
    if (last && operand_types == last->types) return last;
    EvalContext context(*step.op->def, args, types);
    auto fresh = std::make_shared<Prepared>();
    fresh->types = std::move(operand_types);
    fresh->kernel = MakeKernel(
        step.kernels, {.context = context,
                       .constant = step.constant,
                       .prepared = *weights,
                       .threads = threads,
                       .reproducible = options.kernels == EngineOptions::Kernels::kReproducible,
                       .wide = step.wide});
    std::lock_guard lock(mutex);
    step.prepared = fresh;
    return fresh;
  }

  // Converts operands to row-major order, also for later steps.
  static void BringIntoOrder(const Step& step, Call& call) {
    for (const Source& source : std::views::join(step.args))
      if (source.slot >= 0) call.values[source.slot] = call.values[source.slot].InMemory();
  }

  // Converts fp16 operands that are stored as fp32 to fp16. Returns whether there were any.
  bool Narrow(const Step& step, Call& call) const {
    bool any = false;
    for (const Source& source : std::views::join(step.args))
      if (source.slot >= 0 && static_types[source.slot].dtype == DType::kFp16 &&
          call.values[source.slot].dtype() == DType::kFp32) {
        call.values[source.slot] = call.values[source.slot].Cast(DType::kFp16).InMemory();
        any = true;
      }
    return any;
  }

  void RunChain(const Step& step, Call& call) const {
    const Step& first = step.parts.front();
    if (!first.any_layout) BringIntoOrder(first, call);
    CheckSize(first.types[0]);
    Args args = ArgsOf(first, &call);
    std::shared_ptr<const Prepared> prepared = PreparedFor(step, args, first.types);
    if (prepared->kernel) {
      std::vector<EvalContext> links;
      for (size_t i = 1; i < step.parts.size(); ++i) {
        const Step& part = step.parts[i];
        links.emplace_back(*part.op->def, ArgsOf(part, &call), part.types, part.op);
      }
      ChainContext context(EvalContext(*first.op->def, std::move(args), first.types, first.op),
                           step.chain, std::move(links));
      prepared->kernel(context);
      Store(step.parts.back(), std::move(context.results), call);
    } else {
      for (const Step& part : step.parts) RunStep(part, call);
    }
    for (int slot : step.last_uses) call.values[slot] = Tensor();
  }

  // Runs cond and while_loop.
  std::vector<Tensor> RunBlocks(const Step& step, Call& call) const {
    std::vector<Tensor> variables;
    for (const Source& source : std::views::join(step.args))
      variables.push_back(ValueOf(source, call));
    if (step.op->def->effect == Effect::kBranch)
      return RunBlock(step.blocks[variables.at(0).Bool(0) ? 0 : 1], {}, call);
    for (int64_t i = 0; RunBlock(step.blocks[0], variables, call).at(0).Bool(0); ++i) {
      variables = RunBlock(step.blocks[1], std::move(variables), call);
      if (i == kMostIterations)
        throw Error("resource-limit", "loop not finished after {} iterations", kMostIterations);
    }
    return variables;
  }

  static Tensor ValueOf(const Source& source, const Call& call) {
    return source.slot < 0 ? source.constant : call.values[source.slot];
  }

  std::vector<Tensor> RunBlock(const BlockPlan& plan, std::vector<Tensor> inputs,
                               Call& call) const {
    for (size_t i = 0; i < inputs.size(); ++i) {
      int slot = plan.inputs[i];
      const Type& declared = static_types[slot];
      if (declared.dtype != DType::kNone && !(declared == TypeOf(inputs[i])))
        throw Error("bad-operand",
                    "the body of a loop or branch expects {}, but its argument is {}",
                    declared.ToString(), TypeOf(inputs[i]).ToString());
      call.values[slot] = std::move(inputs[i]);
    }
    for (const Step& step : plan.steps) {
      try {
        RunStep(step, call);
      } catch (const Error& error) {
        Locate(error, *step.op);
      } catch (const std::bad_alloc&) {
        Locate(OutOfMemory(fmt::format("{} ran out of memory", step.op->def->name)), *step.op);
      }
      ThrowIfCancelled();
      if (options.timeout && Clock::now() - call.start > *options.timeout)
        throw Error("timeout", "no result within {} ms", options.timeout->count())
            .Note("interrupted at {}", step.op->Describe());
    }
    std::vector<Tensor> outputs;
    for (size_t i = 0; i < plan.outputs.size(); ++i) {
      const Source& output = plan.outputs[i];
      outputs.push_back(ValueOf(output, call).InMemory());
      if (plan.handed_over[i]) call.values[output.slot] = Tensor();
    }
    return outputs;
  }

  void Finish(const Step& step, std::vector<Tensor> results, Call& call) const {
    Store(step, std::move(results), call);
    if (options.observe) {
      std::vector<Tensor> results;
      for (int slot : step.results) results.push_back(call.values[slot].InMemory());
      options.observe(*step.op, results);
      for (size_t i = 0; i < results.size(); ++i)
        call.values[step.results[i]] = std::move(results[i]);
    }
    for (int slot : step.last_uses) call.values[slot] = Tensor();
  }

  void Store(const Step& step, std::vector<Tensor> results, Call& call) const {
    MLC_CHECK(results.size() == step.results.size(), "{} computed {} results", step.op->Describe(),
              results.size());
    for (size_t i = 0; i < results.size(); ++i) {
      MLC_CHECK(results[i].dtype() == step.dtypes[i] ||
                    (step.wide && results[i].dtype() == DType::kFp32) ||
                    !step.op->result(static_cast<int>(i))->type.is_tensor(),
                "{} computed {}, expected {}", step.op->Describe(), Name(results[i].dtype()),
                Name(step.dtypes[i]));
      // Evaluate lazy results now, so that views do not keep their operands alive; channels-last
      // images stay lazy.
      bool last = step.any_layout && ImageLayout::Of(results[i]).channels_last();
      call.values[step.results[i]] = last ? std::move(results[i]) : results[i].InMemory();
    }
  }

  std::map<std::string, Tensor> Run(const std::map<std::string, Tensor>& inputs,
                                    States& states) const {
    Call call{std::vector<Tensor>(static_types.size()),
              Clock::now(),
              std::vector<const Tensor*>(static_types.size()),
              {}};
    TakeInputs(inputs, call);
    TakeStates(states, call);
    std::vector<Tensor> results;
    try {
      results = RunBlock(body, {}, call);
    } catch (...) {
      for (const auto& undo : std::views::reverse(call.undos)) undo();
      throw;
    }
    for (const auto& input : function.body.inputs)
      if (input->type.kind == Type::Kind::kState)
        states[input->name] = call.values[SourceOf(input.get()).slot];
    std::map<std::string, Tensor> outputs;
    for (size_t i = 0; i < results.size(); ++i)
      outputs[function.body.outputs()[i]->name] = std::move(results[i]);
    return outputs;
  }
};

Engine::Engine(const Function& function, EngineOptions options)
    : plan_(std::make_unique<Plan>(function, std::move(options))) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

std::map<std::string, Tensor> Engine::Run(const std::map<std::string, Tensor>& inputs) const {
  States states;
  return plan_->Run(inputs, states);
}
std::map<std::string, Tensor> Engine::Run(const std::map<std::string, Tensor>& inputs,
                                          States& states) const {
  return plan_->Run(inputs, states);
}

std::map<std::string, Tensor> Execute(const Program& program,
                                      const std::map<std::string, Tensor>& inputs,
                                      const EngineOptions& options) {
  return Engine(*program.main(), options).Run(inputs);
}

}  // namespace mlc::engine
