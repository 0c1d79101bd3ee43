// Programs under construction: functions, inputs, constants, outputs, values.
#include "tools/runtime/program.h"

#include <algorithm>
#include <atomic>

#include "lib/coreml/dtypes.h"
#include "lib/ir/builder.h"
#include "lib/ops/row.h"
#include "lib/support/mapped_file.h"
#include "lib/support/work_scope.h"
#include "tools/driver/options_json.h"
#include "tools/runtime/function_options.h"
#include "tools/runtime/tensor.h"

namespace mlc::abi {

namespace {

uint32_t NextSerial() {
  static std::atomic<uint32_t> last = 0;
  // The sign of a value stays positive.
  return ++last & 0x7fffffff;
}

std::string Ordinal(uint32_t number) {
  const uint32_t ten = number % 100 / 10, one = number % 10;
  return fmt::format("{}{}", number,
                     ten == 1 || one > 3 || one == 0 ? "th"
                     : one == 1                      ? "st"
                     : one == 2                      ? "nd"
                                                     : "rd");
}

}  // namespace

ProgramParts::ProgramParts(Program made) : program(std::move(made)), serial(NextSerial()) {}

mlc_value ProgramParts::Add(Value* value, mlc_block* block) {
  values.push_back({value, block});
  const mlc_value id = static_cast<int64_t>(serial) << 32 | static_cast<int64_t>(values.size() - 1);
  block->values.push_back(id);
  return id;
}

mlc_block* ProgramParts::AddBlock(mlc_block* around, Block* block) {
  blocks.push_back(std::make_unique<mlc_block>());
  mlc_block& made = *blocks.back();
  made.program = this;
  made.around = around;
  made.block = block;
  return &made;
}

const ProgramParts::Known* ProgramParts::Find(mlc_value value) const {
  const auto index = static_cast<size_t>(value & 0xffffffff);
  const bool own = value >= 0 && static_cast<uint32_t>(value >> 32) == serial;
  return own && index < values.size() && values[index].value ? &values[index] : nullptr;
}

const ProgramParts::Known& ProgramParts::At(mlc_value value) const {
  if (const Known* known = Find(value)) return *known;
  const auto owner = static_cast<uint32_t>(value >> 32);
  const auto index = static_cast<size_t>(value & 0xffffffff);
  if (value < 0 || owner == 0) throw Error("usage", "{} is not a value", value);
  if (owner != serial)
    throw Error("usage", "value {} belongs to another program: the {} that was created, not the {}",
                index, Ordinal(owner), Ordinal(serial));
  if (index >= values.size()) throw Error("usage", "the program has no value {}", index);
  throw Error("usage", "value {} has ended", index)
      .Help("values end with the block that they are in, and when passes run");
}

Value* ProgramParts::Visible(mlc_value value, const mlc_block* block) const {
  const Known& known = At(value);
  for (; block; block = block->around)
    if (block == known.block) return known.value;
  throw Error("usage", "\"{}\" belongs to another block or function", known.value->name)
      .Expected("a value of the same block, or of one around it");
}

void ProgramParts::Drop(mlc_block* block) {
  for (const auto& other : blocks)
    if (other->around == block && other->block) Drop(other.get());
  for (const mlc_value id : block->values) values[static_cast<size_t>(id & 0xffffffff)] = {};
  block->values.clear();
  block->block = nullptr;
  block->open = false;
}

void ProgramParts::Seal() {
  for (const auto& block : blocks) {
    block->block = nullptr;
    block->open = false;
    block->values.clear();
  }
  for (Known& known : values) known = {};
}

void ProgramParts::RequireComplete() const {
  if (program.functions.empty()) throw Error("bad-graph", "the program has no function");
  for (const auto& function : program.functions)
    if (function->outputs.empty())
      throw Error("bad-graph", "function \"{}\" has no outputs", function->name);
}

ProgramParts& Open(mlc_block* block) {
  Require(block, "block");
  if (!block->open || !block->block)
    throw Error("usage", "the block is finished")
        .Help("a block ends with its operation, and all blocks end when passes run");
  return *block->program;
}

}  // namespace mlc::abi

using namespace mlc;
using namespace mlc::abi;

namespace {

// Names are not changed, so that the program has those that the caller knows.
void RequireLegal(const char* name) {
  if (!IsLegalName(name))
    throw Error("bad-name", "\"{}\" cannot be a name in a program", name)
        .Expected("letters, digits and _, e.g. {}", LegalName(name));
}

// The shape for dims of sizes and symbols of the function.
Shape ShapeFrom(const ProgramParts& program, const Function& function, const std::string& what,
                int32_t rank, const int64_t* dims) {
  std::vector<int64_t> sizes;
  for (int32_t d = 0; dims && d < rank; ++d) sizes.push_back(std::max<int64_t>(dims[d], 0));
  Shape shape = ToShape(DimsFrom(rank, dims ? sizes.data() : nullptr, what));
  for (int32_t d = 0; d < rank; ++d) {
    if (dims[d] >= 0) continue;
    const auto index = static_cast<size_t>(-(dims[d] + 1));
    if (index >= program.symbol_names.size() || program.symbol_functions[index] != &function)
      throw Error("usage", "{}: size {} is {}, which is not a symbol of the function", what, d,
                  dims[d])
          .Expected("a size of at least 0, or a symbol");
    shape[static_cast<size_t>(d)] = Dim::Symbol(program.symbol_names[index]);
  }
  return shape;
}

// The type of an input or a state. Error "usage", "unsupported-dtype" or "rank-limit" for one that
// Core ML's values do not have.
Type ValueType(mlc_block* block, const std::string& what, int32_t dtype, int32_t rank,
               const int64_t* dims) {
  const DType element = DTypeFrom(dtype, what);
  if (dtype > MLC_UINT16)
    throw Error("unsupported-dtype", "{} cannot have elements of {}", what, Name(element))
        .Expected("MLC_BOOL to MLC_UINT16; the other types are those of constants");
  Shape shape = ShapeFrom(*block->program, *block->block->function, what, rank, dims);
  if (rank > coreml::kMostDimensions)
    throw Error("rank-limit", "{} has {} dimensions", what, rank)
        .Expected("at most {}", coreml::kMostDimensions);
  return Type::Tensor(element, std::move(shape));
}

mlc_block& RequireBody(mlc_block* block) {
  Open(block);
  if (block->around) throw Error("usage", "the block is not the body of a function");
  return *block;
}

int64_t AddSymbol(mlc_block* body, const char* name, const Symbol& sizes) {
  ProgramParts& parts = *RequireBody(body).program;
  Require(name, "name");
  Function& function = *body->block->function;
  RequireLegal(name);
  if (sizes.low < 1 || sizes.high < sizes.low || sizes.high > INT32_MAX)
    throw Error("usage", "symbol \"{}\" is {} to {}", name, sizes.low, sizes.high)
        .Expected("sizes from 1 to {}, in order", INT32_MAX);
  if (!function.symbols.emplace(name, sizes).second)
    throw Error("bad-name", "the function already has a symbol \"{}\"", name);
  parts.symbol_names.emplace_back(name);
  parts.symbol_functions.push_back(&function);
  return -static_cast<int64_t>(parts.symbol_names.size());
}

Value* AddInput(Block& block, const char* name, Type type) {
  Function& function = *block.function;
  auto value = std::make_unique<Value>();
  value->name = function.UniqueName(name);
  value->type = std::move(type);
  block.inputs.push_back(std::move(value));
  return block.inputs.back().get();
}

// A port has a source name only if it differs, so that packages are those of the same program as
// text.
Port PortFor(const char* name, const Value& value) {
  Port port{.name = value.name};
  if (value.name != name) port.source_name = name;
  return port;
}

Value* AddConstant(mlc_block* block, const char* name, Tensor tensor) {
  Open(block);
  Builder builder(*block->block, block->program->diagnostics);
  const bool named = !OrEmpty(name).empty();
  if (named) RequireLegal(name);
  return builder.Const(std::move(tensor), named ? name : "const");
}

void StoreValue(mlc_block* block, Value* value, mlc_value* id) {
  const mlc_value made = block->program->Add(value, block);
  if (id) *id = made;
}

}  // namespace

int32_t mlc_program_new(const char* options, mlc_program** program, mlc_error** error) {
  return Call(error, [&] {
    Require(program, "program");
    driver::CompileOptions compile;
    driver::FillFromJson(NewProgramTable(compile), OrEmpty(options));
    auto parts = std::make_shared<ProgramParts>(Program(&Ops()));
    parts->target = compile.target;
    *program = new mlc_program{std::move(parts)};
  });
}

int32_t mlc_function_add(mlc_program* program, const char* name, mlc_block** body,
                         mlc_error** error) {
  return Call(error, [&] {
    Require(program, "program");
    Require(name, "name");
    Require(body, "body");
    ProgramParts& parts = *program->parts;
    if (!IsLegalName(name))
      throw Error("bad-name", "\"{}\" cannot be the name of a function", name)
          .Expected("letters, digits and _, e.g. {}", LegalName(name));
    for (const auto& function : parts.program.functions)
      if (function->name == name)
        throw Error("bad-name", "the program already has a function \"{}\"", name);
    Function* function = parts.program.Add(name);
    if (parts.program.functions.size() == 1) parts.program.interface.default_function = name;
    if (parts.target) function->opset = *parts.target;
    *body = parts.AddBlock(nullptr, &function->body);
  });
}

int32_t mlc_block_symbol(mlc_block* body, const char* name, int64_t low, int64_t high, int64_t* dim,
                         mlc_error** error) {
  return Call(error, [&] {
    Require(dim, "dim");
    *dim = AddSymbol(body, name, {low, high, {}});
  });
}

int32_t mlc_block_symbol_sizes(mlc_block* body, const char* name, int32_t count,
                               const int64_t* sizes, int64_t* dim, mlc_error** error) {
  return Call(error, [&] {
    Require(dim, "dim");
    Require(sizes, "sizes");
    if (count < 1) throw Error("usage", "a symbol has at least one size");
    std::vector<int64_t> list(sizes, sizes + count);
    std::ranges::sort(list);
    *dim = AddSymbol(body, name, {list.front(), list.back(), list});
  });
}

int32_t mlc_block_input(mlc_block* block, const char* name, int32_t dtype, int32_t rank,
                        const int64_t* dims, mlc_value* value, mlc_error** error) {
  return Call(error, [&] {
    Open(block);
    Require(name, "name");
    Function& function = *block->block->function;
    const Type type = ValueType(block, fmt::format("input \"{}\"", name), dtype, rank, dims);
    RequireLegal(name);
    Value* made = AddInput(*block->block, name, type);
    if (!block->around) {
      if (made->name != name) {
        function.ReleaseName(made->name);
        block->block->inputs.pop_back();
        throw Error("bad-name", "the function already has a value \"{}\"", name);
      }
      function.inputs.push_back(PortFor(name, *made));
    }
    StoreValue(block, made, value);
  });
}

int32_t mlc_block_state(mlc_block* body, const char* name, int32_t dtype, int32_t rank,
                        const int64_t* dims, mlc_value* value, mlc_error** error) {
  return Call(error, [&] {
    RequireBody(body);
    Require(name, "name");
    Function& function = *body->block->function;
    const Type type =
        Type::State(ValueType(body, fmt::format("state \"{}\"", name), dtype, rank, dims));
    RequireLegal(name);
    Value* made = AddInput(*body->block, name, type);
    function.states.push_back(PortFor(name, *made));
    StoreValue(body, made, value);
  });
}

int32_t mlc_block_image(mlc_block* body, mlc_value input, const char* space, mlc_error** error) {
  return Call(error, [&] {
    Require(space, "space");
    const ProgramParts& parts = *RequireBody(body).program;
    const Value& value = *parts.Visible(input, body);
    const auto port = std::ranges::find(body->block->function->inputs, value.name, &Port::name);
    if (port == body->block->function->inputs.end())
      throw Error("usage", "\"{}\" is not an input", value.name);
    const std::string_view name(space);
    const auto feature = name == "rgb"    ? Port::Feature::kImageRgb
                         : name == "bgr"  ? Port::Feature::kImageBgr
                         : name == "gray" ? Port::Feature::kImageGray
                                          : Port::Feature::kMultiArray;
    if (feature == Port::Feature::kMultiArray)
      throw Error("usage", "\"{}\" is not a colour space", space).Expected("rgb, bgr or gray");
    const int64_t channels = feature == Port::Feature::kImageGray ? 1 : 3;
    const Shape& shape = value.type.shape;
    if (shape.size() != 4 || !(shape[0] == Dim(1)) || !(shape[1] == Dim(channels)))
      throw Error("input-shape", "image \"{}\" has shape {}", value.name, ToString(shape))
          .Expected("[1, {}, height, width]", channels);
    port->feature = feature;
  });
}

int32_t mlc_block_constant(mlc_block* block, const char* name, const mlc_tensor* tensor,
                           mlc_value* value, mlc_error** error) {
  return Call(error, [&] {
    Open(block);
    StoreValue(block, AddConstant(block, name, Copied(tensor, "the constant")), value);
  });
}

int32_t mlc_block_constant_borrowed(mlc_block* block, const char* name, const mlc_tensor* tensor,
                                    mlc_release_function release, void* user, mlc_value* value,
                                    mlc_error** error) {
  return Call(error, [&] {
    Open(block);
    // The owner is told only once nothing can fail any more.
    const auto armed = std::make_shared<bool>(false);
    Tensor lent = Lent(tensor, "the constant", [release, user, armed] {
      if (release && *armed) release(user);
    });
    StoreValue(block, AddConstant(block, name, std::move(lent)), value);
    *armed = true;
  });
}

int32_t mlc_block_constant_file(mlc_block* block, const char* name, const char* path,
                                uint64_t offset, int32_t dtype, int32_t rank, const int64_t* dims,
                                mlc_value* value, mlc_error** error) {
  return Call(error, [&] {
    Open(block);
    Require(path, "path");
    const DType type = DTypeFrom(dtype, "the constant");
    if (type == DType::kString) throw Error("usage", "a constant in a file cannot have strings");
    const WorkScope scope({.map_files = false});
    Tensor slice = Tensor::FileSlice(MappedFile::Open(path), offset, type,
                                     DimsFrom(rank, dims, "the constant"));
    StoreValue(block, AddConstant(block, name, std::move(slice)), value);
  });
}

int32_t mlc_block_output(mlc_block* block, const char* name, mlc_value id, mlc_error** error) {
  return Call(error, [&] {
    const ProgramParts& parts = Open(block);
    Value* value = parts.Visible(id, block);
    Function& function = *block->block->function;
    std::vector<Value*> outputs = block->block->outputs();
    if (!block->around) {
      Require(name, "name");
      if (std::ranges::find(outputs, value) != outputs.end())
        throw Error("usage", "\"{}\" is already an output", value->name)
            .Help("add an identity, whose result can be another output");
      if (std::ranges::any_of(function.outputs, [&](const Port& port) {
            return (port.source_name.empty() ? port.name : port.source_name) == name;
          }))
        throw Error("bad-name", "the function already has an output \"{}\"", name);
      if (!value->type.is_tensor())
        throw Error("usage", "\"{}\" is {}, which cannot be an output", value->name,
                    value->type.ToString());
      RequireLegal(name);
      // An input keeps its name.
      if (value->def) function.Rename(value, name);
      function.outputs.push_back(PortFor(name, *value));
    }
    outputs.push_back(value);
    block->block->SetOutputs(std::move(outputs));
  });
}

const char* mlc_value_name(const mlc_program* program, mlc_value value) {
  const auto* known = program ? program->parts->Find(value) : nullptr;
  return known ? known->value->name.c_str() : nullptr;
}
int32_t mlc_value_dtype(const mlc_program* program, mlc_value value) {
  const auto* known = program ? program->parts->Find(value) : nullptr;
  return known ? NumberOf(known->value->type.dtype) : 0;
}
int32_t mlc_value_rank(const mlc_program* program, mlc_value value) {
  const auto* known = program ? program->parts->Find(value) : nullptr;
  return known ? known->value->type.rank() : -1;
}
int32_t mlc_value_dims(const mlc_program* program, mlc_value value, int64_t* dims,
                       mlc_error** error) {
  return Call(error, [&] {
    Require(program, "program");
    const Shape& shape = program->parts->At(value).value->type.shape;
    if (!shape.empty()) Require(dims, "dims");
    for (size_t d = 0; d < shape.size(); ++d)
      dims[d] = shape[d].is_constant() ? shape[d].constant() : -1;
  });
}

void mlc_program_free(mlc_program* program) { delete program; }
