// Replaces parameters and indices that the target no longer supports by equivalent operations.
//
//   y = crop_resize(x, roi = r)
//     ->   y = crop_resize(x, boxes = corners of r, box_indices = images of r)      (from iOS17)
//   b, s, i, n = non_maximum_suppression(boxes, scores, score_threshold = t, ...)
//     ->   ... = non_maximum_suppression(boxes, scores, ...); its results are set to 0 or -1, and
//          its count is reduced, for scores of at most t                            (from iOS17)
//   w = constexpr_lut_to_dense(indices = packed bytes, lut, shape = [64, 3])
//     ->   w = constexpr_lut_to_dense(indices = uint4 [64, 3], lut)                 (from iOS18)
//   w = constexpr_sparse_to_dense(mask = packed bits, nonzero_data, shape = [64, 3])
//     ->   w = constexpr_sparse_to_dense(mask = uint1 [64, 3], nonzero_data)        (from iOS18)
//   y = gather(x [30, 8], indices)
//     ->   y = gather(x, select(indices // 30 == -1, indices + 30, indices))        (from iOS17)
//
// The last also concerns the other gathers and the scatters: their indices could count from the end
// of a dimension, and "negative values are considered out-of-bound" since iOS17 (coremltools,
// mil/ops/defs/iOS17/scatter_gather.py).
//
// Must not fire if the target supports the older form; on a roi of four numbers if the number of
// boxes or images is dynamic: this has no newer form, and the writer reports an error; on indices
// that cannot be negative, or that were written for iOS17. No numeric effect.
#include <array>

#include "lib/ir/arithmetic.h"
#include "lib/ir/encoding.h"
#include "lib/ir/shape_tensors.h"
#include "lib/lower/indices.h"
#include "lib/ops/form_params.h"
#include "lib/ops/value_range.h"
#include "lib/passes/rewriting.h"

namespace mlc::passes {
namespace {

using Values = std::vector<Value*>;

// roi is [n, 1, 4 or 5, 1, 1]. With 5 elements, the first is the image index; with 4, each box
// applies to every image.
bool CropBoxes(Operation* op, Builder& builder) {
  const Shape roi = op->arg("roi")[0].type().shape;
  bool indexed = roi[2] == Dim(5);
  if (!indexed && (!roi[0].is_constant() || !op->arg("x")[0].type().shape[0].is_constant()))
    return false;
  int64_t width = indexed ? 5 : 4;
  Value* flat = WithShape(builder, op->arg("roi")[0], {-1, width});
  Value *boxes = flat, *indices;
  if (indexed) {
    auto columns = [&](int64_t begin, int64_t end) {
      return SliceBetween(builder, flat, {0, begin}, {0, end}, {true, false});
    };
    boxes = columns(1, 5);
    Value* image = Squeezed(builder, columns(0, 1), {1});
    indices = builder.Cast(image, DType::kInt32);
  } else {
    int64_t count = roi[0].constant(), images = op->arg("x")[0].type().shape[0].constant();
    std::vector<int32_t> each;
    for (int64_t box = 0; box < count; ++box)
      for (int64_t image = 0; image < images; ++image) each.push_back(static_cast<int32_t>(image));
    indices = builder.Const(Tensor::Vector(each));
    if (images > 1) {
      boxes = Expanded(builder, boxes, {1});
      boxes = builder.Make("tile", {{"x", boxes}, {"reps", Ints({1, images, 1})}});
      boxes = WithShape(builder, boxes, {count * images, 4});
    }
  }
  Builder::Args args = ArgsWithout(*op, {"roi"});
  args.emplace_back("boxes", boxes);
  args.emplace_back("box_indices", indices);
  Value* crops = builder.Make("crop_resize", std::move(args));
  const Shape& shape = op->result()->type.shape;  // [n, images or 1, c, h, w]
  return Replace(op, shape[1] == Dim(1)
                         ? Expanded(builder, crops, {1})
                         : builder.Make("reshape", {{"x", crops}, {"shape", ShapeOperand(shape)}}));
}

// Boxes below the threshold come last and suppress no better boxes, so they are masked after the
// operation. The best box is kept in any case.
bool SuppressWithoutThreshold(Operation* op, Builder& builder) {
  auto turned = [&](const Operand& x) {
    return builder.Make("transpose", {{"x", x}, {"perm", Ints({0, 2, 1})}});
  };
  Builder::Args args = ArgsWithout(*op, {"boxes", "scores", "score_threshold"});
  args.emplace_back("boxes", turned(op->arg("boxes")[0]));
  args.emplace_back("scores", turned(op->arg("scores")[0]));
  Values found = builder.MakeAll("non_maximum_suppression", std::move(args));
  Value* best = Reduced(builder, "reduce_max", found[1], {1}, false);
  Value* high = Binary(builder, "greater", best, op->arg("score_threshold")[0]);
  std::vector<bool> first(op->constant("max_boxes").Int(0), false);
  first[0] = true;
  int64_t count = static_cast<int64_t>(first.size());
  Value* kept = Binary(builder, "logical_or", high,
                       builder.Const(Tensor::Vector<bool>(first).Reshaped({1, count})));
  Value* used = Binary(builder, "logical_and", kept, Binary(builder, "greater_equal", found[2], 0));
  auto masked = [&](Value* x, Value* mask, double otherwise) {
    return builder.Make("select", {{"cond", mask}, {"a", x}, {"b", otherwise}});
  };
  Value* columns = Expanded(builder, used, {1});
  Values results = {turned(masked(found[0], columns, 0)), turned(masked(found[1], columns, 0)),
                    masked(found[2], used, -1),
                    Reduced(builder, "reduce_sum", builder.Cast(used, DType::kInt32), {1}, false)};
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
  return true;
}

// Replaces a constant parameter, and erases the previous constant if it is unused.
void Set(Operation* op, std::string_view param, Operands operands) {
  Operation* before = op->value(param) ? op->value(param)->def : nullptr;
  op->SetArg(param, std::move(operands));
  if (before && !before->result()->has_uses()) EraseUnused(before);
}

bool UnpackIndices(Operation* op, Builder&) {
  Tensor value = Evaluate(*op).at(0);
  Set(op, "indices", {value.encoding()->data});
  Set(op, "lut", {value.encoding()->table});
  Set(op, "shape", {});
  op->form = nullptr;
  return true;
}

bool UnpackMask(Operation* op, Builder&) {
  Set(op, "mask", {Evaluate(*op).at(0).encoding()->mask});
  Set(op, "shape", {});
  op->form = nullptr;
  return true;
}

// A rewrite for an operator whose parameter `lost` the target does not support.
struct NewerForm {
  std::string_view op, lost;
  bool (*rewrite)(Operation*, Builder&);  // returns false if there is no equivalent
};
constexpr std::array kNewerFormRows = {
    NewerForm{"constexpr_lut_to_dense", "shape", UnpackIndices},
    NewerForm{"constexpr_sparse_to_dense", "shape", UnpackMask},
    NewerForm{"crop_resize", "roi", CropBoxes},
    NewerForm{"non_maximum_suppression", "score_threshold", SuppressWithoutThreshold},
};

bool RewriteOlder(Operation* op, PassContext& context) {
  const Form* form = op->def->FormFor(context.target);
  for (const NewerForm& row : kNewerFormRows) {
    if (!form || !op->is(row.op) || !op->has(row.lost) || HasParam(*op->def, *form, row.lost))
      continue;
    Builder builder = BuilderBefore(op, context);
    return row.rewrite(op, builder);
  }
  return false;
}

// An operator with indices into a dimension of an operand, or with index vectors into several.
struct Indexing {
  std::string_view op, into;
  bool vectors = false;
};
constexpr std::array kIndexingRows = {
    Indexing{"gather", "x"},
    Indexing{"gather_along_axis", "x"},
    Indexing{"gather_nd", "x", true},
    Indexing{"scatter", "data"},
    Indexing{"scatter_along_axis", "data"},
    Indexing{"scatter_nd", "data", true},
};

bool IndicesFromFront(Operation* op, PassContext& context) {
  const Indexing* row = std::ranges::find(kIndexingRows, op->def->name, &Indexing::op);
  const Form* form = op->def->FormFor(context.target);
  if (row == kIndexingRows.end() || !form || !op->form ||
      HasParam(*op->def, *op->form, "validate_indices") ||
      !HasParam(*op->def, *form, "validate_indices"))
    return false;
  Value *x = op->value(row->into), *indices = op->value("indices");
  if (!x || !indices || IsNatural(indices)) return false;
  Builder builder = BuilderBefore(op, context);
  // Arithmetic has no smaller integers.
  auto widened = [&] { return builder.Cast(indices, DType::kInt32); };
  Value* from = nullptr;
  if (row->vectors) {
    Tensor batch = op->def->Find("batch_dims") >= 0 ? op->constant_or_default("batch_dims")
                                                    : Tensor::Scalar<int32_t>(0);
    const Shape& shape = indices->type.shape;
    if (!batch || shape.empty() || !shape.back().is_constant()) return false;
    from = lower::VectorsFromFront(builder, widened(), x, static_cast<int>(batch.Int(0)));
  } else {
    auto axis = ConstantAxes(*op, "axis", x->type.rank());
    if (!axis) return false;
    from = lower::FromFront(builder, widened(), x, static_cast<int>((*axis)[0]));
  }
  Set(op, "indices", {from});
  op->form = nullptr;
  return true;
}

}  // namespace

extern const PassDef kNewerForms = {
    "newer-forms", "replace parameters and indices that the target no longer supports",
    Rewrites<RewriteOlder, IndicesFromFront>};

}  // namespace mlc::passes
