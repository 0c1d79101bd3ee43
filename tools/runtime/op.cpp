// Operations under construction.
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "lib/ir/block_transaction.h"
#include "lib/ir/builder.h"
#include "lib/ir/insert_operation.h"
#include "lib/ir/text_values.h"
#include "lib/ops/row.h"
#include "lib/support/edit_distance.h"
#include "tools/runtime/composites.h"
#include "tools/runtime/program.h"
#include "tools/runtime/tensor.h"

using namespace mlc;
using namespace mlc::abi;

namespace {

// The operands of a parameter. A number without an element type takes that of the parameter.
struct Argument {
  Operands operands;
  bool untyped = false;
};

}  // namespace

struct mlc_op {
  std::shared_ptr<ProgramParts> program;
  mlc_block* block = nullptr;
  const OpDef* def = nullptr;  // null for a composite
  const Composite* composite = nullptr;
  std::string_view op_name;
  std::string name;                 // of the result, if it is free
  std::vector<Argument> arguments;  // by canonical parameter, or parameter of the composite
  std::unique_ptr<Operation> operation = std::make_unique<Operation>();  // null: finished
  std::vector<mlc_block*> blocks;  // handles of the nested blocks
};

namespace {

std::vector<std::string_view> ParametersOf(const mlc_op& op) {
  if (op.composite) return {op.composite->names().begin(), op.composite->names().end()};
  std::vector<std::string_view> names;
  for (const Param& param : op.def->canonical().params) names.push_back(param.name);
  return names;
}

Error Prefixed(std::string_view prefix, const Error& error) {
  Error made(error.id(), "{}: {}", prefix, error.text());
  for (const std::string& note : error.notes()) made.Note(note);
  return made;
}

mlc_op& Unfinished(mlc_op* op) {
  Require(op, "op");
  if (!op->operation) throw Error("usage", "the operation is finished");
  Open(op->block);
  return *op;
}

size_t IndexOf(const mlc_op& op, const char* parameter) {
  Require(parameter, "parameter");
  const std::vector<std::string_view> names = ParametersOf(op);
  const auto found = std::ranges::find(names, std::string_view(parameter));
  if (found == names.end())
    throw Error("bad-name", "{} has no parameter \"{}\"", op.op_name, parameter)
        .Expected("{}", fmt::join(names, ", "));
  return static_cast<size_t>(found - names.begin());
}

void SetConstant(mlc_op* op, const char* parameter, Tensor tensor, bool untyped) {
  Argument& argument = Unfinished(op).arguments[IndexOf(*op, parameter)];
  argument.operands = {};
  argument.operands.emplace_back(std::move(tensor));
  argument.untyped = untyped;
}

void SetValues(mlc_op* op, const char* parameter, int32_t count, const mlc_value* values) {
  Argument& argument = Unfinished(op).arguments[IndexOf(*op, parameter)];
  Operands operands;
  try {
    for (int32_t i = 0; i < count; ++i)
      operands.emplace_back(op->program->Visible(values[i], op->block));
  } catch (const Error& error) {
    throw Prefixed(fmt::format("{}: \"{}\"", op->op_name, parameter), error);
  }
  argument = {std::move(operands), false};
}

template <class T>
Tensor VectorOf(int32_t count, const T* numbers) {
  if (count < 0) throw Error("usage", "the number of elements is {}", count);
  if (count > 0) Require(numbers, "numbers");
  return Tensor::Vector<T>(count > 0 ? std::vector<T>(numbers, numbers + count) : std::vector<T>());
}

bool IsCompileTime(const Operand& operand) {
  return operand.constant() || (operand.value->def && operand.value->def->def->is_constexpr());
}

// Gives numbers the element type of the operands that they must agree with, or else the one that
// the parameter takes.
void ChooseTypes(mlc_op& op) {
  const std::vector<Param>& params = op.def->canonical().params;
  const auto domain_type = [&](char domain) {
    for (size_t i = 0; domain && i < params.size(); ++i)
      if (params[i].domain == domain && !op.arguments[i].untyped)
        for (const Operand& operand : op.arguments[i].operands)
          if (operand.type().is_tensor()) return operand.type().dtype;
    return DType::kNone;
  };
  for (size_t i = 0; i < params.size(); ++i) {
    Argument& argument = op.arguments[i];
    if (!argument.untyped) continue;
    const Tensor numbers = argument.operands[0].constant();
    const bool is_float = numbers.dtype() == DType::kFp64;
    DType dtype = domain_type(params[i].domain);
    if (params[i].types == SetOf(DType::kBool)) dtype = DType::kBool;
    if (dtype == DType::kNone) dtype = DefaultNumberType(params[i].types, is_float);
    if (dtype == DType::kNone)
      throw Error("bad-operand", "{}: the element type of \"{}\" is ambiguous", op.def->name,
                  params[i].name)
          .Help("set it to a constant with a type");
    if (dtype == DType::kBool)
      throw Error("bad-operand", "{}: \"{}\" takes bool, not numbers", op.def->name, params[i].name)
          .Help("set it with mlc_op_bool");
    if (is_float && !IsFloat(dtype))
      throw Error("bad-operand", "{}: \"{}\" takes {}, not floating-point numbers", op.def->name,
                  params[i].name, Name(dtype));
    Operand typed(NarrowForMil(numbers, dtype));
    argument.operands = {};
    argument.operands.push_back(std::move(typed));
    argument.untyped = false;
  }
}

// Throws for arguments that are missing, or that must be constant.
void CheckArguments(const mlc_op& op) {
  const std::vector<Param>& params = op.def->canonical().params;
  for (size_t i = 0; i < params.size(); ++i) {
    const Operands& operands = op.arguments[i].operands;
    if (operands.empty() && !params[i].variadic &&
        params[i].default_kind == Param::Default::kRequired)
      throw Error("bad-operand", "{} lacks \"{}\"", op.def->name, params[i].name);
    if (operands.size() > 1 && !params[i].variadic)
      throw Error("bad-operand", "{}: \"{}\" takes one value, not {}", op.def->name, params[i].name,
                  operands.size());
    if (operands.size() == 1 && operands[0].constant() &&
        operands[0].type().dtype == DType::kBool && params[i].types &&
        !Contains(params[i].types, DType::kBool))
      throw Error("bad-operand", "{}: \"{}\" does not take bool", op.def->name, params[i].name)
          .Help("set it with mlc_op_int or mlc_op_float");
    for (const Operand& operand : operands)
      if (params[i].is_const && !IsCompileTime(operand))
        throw Error("needs-constant", "{}: \"{}\" must be a constant", op.def->name,
                    params[i].name);
  }
  if (!op.def->runs_blocks()) return;
  if (op.blocks.size() != 2)
    throw Error("bad-graph", "{} has two blocks, not {}", op.def->name, op.blocks.size());
}

// Lowers a composite; a failure leaves nothing in the block. Returns the results.
std::vector<Value*> FinishComposite(mlc_op& op) {
  const Composite& composite = *op.composite;
  Builder builder(*op.block->block, op.program->diagnostics);
  BlockTransaction draft(builder);
  if (!op.name.empty()) draft.builder().SetName(op.name);
  std::vector<Operands> lists;
  for (size_t i = 0; i < op.arguments.size(); ++i) {
    Operands operands;
    for (const Operand& operand : op.arguments[i].operands) {
      // Numbers are int32 and fp32.
      Tensor constant = operand.constant();
      if (op.arguments[i].untyped)
        constant =
            NarrowForMil(constant, constant.dtype() == DType::kFp64 ? DType::kFp32 : DType::kInt32);
      const bool text = constant && constant.dtype() == DType::kString;
      operands.push_back(operand.value ? Operand(operand.value)
                         : text        ? Operand(constant)
                                       : Operand(draft.builder().Const(constant)));
    }
    if (operands.empty() && i < composite.required)
      throw Error("bad-operand", "{} lacks \"{}\"", composite.name, composite.parameters[i]);
    const bool several = i == 0 && composite.several;
    if ((operands.size() > 1 && !several) ||
        !std::ranges::all_of(operands, [](const Operand& one) { return one.type().is_tensor(); }))
      throw Error("bad-operand", "{}: \"{}\" takes {}", composite.name, composite.parameters[i],
                  several ? "tensors" : "one tensor");
    lists.push_back(std::move(operands));
  }
  std::vector<Value*> results;
  try {
    results = composite.lower(draft.builder(), CompositeArguments(composite.names(), lists));
  } catch (const Error& error) {
    throw Prefixed(composite.name, error);
  }
  draft.Splice();
  op.operation.reset();
  return results;
}

// Makes constants of the block from the literals of the arguments.
void MakeConstants(mlc_op& op, const std::string& base) {
  Builder builder(*op.block->block, op.program->diagnostics);
  const std::vector<Param>& params = op.def->canonical().params;
  for (size_t i = 0; i < params.size(); ++i)
    for (Operand& operand : op.arguments[i].operands)
      if (!operand.value)
        operand = builder.Const(operand.constant(), fmt::format("{}_{}", base, params[i].name));
}

Operation* Finish(mlc_op& op) {
  ChooseTypes(op);
  CheckArguments(op);
  OperandLists lists;
  for (const Argument& argument : op.arguments) lists.push_back(argument.operands);
  Block& block = *op.block->block;
  Operation& made = *op.operation;
  InferContext inferred(*op.def, lists, made.blocks.empty() ? nullptr : &made,
                        &block.function->symbols);
  if (op.def->infer) op.def->infer(inferred);
  const std::string base = op.name.empty() ? std::string(op.def->name) : op.name;
  MakeConstants(op, base);
  made.name = base;
  for (size_t i = 0; i < op.arguments.size(); ++i)
    if (!op.arguments[i].operands.empty())
      made.SetArg(static_cast<int>(i), std::move(op.arguments[i].operands));
  return InsertOperation(block, std::move(op.operation), inferred);
}

// The operator with the most similar name; empty if there is none.
std::string MeantOperator(const OpSet& ops, const std::string& wanted) {
  std::set<std::string> names;
  for (const OpDef& def : ops.all())
    if (!def.is_const()) names.emplace(def.name);
  for (const Composite& composite : Composites()) names.emplace(composite.name);
  return MeantName(names, wanted);  // names of ONNX have capitals: Conv, LayerNormalization
}

}  // namespace

int32_t mlc_op_new(mlc_block* block, const char* op_name, const char* name, mlc_op** op,
                   mlc_error** error) {
  return Call(error, [&] {
    ProgramParts& program = Open(block);
    Require(op_name, "op_name");
    Require(op, "op");
    const OpDef* def = program.program.ops->Find(op_name);
    const Composite* composite = FindComposite(op_name);
    if (!composite && (!def || def->is_const())) {
      for (const Refused& refused : RefusedOperators())
        if (refused.name == op_name)
          throw Error("unsupported-operator", "{} cannot be built: {}", op_name, refused.why);
      Error error("unsupported-operator", "unknown operator {}", op_name);
      if (const std::string meant = MeantOperator(*program.program.ops, op_name); !meant.empty())
        error.Expected("perhaps {}", meant);
      throw error.Help("mlc_capabilities lists the operators");
    }
    if (!OrEmpty(name).empty() && !IsLegalName(name))
      throw Error("bad-name", "\"{}\" cannot be a name in a program", name)
          .Expected("letters, digits and _, e.g. {}", LegalName(name));
    auto made = std::make_unique<mlc_op>();
    made->program = program.shared_from_this();
    made->block = block;
    made->def = def;
    made->composite = composite;
    made->op_name = composite ? composite->name : def->name;
    made->name = std::string(OrEmpty(name));
    made->arguments.resize(ParametersOf(*made).size());
    made->operation->def = def;
    *op = made.release();
  });
}

int32_t mlc_op_arg(mlc_op* op, const char* parameter, mlc_value value, mlc_error** error) {
  return Call(error, [&] { SetValues(op, parameter, 1, &value); });
}
int32_t mlc_op_args(mlc_op* op, const char* parameter, int32_t count, const mlc_value* values,
                    mlc_error** error) {
  return Call(error, [&] {
    if (count < 0) throw Error("usage", "the number of values is {}", count);
    if (count > 0) Require(values, "values");
    SetValues(op, parameter, count, values);
  });
}
int32_t mlc_op_int(mlc_op* op, const char* parameter, int64_t number, mlc_error** error) {
  return Call(error, [&] { SetConstant(op, parameter, Tensor::Scalar<int64_t>(number), true); });
}
int32_t mlc_op_float(mlc_op* op, const char* parameter, double number, mlc_error** error) {
  return Call(error, [&] { SetConstant(op, parameter, Tensor::Scalar<double>(number), true); });
}
int32_t mlc_op_bool(mlc_op* op, const char* parameter, int32_t flag, mlc_error** error) {
  return Call(error, [&] { SetConstant(op, parameter, Tensor::Scalar<bool>(flag != 0), false); });
}
int32_t mlc_op_string(mlc_op* op, const char* parameter, const char* text, mlc_error** error) {
  return Call(error, [&] {
    Require(text, "text");
    SetConstant(op, parameter, Tensor::String(text), false);
  });
}
int32_t mlc_op_ints(mlc_op* op, const char* parameter, int32_t count, const int64_t* numbers,
                    mlc_error** error) {
  return Call(error, [&] { SetConstant(op, parameter, VectorOf(count, numbers), true); });
}
int32_t mlc_op_floats(mlc_op* op, const char* parameter, int32_t count, const double* numbers,
                      mlc_error** error) {
  return Call(error, [&] { SetConstant(op, parameter, VectorOf(count, numbers), true); });
}

int32_t mlc_op_block(mlc_op* op, int32_t index, mlc_block** block, mlc_error** error) {
  return Call(error, [&] {
    Unfinished(op);
    Require(block, "block");
    if (!op->def || !op->def->runs_blocks())
      throw Error("usage", "{} has no blocks", op->op_name).Expected("cond or while_loop");
    if (index < 0 || index > 1) throw Error("usage", "the block {}", index).Expected("0 or 1");
    while (op->blocks.empty()) {
      for (int i = 0; i < 2; ++i) {
        auto nested = std::make_unique<Block>();
        nested->function = op->block->block->function;
        op->blocks.push_back(op->program->AddBlock(op->block, nested.get()));
        op->operation->blocks.push_back(std::move(nested));
      }
    }
    *block = op->blocks[static_cast<size_t>(index)];
  });
}

int32_t mlc_op_finish(mlc_op* op, int32_t capacity, mlc_value* results, int32_t* count,
                      mlc_error** error) {
  return Call(error, [&] {
    Unfinished(op);
    if (capacity > 0) Require(results, "results");
    std::vector<Value*> found;
    try {
      if (op->composite) {
        found = FinishComposite(*op);
      } else {
        for (const auto& result : Finish(*op)->results) found.push_back(result.get());
      }
    } catch (Error& refused) {
      if (!refused.has_location())
        refused.At({"", fmt::format("function \"{}\", {} \"{}\"", op->block->block->function->name,
                                    op->op_name, op->name)});
      throw;
    }
    for (mlc_block* block : op->blocks) block->open = false;
    for (size_t i = 0; i < found.size(); ++i) {
      const mlc_value value = op->program->Add(found[i], op->block);
      if (static_cast<int64_t>(i) < capacity) results[i] = value;
    }
    if (count) *count = static_cast<int32_t>(found.size());
  });
}

void mlc_op_free(mlc_op* op) {
  if (op && op->operation)
    for (mlc_block* block : op->blocks)
      if (block->block) op->program->Drop(block);
  delete op;
}
