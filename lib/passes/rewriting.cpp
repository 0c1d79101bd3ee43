// Operators by name: the patterns that rewrites share.
#include "lib/passes/rewriting.h"

#include <unordered_set>

#include "lib/ir/encoding.h"

namespace mlc::passes {

std::optional<double> Uniform(const Tensor& tensor) {
  if (!tensor || tensor.dtype() == DType::kString || tensor.dtype() == DType::kBool ||
      tensor.size() == 0 || tensor.size() > 65536)
    return std::nullopt;
  double first = tensor.Double(0);
  if (tensor.size() == 1) return first;
  if (tensor.Double(1) != first) return std::nullopt;  // true for most constants
  Tensor::Range range = tensor.range();
  return range.nan || range.low != range.high ? std::nullopt : std::optional(first);
}

std::optional<double> ScaleOf(const Operation& op, Value*& scaled) {
  if (op.results.size() != 1 || op.def->Find("y") < 0) return std::nullopt;
  auto [constant, other] = SplitConstant(&op);
  std::optional<double> number = UniformConstant(constant);
  if (!number || *number == 0 || !Scales(op, other)) return std::nullopt;
  scaled = other;
  return op.value("x") == other && op.is("real_div") ? 1 / *number : number;
}

Value* SquareRoot(const Value* value) {
  const Operation* op = value ? value->def : nullptr;
  if (!op) return nullptr;
  if (op->is("mul") && op->value("x") == op->value("y")) return op->value("x");
  if (op->is("square")) return op->value("x");
  return op->is("pow") && IsUniform(op->value("y"), 2) ? op->value("x") : nullptr;
}

std::optional<std::vector<int64_t>> ConstantAxes(const Operation& op, std::string_view param,
                                                 int rank) {
  Tensor tensor = op.constant(param);
  if (!tensor) return std::nullopt;
  std::vector<int64_t> axes = tensor.Ints();
  for (int64_t& axis : axes) {
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return std::nullopt;
  }
  return axes;
}

Value* Unshifted(const Value* z, const std::vector<int64_t>& axes) {
  const Operation* sub = DefinedBy(z, "sub");
  if (!sub) return nullptr;
  const Value* by = sub->value("y");
  if (const Operation* choice = DefinedBy(by, "select"))
    by = choice->value(choice->constant("b") ? "a" : "b");
  else if (const Operation* clip = DefinedBy(by, "clip"))
    by = clip->value("x");
  const Operation* greatest = DefinedBy(by, "reduce_max");
  if (!greatest || greatest->value("x") != sub->value("x") ||
      !greatest->constant_or_default("keep_dims").Bool(0) ||
      ConstantAxes(*greatest, "axes", z->type.rank()) != axes)
    return nullptr;
  return sub->value("x");
}

// Looks through a cast: returns its operand if `x` is the result of one, otherwise `x`. Parts of
// the program may already be in fp16.
static const Value* BehindCast(const Value* x) {
  const Operation* cast = x ? DefinedBy(x, "cast") : nullptr;
  return cast ? cast->value("x") : x;
}

bool IsDividedByGreatest(const Value* x) {
  const Operation* divide = DefinedBy(BehindCast(x), "real_div");
  const Value* by = divide ? BehindCast(divide->value("y")) : nullptr;
  while (by && by->def && (by->def->is("maximum") || by->def->is("mul")))
    by = BehindCast(SplitConstant(by->def).second);
  const Operation* greatest = by ? DefinedBy(by, "reduce_max") : nullptr;
  const Operation* abs = greatest ? DefinedBy(BehindCast(greatest->value("x")), "abs") : nullptr;
  return abs && BehindCast(abs->value("x")) == BehindCast(divide->value("x"));
}

Tensor ShapeOperand(const Shape& to) {
  std::vector<int64_t> dims;
  for (const Dim& dim : to) {
    if (dim == Dim(0)) return {};
    dims.push_back(dim.is_constant() ? dim.constant() : -1);
  }
  return dims.empty() || std::ranges::count(dims, -1) > 1 ? Tensor() : Ints(dims);
}

bool DecidesSteps(const Value* value) {
  constexpr int kDepth = 4;
  std::vector<const Value*> open = {value};
  for (int depth = 0; depth < kDepth && !open.empty(); ++depth) {
    std::vector<const Value*> next;
    for (const Value* from : open)
      for (const Operation* user : from->users) {
        if (user->def->fp16.kind & Fp16::kMakesWhole) return true;
        if (user->def->elementwise() && (user->def->fp16.kind & Fp16::kKeepsWhole))
          next.push_back(user->result());
      }
    open = std::move(next);
  }
  return false;
}

bool IsBelow(const Tensor& constant, double limit) {
  constexpr int64_t kPiece = 4096;
  if (!constant) return false;
  const Tensor numbers = constant.Cast(DType::kFp32);
  std::vector<float> piece;
  for (int64_t first = 0, count; first < numbers.size(); first += count) {
    count = std::min(first == 0 ? 64 : kPiece, numbers.size() - first);
    piece.resize(static_cast<size_t>(count));
    numbers.Read(first, count, reinterpret_cast<std::byte*>(piece.data()));
    for (const float number : piece)
      if (!(std::fabs(number) < limit)) return false;
  }
  return true;
}

Tensor ScaledRows(const Tensor& constant, const std::vector<double>& scale) {
  const Encoding* encoding = constant.encoding();
  if (!encoding || encoding->form != Encoding::Form::kAffine || encoding->mask || encoding->bias)
    return {};
  // Give the scales one cell per slice.
  Dims dims = encoding->scale.dims();
  const auto rows = static_cast<int64_t>(scale.size());
  if (dims.empty() || constant.dims()[0] != rows || rows % dims[0] != 0) return {};
  const int64_t repeats = rows / dims[0], inner = encoding->scale.size() / dims[0];
  dims[0] = rows;
  auto spread = [&](const Tensor& grid, bool scaled) {
    std::vector<double> from = grid.Doubles(), to;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = 0; i < inner; ++i)
        to.push_back(from[static_cast<size_t>(row / repeats * inner + i)] *
                     (scaled ? scale[static_cast<size_t>(row)] : 1));
    return Tensor::Of<double>(dims, to).Cast(grid.dtype());
  };
  Encoding scaled = *encoding;
  scaled.scale = spread(encoding->scale, true);
  if (encoding->offset) scaled.offset = spread(encoding->offset, false);
  return Tensor::Encoded(std::move(scaled));
}

Tensor ScaledChannels(const Tensor& weight, std::vector<double> scale, bool transposed,
                      int64_t groups) {
  int64_t inner = 1;  // elements that share dimensions 0 and 1
  for (int i = 2; i < weight.rank(); ++i) inner *= weight.dims()[i];
  int64_t second = weight.dims()[1], per_group = std::max<int64_t>(weight.dims()[0] / groups, 1);
  auto channel = [=](int64_t element) {
    int64_t pair = element / inner;  // index in dimensions 0 and 1
    return transposed ? pair / second / per_group * second + pair % second : pair / second;
  };
  DType dtype = weight.dtype();
  auto read = [=, scale = std::move(scale)](int64_t first, int64_t count, std::byte* out) {
    weight.Read(first, count, out);
    int64_t run = transposed ? inner : inner * second;
    for (int64_t i = 0; i < count;) {
      int64_t end = std::min(count, i + run - (first + i) % run);
      double factor = scale[channel(first + i)];
      if (dtype == DType::kFp16) {
        Half* values = reinterpret_cast<Half*>(out);
        for (; i < end; ++i) values[i] = Half(static_cast<double>(values[i]) * factor);
      } else {
        float* values = reinterpret_cast<float*>(out);
        for (; i < end; ++i) values[i] = static_cast<float>(values[i] * factor);
      }
    }
  };
  return Tensor::Lazy(dtype, weight.dims(), std::move(read), weight).ComputedFrom(weight);
}

std::optional<Cut> OnlyCut(const Operation& op) {
  if (!op.is("slice_by_index")) return std::nullopt;
  const Value* x = op.value("x");
  const Tensor begin = op.constant("begin"), end = op.constant("end");
  if (!x || !begin || !end) return std::nullopt;
  if (op.has("stride") && Uniform(op.constant("stride")) != 1.0) return std::nullopt;
  auto is_set = [&](std::string_view mask, int i) {
    const Tensor flags = op.constant(mask);
    return flags && flags.Bool(i);
  };
  std::optional<Cut> cut;
  for (int i = 0; i < x->type.rank(); ++i) {
    const bool from_start = is_set("begin_mask", i), to_end = is_set("end_mask", i);
    const bool squeezes = is_set("squeeze_mask", i);
    int64_t from = from_start ? 0 : begin.Int(i), to = end.Int(i);
    const Dim& dim = x->type.shape[i];
    if (from == 0 && to_end && !squeezes) continue;
    if (!dim.is_constant()) return std::nullopt;
    const int64_t size = dim.constant();
    if (from < 0) from += size;
    if (to < 0) to += size;
    from = std::clamp<int64_t>(from, 0, size);
    to = squeezes ? from + 1 : to_end ? size : std::clamp<int64_t>(to, 0, size);
    if (from == 0 && to == size && !squeezes) continue;
    if (cut || from >= to) return std::nullopt;
    cut = Cut{i, from, to, squeezes};
  }
  return cut;
}

bool HasEffects(const Operation& op) {
  if (op.def->effect == Effect::kWritesState) return true;
  for (const std::unique_ptr<Block>& nested : op.blocks)
    for (Operation* inner : nested->operations())
      if (HasEffects(*inner)) return true;
  return false;
}

void InferUsers(const Value* value, Function& function) {
  std::unordered_set<const Value*> stale = {value};
  ForEachOperation(function, [&](Operation* op) {
    bool reads = false;
    for (const Operands& operands : op->args())
      for (const Operand& operand : operands)
        reads = reads || (operand.value && stale.contains(operand.value));
    for (const std::unique_ptr<Block>& nested : op->blocks)
      for (const Value* output : nested->outputs()) reads = reads || stale.contains(output);
    if (!reads || !InferTypes(*op)) return;
    for (const std::unique_ptr<Value>& result : op->results) stale.insert(result.get());
  });
}

bool Replace(Operation* op, Value* to) {
  Value* from = op->result();
  if (!from->has_uses()) {
    EraseUnused(op);
    return true;
  }
  MLC_CHECK(to->type.dtype == from->type.dtype && to->type.shape.size() == from->type.shape.size(),
            "{} of type {} replaced by {} of type {}", op->Describe(), from->type.ToString(),
            to->name, to->type.ToString());
  bool same = to->type == from->type;
  bool fresh = !to->has_uses() && to->def && !to->is_constant();
  std::string name = from->name;
  if (!same && fresh) {
    // Dimensions that type inference could not determine keep their existing symbols.
    to->type = from->type;
    InferTypes(*to->def);
    same = to->type == from->type;
  }
  ReplaceAllUses(from, to);
  Function* function = op->block->function;
  EraseUnused(op);
  if (fresh) function->Rename(to, name);
  if (!same && to->def) InferUsers(to, *function);
  return true;
}

void EraseUnused(Operation* op) {
  std::vector<Operation*> unused = {op};
  while (!unused.empty()) {
    Operation* last = unused.back();
    unused.pop_back();
    std::vector<Operation*> makers;
    std::unordered_set<Operation*> listed;
    for (const Operands& list : last->args())
      for (const Operand& operand : list)
        if (operand.value && operand.value->def && listed.insert(operand.value->def).second)
          makers.push_back(operand.value->def);
    last->block->Erase(last);
    for (Operation* maker : makers)
      if (maker->blocks.empty() && !HasEffects(*maker) &&
          std::ranges::none_of(maker->results,
                               [](const auto& result) { return result->has_uses(); }))
        unused.push_back(maker);
  }
}

Builder::Args ArgsWithout(const Operation& op, std::initializer_list<std::string_view> left_out) {
  Builder::Args args;
  const std::vector<Param>& params = op.def->canonical().params;
  for (size_t i = 0; i < op.args().size(); ++i) {
    if (op.args()[i].empty() || std::ranges::find(left_out, params[i].name) != left_out.end())
      continue;
    args.emplace_back(params[i].name, op.args()[i][0]);
    args.back().operands = op.args()[i];
  }
  return args;
}

bool RewriteAll(Program& program, const std::function<bool(Operation*)>& rewrite) {
  bool changed = false;
  for (bool again = true; again;) {
    again = false;
    for (std::unique_ptr<Function>& function : program.functions)
      ForEachOperation(*function, [&](Operation* op) { again |= rewrite(op); });
    changed |= again;
  }
  return changed;
}

}  // namespace mlc::passes
