#include "lib/ir/builder.h"

#include <algorithm>

#include "lib/ir/insert_operation.h"

namespace mlc {

namespace {

// Element types of run-time values in MIL; all others occur only as constants.
bool IsRuntimeType(DType dtype) {
  constexpr DTypeSet kRuntime = SetOf(DType::kFp16) | SetOf(DType::kFp32) | SetOf(DType::kInt32) |
                                SetOf(DType::kBool) | SetOf(DType::kInt8) | SetOf(DType::kUint8) |
                                SetOf(DType::kInt16) | SetOf(DType::kUint16) |
                                SetOf(DType::kString);
  return Contains(kRuntime, dtype);
}

// The dtype in `allowed` for computing with an operand of type `dtype`: itself, or the nearest one
// that represents its values.
DType Legal(DType dtype, DTypeSet allowed) {
  if (allowed == 0 || Contains(allowed, dtype)) return dtype;
  auto first_of = [&](std::initializer_list<DType> candidates) {
    for (DType candidate : candidates)
      if (Contains(allowed, candidate)) return candidate;
    return DType::kNone;
  };
  if (dtype == DType::kFp16) return first_of({DType::kFp32});
  if (IsFloat(dtype)) return first_of({DType::kFp32, DType::kFp16});
  if (dtype == DType::kBool) return first_of({DType::kInt32, DType::kFp32, DType::kFp16});
  if (IsInteger(dtype)) return first_of({DType::kInt32, DType::kFp32});
  return DType::kNone;
}

// A C++ number takes the dtype of its domain's other operands, or else one that the parameter
// allows.
DType TypeForNumber(const Param& param, DType domain_type, bool is_double) {
  if (param.domain && domain_type != DType::kNone) return domain_type;
  if (is_double)
    return Contains(param.types, DType::kFp32) || !param.types ? DType::kFp32 : DType::kFp16;
  if (!param.types || Contains(param.types, DType::kInt32)) return DType::kInt32;
  return Legal(DType::kInt64, param.types);
}

// Replaces placeholders from inference by the dimensions of the type `old`, or else by new symbols
// of the function, and simplifies sizes within the bounds of their symbols.
class Opened {
 public:
  explicit Opened(Operation& op) : op_(op), function_(*op.block->function) {}
  void Close(Dim& dim, const Dim* old) {
    if (!InferContext::HasPlaceholder(dim)) {
      dim = dim.Within(function_.symbols);
      return;
    }
    if (old) {
      dim = *old;
      return;
    }
    std::vector<std::string> names;
    dim.CollectSymbols(names);
    for (const std::string& name : names)
      if (name[0] == '?' && !replaced_.contains(name))
        replaced_[name] = Dim::Symbol(op_.block->FreshSymbol(op_.name + "_" + name.substr(1)));
    dim = Known(dim);
  }
  void Close(Type& type, const Type* old) {
    bool like = old && old->shape.size() == type.shape.size();
    for (size_t d = 0; d < type.shape.size(); ++d)
      Close(type.shape[d], like ? &old->shape[d] : nullptr);
    Close(type.length, old ? &old->length : nullptr);
    for (size_t i = 0; i < type.elements.size(); ++i)
      Close(type.elements[i], old && i < old->elements.size() ? &old->elements[i] : nullptr);
  }
  Dim Known(const Dim& dim) const { return dim.Substitute(replaced_).Within(function_.symbols); }

 private:
  Operation& op_;
  Function& function_;
  std::map<std::string, Dim> replaced_;
};

std::vector<Type> WithSymbols(InferContext& inferred, Operation& op) {
  Opened opened(op);
  for (size_t r = 0; r < inferred.results.size(); ++r) {
    const Type* old = r < op.results.size() ? &op.results[r]->type : nullptr;
    opened.Close(inferred.results[r], old);
    if (!inferred.dims[r]) continue;
    for (Dim& element : *inferred.dims[r]) {
      element = opened.Known(element);
      if (InferContext::HasPlaceholder(element)) {
        inferred.dims[r].reset();
        break;
      }
    }
  }
  return std::move(inferred.results);
}

// Creates the results of an operation from the inferred types.
void AddResults(Operation& op, InferContext& inferred) {
  std::vector<Type> types = WithSymbols(inferred, op);
  std::string hint = op.name;
  for (size_t i = 0; i < types.size(); ++i) {
    auto result = std::make_unique<Value>();
    result->name =
        op.block->function->UniqueName(types.size() == 1 ? hint : fmt::format("{}_{}", hint, i));
    result->type = std::move(types[i]);
    result->def = &op;
    result->index = static_cast<int>(i);
    result->elements = std::move(inferred.dims[i]);
    op.results.push_back(std::move(result));
  }
  if (!op.results.empty()) op.name = op.results[0]->name;
}

// Records the sources of results that are not views of an operand.
std::vector<Tensor> Traced(std::vector<Tensor> results, const OperandLists& operands) {
  std::vector<std::string> sources;
  for (const Operands& list : operands)
    for (const Operand& operand : list)
      if (const Tensor::Provenance* from = operand.constant().provenance())
        sources.insert(sources.end(), from->sources.begin(), from->sources.end());
  if (sources.empty()) return results;
  std::ranges::sort(sources);
  sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
  for (Tensor& result : results)
    if (!result.provenance()) result = result.From({sources, false});
  return results;
}

// The constant for an integer result whose elements are all known numbers, even if the operands are
// not constant.
Tensor FromElements(const Type& type, const std::optional<std::vector<Dim>>& elements) {
  if (!elements || !IsStatic(type.shape) || !IsInteger(type.dtype)) return {};
  std::vector<int64_t> values;
  for (const Dim& element : *elements) {
    if (!element.is_constant()) return {};
    values.push_back(element.constant());
  }
  return Tensor::Of<int64_t>(StaticDims(type.shape), values).Cast(type.dtype);
}

}  // namespace

Operation* InsertOperation(Block& block, std::unique_ptr<Operation> op, InferContext& inferred,
                           Operation* before) {
  Operation* made = block.Insert(std::move(op), before);
  AddResults(*made, inferred);
  return made;
}

InferContext ContextOf(const Operation& op) {
  return {*op.def, op.args(), &op, &op.block->function->symbols};
}

bool Matches(const Type& inferred, const Type& stored, const Symbols& symbols) {
  auto matches = [&](const Dim& a, const Dim& b) {
    return a == b || InferContext::HasPlaceholder(a) || a.Within(symbols) == b.Within(symbols);
  };
  return inferred.kind == stored.kind && inferred.dtype == stored.dtype &&
         std::equal(inferred.shape.begin(), inferred.shape.end(), stored.shape.begin(),
                    stored.shape.end(), matches) &&
         matches(inferred.length, stored.length) &&
         std::equal(inferred.elements.begin(), inferred.elements.end(), stored.elements.begin(),
                    stored.elements.end(),
                    [&](const Type& a, const Type& b) { return Matches(a, b, symbols); });
}

namespace {
bool HasZero(const Tensor& tensor) {
  if (!tensor) return false;
  std::vector<double> numbers = tensor.Doubles();
  return std::ranges::find(numbers, 0.0) != numbers.end();
}
}  // namespace

bool Folds(const OpContext& context, const std::vector<Type>& results, int64_t limit) {
  constexpr double kWork = 1 << 28;  // about a second of eval
  for (const Type& type : results) {
    if (!type.is_tensor() || !IsStatic(type.shape)) return false;
    if (context.def().view) continue;
    int64_t size = Product(type.shape).constant();
    if (size > limit || static_cast<double>(size) * WorkPerElement(context) > kWork) return false;
  }
  // Packages express infinities by divisions by zero, because they cannot store infinite constants.
  return context.def().name != "real_div" || !IsFloat(context.dtype("y")) ||
         !HasZero(context.value("y"));
}

bool InferTypes(Operation& op) {
  if (!op.def->infer) return false;
  InferContext context = ContextOf(op);
  try {
    op.def->infer(context);
  } catch (Error& error) {
    if (!error.has_location() && op.location) error.At(*op.location);
    throw;
  }
  std::vector<Type> types = WithSymbols(context, op);
  MLC_CHECK(types.size() == op.results.size(), "{} infers {} results, has {}", op.Describe(),
            types.size(), op.results.size());
  bool changed = false;
  for (size_t i = 0; i < types.size(); ++i) {
    Value& result = *op.results[i];
    if (!(result.type == types[i]) || result.elements != context.dims[i]) changed = true;
    result.type = std::move(types[i]);
    result.elements = std::move(context.dims[i]);
  }
  return changed;
}

std::vector<Tensor> Evaluate(const Operation& op) {
  if (!op.def->eval || !op.def->pure || op.def->is_const() || !op.blocks.empty()) return {};
  for (const Operands& operands : op.args())
    for (const Operand& operand : operands)
      if (!operand.constant()) return {};
  std::vector<Type> types;
  for (const auto& result : op.results) types.push_back(result->type);
  for (const Type& type : types)
    if (!type.is_tensor() || !IsStatic(type.shape)) return {};
  EvalContext context(*op.def, op.args(), std::move(types), &op);
  op.def->eval(context);
  return Traced(std::move(context.results), op.args());
}

Tensor NarrowForMil(const Tensor& tensor, DType to) {
  if (tensor.dtype() == to) return tensor;
  if (!IsInteger(tensor.dtype()) || !IsInteger(to)) return tensor.Cast(to);
  // Sentinels such as INT64_MAX ("to the end" in Slice) and their neighbours saturate.
  constexpr int64_t kSentinel = INT64_MAX - (int64_t{1} << 32);
  int bits = Bits(to);
  int64_t low = IsSigned(to) ? -(int64_t{1} << (bits - 1)) : 0;
  int64_t high = bits == 64 ? INT64_MAX : (int64_t{1} << (IsSigned(to) ? bits - 1 : bits)) - 1;
  if (bits == 64) return tensor.Cast(to);
  std::vector<int64_t> values = tensor.Ints();
  bool saturated = false;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    int64_t value = tensor.dtype() == DType::kUint64 && values[i] < 0 ? INT64_MAX : values[i];
    if (value < low || value > high) {
      if (value < kSentinel && value > -kSentinel)
        throw Error("constant-range", "constant element {} is {}, which {} cannot represent", i,
                    value, Name(to))
            .Expected("{} to {}", low, high);
      value = value < low ? low : high;
      saturated = true;
    }
    values[i] = value;
  }
  if (!saturated) return tensor.Cast(to);
  return Tensor::Of<int64_t>(tensor.dims(), values).Cast(to);
}

Tensor Ints(const std::vector<int64_t>& values) {
  return Tensor::Vector<int64_t>(values).Cast(DType::kInt32);
}

Builder::Arg::Arg(std::string_view p, Value* v) : param(p) {
  if (v) operands.emplace_back(v);
}
Builder::Arg::Arg(std::string_view p, std::vector<Value*> vs)
    : param(p), operands(vs.begin(), vs.end()) {}
Builder::Arg::Arg(std::string_view p, Tensor t) : param(p) {
  if (t) operands.emplace_back(std::move(t));
}
Builder::Arg::Arg(std::string_view p, Operand o) : param(p) { operands.push_back(std::move(o)); }
Builder::Arg::Arg(std::string_view p, bool v) : Arg(p, Tensor::Scalar<bool>(v)) {}
Builder::Arg::Arg(std::string_view p, int v) : Arg(p, static_cast<int64_t>(v)) {}
Builder::Arg::Arg(std::string_view p, int64_t v) : Arg(p, Tensor::Scalar<int64_t>(v)) {
  untyped = true;
}
Builder::Arg::Arg(std::string_view p, double v) : Arg(p, Tensor::Scalar<double>(v)) {
  untyped = true;
}
Builder::Arg::Arg(std::string_view p, const char* v) : Arg(p, Tensor::String(v)) {}
Builder::Arg::Arg(std::string_view p, const std::string& v) : Arg(p, Tensor::String(v)) {}

Builder::Builder(Block& block, Diagnostics& diagnostics, Operation* before)
    : block_(block), diagnostics_(diagnostics), before_(before) {}

Value* Builder::Const(Tensor value, std::string_view name_hint) {
  auto op = std::make_unique<Operation>();
  op->def = &program().ops->At("const");
  op->location = location_;
  auto result = std::make_unique<Value>();
  result->name = block_.function->UniqueName(!name_hint.empty() ? name_hint
                                             : !name_.empty()   ? std::string_view(name_)
                                                                : "const");
  result->type = Type::Tensor(value.dtype(), ToShape(value.dims()));
  result->def = op.get();
  op->name = result->name;
  op->val = std::move(value);
  op->results.push_back(std::move(result));
  return block_.Insert(std::move(op), before_)->result();
}

Value* Builder::ConstFor(std::string_view op, std::string_view param, const Tensor& value) {
  constexpr int64_t kMost = 16;  // elements
  auto make = [&] { return Const(value, fmt::format("{}_{}", op, param)); };
  if (before_ || value.size() > kMost || value.file_view().file) return make();
  bool text = value.dtype() == DType::kString && value.size() == 1;
  std::span<const std::byte> bytes =
      text ? std::as_bytes(std::span(value.strings()[0])) : value.InPlace(0, value.size());
  if (bytes.empty()) return make();
  std::string key = {static_cast<char>(value.dtype()), static_cast<char>(value.rank())};
  auto add = [&](const void* at, size_t count) { key.append(static_cast<const char*>(at), count); };
  add(value.dims().data(), value.dims().size() * sizeof(int64_t));
  add(bytes.data(), bytes.size());
  Value*& shared = shared_[key];
  if (!shared) shared = make();
  return shared;
}

Value* Builder::Cast(Value* x, DType dtype) {
  if (x->type.dtype == dtype) return x;
  if (x->is_constant()) return Const(x->constant().Cast(dtype), x->name);
  return Make("cast", {{"x", x}, {"dtype", std::string(Name(dtype))}});
}

class Builder::Making {
 public:
  Making(Builder& builder, std::string_view op, std::vector<std::unique_ptr<Block>> blocks)
      : b_(builder),
        def_(builder.program().ops->At(op)),
        params_(def_.canonical().params),
        name_(builder.name_.empty() ? std::string(op) : builder.name_),
        operands_(params_.size()),
        untyped_(params_.size()),
        op_(std::make_unique<Operation>()) {
    op_->def = &def_;
    op_->name = name_;
    op_->location = b_.location_;
    op_->blocks = std::move(blocks);
  }

  std::vector<Value*> Run(Args args) {
    Take(std::move(args));
    FindDomains();
    bool all_constant = AllConstant();
    if (!all_constant) NarrowConstants();
    InferContext exact = Infer();
    if (std::vector<Tensor> known = Known(exact, all_constant); !known.empty()) {
      std::vector<Value*> values;
      for (Tensor& tensor : known) values.push_back(b_.Const(std::move(tensor)));
      return values;
    }
    std::vector<DType> before;
    for (const Type& type : exact.results) before.push_back(type.dtype);
    bool changed = Legalise();
    return CastOut(Insert(changed ? Infer() : std::move(exact)), before);
  }

 private:
  void Take(Args args) {
    for (Arg& arg : args) {
      int index = def_.Find(arg.param);
      MLC_CHECK(index >= 0, "{} has no parameter {}", def_.name, arg.param);
      operands_[index] = std::move(arg.operands);
      untyped_[index] = arg.untyped;
    }
  }

  // Determines the dtype of each domain: run-time operands take precedence, then constants, then
  // C++ numbers.
  void FindDomains() {
    for (bool runtime : {true, false})
      for (size_t i = 0; i < params_.size(); ++i) {
        if (!params_[i].domain || untyped_[i]) continue;
        for (const Operand& operand : operands_[i]) {
          if (static_cast<bool>(operand.constant()) == runtime) continue;
          DType dtype = operand.type().dtype;
          const auto* known = Domain(params_[i].domain);
          if (!known)
            domains_.emplace_back(params_[i].domain, dtype);
          else if (runtime && known->second != dtype)
            throw Error("bad-operand", "{}: operand types {} and {} must be the same", def_.name,
                        Name(known->second), Name(dtype));
        }
      }
    for (size_t i = 0; i < params_.size(); ++i)
      if (untyped_[i])
        for (Operand& operand : operands_[i])
          operand = operand.constant().Cast(TypeForNumber(
              params_[i], DomainType(params_[i]), operand.constant().dtype() == DType::kFp64));
  }

  const std::pair<char, DType>* Domain(char letter) const {
    auto is_it = [letter](const auto& domain) { return domain.first == letter; };
    auto it = std::ranges::find_if(domains_, is_it);
    return it == domains_.end() ? nullptr : it;
  }

  // The dtype of the operand that determines the parameter's domain; kNone if none does.
  DType DomainType(const Param& param) const {
    const auto* known = param.domain ? Domain(param.domain) : nullptr;
    return known ? known->second : DType::kNone;
  }

  bool AllConstant() const {
    for (const Operands& list : operands_)
      for (const Operand& operand : list)
        if (!operand.constant()) return false;
    return true;
  }

  // Constants combined with run-time operands take the narrower dtype of those (int64 combined with
  // int32).
  void NarrowConstants() {
    for (size_t i = 0; i < params_.size(); ++i) {
      DType want = DomainType(params_[i]);
      if (want == DType::kNone) continue;
      for (Operand& operand : operands_[i]) {
        const Tensor& constant = operand.constant();
        if (!constant || constant.dtype() == want || IsFloat(constant.dtype()) != IsFloat(want))
          continue;
        operand = NarrowForMil(constant, want);
      }
    }
  }

  InferContext Infer() {
    InferContext context(def_, operands_, op_->blocks.empty() ? nullptr : op_.get(), &b_.symbols());
    def_.infer(context);
    return context;
  }

  // The results of an operation if it can be folded, else empty.
  std::vector<Tensor> Known(const InferContext& exact, bool all_constant) {
    if (!def_.pure) return {};
    if (all_constant && def_.eval && op_->blocks.empty() &&
        Folds(exact, exact.results, b_.fold_limit)) {
      EvalContext context(def_, operands_, exact.results);
      def_.eval(context);
      return Traced(std::move(context.results), operands_);
    }
    std::vector<Tensor> known;
    for (size_t i = 0; i < exact.results.size(); ++i) {
      known.push_back(FromElements(exact.results[i], exact.dims[i]));
      if (!known.back()) return {};
    }
    return known;
  }

  // Converts all operands to dtypes that the row supports and creates `const` operations for
  // constants. Returns whether any dtype changed.
  bool Legalise() {
    bool changed = false;
    for (size_t i = 0; i < params_.size(); ++i)
      for (Operand& operand : operands_[i]) changed |= Legalise(params_[i], operand);
    for (size_t i = 0; i < params_.size(); ++i)
      for (Operand& operand : operands_[i])
        if (!operand.value) operand = b_.ConstFor(name_, params_[i].name, operand.constant());
    return changed;
  }

  bool Legalise(const Param& param, Operand& operand) {
    const Tensor& constant = operand.constant();
    if (param.is_const && !constant)
      throw Error("needs-constant",
                  "{}: operand \"{}\" must be a constant, but is computed at run time", def_.name,
                  param.name);
    const Type& type = operand.type();
    if (!type.is_tensor() || param.kind != Param::Kind::kTensor) return false;
    DType have = type.dtype, domain = DomainType(param);
    DType want = Legal(domain == DType::kNone ? have : domain, param.types);
    if (want == DType::kNone)
      throw Error("unsupported-dtype",
                  "{}: operand \"{}\" is {}, which Core ML does not support here", def_.name,
                  param.name, Name(have));
    if (!IsRuntimeType(want)) want = IsFloat(want) ? DType::kFp32 : DType::kInt32;
    if (have == want) return false;
    operand =
        constant ? Operand(NarrowForMil(constant, want)) : Operand(b_.Cast(operand.value, want));
    return true;
  }

  Operation* Insert(InferContext inferred) {
    for (size_t i = 0; i < operands_.size(); ++i)
      if (!operands_[i].empty()) op_->SetArg(static_cast<int>(i), std::move(operands_[i]));
    return InsertOperation(b_.block_, std::move(op_), inferred, b_.before_);
  }

  // Casts results back to the original run-time dtype of the operands.
  std::vector<Value*> CastOut(Operation* made, const std::vector<DType>& exact) {
    std::vector<Value*> values;
    for (size_t i = 0; i < made->results.size(); ++i) {
      Value* value = made->result(static_cast<int>(i));
      DType before = exact[i];
      if (value->type.is_tensor() && value->type.dtype != before && IsRuntimeType(before) &&
          def_.name != "cast")
        value = b_.Cast(value, before);
      values.push_back(value);
    }
    return values;
  }

  Builder& b_;
  const OpDef& def_;
  const std::vector<Param>& params_;
  std::string name_;  // name of the operation; casts have the builder's name
  OperandLists operands_;
  std::vector<bool> untyped_;                    // C++ numbers, by parameter
  ShortVector<std::pair<char, DType>> domains_;  // dtype by domain letter
  std::unique_ptr<Operation> op_;                // null once inserted
};

Value* Builder::Make(std::string_view op, Args args) { return MakeAll(op, std::move(args)).at(0); }

std::vector<Value*> Builder::MakeAll(std::string_view op, Args args) {
  return Making(*this, op, {}).Run(std::move(args));
}

std::vector<Value*> Builder::MakeNested(std::string_view op, Args args,
                                        std::vector<std::unique_ptr<Block>> blocks) {
  return Making(*this, op, std::move(blocks)).Run(std::move(args));
}

}  // namespace mlc
