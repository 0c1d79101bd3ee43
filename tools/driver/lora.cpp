// Operators by name: the layers that pairs are added to.
#include "tools/driver/lora.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "lib/passes/rewriting.h"
#include "tools/driver/weights.h"

namespace mlc::driver {

namespace {

// The layers that multiply by a weight. Error "bad-input" if other operations use it, too.
std::vector<Operation*> LayersOf(const NamedWeight& weight) {
  std::vector<Operation*> layers;
  for (const Use& use : weight.operation->result()->users.All()) {
    const Operation* op = use.operation;
    if ((!op->is("linear") && !op->is("conv")) || op->value("weight") != weight.operation->result())
      throw Error("bad-input", "\"{}\" is not only a weight of linear and conv: {} \"{}\" uses it",
                  weight.name, op->def->name, op->results.empty() ? op->name : op->result()->name);
    layers.push_back(use.operation);
  }
  if (layers.empty())
    throw Error("bad-input", "\"{}\" is not a weight of linear or conv", weight.name);
  return layers;
}

// All weights of a name. Error "bad-name" if there is none.
std::vector<NamedWeight> Named(Program& program, const std::string& name) {
  const std::string found = FindWeight(program, name).name;
  std::vector<NamedWeight> all = WeightsOf(program);
  std::erase_if(all, [&](const NamedWeight& weight) { return weight.name != found; });
  return all;
}

void RequireShape(const std::string& weight, std::string_view which, const Tensor& tensor,
                  const Dims& dims) {
  if (tensor.dims() == dims && IsFloat(tensor.dtype())) return;
  throw Error("bad-input", "weight \"{}\": `{}` is {} [{}]", weight, which, Name(tensor.dtype()),
              fmt::join(tensor.dims(), ", "))
      .Expected("fp32 or fp16 [{}]", fmt::join(dims, ", "));
}

// The sizes of `down` for a weight.
Dims DownDims(const Tensor& weight, int64_t rank) {
  Dims dims = weight.dims();
  dims[0] = rank;
  return dims;
}

bool HasGroups(const Operation& op) {
  return op.is("conv") && op.constant_or_default("groups").Int(0) != 1;
}

// All weights of a name, whose layers can take a pair.
std::vector<NamedWeight> Layered(Program& program, const std::string& weight) {
  std::vector<NamedWeight> all = Named(program, weight);
  for (const NamedWeight& named : all)
    for (const Operation* layer : LayersOf(named))
      if (HasGroups(*layer))
        throw Error("bad-input", "{} has groups", layer->Describe())
            .Help("merge the pair into the weight");
  return all;
}

// Replaces a layer by one that adds scale * up * (down * x).
void AddPair(Operation* op, Value* down, Value* up, double scale, Diagnostics& diagnostics) {
  Builder b(*op->block, diagnostics, op);
  b.SetName(op->result()->name);
  b.SetLocation(op->location);
  Value* own = b.Make(op->def->name, passes::ArgsWithout(*op, {}));
  Value* low = nullptr;
  Value* high = nullptr;
  if (op->is("linear")) {
    low = b.Make("matmul", {{"x", op->value("x")}, {"y", down}, {"transpose_y", true}});
    high = b.Make("matmul", {{"x", low}, {"y", up}, {"transpose_y", true}});
  } else {
    Builder::Args args = passes::ArgsWithout(*op, {"weight", "bias"});
    args.emplace_back("weight", down);
    low = b.Make("conv", std::move(args));
    std::vector<int64_t> dims = {up->type.shape[0].constant(), up->type.shape[1].constant()};
    dims.resize(down->type.shape.size(), 1);
    high = b.Make("conv",
                  {{"x", low}, {"weight", b.Make("reshape", {{"x", up}, {"shape", Ints(dims)}})}});
  }
  Value* scaled = scale == 1 ? high : b.Make("mul", {{"x", high}, {"y", scale}});
  passes::Replace(op, b.Make("add", {{"x", own}, {"y", scaled}}));
}

}  // namespace

void MergeLora(Program& program, const std::string& weight, const Tensor& down, const Tensor& up,
               double scale) {
  for (const NamedWeight& named : Named(program, weight)) LayersOf(named);
  const Tensor before = FindWeight(program, weight).operation->val;
  const int64_t rank = down.rank() > 0 ? down.dims()[0] : 0, rows = before.dims()[0],
                columns = before.size() / rows;
  RequireShape(weight, "down", down, DownDims(before, rank));
  RequireShape(weight, "up", up, {rows, rank});
  std::vector<double> sum = before.Doubles();
  const std::vector<double> a = down.Doubles(), b = up.Doubles();
  for (int64_t o = 0; o < rows; ++o)
    for (int64_t r = 0; r < rank; ++r)
      for (int64_t c = 0; c < columns; ++c)
        sum[o * columns + c] += scale * b[o * rank + r] * a[r * columns + c];
  ChangeWeight(program, weight, Tensor::Of(before.dims(), sum));
}

bool TakesLora(Program& program, const std::string& source) {
  bool found = false;
  for (const NamedWeight& weight : WeightsOf(program)) {
    if (weight.source != source) continue;
    for (const Use& use : weight.operation->result()->users.All()) {
      const Operation* op = use.operation;
      if (!op || (!op->is("linear") && !op->is("conv")) || HasGroups(*op) ||
          op->value("weight") != weight.operation->result())
        return false;
    }
    found = true;
  }
  return found;
}

void AddLora(Program& program, const std::string& weight, const Tensor& down, const Tensor& up,
             double scale, Diagnostics& diagnostics) {
  for (const NamedWeight& named : Layered(program, weight)) {
    const Tensor& tensor = named.operation->val;
    const int64_t rank = down.rank() > 0 ? down.dims()[0] : 0;
    RequireShape(weight, "down", down, DownDims(tensor, rank));
    RequireShape(weight, "up", up, {tensor.dims()[0], rank});
    for (Operation* op : LayersOf(named)) {
      Builder b(*op->block, diagnostics, op);
      const DType dtype = named.operation->result()->type.dtype;
      AddPair(op, b.Const(down.Cast(dtype), named.name + "_lora_down"),
              b.Const(up.Cast(dtype), named.name + "_lora_up"), scale, diagnostics);
    }
  }
}

void AddLoraInputs(Program& program, const std::string& weight, int64_t rank, double scale,
                   Diagnostics& diagnostics) {
  if (rank < 1) throw Error("usage", "the rank is {}", rank).Expected("at least 1");
  for (const NamedWeight& named : Layered(program, weight)) {
    const std::vector<Operation*> layers = LayersOf(named);
    Function& function = *named.operation->block->function;
    const Type type = named.operation->result()->type;
    const Tensor& tensor = named.operation->val;
    auto input = [&](const char* side, const Dims& dims) {
      Value* value =
          function.AddInput(weight + side, Type::Tensor(type.dtype, {dims.begin(), dims.end()}));
      Port port{.name = value->name, .source_name = value->name, .source_dtype = type.dtype};
      port.source_shape = value->type.shape;
      function.inputs.push_back(std::move(port));
      return value;
    };
    Value* down = input("_lora_down", DownDims(tensor, rank));
    Value* up = input("_lora_up", {tensor.dims()[0], rank});
    for (Operation* op : layers) AddPair(op, down, up, scale, diagnostics);
  }
}

}  // namespace mlc::driver
