// Folds padding into the operation after it.
//
//   y = conv(pad(x, 0), w, pad_type = valid)           ->   y = conv(x, w, pad_type = custom)
//   y = avg_pool(pad(x, 0))                            ->   y = avg_pool(x, pad_type = custom)
//   y = avg_pool(pad(x, 0), exclude_padding_from_average = true)
//     ->   y = avg_pool(x, pad_type = custom, exclude_padding_from_average = false)
//   y = max_pool(pad(x, c)), c <= every element of x   ->   y = max_pool(x, pad_type = custom)
//   y = pad(pad(x))                                    ->   y = pad(x)
//
// Must not fire if batch or channels are padded, if the fill value differs from the operation's own
// padding, if a pool excludes padding of its own from the average or rounds its size up, or if a
// window would contain only padding. Range analysis proves that all elements of x are at least c. No
// numeric effect.
//
// Operators by name: padding and the operations after it.
#include "lib/ops/value_range.h"
#include "lib/passes/rewriting.h"

namespace mlc::passes {
namespace {

// Constant padding: (before, after) for every dimension of x, and the fill value.
struct Padding {
  Operation* op = nullptr;
  std::vector<int64_t> amounts;
  double number = 0;
};

std::optional<Padding> ConstantPadding(Value* value) {
  Operation* op = DefinedBy(value, "pad");
  if (!op || !op->value("x")) return std::nullopt;
  Tensor amounts = op->constant("pad"), number = op->constant_or_default("constant_val"),
         mode = op->constant_or_default("mode");
  if (!amounts || !number || !mode || mode.strings()[0] != "constant") return std::nullopt;
  Padding padding{op, amounts.Ints(), number.Double(0)};
  size_t all = 2 * static_cast<size_t>(value->type.rank());
  if (padding.amounts.size() > all) return std::nullopt;
  padding.amounts.insert(padding.amounts.begin(), all - padding.amounts.size(), 0);
  return padding;
}

// Returns whether an average pool leaves padding out of its averages.
bool ExcludesPadding(const Operation& op) {
  return op.is("avg_pool") && op.constant_or_default("exclude_padding_from_average").Bool(0);
}

// Returns whether `pool` can apply `padding` itself, with its own padding `total` in all.
bool PoolCanPad(const Operation& pool, const Padding& padding, const std::vector<int64_t>& total) {
  Tensor kernel = pool.constant("kernel_sizes"), ceil = pool.constant_or_default("ceil_mode");
  if (!kernel || !ceil || ceil.Bool(0)) return false;
  for (size_t i = 0; i < total.size(); ++i)
    if (total[i] >= kernel.Int(static_cast<int64_t>(i / 2))) return false;
  if (pool.is("max_pool"))
    return padding.number == -std::numeric_limits<double>::infinity() ||
           padding.number <= -std::numeric_limits<float>::max() ||
           (padding.number == 0 && IsNatural(padding.op->value("x")));
  const bool pads = !std::equal(total.begin(), total.end(), padding.amounts.begin() + 4);
  return padding.number == 0 && !(pads && ExcludesPadding(pool));
}

bool IntoWindow(Operation* op, PassContext& context) {
  bool is_conv = op->is("conv"), is_pool = op->is("avg_pool") || op->is("max_pool");
  if (!is_conv && !is_pool) return false;
  std::optional<Padding> padding = ConstantPadding(op->value("x"));
  Tensor type = op->constant_or_default("pad_type");
  if (!padding || !type) return false;
  std::string pad_type = type.strings()[0];
  if (pad_type != "valid" && pad_type != "custom") return false;
  std::vector<int64_t> total(padding->amounts.begin() + 4, padding->amounts.end());
  if (std::any_of(padding->amounts.begin(), padding->amounts.begin() + 4,
                  [](int64_t amount) { return amount != 0; }))
    return false;
  if (pad_type == "custom" && op->has("pad")) {
    Tensor own = op->constant("pad");
    if (!own || own.size() != static_cast<int64_t>(total.size())) return false;
    for (size_t i = 0; i < total.size(); ++i) total[i] += own.Int(static_cast<int64_t>(i));
  }
  if (is_conv ? padding->number != 0 : !PoolCanPad(*op, *padding, total)) return false;
  Builder::Args args = ArgsWithout(*op, {"x", "pad", "pad_type", "exclude_padding_from_average"});
  args.emplace_back("x", padding->op->value("x"));
  args.emplace_back("pad_type", "custom");
  if (ExcludesPadding(*op)) args.emplace_back("exclude_padding_from_average", false);
  args.emplace_back("pad", Ints(total));
  return ReplaceBy(op, context, op->def->name, std::move(args));
}

bool Merge(Operation* op, PassContext& context) {
  if (!op->is("pad")) return false;
  std::optional<Padding> outer = ConstantPadding(op->result());
  std::optional<Padding> inner = outer ? ConstantPadding(op->value("x")) : std::nullopt;
  if (!inner || inner->number != outer->number || SoleUser(op->value("x")) != op) return false;
  for (size_t i = 0; i < inner->amounts.size(); ++i) outer->amounts[i] += inner->amounts[i];
  Builder::Args args = ArgsWithout(*op, {"x", "pad"});
  args.emplace_back("x", inner->op->value("x"));
  args.emplace_back("pad", Ints(outer->amounts));
  return ReplaceBy(op, context, "pad", std::move(args));
}

}  // namespace

extern const PassDef kFusePads = {"fuse-pads",
                                  "fold padding into convolutions, pools and other padding",
                                  Rewrites<IntoWindow, Merge>};

}  // namespace mlc::passes
