// Tests the rules of placement: each fires on one program and does not fire on a similar one.
#include <fmt/ranges.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "lib/analysis/placement_rules.h"
#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "test/catch.h"
#include "test/paths.h"
#include "tools/driver/errors.h"

namespace mlc::test {
using namespace analysis;
namespace {

Program Parsed(const std::string& inputs, const std::string& operations,
               const std::string& outputs = "y") {
  return ParseText("func main<ios18>(" + inputs + ") {" + operations + "} -> (" + outputs + ");",
                   "test.mil", Ops());
}

// Returns whether the rule fires on the program, for the unit and chip.
bool Fires(std::string_view id, const Program& program, Unit unit, std::string_view chip) {
  const Function& function = *program.functions[0];
  const Placement placement =
      PlacementOf(function, unit, *ChipNamed(chip), SizesToExamine(function).front());
  std::vector<PlacementFinding> findings = placement.findings;
  for (PlacementFinding& finding : ProgramFindings(program, unit, *ChipNamed(chip)))
    findings.push_back(std::move(finding));
  return std::any_of(findings.begin(), findings.end(),
                     [&](const PlacementFinding& finding) { return finding.rule->id == id; });
}

// A program on which a rule fires on one chip, and one on which it does not fire on another, which
// may be the same chip or the same program.
struct RuleCase {
  std::string_view id;
  Unit unit;
  std::string_view chip;
  std::string inputs, operations;
  std::string_view other_chip;
  std::string other_inputs, other_operations;
};

const std::string kX = "tensor<fp16, [1, 8, 16, 64]> x";
const std::string kWide = "tensor<fp16, [1, 64, 32, 64]> x";  // 131072 elements
const std::string kRelu = "y = relu(x = x);";

std::string Conv(std::string_view kernel, std::string_view more = "", std::string_view in = "8") {
  return fmt::format(
      "w = const()[val = tensor<fp16, [4, {}, {}]>(fill(0.5))];"
      "y = conv(x = x, weight = w{});",
      in, kernel, more);
}

const std::string kInt8Linear =
    "d = const()[val = tensor<int8, [16, 64]>(fill(3))];"
    "s = const()[val = tensor<fp16, [16, 1]>(fill(0.5))];"
    "w = constexpr_blockwise_shift_scale(data = d, scale = s);"
    "y = linear(x = x, weight = w);";

// The elements of a constant as nested lists.
std::string Ones(const Dims& dims, size_t axis = 0) {
  if (axis == dims.size()) return "1";
  const std::string one = Ones(dims, axis + 1);
  std::string text = "[" + one;
  for (int64_t i = 1; i < dims[axis]; ++i) text += ", " + one;
  return text + "]";
}

std::string Scaled(std::string_view dtype, std::string_view scales) {
  return fmt::format(
      "d = const()[val = tensor<{}, [16, 64]>({})];"
      "s = const()[val = tensor<fp16, {}>(fill(0.5))];"
      "w = constexpr_blockwise_shift_scale(data = d, scale = s);"
      "y = linear(x = x, weight = w);",
      dtype, Ones({16, 64}), scales);
}

std::string Palette(std::string_view shape, std::string_view bits, std::string_view use) {
  const Dims dims = use.find("conv") != use.npos ? Dims{4, 8, 3, 3} : Dims{16, 64};
  return fmt::format(
      "i = const()[val = tensor<uint{}, [{}]>({})];"
      "t = const()[val = tensor<fp16, {}>(fill(0.5))];"
      "w = constexpr_lut_to_dense(indices = i, lut = t);{}",
      bits, fmt::join(dims, ", "), Ones(dims), shape, use);
}

const std::string kLinearW = "y = linear(x = x, weight = w);";

const std::vector<RuleCase>& Cases() {
  constexpr Unit kAne = Unit::kNeuralEngine;
  const std::string whole = "tensor<fp16, [4, 64]> x";
  static const std::vector<RuleCase> cases = {
      {"fp32", kAne, "A14", "tensor<fp32, [4]> x", kRelu, "A14", "tensor<fp32, [4]> x",
       "y = cast(x = x, dtype = \"fp16\");"},
      {"fp32-port", kAne, "A14", "tensor<fp32, [4]> x", "y = cast(x = x, dtype = \"fp16\");", "A14",
       "tensor<fp16, [4]> x",
       "a = cast(x = x, dtype = \"int16\"); b = cast(x = a, dtype = \"fp32\"); y = exp(x = b);"},
      {"computed-size", kAne, "M4", "tensor<fp16, [4]> x", "y = shape(x = x);", "M4", kX, kRelu},
      {"wide-integer", kAne, "A14", "tensor<int32, [4]> x", "y = add(x = x, y = 1);", "A14",
       "tensor<fp16, [4]> x", "y = cast(x = x, dtype = \"int16\");"},
      {"rank", kAne, "A14", "tensor<fp16, [1, 2, 2, 2, 2, 2]> x", kRelu, "A14",
       "tensor<fp16, [1, 2, 2, 2, 2]> x", kRelu},
      {"open-shape", kAne, "A14", "tensor<fp16, [n]> x", kRelu, "A14", "tensor<fp16, [4]> x",
       kRelu},
      {"data-dependent-shape", kAne, "A14", "tensor<fp16, [4]> x", "y = non_zero(x = x);", "A14",
       "tensor<fp16, [n]> x", kRelu},
      {"zero-size", kAne, "A14", "tensor<fp16, [4]> x",
       "y = slice_by_index(x = x, begin = [2], end = [2]);", "A14", "tensor<fp16, [4]> x",
       "y = slice_by_index(x = x, begin = [2], end = [3]);"},
      {"long-axis", kAne, "M3", "tensor<fp16, [1, 1, 16385]> x", kRelu, "M3",
       "tensor<fp16, [1, 16385, 1, 1]> x", kRelu},
      {"long-axis", kAne, "M3", "tensor<fp16, [1, 65537, 1, 1]> x", kRelu, "M4",
       "tensor<fp16, [1, 1, 16385]> x", kRelu},
      {"very-long-axis", kAne, "M4", "tensor<fp16, [1, 1, 65537]> x", kRelu, "M4",
       "tensor<fp16, [1, 1, 65536]> x", kRelu},
      {"recurrent", kAne, "M4", "tensor<fp16, [3, 1, 4]> x",
       "h = const()[val = tensor<fp16, [1, 2]>(fill(0))];"
       "a = const()[val = tensor<fp16, [2, 4]>(fill(0.5))];"
       "b = const()[val = tensor<fp16, [2, 2]>(fill(0.5))];"
       "y, z = rnn(x = x, initial_h = h, weight_ih = a, weight_hh = b);",
       "M4", kX, kRelu},
      {"control-flow", kAne, "M4", "tensor<fp16, [4]> x, tensor<bool, []> p",
       "y = cond(pred = p) () { a = relu(x = x); } -> (a) () { b = exp(x = x); } -> (b);", "M4", kX,
       kRelu},
      {"control-flow", Unit::kGpu, "M4", "tensor<fp16, [4]> x, tensor<bool, []> p",
       "y = cond(pred = p) () { a = relu(x = x); } -> (a) () { b = exp(x = x); } -> (b);", "M4", kX,
       kRelu},
      {"gather", kAne, "M4", "tensor<fp16, [4]> x, tensor<int16, [2]> i",
       "y = gather(x = x, indices = i);", "M4", "tensor<fp16, [4]> x",
       "y = gather(x = x, indices = [1, 2]);"},
      {"scatter", kAne, "M4", "tensor<fp16, [4]> x, tensor<fp16, [1]> u, tensor<int32, [1]> i",
       "y = scatter(data = x, indices = i, updates = u);", "M4", kX, kRelu},
      {"selection", kAne, "M4", "tensor<fp16, [4]> x", "y, i = topk(x = x, k = 2);", "M4",
       "tensor<fp16, [4]> x", "y = reduce_max(x = x, axes = [0]);"},
      {"box-selection", kAne, "M4", "tensor<fp16, [1, 4, 4]> b, tensor<fp16, [1, 4, 2]> s",
       "y, c, i, n = non_maximum_suppression(boxes = b, scores = s, iou_threshold = 0.5, "
       "score_threshold = 0.5, max_boxes = 2, per_class_suppression = false);",
       "M4", kX, kRelu},
      {"cumulative-sum", kAne, "M4", "tensor<fp16, [4]> x", "y = cumsum(x = x);", "M4",
       "tensor<fp16, [4]> x", "y = reduce_sum(x = x, axes = [0]);"},
      {"no-kernel", kAne, "M4", "tensor<fp16, [4]> x", "y = reduce_prod(x = x, axes = [0]);", "M4",
       "tensor<fp16, [4]> x", "y = reduce_sum(x = x, axes = [0]);"},
      {"no-function", kAne, "M4", "tensor<fp16, [4]> x", "y = tan(x = x);", "M4",
       "tensor<fp16, [4]> x", "y = tanh(x = x);"},
      {"logic", kAne, "M4", "tensor<bool, [4]> x", "y = logical_and(x = x, y = x);", "M4",
       "tensor<fp16, [4]> x", "y = less(x = x, y = 1.0);"},
      {"random", kAne, "M4", "tensor<fp16, [4]> x",
       "r = random_normal(shape = [4], mean = fp16(0), stddev = fp16(1), seed = 1);"
       "y = add(x = x, y = r);",
       "M4", kX, kRelu},
      {"sine", kAne, "M2", "tensor<fp16, [4]> x", "y = sin(x = x);", "M3", "tensor<fp16, [4]> x",
       "y = sin(x = x);"},
      {"sampling", kAne, "M1", "tensor<fp16, [1, 1, 4, 4]> x, tensor<fp16, [1, 2, 2, 2]> c",
       "y = resample(x = x, coordinates = c, sampling_mode = \"bilinear\", padding_mode = "
       "\"constant\", padding_value = fp16(0), coordinates_mode = \"unnormalized\", align_corners "
       "= true);",
       "M2", "tensor<fp16, [1, 1, 4, 4]> x, tensor<fp16, [1, 2, 2, 2]> c",
       "y = resample(x = x, coordinates = c, sampling_mode = \"bilinear\", padding_mode = "
       "\"constant\", padding_value = fp16(0), coordinates_mode = \"unnormalized\", align_corners "
       "= true);"},
      {"product-rank", kAne, "M4", "tensor<fp16, [1, 1, 1, 4, 4]> x", "y = matmul(x = x, y = x);",
       "M4", "tensor<fp16, [1, 1, 4, 4]> x", "y = matmul(x = x, y = x);"},
      {"conv-3d", kAne, "M4", "tensor<fp16, [1, 8, 4, 4, 4]> x", Conv("1, 1, 1"), "M4", kX,
       Conv("1, 1")},
      {"kernel-width", kAne, "M1", kX, Conv("1, 14"), "M1", kX, Conv("14, 13")},
      {"kernel-width-15", kAne, "M5", kX, Conv("1, 16"), "M5", kX, Conv("16, 15")},
      {"transposed-dilation", kAne, "M4", kX,
       "w = const()[val = tensor<fp16, [8, 4, 2, 2]>(fill(0.5))];"
       "y = conv_transpose(x = x, weight = w, dilations = [2, 2]);",
       "M4", kX,
       "w = const()[val = tensor<fp16, [8, 4, 2, 2]>(fill(0.5))];"
       "y = conv_transpose(x = x, weight = w);"},
      {"pool-window-13", kAne, "A12", kX,
       "y = max_pool(x = x, kernel_sizes = [14, 14], strides = [1, 1], pad_type = \"valid\");",
       "A14", kX,
       "y = max_pool(x = x, kernel_sizes = [14, 14], strides = [1, 1], pad_type = \"valid\");"},
      {"pool-window-29", kAne, "M1", kX,
       "y = max_pool(x = x, kernel_sizes = [1, 30], strides = [1, 1], pad_type = \"valid\");", "M1",
       kX, "y = max_pool(x = x, kernel_sizes = [1, 29], strides = [1, 1], pad_type = \"valid\");"},
      {"pool-window-31", kAne, "M2", kX,
       "y = max_pool(x = x, kernel_sizes = [1, 32], strides = [1, 1], pad_type = \"valid\");", "M2",
       kX, "y = max_pool(x = x, kernel_sizes = [1, 31], strides = [1, 1], pad_type = \"valid\");"},
      {"old-pool-stride", kAne, "A13", kX,
       "y = max_pool(x = x, kernel_sizes = [2, 2], strides = [4, 4], pad_type = \"valid\");", "A14",
       kX, "y = max_pool(x = x, kernel_sizes = [2, 2], strides = [4, 4], pad_type = \"valid\");"},
      {"old-upsampling", kAne, "A13", kX,
       "y = upsample_nearest_neighbor(x = x, scale_factor_height = 3.0, scale_factor_width = 3.0);",
       "A13", kX,
       "y = upsample_nearest_neighbor(x = x, scale_factor_height = 2.0, scale_factor_width = "
       "2.0);"},
      {"channel-padding", kAne, "M4", kX,
       "y = pad(x = x, pad = [0, 0, 0, 1, 0, 0, 0, 0], mode = \"constant\");", "M4", kX,
       "y = pad(x = x, pad = [1, 1, 1, 1], mode = \"constant\");"},
      {"reflection", kAne, "M1", kX, "y = pad(x = x, pad = [1, 1, 1, 1], mode = \"reflect\");",
       "M2", kX, "y = pad(x = x, pad = [1, 1, 1, 1], mode = \"reflect\");"},
      {"response-norm", kAne, "M4", "tensor<fp16, [1, 16, 4, 4]> x",
       "y = local_response_norm(x = x, size = 3);", "M4", "tensor<fp16, [1, 15, 4, 4]> x",
       "y = local_response_norm(x = x, size = 3);"},
      {"small-fused-attention", kAne, "M4", "tensor<fp16, [1, 16, 1024, 64]> x",
       "y = scaled_dot_product_attention(query = x, key = x, value = x);", "M4",
       "tensor<fp16, [1, 16, 2048, 64]> x",
       "y = scaled_dot_product_attention(query = x, key = x, value = x);"},
      {"many-states", kAne, "M4",
       "state<tensor<fp16, [32]>> a, state<tensor<fp16, [32]>> b, state<tensor<fp16, [32]>> c",
       "y = read_state(input = a);", "M4",
       "state<tensor<fp16, [32]>> a, state<tensor<fp16, [32]>> b", "y = read_state(input = a);"},
      {"state-width", kAne, "M4", "state<tensor<fp16, [1, 33]>> a", "y = read_state(input = a);",
       "M4", "state<tensor<fp16, [1, 64]>> a", "y = read_state(input = a);"},
      {"table-blocks", kAne, "M4", whole, Palette("[2, 2, 16, 1]", "4", kLinearW), "M4", whole,
       Palette("[2, 1, 16, 1]", "4", kLinearW)},
      {"int4-weights", kAne, "M4", whole, Scaled("int4", "[16, 1]"), "M4", whole,
       Scaled("int8", "[16, 1]")},
      {"block-scales", kAne, "M4", whole, Scaled("int8", "[16, 2]"), "M4", whole,
       Scaled("int8", "[16, 1]")},
      {"folded-int8", kAne, "M1", whole, kInt8Linear, "M2", whole, kInt8Linear},
      {"int8-activations", kAne, "M3", "tensor<fp16, [4]> x",
       "y = quantize(input = x, scale = fp16(0.5), output_dtype = \"int8\");", "M4",
       "tensor<fp16, [4]> x",
       "y = quantize(input = x, scale = fp16(0.5), output_dtype = \"int8\");"},
      {"palette-stride", kAne, "M4", kX,
       Palette("[1, 1, 1, 1, 16, 1]", "4", "y = conv(x = x, weight = w, strides = [3, 3]);"), "M4",
       kX, Palette("[1, 1, 1, 1, 16, 1]", "4", "y = conv(x = x, weight = w, strides = [2, 2]);")},
      {"cpu-palette", Unit::kCpu, "M4", whole, Palette("[1, 1, 16, 1]", "4", kLinearW), "M4", whole,
       Palette("[1, 1, 64, 1]", "6", kLinearW)},
      {"expanded-weights", Unit::kCpu, "M4", whole, kInt8Linear, "M4", whole, kRelu},
      {"gpu-int8", Unit::kGpu, "M4", whole, kInt8Linear, "M4", whole,
       Palette("[1, 1, 64, 1]", "6", kLinearW)},
      {"infinity", kAne, "M4", "tensor<fp16, [4]> x", "y = add(x = x, y = fp16(-inf));", "M4",
       "tensor<fp16, [4]> x", "y = add(x = x, y = fp16(-40000));"},
      {"offset-slice", kAne, "M2", "tensor<fp16, [4, 4]> x",
       "y = slice_by_index(x = x, begin = [0, 2], end = [4, 4]);", "M2", "tensor<fp16, [4, 4]> x",
       "y = slice_by_index(x = x, begin = [2, 0], end = [4, 4]);"},
      {"offset-slice", kAne, "M2", "tensor<fp16, [4, 4]> x",
       "y, z = split(x = x, num_splits = 2, axis = -1);", "M2", "tensor<fp16, [4, 4]> x",
       "y, z = split(x = x, num_splits = 2, axis = 0);"},
      {"unshifted-exponential", kAne, "M4", "tensor<fp16, [4]> x", "y = softplus(x = x);", "M4",
       "tensor<fp16, [4]> x", "y = softsign(x = x);"},
      {"fused-mask", kAne, "M4", "tensor<fp16, [1, 1, 4, 32]> x, tensor<fp16, [4, 4]> m",
       "y = scaled_dot_product_attention(query = x, key = x, value = x, attn_mask = m);", "M4",
       "tensor<fp16, [1, 1, 4, 32]> x",
       "y = scaled_dot_product_attention(query = x, key = x, value = x);"},
      {"long-top-k", Unit::kCpu, "M4", "tensor<fp16, [65537]> x", "y, i = topk(x = x, k = 2);",
       "M4", "tensor<fp16, [65536]> x", "y, i = topk(x = x, k = 2);"},
      {"narrow-rows", kAne, "M4", "tensor<fp16, [1, 16, 1024, 7]> x", kRelu, "M4", kWide, kRelu},
      {"linear-layer", kAne, "M4", whole,
       "w = const()[val = tensor<fp16, [16, 64]>(fill(0.5))];" + kLinearW, "M4", kX,
       "y = matmul(x = x, y = x, transpose_y = true);"},
      {"heads-together", kAne, "M4", kX, "y = matmul(x = x, y = x, transpose_y = true);", "M4",
       "tensor<fp16, [1, 1, 16, 64]> x", "y = matmul(x = x, y = x, transpose_y = true);"},
      {"row-softmax", kAne, "M4", kWide, "y = softmax(x = x, axis = -1);", "M4", kWide,
       "y = softmax(x = x, axis = 1);"},
      {"moved-rows", kAne, "M4", kWide, "y = transpose(x = x, perm = [0, 1, 3, 2]);", "M4", kWide,
       "y = transpose(x = x, perm = [0, 2, 1, 3]);"},
      {"moved-rows", kAne, "M4", kWide, "y = reshape(x = x, shape = [1, 64, 64, 32]);", "M4", kWide,
       "y = reshape(x = x, shape = [1, 32, 64, 64]);"},
      {"conv-stride", kAne, "M4", kX, Conv("3, 3", ", strides = [5, 5]"), "M4", kX,
       Conv("3, 3", ", strides = [4, 4]")},
      {"large-kernel", kAne, "M4", kX, Conv("9, 9"), "M4", kX, Conv("7, 7")},
      {"large-dilation", kAne, "M4", kX, Conv("3, 3", ", dilations = [4, 4]"), "M4", kX,
       Conv("3, 3", ", dilations = [3, 3]")},
      {"pool-stride", kAne, "M4", kX,
       "y = max_pool(x = x, kernel_sizes = [2, 2], strides = [3, 3], pad_type = \"valid\");", "M4",
       kX, "y = max_pool(x = x, kernel_sizes = [2, 2], strides = [4, 4], pad_type = \"valid\");"},
      {"embedding", kAne, "M4", "tensor<int16, [4]> i",
       "t = const()[val = tensor<fp16, [16384, 64]>(fill(0.5))];"
       "y = gather(x = t, indices = i);",
       "M4", "tensor<int16, [4]> i",
       "t = const()[val = tensor<fp16, [64, 64]>(fill(0.5))];"
       "y = gather(x = t, indices = i);"},
      {"upcast-activation", kAne, "M4", kX, "y = silu(x = x);", "M4", kX, "y = sigmoid(x = x);"},
      {"unfused-attention", Unit::kGpu, "M4", kX,
       "s = matmul(x = x, y = x, transpose_y = true); p = softmax(x = s); y = matmul(x = p, y = "
       "x);",
       "M4", kX, "y = softmax(x = x);"},
      {"gpu-pointwise", Unit::kGpu, "M4", "tensor<fp16, [1, 8, 1, 64]> x", Conv("1, 1"), "M4", kX,
       Conv("1, 1")},
      {"segments", kAne, "M4", kX, "a = relu(x = x); b = tan(x = a); y = relu(x = b);", "M4", kX,
       "a = relu(x = x); y = tan(x = a);"},
  };
  return cases;
}

}  // namespace

TEST_CASE("each rule of placement fires where it should and not elsewhere", "[placement]") {
  std::set<std::string_view> tested;
  for (const RuleCase& rule : Cases()) {
    INFO(rule.id);
    tested.insert(rule.id);
    CHECK(Fires(rule.id, Parsed(rule.inputs, rule.operations), rule.unit, rule.chip));
    CHECK_FALSE(Fires(rule.id, Parsed(rule.other_inputs, rule.other_operations), rule.unit,
                      rule.other_chip));
  }
  tested.insert({"listed-norm", "package-1gb", "package-2gb"});  // below
  for (const PlacementRule& rule : PlacementRules()) {
    INFO(rule.id);
    CHECK(tested.contains(rule.id));
    CHECK(!rule.source.empty());
    CHECK(!rule.fix.empty());
    CHECK((rule.operation != nullptr) + (rule.function != nullptr) + (rule.program != nullptr) ==
          1);
  }
}

TEST_CASE("sizes that are listed are examined one by one", "[placement]") {
  Program program = Parsed("tensor<fp16, [1, n]> x", "y = layer_norm(x = x, axes = [1]);");
  Function& function = *program.functions[0];
  CHECK(Fires("open-shape", program, Unit::kNeuralEngine, "M1"));
  CHECK_FALSE(Fires("listed-norm", program, Unit::kNeuralEngine, "M1"));
  function.symbols["n"] = {8, 20000, {8, 20000}};
  CHECK_FALSE(Fires("open-shape", program, Unit::kNeuralEngine, "M1"));
  CHECK(Fires("listed-norm", program, Unit::kNeuralEngine, "M1"));
  const std::vector<SymbolSizes> sizes = SizesToExamine(function);
  REQUIRE(sizes.size() == 2);
  auto share = [&](const SymbolSizes& at) {
    return PlacementOf(function, Unit::kNeuralEngine, *ChipNamed("M1"), at).work_share();
  };
  CHECK(share(sizes[0]) == 1);
  CHECK(share(sizes[1]) == 0);  // an axis of 20000
}

TEST_CASE("packages have a maximum size", "[placement]") {
  Program program = Parsed("tensor<fp16, [1, 1024]> x",
                           "w = const()[val = tensor<fp16, [4, 1024]>(fill(0.5))];" + kLinearW);
  Operation* weight = program.functions[0]->body.operations().front();
  const auto fires = [&](std::string_view id, std::string_view chip, int64_t megabytes) {
    weight->val = Tensor::Full(DType::kFp16, {megabytes * 512, 1024}, 0.5);
    return Fires(id, program, Unit::kNeuralEngine, chip);
  };
  CHECK(fires("package-1gb", "A19", 1025));
  CHECK_FALSE(fires("package-1gb", "A19", 1024));
  CHECK_FALSE(fires("package-1gb", "M4", 1025));
  CHECK(fires("package-2gb", "M4", 2049));
  CHECK_FALSE(fires("package-2gb", "M4", 2048));
  CHECK_FALSE(fires("package-2gb", "A19", 2049));
}

TEST_CASE("segments, transfers and the value of a fix", "[placement]") {
  const Program program = Parsed(
      "tensor<fp16, [4, 8]> x",
      "a = relu(x = x); b = tan(x = a); c = exp(x = a); d = add(x = b, y = c); y = relu(x = d);");
  const Placement placement =
      PlacementOf(*program.functions[0], Unit::kNeuralEngine, *ChipNamed("M4"), {});
  CHECK(placement.operations.size() == 5);
  CHECK(placement.eligible_operations == 4);
  CHECK(placement.work == 5 * 32);
  CHECK(placement.eligible_work == 4 * 32);
  CHECK(placement.operation_share() == 0.8);
  // a and c on the Neural Engine, b elsewhere, then d and y; tan reads a and gives b.
  REQUIRE(placement.segments.size() == 3);
  CHECK(placement.segments[0].operations == 2);
  CHECK(placement.segments[0].bytes_out == 64);
  CHECK(placement.segments[1].bytes_in == 64);
  CHECK(placement.segments[1].bytes_out == 64);
  CHECK(placement.segments[2].operations == 2);
  CHECK(placement.transfers == 2);
  CHECK(placement.transfer_bytes == 128);
  REQUIRE(placement.operations[1].findings == 1);
  const PlacementRule& rule = *placement.findings[placement.operations[1].first].rule;
  CHECK(rule.id == "no-function");
  CHECK(WorkShareWithout(placement, rule) == 1);
}

TEST_CASE("constants and decoded weights are not placed", "[placement]") {
  const Program program = Parsed("tensor<fp16, [4, 64]> x", kInt8Linear);
  const Placement placement =
      PlacementOf(*program.functions[0], Unit::kNeuralEngine, *ChipNamed("M4"), {});
  CHECK(placement.operations.size() == 1);
  CHECK(placement.work_share() == 1);
}

TEST_CASE("a chip is found by its name in any case", "[placement]") {
  CHECK(ChipNamed("a17pro")->generation == 17);
  CHECK(ChipNamed("A11") == nullptr);  // Core ML does not use its Neural Engine
}

// MLC_UPDATE=1 writes the page.
TEST_CASE("the page of placement rules is current", "[placement]") {
  const std::filesystem::path file = SourcePath("lib/analysis/placement_rules.md");
  const std::string page = driver::WithFlags(PlacementRulesPage());
  if (std::getenv("MLC_UPDATE")) std::ofstream(file) << page;
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  CHECK(text.str() == page);
}

}  // namespace mlc::test
