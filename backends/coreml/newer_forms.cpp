#include "backends/coreml/newer_forms.h"

#include "lib/coreml/forms.h"
#include "lib/ir/builder.h"
#include "lib/ops/quantized.h"
#include "lib/passes/match.h"

namespace mlc {

namespace {

using Values = std::vector<Value*>;

// roi [n, 1, 4 or 5, 1, 1]: with 5, the first is the image; with 4, each box is of every image.
void CropBoxes(Operation* op, Builder& builder) {
  const Shape roi =
      op->value("roi") ? op->value("roi")->type.shape : ToShape(op->constant("roi").dims());
  bool indexed = roi[2] == Dim(5);
  int64_t width = indexed ? 5 : 4;
  Value* flat = builder.Make("reshape", {{"x", op->arg("roi")[0]}, {"shape", Ints({-1, width})}});
  Value *boxes = flat, *indices;
  if (indexed) {
    auto columns = [&](int64_t begin, int64_t end) {
      return builder.Make("slice_by_index", {{"x", flat},
                                             {"begin", Ints({0, begin})},
                                             {"end", Ints({0, end})},
                                             {"end_mask", Tensor::Vector<bool>({true, false})}});
    };
    boxes = columns(1, 5);
    Value* image = builder.Make("squeeze", {{"x", columns(0, 1)}, {"axes", Ints({1})}});
    indices = builder.Cast(image, DType::kInt32);
  } else {
    int64_t count = roi[0].constant(), images = op->value("x")->type.shape[0].constant();
    std::vector<int32_t> each;
    for (int64_t box = 0; box < count; ++box)
      for (int64_t image = 0; image < images; ++image) each.push_back(static_cast<int32_t>(image));
    indices = builder.Const(Tensor::Vector(each));
    if (images > 1) {
      boxes = builder.Make("expand_dims", {{"x", boxes}, {"axes", Ints({1})}});
      boxes = builder.Make("tile", {{"x", boxes}, {"reps", Ints({1, images, 1})}});
      boxes = builder.Make("reshape", {{"x", boxes}, {"shape", Ints({count * images, 4})}});
    }
  }
  Builder::Args args = ArgsWithout(*op, {"roi"});
  args.emplace_back("boxes", boxes);
  args.emplace_back("box_indices", indices);
  Value* crops = builder.Make("crop_resize", std::move(args));
  const Shape& shape = op->result()->type.shape;  // [n, images or 1, c, h, w]
  Replace(op, shape[1] == Dim(1)
                  ? builder.Make("expand_dims", {{"x", crops}, {"axes", Ints({1})}})
                  : builder.Make("reshape", {{"x", crops}, {"shape", ShapeOperand(shape)}}));
}

// Boxes that score too little come last and suppress no better ones: they are taken out behind the
// operation. The best one stays even so.
void SuppressWithoutThreshold(Operation* op, Builder& builder) {
  auto two = [&](std::string_view name, Value* x, Value* y) {
    return builder.Make(name, {{"x", x}, {"y", y}});
  };
  auto turned = [&](const Operand& x) {
    return builder.Make("transpose", {{"x", x}, {"perm", Ints({0, 2, 1})}});
  };
  Builder::Args args = ArgsWithout(*op, {"boxes", "scores", "score_threshold"});
  args.emplace_back("boxes", turned(op->arg("boxes")[0]));
  args.emplace_back("scores", turned(op->arg("scores")[0]));
  Values found = builder.MakeAll("non_maximum_suppression", std::move(args));
  Value* best =
      builder.Make("reduce_max", {{"x", found[1]}, {"axes", Ints({1})}, {"keep_dims", false}});
  Value* high = builder.Make("greater", {{"x", best}, {"y", op->arg("score_threshold")[0]}});
  std::vector<bool> first(op->constant("max_boxes").Int(0), false);
  first[0] = true;
  int64_t count = static_cast<int64_t>(first.size());
  Value* kept =
      two("logical_or", high, builder.Const(Tensor::Vector<bool>(first).Reshaped({1, count})));
  Value* used =
      two("logical_and", kept, builder.Make("greater_equal", {{"x", found[2]}, {"y", 0}}));
  auto masked = [&](Value* x, Value* mask, double otherwise) {
    return builder.Make("select", {{"cond", mask}, {"a", x}, {"b", otherwise}});
  };
  Value* columns = builder.Make("expand_dims", {{"x", used}, {"axes", Ints({1})}});
  Values results = {turned(masked(found[0], columns, 0)), turned(masked(found[1], columns, 0)),
                    masked(found[2], used, -1),
                    builder.Make("reduce_sum", {{"x", builder.Cast(used, DType::kInt32)},
                                                {"axes", Ints({1})},
                                                {"keep_dims", false}})};
  Function* function = op->block->function;
  for (size_t i = 0; i < results.size(); ++i) {
    std::string name = op->results[i]->name;
    ReplaceAllUses(op->results[i].get(), results[i]);
    function->Rename(op->results[i].get(), name + "_");
    function->Rename(results[i], name);
  }
  EraseUnused(op);
  for (Value* result : results)
    if (!result->has_uses() && result->def) EraseUnused(result->def);
}

// Gives a parameter another constant, and takes away a `const` that nobody uses then.
void Set(Operation* op, std::string_view param, std::vector<Operand> operands) {
  Operation* before = op->value(param) ? op->value(param)->def : nullptr;
  op->SetArg(param, std::move(operands));
  if (before && !before->result()->has_uses()) EraseUnused(before);
}

void UnpackIndices(Operation* op) {
  Dims dims = StaticDims(op->result()->type.shape);
  Tensor lut = op->constant("lut");
  int bits = std::countr_zero(static_cast<uint64_t>(lut.size()));
  Tensor indices = Unpacked(op->constant("indices"), bits, ElementCount(dims)).Reshaped(dims);
  // Five and seven bits are eight then; the longer table's rest is not looked at.
  std::vector<double> entries = lut.Doubles();
  entries.resize(size_t{1} << Bits(indices.dtype()));
  Dims table(dims.size(), 1);
  table.insert(table.end(), {static_cast<int64_t>(entries.size()), 1});
  Set(op, "indices", {indices});
  Set(op, "lut", {Tensor::Of(table, entries).Cast(lut.dtype())});
  Set(op, "shape", {});
}

void UnpackMask(Operation* op) {
  Dims dims = StaticDims(op->result()->type.shape);
  Set(op, "mask", {Unpacked(op->constant("mask"), 1, ElementCount(dims)).Reshaped(dims)});
  Set(op, "shape", {});
}

}  // namespace

bool HasNewerForm(const Operation& op, Opset target) {
  if (op.is("constexpr_lut_to_dense") || op.is("constexpr_sparse_to_dense"))
    return target >= Opset::kIos18 && op.has("shape");
  if (target < Opset::kIos17) return false;
  if (op.is("non_maximum_suppression")) return op.has("score_threshold");
  if (!op.is("crop_resize") || !op.has("roi")) return false;
  const Shape roi = op.arg("roi")[0].type().shape;
  if (roi[2] == Dim(4) &&
      (!roi[0].is_constant() || !op.value("x") || !op.value("x")->type.shape[0].is_constant()))
    throw Error("unsupported-attribute",
                fmt::format("crop_resize: parameter \"roi\" does not exist any more in {}, and the "
                            "indices that it takes instead need known numbers of boxes and images",
                            TargetName(target)));
  return true;
}

void UseNewerForms(Program& program, Opset target, Diagnostics& diagnostics) {
  PassContext context{diagnostics};
  RewriteAll(program, [&](Operation* op) {
    if (!HasNewerForm(*op, target)) return false;
    op->form = nullptr;
    Builder builder = BuilderBefore(op, context);
    if (op->is("crop_resize"))
      CropBoxes(op, builder);
    else if (op->is("non_maximum_suppression"))
      SuppressWithoutThreshold(op, builder);
    else if (op->is("constexpr_lut_to_dense"))
      UnpackIndices(op);
    else
      UnpackMask(op);
    return true;
  });
}

}  // namespace mlc
