// Tests each encoding in the operations of each target, evaluated by the engine, and the limits for
// scale data + bias. The text form is tested in test/golden/passes/encoded-constants.mil.
#include "lib/passes/encoded_constants.h"

#include <cmath>

#include "lib/engine/engine.h"
#include "test/catch.h"
#include "test/lib/ir/encoded_constant_program.h"
#include "test/lib/ir/encodings.h"

namespace mlc::test {
using namespace passes;
namespace {

using Form = Encoding::Form;

constexpr std::string_view kAffine = "constexpr_affine_dequantize",
                           kBlockwise = "constexpr_blockwise_shift_scale",
                           kLut = "constexpr_lut_to_dense", kSparse = "constexpr_sparse_to_dense",
                           kSparseLut = "constexpr_lut_to_sparse",
                           kSparseScale = "constexpr_sparse_blockwise_shift_scale";
using Names = std::vector<std::string_view>;

// The constexpr operations of each encoding for iOS16, iOS18 and iOS26; empty means dense.
struct Lowered {
  std::string_view name;
  Names ios16, ios18, ios26;
};
const Lowered kLowered[] = {
    {"int8 per tensor", {kAffine}, {kAffine}, {kAffine}},
    {"uint8 rows, offset", {kAffine}, {kAffine}, {kAffine}},
    {"int8 columns", {kAffine}, {kAffine}, {kAffine}},
    {"int4 blocks", {}, {kBlockwise}, {kBlockwise}},
    {"uint4 blocks, offset", {}, {kBlockwise}, {kBlockwise}},
    {"uint2 blocks, float offset", {}, {kBlockwise}, {kBlockwise}},
    {"int8 blocks on three axes", {}, {kBlockwise}, {kBlockwise}},
    {"uint4 blocks, bias", {}, {kBlockwise}, {kBlockwise}},
    {"uint6 blocks, bias", {}, {kBlockwise}, {kBlockwise}},
    {"fp8 rows", {}, {}, {}},
    {"palette of uint1", {kLut}, {kLut}, {kLut}},
    {"palette of uint2", {kLut}, {kLut}, {kLut}},
    {"palette of uint3", {kLut}, {kLut}, {kLut}},
    {"palette of uint4", {kLut}, {kLut}, {kLut}},
    {"palette of uint6", {kLut}, {kLut}, {kLut}},
    {"palette of uint8", {kLut}, {kLut}, {kLut}},
    {"palettes of groups", {}, {kLut}, {kLut}},
    {"vectors along rows", {}, {kLut}, {kLut}},
    {"vectors along columns", {}, {kLut}, {kLut}},
    {"palettes of int8 with scales", {}, {kBlockwise, kLut}, {kBlockwise, kLut}},
    {"scales of rows behind a palette", {}, {kLut}, {kLut, kBlockwise}},
    {"scales of blocks behind a palette of int8", {}, {kBlockwise}, {kLut, kBlockwise}},
    {"sparse", {kSparse}, {kSparse}, {kSparse}},
    {"sparse int8 with scales", {kSparse}, {kSparseScale, kSparse}, {kSparseScale, kSparse}},
    {"sparse palettes", {kSparse}, {kSparseLut, kSparse}, {kSparseLut, kSparse}},
    {"sparse palettes with scales",
     {kSparse},
     {kSparseLut, kSparseScale, kSparse},
     {kSparseLut, kSparseScale, kSparse}},
    {"sparse vectors", {kSparse}, {kSparseLut, kSparse}, {kSparseLut, kSparse}},
};

Names ConstexprOps(const Program& program) {
  Names names;
  ForEachOperation(*program.main(), [&](Operation* op) {
    if (op->def->is_constexpr()) names.push_back(op->def->name);
  });
  return names;
}

bool Lower(Program& program, Diagnostics& diagnostics, Opset target,
           PassContext::Precision precision = PassContext::Precision::kFp32) {
  PassContext context{diagnostics, precision, target};
  bool changed = kEncodedConstants.run(program, context);
  Verify(program);
  return changed;
}

Tensor Computed(const Program& program, const Tensor& constant) {
  Tensor zeros = Tensor::Full(constant.dtype(), constant.dims(), 0);
  return engine::Execute(program, {{"x", zeros}},
                         {.arithmetic = engine::EngineOptions::Arithmetic::kFaithful,
                          .kernels = engine::EngineOptions::Kernels::kEval})
      .at(program.main()->body.outputs()[0]->name);
}

// Returns the relative root mean square error.
double ErrorOf(const Tensor& computed, const Tensor& expected) {
  std::vector<double> a = computed.Doubles(), b = expected.Doubles();
  double errors = 0, squares = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    errors += (a[i] - b[i]) * (a[i] - b[i]);
    squares += b[i] * b[i];
  }
  return std::sqrt(errors / squares);
}

TEST_CASE("encoded-constants supports each encoding on each target") {
  auto dtype = GENERATE(DType::kFp32, DType::kFp16);
  std::vector<EncodingSample> samples = EncodingSamples(dtype);
  REQUIRE(samples.size() == std::size(kLowered));
  for (size_t i = 0; i < samples.size(); ++i) {
    const EncodingSample& sample = samples[i];
    REQUIRE(sample.name == kLowered[i].name);
    Tensor constant = Tensor::Encoded(sample.encoding);
    for (Opset target : {Opset::kIos16, Opset::kIos18, Opset::kIos26}) {
      INFO(sample.name << " in " << Name(dtype) << " for " << TargetName(target));
      Program program = AddsConstant(constant);
      Diagnostics diagnostics;
      const Names& expected = target == Opset::kIos16   ? kLowered[i].ios16
                              : target == Opset::kIos18 ? kLowered[i].ios18
                                                        : kLowered[i].ios26;
      CHECK(Lower(program, diagnostics, target) == !expected.empty());
      CHECK(ConstexprOps(program) == expected);
      // A constant that becomes dense, or changes its values, is reported as a decision once.
      bool bias = static_cast<bool>(sample.encoding.bias);
      CHECK(diagnostics.decisions().size() == (expected.empty() || bias ? 1 : 0));
      CHECK(!Lower(program, diagnostics, target));
      CHECK(diagnostics.decisions().size() == (expected.empty() || bias ? 1 : 0));
      Tensor computed = Computed(program, constant);
      if (bias)
        CHECK(ErrorOf(computed, constant) < (dtype == DType::kFp16 ? 1e-3 : 1e-6));
      else
        CHECK(computed.Doubles() == constant.Doubles());
    }
  }
}

TEST_CASE("EncodedSince returns the first target of an encoding") {
  auto since = [](Encoding encoding) {
    Program program = AddsConstant(Tensor::Encoded(std::move(encoding)));
    const Operation& constant = *program.main()->body.operations().front();
    return EncodedSince(constant, PassContext::Precision::kFp32);
  };
  for (const EncodingSample& sample : EncodingSamples()) {
    INFO(sample.name);
    size_t i = 0;
    while (kLowered[i].name != sample.name) ++i;
    std::optional<Opset> expected;
    if (!kLowered[i].ios18.empty())
      expected = kLowered[i].ios16 == kLowered[i].ios18 && sample.name != "palette of uint3"
                     ? Opset::kIos16
                     : Opset::kIos18;
    CHECK(since(sample.encoding) == expected);
  }
}

TEST_CASE("WithoutBias converts scale data + bias") {
  FixedDraw draw;
  Encoding e{.data = draw.Integers(DType::kUint4, {64, 64}),
             .scale = draw.Scales({64, 2}),
             .bias = draw.Floats({64, 2}, DType::kFp32, -1, 1)};
  for (DType dtype : {DType::kFp32, DType::kFp16}) {
    INFO(Name(dtype));
    Unbiased unbiased = WithoutBias(e, dtype);
    // By definition: scale (data - offset) with offset = -bias / scale, each rounded.
    for (int64_t cell : {0, 5, 127}) {
      double scale = Tensor::Scalar(e.scale.Double(cell)).Cast(dtype).Double(0);
      double offset = Tensor::Scalar(-e.bias.Double(cell) / scale).Cast(dtype).Double(0);
      CHECK(unbiased.encoding.scale.Double(cell) == scale);
      CHECK(unbiased.encoding.offset.Double(cell) == offset);
    }
    CHECK(unbiased.error > 0);
    CHECK(unbiased.error < (dtype == DType::kFp16 ? 6e-4 : 1e-6));
    CHECK(ErrorOf(Tensor::Encoded(unbiased.encoding), Tensor::Encoded(e)) < unbiased.error * 1.5);
  }
}

// An fp16 program whose constant has 64 blocks with this scale and bias, and another one at the
// end.
struct Guarded {
  Names ops;
  std::string decision;
  double error;
};
struct Block {
  double scale, bias;
  int64_t q = -1;  // for all elements; -1: any
};
Guarded Guard(Block block, Block last) {
  std::vector<double> scales(64, block.scale), biases(64, block.bias);
  scales.push_back(last.scale), biases.push_back(last.bias);
  std::vector<int64_t> q(65 * 64);
  for (size_t i = 0; i < q.size(); ++i) {
    int64_t fixed = i < 64 * 64 ? block.q : last.q;
    q[i] = fixed >= 0 ? fixed : static_cast<int64_t>(i * 7 % 16);
  }
  Tensor constant = Tensor::Encoded({.dtype = DType::kFp16,
                                     .data = Tensor::Of({65, 64}, q).Cast(DType::kUint4),
                                     .scale = Tensor::Of({65, 1}, scales).Cast(DType::kFp32),
                                     .bias = Tensor::Of({65, 1}, biases).Cast(DType::kFp32)});
  Program program = AddsConstant(constant);
  Diagnostics diagnostics;
  Lower(program, diagnostics, Opset::kIos18, PassContext::Precision::kFp16);
  REQUIRE(diagnostics.decisions().size() == 1);
  return {ConstexprOps(program), diagnostics.decisions()[0].reason,
          ErrorOf(Computed(program, constant), constant)};
}
Guarded Guard(Block block) { return Guard(block, block); }

TEST_CASE("encoded-constants limits the error of a bias") {
  const Names blockwise = {kBlockwise};
  // A block with scale 0 equals its bias, whatever its data.
  for (Block last :
       {Block{0, 3}, Block{0, 3, 7}, Block{0, 3, 0}, Block{0, 0, 7}, Block{0, -3, 15}}) {
    Guarded zero = Guard({0.25, -1}, last);
    CHECK(zero.ops == blockwise);
    CHECK(zero.error == 0);
    CHECK_THAT(zero.decision, ContainsSubstring("scale data + bias as scale (data - offset)"));
  }
  // fp16 represents integers up to 2048: this offset and the differences are exact.
  CHECK(Guard({0.25, -250}).ops == blockwise);
  // q - offset has few digits if both are almost equal.
  CHECK(Guard({0.003, -0.005, 15}).ops == blockwise);
  Guarded cancelled = Guard({0.003, -0.0449, 15});
  CHECK(cancelled.ops.empty());
  CHECK_THAT(cancelled.decision, ContainsSubstring("dense: scale (data - offset) has an error of"));
  CHECK(cancelled.error == 0);
  // The first offset fits into fp16. The others do not, so that the block equals its bias, which
  // fp16 multiplies by 15 and more.
  CHECK(Guard({0.25, -1}, {0.25, 16000}).ops == blockwise);
  CHECK(Guard({0.25, -1}, {0.25, 17000}).ops.empty());
  Guarded large = Guard({0.25, -1}, {0x1p-13, 16});
  CHECK(large.ops == blockwise);
  CHECK(large.error < 5e-4);
  // Scales that are just normal in fp16, and just subnormal.
  CHECK(Guard({0x1p-14, -0x1p-12}).ops == blockwise);
  Guarded small = Guard({0x1p-15, -0x1p-12});
  CHECK(small.ops.empty());
  CHECK_THAT(small.decision, ContainsSubstring("dense: fp16 cannot represent the"));
  // Losing a few of these next to large ones is negligible.
  Guarded mixed = Guard({0.25, -1}, {0x1p-15, -0x1p-12});
  CHECK(mixed.ops == blockwise);
  CHECK(mixed.error < 5e-4);
}

TEST_CASE("encoded-constants must not fire") {
  FixedDraw draw;
  Diagnostics diagnostics;
  auto fires = [&](Tensor constant) {
    Program program = AddsConstant(constant);
    return Lower(program, diagnostics, Opset::kIos18);
  };
  CHECK(fires(Tensor::Encoded(
      {.data = draw.Integers(DType::kInt8, {64, 32}), .scale = draw.Scales({64, 1})})));
  CHECK(!fires(Tensor::Encoded(
      {.data = draw.Integers(DType::kInt8, {63, 32}), .scale = draw.Scales({63, 1})})));
  // One scale per two elements saves nothing.
  CHECK(!fires(Tensor::Encoded({.dtype = DType::kFp16,
                                .data = draw.Integers(DType::kInt8, {64, 64}),
                                .scale = draw.Scales({64, 32}, DType::kFp16)})));
  CHECK(diagnostics.decisions().empty());
}

}  // namespace
}  // namespace mlc::test
