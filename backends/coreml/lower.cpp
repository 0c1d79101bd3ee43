#include "backends/coreml/lower.h"

#include <algorithm>
#include <functional>

#include "lib/coreml/dtypes.h"
#include "lib/ir/builder.h"
#include "lib/ops/form_params.h"
#include "lib/passes/encoded_constants.h"

namespace mlc::coreml {

namespace {

constexpr size_t kMaxErrors = 20;

Error Located(Error error, const Operation& op) {
  if (error.has_location()) return error;
  Location location;
  if (op.location) location = *op.location;
  if (location.empty()) location.where = op.Describe();
  return error.At(std::move(location));
}

Error TooOld(const std::string& what, Opset needs, Opset target) {
  return Error("target-too-old", "{} requires {}, but the target is {}", what, TargetName(needs),
               TargetName(target))
      .Help("pass option 'target' {}", TargetName(needs));
}

void CheckTypes(const Operation& op, const Form& form, Opset target) {
  std::string complaint = OperandComplaint(op, form);
  if (complaint.empty()) return;
  for (const Form& newer : op.def->forms)
    if (newer.since > target && OperandComplaint(op, newer).empty())
      throw TooOld(fmt::format("{}: {}", op.def->name, complaint), newer.since, target);
  throw Error("unsupported-dtype", "{}: Core ML does not support {}", op.def->name, complaint);
}

// Constants that are only decompressed may have more dimensions.
bool HasRank(const Type& type) { return !type.is_tensor() || type.rank() <= kMostDimensions; }

Error RankError(const Type& type, std::string_view what) {
  return Error("rank-limit", "{} has shape {}", what, ToString(type.shape))
      .Expected("at most {} dimensions", kMostDimensions);
}

// Checks element types and ranks of run-time values; constants may have others.
void CheckResults(const Operation& op, Opset target) {
  if (op.def->is_const() || op.def->is_constexpr()) return;
  for (size_t i = 0; i < op.args().size(); ++i)
    for (const Operand& operand : op.args()[i])
      if (operand.constant() && !HasRank(operand.type()))
        throw RankError(operand.type(), fmt::format("{}: constant operand \"{}\"", op.def->name,
                                                    op.def->canonical().params[i].name));
  for (const auto& result : op.results)
    if (!HasRank(result->type))
      throw RankError(result->type, fmt::format("{}: a result", op.def->name));
  constexpr DTypeSet kAlways = SetOf(DType::kBool) | SetOf(DType::kString) | SetOf(DType::kFp16) |
                               SetOf(DType::kFp32) | SetOf(DType::kInt32);
  constexpr DTypeSet kNewer =
      SetOf(DType::kInt8) | SetOf(DType::kUint8) | SetOf(DType::kInt16) | SetOf(DType::kUint16);
  for (const auto& result : op.results) {
    if (!result->type.is_tensor() || Contains(kAlways, result->type.dtype)) continue;
    if (op.is("classify")) continue;  // labels may be int64
    std::string what =
        fmt::format("{}: a result of type {}", op.def->name, Name(result->type.dtype));
    if (!Contains(kNewer, result->type.dtype))
      throw Error("unsupported-dtype", "{} is not supported by Core ML", what);
    if (target < Opset::kIos17) throw TooOld(what, Opset::kIos17, target);
  }
}

// The element type of a default that the operation omits.
DType DefaultType(const Operation& op, const Param& param, const Domains& domains, DType natural) {
  if (DType domain = domains.of(param.domain); domain != DType::kNone) return domain;
  if (!param.types || (natural != DType::kFp32 && Contains(param.types, natural))) return natural;
  // A domain without any given operand follows the first operand of the operation.
  for (const Operands& operands : op.args())
    for (const Operand& operand : operands)
      if (Contains(param.types, OperandType(operand))) return OperandType(operand);
  for (DType dtype : {DType::kFp32, DType::kInt32, DType::kFp16, DType::kInt16, DType::kInt8,
                      DType::kUint32, DType::kUint16, DType::kUint8, DType::kBool})
    if (Contains(param.types, dtype)) return dtype;
  return natural;
}

LoweredOp LowerTo(const Operation& op, const Form& form, Opset target) {
  LoweredOp lowered;
  lowered.placement = PlacementOf(*op.def, form);
  CheckTypes(op, form, target);
  CheckResults(op, target);
  Domains domains(op, form);
  OpContext context(*op.def, op.args(), &op);

  lowered.args.reserve(form.params.size());
  for (const Param& param : form.params) {
    if (!HasParam(*op.def, form, param.name)) continue;
    const Operands& operands = OperandsOf(op, form, param);
    if (!operands.empty() || param.variadic) {
      lowered.args.push_back({param.name, &operands, {}});
      continue;
    }
    if (param.default_kind == Param::Default::kRequired) {
      // An older form may require a parameter that newer forms dropped.
      MLC_CHECK(&form != &op.def->canonical(), "{} lacks \"{}\"", op.Describe(), param.name);
      throw TooOld(fmt::format("{} without \"{}\"", op.def->name, param.name),
                   op.def->canonical().since, target);
    }
    if (param.default_kind == Param::Default::kOptional) continue;
    // Core ML rejects this parameter, even with its default value, if topk has no indices.
    if (op.is("topk") && param.name == "output_indices_dtype" && op.results.size() == 1) continue;
    Tensor value = context.value(param.name);
    if (!value) continue;
    if (value.dtype() != DType::kString && value.dtype() != DType::kBool)
      value = NarrowForMil(value, DefaultType(op, param, domains, value.dtype()));
    lowered.args.push_back({param.name, nullptr, std::move(value)});
  }

  // A parameter that the form lacks may only be given if it has no effect.
  for (size_t i = 0; i < op.args().size(); ++i) {
    const Param& param = op.def->canonical().params[i];
    if (op.args()[i].empty() || HasParam(*op.def, form, param.name)) continue;
    Tensor given = op.args()[i][0].constant();
    OperandLists without = op.args();
    without[i].clear();
    Tensor standard = OpContext(*op.def, without, &op).value(param.name);
    if (given && standard && given.dtype() == DType::kString &&
        standard.dtype() == DType::kString && given.strings() == standard.strings())
      continue;
    if (given && standard && given.dtype() != DType::kString &&
        standard.dtype() != DType::kString && given.dims() == standard.dims() &&
        given.Doubles() == standard.Doubles())
      continue;
    if (op.is("topk") && param.name == "return_indices" && given) {
      lowered.extra_results.push_back(Type::Tensor(DType::kInt32, op.result()->type.shape));
      continue;
    }
    std::string what = fmt::format("{}: parameter \"{}\"", op.def->name, param.name);
    if (Opset since = ParamSince(*op.def, param.name); since > target)
      throw TooOld(what, since, target);
    const LostParam* lost = FindLost(*op.def, param.name);
    bool why = lost && !lost->otherwise.empty();
    throw Error("unsupported-attribute", "{} was removed in {}{}{}", what, TargetName(target),
                why ? ", and " : "", why ? lost->otherwise : "");
  }
  return lowered;
}

// A constant without elements can neither be stored in a weight file nor be an operand.
void CheckElements(const Operation& op) {
  for (size_t i = 0; i < op.args().size(); ++i)
    for (const Operand& operand : op.args()[i])
      if (const Tensor& value = operand.constant(); value && value.size() == 0)
        throw Error("empty-tensor",
                    "{}: constant operand \"{}\" has no elements, which Core ML cannot store",
                    op.def->name, op.def->canonical().params[i].name);
}

// Receives each error, and the operation it concerns, if any. Returns false to stop.
using Complain = std::function<bool(const Operation*, Error)>;

void CheckPorts(const Function& function, Opset target, const Complain& complain) {
  auto check = [&](const Value& value, const char* what) {
    if (!value.type.is_tensor()) return;
    if (!HasRank(value.type))
      complain(nullptr, RankError(value.type, fmt::format("{} \"{}\"", what, value.name)));
    std::optional<Opset> since = InterfaceTypeSince(value.type.dtype);
    std::string text =
        fmt::format("{} \"{}\" of type {}", what, value.name, Name(value.type.dtype));
    if (!since)
      complain(nullptr, Error("unsupported-dtype", "{} is not supported by Core ML", text)
                            .Expected("fp32, int32, fp16 (from iOS16) or int8 (from iOS26)"));
    else if (*since > target)
      complain(nullptr, TooOld(text, *since, target));
  };
  for (const auto& input : function.body.inputs) {
    check(*input, "input");
    if (input->type.kind == Type::Kind::kState && target < Opset::kIos18)
      complain(nullptr, TooOld(fmt::format("state \"{}\"", input->name), Opset::kIos18, target));
  }
  for (const Value* output : function.body.outputs())
    if (!output->def || !output->def->is("classify")) check(*output, "output");
}

void CheckOperations(Function& function, Opset target, const Complain& complain) {
  bool enough = false;
  ForEachOperation(function, [&](Operation* op) {
    if (enough || op->def->is_const()) return;
    try {
      Lower(*op, target);
    } catch (Error& error) {
      enough = !complain(op, std::move(error));
    }
  });
}

void CheckSeveral(const Program& program, Opset target, const Complain& complain) {
  if (program.functions.size() > 1 && target < Opset::kIos18)
    complain(nullptr, TooOld("a model with several functions", Opset::kIos18, target));
}

void CheckProgram(const Program& program, Opset target, const Complain& complain) {
  CheckSeveral(program, target, complain);
  for (const auto& function : program.functions) {
    CheckPorts(*function, target, complain);
    CheckOperations(*function, target, complain);
  }
}

// Returns whether the operation would fit after fp16-precision, which skips control flow.
bool FitsNarrowed(const Operation& op, Opset target) {
  const Form* form = op.def->FormFor(target);
  return form && op.block == &op.block->function->body && !OperandComplaint(op, *form).empty() &&
         OperandComplaint(op, *form, true).empty();
}

// Returns the error for the first part of the program that requires a newer target, if any.
std::optional<Error> FirstTooNew(const Program& program,
                                 const std::vector<const passes::PassDef*>& passes,
                                 passes::PassContext::Precision precision, Opset target) {
  std::optional<Error> first;
  auto runs = [&](const passes::PassDef& pass) {
    return std::ranges::find(passes, &pass) != passes.end();
  };
  bool narrows = precision != passes::PassContext::Precision::kFp32 && runs(passes::kFp16Precision);
  CheckProgram(program, target, [&](const Operation* op, Error error) {
    bool too_new = error.id() == "target-too-old" && !(narrows && op && FitsNarrowed(*op, target));
    if (!first && too_new) first = std::move(error);
    return !first;
  });
  // iOS18 supports every encoding.
  if (first || target >= Opset::kIos18 || !runs(passes::kEncodedConstants)) return first;
  for (const auto& function : program.functions)
    ForEachOperation(*function, [&](Operation* op) {
      if (first) return;
      std::optional<Opset> since = passes::EncodedSince(*op, precision);
      if (!since || *since <= target) return;
      const Encoding& e = *op->val.encoding();
      const Tensor& cells = e.form == Encoding::Form::kAffine ? e.scale : e.table;
      std::string grid = cells ? fmt::format(", {} {}", e.table ? "tables" : "scales",
                                             ToString(ToShape(cells.dims())))
                               : "";
      first = TooOld(fmt::format("quantised constant \"{}\" ({} {}{})", op->name,
                                 Name(e.data.dtype()), ToString(ToShape(e.data.dims())), grid),
                     *since, target);
    });
  return first;
}

}  // namespace

LoweredOp Lower(const Operation& op, Opset target) {
  try {
    CheckElements(op);
    const Form* form = op.def->FormFor(target);
    if (!form) throw TooOld(std::string(op.def->name), op.def->forms[0].since, target);
    return LowerTo(op, *form, target);
  } catch (Error& error) {
    throw Located(std::move(error), op);
  }
}

std::vector<Error> TargetErrors(const Program& program, Opset target) {
  std::vector<Error> errors;
  CheckProgram(program, target, [&](const Operation*, Error error) {
    errors.push_back(std::move(error));
    return errors.size() < kMaxErrors;
  });
  return errors;
}

bool InterfaceFits(const Program& program, Opset target) {
  bool fits = true;
  Complain complain = [&](const Operation*, const Error&) { return fits = false; };
  CheckSeveral(program, target, complain);
  for (const auto& function : program.functions) CheckPorts(*function, target, complain);
  return fits;
}

Opset LowestTarget(const Program& program, const std::vector<const passes::PassDef*>& passes,
                   passes::PassContext::Precision precision, Diagnostics& diagnostics) {
  int read = program.interface.specification_version;
  Opset target = read ? static_cast<Opset>(read) : Opset::kIos16;
  for (const auto& function : program.functions) target = std::max(target, function->opset);
  std::optional<Error> first = FirstTooNew(program, passes, precision, target), more = first;
  while (more && target < Opset::kIos26) {
    target = static_cast<Opset>(static_cast<int>(target) + 1);
    more = FirstTooNew(program, passes, precision, target);
  }
  if (first) {
    diagnostics.Note("target raised to {}: {}", TargetName(target), first->text());
    diagnostics.Decide("target", std::string(TargetName(target)), first->text());
  }
  return target;
}

Opset FunctionOpset(Function& function, Opset target) {
  if (function.program->interface.specification_version == 0 || function.opset >= target)
    return target;
  bool fits = true;
  Complain complain = [&](const Operation*, const Error&) { return fits = false; };
  CheckPorts(function, function.opset, complain);
  CheckOperations(function, function.opset, complain);
  return fits ? function.opset : target;
}

}  // namespace mlc::coreml
