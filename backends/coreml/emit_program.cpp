#include <climits>
#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "backends/coreml/arena.h"
#include "backends/coreml/emit.h"
#include "backends/coreml/lower.h"
#include "lib/coreml/dtypes.h"
#include "lib/coreml/package_layout.h"
#include "lib/ir/builder.h"
#include "lib/support/utf8.h"
#include "proto/model.pb.h"

namespace mlc::coreml {

namespace {

namespace mil = mlc::schema::mil;

void SetType(DType dtype, mil::TensorType* type) {
  type->set_datatype(static_cast<mil::DataType>(MilDataType(dtype)));
}

// No reader accepts a protobuf with an invalid string.
const std::string& Text(const std::string& text) {
  RequireUtf8(text, "bad-file", "a string in the program");
  return text;
}

void SetString(std::string_view text, mil::Value* value) {
  SetType(DType::kString, value->mutable_type()->mutable_tensortype());
  *value->mutable_immediatevalue()->mutable_tensor()->mutable_strings()->add_values() = text;
}

// An operation of a function's body, serialized in its place in the message, because one message
// object for each operation would dominate the memory of compiling. Operations that refer to the
// weight file remain messages until all their offsets are known.
class OutgoingOperation {
 public:
  mil::Operation* Begin() {
    message_ = MakeOn<mil::Operation>(arena_);
    return message_;
  }
  // Registers a weight whose offset is not known yet.
  void Await() { ++awaited_; }
  void Placed() {
    if (--awaited_ == 0 && fields_) Serialize();
  }
  // Completes the operation. Returns true if it was serialized, so that this object can be reused.
  bool End(mil::Block* body) {
    fields_ = body->GetReflection()->MutableUnknownFields(body);
    place_ = fields_->field_count();
    fields_->AddLengthDelimited(mil::Block::kOperationsFieldNumber, "");
    if (awaited_ == 0) Serialize();
    return awaited_ == 0;
  }

 private:
  void Serialize() {
    std::string bytes;
    MLC_CHECK(message_->SerializeToString(&bytes), "an operation that cannot be serialized");
    fields_->mutable_field(place_)->set_length_delimited(bytes);
    arena_.Reset();
    message_ = nullptr;
    fields_ = nullptr;
  }
  google::protobuf::Arena arena_;
  mil::Operation* message_ = nullptr;
  google::protobuf::UnknownFieldSet* fields_ =
      nullptr;  // fields of the body, once this operation has a place in it
  int place_ = 0;
  int awaited_ = 0;
};

// Emits the operations of one function. Names are those of the Program, except for results that
// Core ML does not accept as outputs.
class FunctionEmitter {
 public:
  FunctionEmitter(const Program& program, const Function& function, Opset target,
                  WeightPlan& weights, std::map<std::string, int64_t>& operators,
                  size_t& immediate_bytes)
      : function_(function),
        target_(target),
        as_read_(program.interface.specification_version != 0),
        weights_(weights),
        operators_(operators),
        immediate_bytes_(immediate_bytes) {}

  std::vector<std::string> Emit(mil::Function* out) {
    names_.reserve(function_.body.operations().size());
    CollectNames(function_.body);
    std::vector<std::string> outputs = ChooseOutputNames();
    for (const auto& input : function_.body.inputs) EmitNamed(*input, out->add_inputs());
    out->set_opset(std::string(OpsetName(target_)));
    mil::BlockEntry* entry = out->add_block_specializations();
    entry->set_key(out->opset());
    body_ = entry->mutable_value();
    EmitOperations(function_.body, body_);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Value* value = function_.body.outputs()[i];
      if (NameOf(*value) != outputs[i]) EmitIdentity(*value, outputs[i], body_);
      body_->add_outputs(outputs[i]);
    }
    End();
    return outputs;
  }

 private:
  void CollectNames(const Block& block) {
    for (const auto& input : block.inputs) names_.insert(input->name);
    for (Operation* op : block.operations()) {
      for (const auto& result : op->results) names_.insert(result->name);
      for (const auto& nested : op->blocks) CollectNames(*nested);
    }
  }

  std::string Unique(const std::string& hint) {
    std::string name = hint;
    for (int i = 2; names_.contains(name); ++i) name = fmt::format("{}_{}", hint, i);
    names_.insert(made_names_.emplace_back(name));
    return name;
  }

  // Each output must be the result of a computing operation, and appear only once. Other outputs
  // get an identity, except those that the file the program was read from already had in this form.
  std::vector<std::string> ChooseOutputNames() {
    std::unordered_set<const Value*> seen;
    std::vector<std::string> outputs;
    for (size_t i = 0; i < function_.body.outputs().size(); ++i) {
      const Value* value = function_.body.outputs()[i];
      std::string wanted = i < function_.outputs.size() ? function_.outputs[i].name : value->name;
      bool direct = (as_read_ || (value->def && !value->def->def->is_const() &&
                                  !value->def->def->is_constexpr())) &&
                    seen.insert(value).second;
      if (direct && wanted == value->name) {
        outputs.push_back(wanted);
        continue;
      }
      if (value->def && value->name == wanted && !seen.contains(value)) {
        seen.insert(value);
        renamed_[value] = Unique(wanted + "_value");
        outputs.push_back(wanted);
        continue;
      }
      outputs.push_back(Unique(wanted.empty() ? value->name : wanted));
    }
    return outputs;
  }

  const std::string& NameOf(const Value& value) const {
    auto it = renamed_.find(&value);
    return it == renamed_.end() ? value.name : it->second;
  }

  void EmitDim(const Dim& dim, mil::Dimension* out) {
    if (std::optional<int64_t> size = FixedSize(dim, function_.symbols))
      out->mutable_constant()->set_size(static_cast<uint64_t>(*size));
    else
      out->mutable_unknown();
  }

  void EmitType(const Type& type, mil::ValueType* out) {
    switch (type.kind) {
      case Type::Kind::kTensor: {
        mil::TensorType* tensor = out->mutable_tensortype();
        SetType(type.dtype, tensor);
        tensor->set_rank(type.rank());
        for (const Dim& dim : type.shape) EmitDim(dim, tensor->add_dimensions());
        break;
      }
      case Type::Kind::kList:
        EmitType(type.elements[0], out->mutable_listtype()->mutable_type());
        EmitDim(type.length, out->mutable_listtype()->mutable_length());
        break;
      case Type::Kind::kState:
        EmitType(type.elements[0], out->mutable_statetype()->mutable_wrappedtype());
        break;
      case Type::Kind::kTuple:
        out->mutable_tupletype();
        for (const Type& element : type.elements)
          EmitType(element, out->mutable_tupletype()->add_types());
        break;
      case Type::Kind::kDict:
        EmitType(type.elements[0], out->mutable_dictionarytype()->mutable_keytype());
        EmitType(type.elements[1], out->mutable_dictionarytype()->mutable_valuetype());
        break;
    }
  }

  void EmitNamed(const Value& value, mil::NamedValueType* out) {
    out->set_name(NameOf(value));
    const Type& type = value.written_type();
    EmitType(type, out->mutable_type());
    if (value.is_constant())
      SetType(EmittedType(type.dtype), out->mutable_type()->mutable_tensortype());
  }

  void EmitImmediate(const Tensor& tensor, mil::TensorValue* out) {
    immediate_bytes_ += tensor.dtype() == DType::kString ? 0 : tensor.byte_size();
    if (immediate_bytes_ > INT_MAX)
      throw Error("too-large", "constants of types that the weight file cannot hold exceed 2 GiB");
    switch (tensor.dtype()) {
      case DType::kBool:
        out->mutable_bools();
        for (bool value : tensor.data<bool>()) out->mutable_bools()->add_values(value);
        break;
      case DType::kString:
        out->mutable_strings();
        for (const std::string& value : tensor.strings())
          out->mutable_strings()->add_values(Text(value));
        break;
      case DType::kFp32:
        out->mutable_floats();
        for (float value : tensor.data<float>()) out->mutable_floats()->add_values(value);
        break;
      case DType::kInt16:
      case DType::kUint16:
      case DType::kInt32: {
        Tensor ints = tensor.Cast(DType::kInt32);
        out->mutable_ints();
        for (int32_t value : ints.data<int32_t>()) out->mutable_ints()->add_values(value);
        break;
      }
      default: {
        Pin<std::byte> bytes = tensor.bytes();
        out->mutable_bytes()->set_values(bytes.data(), bytes.size());
      }
    }
  }

  // Emits a vector as a list of scalars.
  void EmitList(const Tensor& values, mil::Value* out) {
    Type element = Type::Tensor(values.dtype(), {});
    EmitType(Type::List(element, Dim(values.size())), out->mutable_type());
    for (int64_t i = 0; i < values.size(); ++i) {
      mil::Value* one = out->mutable_immediatevalue()->mutable_list()->add_values();
      EmitType(element, one->mutable_type());
      mil::TensorValue* tensor = one->mutable_immediatevalue()->mutable_tensor();
      if (values.dtype() == DType::kString)
        tensor->mutable_strings()->add_values(Text(values.strings()[i]));
      else
        tensor->mutable_longints()->add_values(values.Int(i));
    }
  }

  void EmitValue(const Tensor& exact, bool may_be_weight, mil::Value* out) {
    Tensor tensor = NarrowForMil(exact, EmittedType(exact.dtype()));
    EmitType(Type::Tensor(tensor.dtype(), ToShape(tensor.dims())), out->mutable_type());
    if (may_be_weight && BelongsInWeightFile(tensor.dtype(), tensor.size(), target_)) {
      mil::Value::BlobFileValue* blob = out->mutable_blobfilevalue();
      blob->set_filename(std::string(kWeightReference));
      outgoing_->Await();
      weights_.Add(tensor, operation_, [blob, outgoing = outgoing_](uint64_t offset) {
        blob->set_offset(offset);
        outgoing->Placed();
      });
    } else {
      // A single number is not a weight; for example, padding for a window may be -inf.
      if (may_be_weight && tensor.size() > 1) weights_.CheckSmall(tensor, operation_);
      EmitImmediate(tensor, out->mutable_immediatevalue()->mutable_tensor());
    }
  }

  mil::Value* AddAttribute(std::string_view key, mil::Operation* out) {
    mil::ValueEntry* entry = out->add_attributes();
    entry->set_key(std::string(key));
    return entry->mutable_value();
  }

  mil::Argument* AddInput(std::string_view key, mil::Operation* out) {
    mil::ArgumentEntry* entry = out->add_inputs();
    entry->set_key(std::string(key));
    return entry->mutable_value();
  }

  // Completes the last operation of the body; this must happen before the next one begins.
  void End() {
    if (outgoing_ && !outgoing_->End(body_)) outgoing_ = nullptr;
  }

  mil::Operation* BeginInBody() {
    End();
    if (!outgoing_) outgoing_ = std::make_shared<OutgoingOperation>();
    return outgoing_->Begin();
  }

  mil::Operation* Begin(std::string_view type, const std::string& name, mil::Block* block) {
    mil::Operation* out = block == body_ ? BeginInBody() : block->add_operations();
    out->set_type(std::string(type));
    if (type != "const") ++operators_[out->type()];
    SetString(name, AddAttribute("name", out));
    operation_ = name;
    return out;
  }

  void EmitConst(const std::string& name, const std::string& op_name, const Tensor& value,
                 mil::Block* block) {
    mil::Operation* out = Begin("const", op_name, block);
    EmitValue(value, true, AddAttribute("val", out));
    out->add_outputs()->set_name(name);
    *out->mutable_outputs(0)->mutable_type() = out->attributes(1).value().type();
  }

  // Returns whether only constexpr operations or a classifier read the const, which then embed it.
  static bool StandsInUsers(const Value& value) {
    if (value.users.empty() || value.is_output()) return false;
    for (const Operation* user : value.users)
      if (!user->def->is_constexpr() && !user->is("classify")) return false;
    return true;
  }

  void EmitOperations(const Block& from, mil::Block* block) {
    for (Operation* op : from.operations()) {
      try {
        if (!op->def->is_const())
          EmitOperation(*op, block);
        else if (!StandsInUsers(*op->result()))
          EmitConst(NameOf(*op->result()), op->name, op->val, block);
      } catch (Error& error) {
        if (!error.has_location())
          error.At(op->location ? *op->location : Location{"", op->Describe()});
        throw;
      }
    }
  }

  void EmitArgument(const Operation& op, const LoweredArg& arg, ParamPlacement placement,
                    mil::Operation* out) {
    if (placement == ParamPlacement::kAttributes) {
      Tensor value = arg.operands ? arg.operands->front().constant() : arg.value;
      MLC_CHECK(value, "{}: \"{}\" is not constant", op.Describe(), arg.param);
      EmitValue(value, true, AddAttribute(arg.param, out));
      return;
    }
    mil::Argument* argument = AddInput(arg.param, out);
    if (!arg.operands) {
      EmitValue(arg.value, true, argument->add_arguments()->mutable_value());
      return;
    }
    bool literal =
        placement == ParamPlacement::kLiterals || IsLiteralParam(op.def->name, arg.param);
    for (const Operand& operand : *arg.operands) {
      mil::Argument::Binding* binding = argument->add_arguments();
      if (operand.value && !(literal && operand.constant()))
        binding->set_name(NameOf(*operand.value));
      else if (op.is("classify"))
        EmitList(operand.constant(), binding->mutable_value());
      else
        EmitValue(operand.constant(), placement == ParamPlacement::kLiterals,
                  binding->mutable_value());
    }
  }

  void EmitOperation(const Operation& op, mil::Block* block) {
    LoweredOp lowered = Lower(op, target_);
    // Emits defaults first, because a const must precede its use.
    std::vector<std::string> defaults(lowered.args.size());
    for (size_t i = 0; i < lowered.args.size(); ++i) {
      const LoweredArg& arg = lowered.args[i];
      if (arg.operands || lowered.placement != ParamPlacement::kInputs ||
          IsLiteralParam(op.def->name, arg.param))
        continue;
      defaults[i] = Unique(fmt::format("{}_{}_0", LegalName(op.name), arg.param));
      EmitConst(defaults[i], defaults[i], arg.value, block);
    }
    mil::Operation* out = Begin(op.def->name, op.name, block);
    for (size_t i = 0; i < lowered.args.size(); ++i) {
      if (!defaults[i].empty())
        AddInput(lowered.args[i].param, out)->add_arguments()->set_name(defaults[i]);
      else
        EmitArgument(op, lowered.args[i], lowered.placement, out);
    }
    for (const auto& [key, value] : op.attributes) EmitValue(value, true, AddAttribute(key, out));
    for (const auto& result : op.results) EmitNamed(*result, out->add_outputs());
    for (const Type& type : lowered.extra_results) {
      out->add_outputs()->set_name(Unique(op.name + "_unused"));
      EmitType(type, out->mutable_outputs(out->outputs_size() - 1)->mutable_type());
    }
    for (const auto& nested : op.blocks) {
      mil::Block* inner = out->add_blocks();
      for (const auto& input : nested->inputs) EmitNamed(*input, inner->add_inputs());
      EmitOperations(*nested, inner);
      EmitNestedOutputs(*nested, inner);
    }
  }

  // As in functions, each output must be the result of an operation of the block, and appear only
  // once.
  void EmitNestedOutputs(const Block& nested, mil::Block* inner) {
    std::unordered_set<const Value*> seen;
    for (const Value* value : nested.outputs()) {
      bool direct =
          as_read_ || (value->def && value->def->block == &nested && !value->def->def->is_const() &&
                       !value->def->def->is_constexpr() && seen.insert(value).second);
      std::string name = NameOf(*value);
      if (!direct && value->type.is_tensor()) {
        name = Unique(name + "_out");
        EmitIdentity(*value, name, inner);
      }
      inner->add_outputs(name);
    }
  }

  void EmitIdentity(const Value& value, const std::string& name, mil::Block* block) {
    mil::Operation* out = Begin("identity", name, block);
    AddInput("x", out)->add_arguments()->set_name(NameOf(value));
    EmitNamed(value, out->add_outputs());
    out->mutable_outputs(0)->set_name(name);
  }

  const Function& function_;
  Opset target_;
  bool as_read_;
  WeightPlan& weights_;
  std::string operation_;  // the last one begun
  std::map<std::string, int64_t>& operators_;
  size_t& immediate_bytes_;
  mil::Block* body_ = nullptr;
  std::shared_ptr<OutgoingOperation> outgoing_;
  std::unordered_set<std::string_view> names_;  // names of values, and `made_names_`
  std::deque<std::string> made_names_;
  std::unordered_map<const Value*, std::string> renamed_;
};

void EmitBuildInfo(const Program& program, mil::Program* out) {
  if (program.build_info.empty()) return;
  mil::ValueEntry* entry = out->add_attributes();
  entry->set_key("buildInfo");
  mil::DictionaryType* type = entry->mutable_value()->mutable_type()->mutable_dictionarytype();
  SetType(DType::kString, type->mutable_keytype()->mutable_tensortype());
  SetType(DType::kString, type->mutable_valuetype()->mutable_tensortype());
  mil::DictionaryValue* values =
      entry->mutable_value()->mutable_immediatevalue()->mutable_dictionary();
  for (const auto& [key, value] : program.build_info) {
    mil::DictionaryValue::KeyValuePair* pair = values->add_values();
    SetString(key, pair->mutable_key());
    SetString(value, pair->mutable_value());
  }
}

}  // namespace

OutputNames EmitProgram(const Program& program, Opset target, WeightPlan& weights,
                        std::map<std::string, int64_t>& operators, mlc::schema::Model& model) {
  model.set_specificationversion(static_cast<int>(target));
  mil::Program* out = model.mutable_mlprogram();
  out->set_version(1);
  OutputNames outputs;
  size_t immediate_bytes = 0;
  for (const auto& function : program.functions) {
    mil::FunctionEntry* entry = out->add_functions();
    // A single function is always called `main`.
    entry->set_key(program.functions.size() == 1 ? "main" : function->name);
    FunctionEmitter emitter(program, *function, FunctionOpset(*function, target), weights,
                            operators, immediate_bytes);
    outputs.push_back(emitter.Emit(entry->mutable_value()));
  }
  EmitBuildInfo(program, out);
  return outputs;
}

}  // namespace mlc::coreml
