#include "lib/analysis/placement_rules.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "lib/analysis/placement_checks.h"

namespace mlc::analysis {

namespace {

constexpr uint8_t kAne = static_cast<uint8_t>(Unit::kNeuralEngine),
                  kGpu = static_cast<uint8_t>(Unit::kGpu), kCpu = static_cast<uint8_t>(Unit::kCpu);

template <auto& kNames>
std::string IsNamed(const OperationAt& at) {
  return std::find(std::begin(kNames), std::end(kNames), at.op.def->name) != std::end(kNames)
             ? ItIs(at.op)
             : "";
}
using Names = const std::string_view[];
constexpr Names kRecurrent = {"lstm", "gru", "rnn"};
constexpr Names kScatters = {"scatter", "scatter_along_axis", "scatter_nd"};
constexpr Names kSelections = {"topk", "argsort", "reduce_argmax", "reduce_argmin"};
constexpr Names kBoxes = {"non_maximum_suppression"};
constexpr Names kCumulative = {"cumsum"};
constexpr Names kUnknown = {"band_part",       "one_hot",  "non_zero",   "reverse_sequence",
                            "sliding_windows", "classify", "reduce_prod"};
constexpr Names kFunctions = {"tan", "asin", "acos", "sinh", "cosh", "atanh", "mod"};
constexpr Names kLogic = {"logical_and", "logical_or", "logical_xor"};
constexpr Names kAngles = {"sin", "cos"};
constexpr Names kSampling = {"resample", "affine", "crop_resize"};
constexpr Names kSizes = {"shape", "range_1d"};
constexpr Names kUnshifted = {"reduce_log_sum_exp", "softplus"};

// --- the table

constexpr Severity kCannotRun = Severity::kCannotRun, kInaccurate = Severity::kInaccurate,
                   kSlow = Severity::kSlow, kNote = Severity::kNote;
constexpr Standing kApple = Standing::kApple, kCode = Standing::kCode,
                   kMeasured = Standing::kMeasured, kClaim = Standing::kClaim;

// Generations: 14 is A14 and M1, 15 is A15 and M2, 16 is A16 and M3, 17 is A17 Pro and M4 (Chip).
//
// Three kinds of evidence are not equal. What Core ML placed on a device (MLComputePlan) counts more
// than what a private interface compiled, because Core ML declines some of the latter; both count
// more than lists from the first years of the Neural Engine, which limit their rules to old chips.
// "aned" below marks the private interface. sbryngelson/ANEForge and sbryngelson/ane-guide have one
// author and count once; they name compiler families (H13 for M1), which are not A-series numbers.
// An operation, a function or a package as a whole.
constexpr PlacementRule OnOperation(std::string_view id, Severity severity,
                                    std::string_view meaning, Standing standing,
                                    std::string_view source, std::string_view fix, uint8_t units,
                                    int oldest, int newest,
                                    std::string (*check)(const OperationAt&)) {
  return {{id, severity, meaning, standing, source, fix}, units, oldest, newest, check};
}
// The form of an operation's weights, or of its activations in 8 bits.
constexpr PlacementRule OnWeights(std::string_view id, Severity severity, std::string_view meaning,
                                  Standing standing, std::string_view source, std::string_view fix,
                                  uint8_t units, int oldest, int newest,
                                  std::string (*check)(const OperationAt&)) {
  PlacementRule rule =
      OnOperation(id, severity, meaning, standing, source, fix, units, oldest, newest, check);
  rule.weights = true;
  return rule;
}
constexpr PlacementRule OnFunction(std::string_view id, Severity severity, std::string_view meaning,
                                   Standing standing, std::string_view source, std::string_view fix,
                                   uint8_t units, int oldest, int newest,
                                   std::string (*check)(const Placement&, const Chip&)) {
  return {{id, severity, meaning, standing, source, fix}, units, oldest, newest, nullptr, check};
}
constexpr PlacementRule OnProgram(std::string_view id, Severity severity, std::string_view meaning,
                                  Standing standing, std::string_view source, std::string_view fix,
                                  uint8_t units, int oldest, int newest,
                                  std::string (*check)(const Program&, const Chip&)) {
  return {{id, severity, meaning, standing, source, fix},
          units,
          oldest,
          newest,
          nullptr,
          nullptr,
          check};
}

// id, severity, meaning, standing, source, fix, units, oldest and newest generation, check
constexpr PlacementRule kRules[] = {
    // --- types and shapes
    OnOperation("fp32-port", kCannotRun,
                "an input or output of the model is fp32 and has to be converted", kApple,
                "apple/coreai-models, neural_engine_rules.md: \"fp32 falls back to GPU/CPU\"",
                "compile with option 'io' fp16, if the app can use fp16 inputs and outputs (from "
                "iOS16)",
                kAne, 0, 0, PortCast),
    OnOperation(
        "fp32", kCannotRun, "an operand or result is fp32", kApple,
        "apple/coreai-models, neural_engine_rules.md: \"fp32 falls back to GPU/CPU\", "
        "literals included",
        "the decisions in the manifest of mlc compile say why it is fp32; option 'fp16-ops' "
        "NAME computes it in fp16 all the same, and mlc verify shows what that costs",
        kAne, 0, 0, Fp32),
    OnOperation(
        "wide-integer", kCannotRun, "an operand or result is an integer of more than 16 bits",
        kApple,
        "apple/coreai-models, neural_engine_rules.md: fp16, int8 and int16 are the supported "
        "types; "
        "sbryngelson/ANEForge (aned) rejects int32 tensors",
        "compute indices and masks in the app: pass masks as fp16, indices up to 32767 as int16 "
        "(iOS17)",
        kAne, 0, 0, Integers),
    OnOperation(
        "rank", kCannotRun, "an operand or result has more than five dimensions", kApple,
        "apple/coreai-models, neural_engine_rules.md: \"Max tensor rank: 5\"; onnxruntime#14212 "
        "failed when loading",
        "drop dimensions of 1, or split the reshape and transpose into steps with five dimensions; "
        "mlc compile does both where it can",
        kAne, 0, 0, Rank),
    // Apple's flexible-inputs.md says that ranges may run there from iOS17.4; coremltools#2370 and
    // FluidInference/FluidAudio measured that none does, and Apple's newer text asks for static
    // shapes.
    OnOperation(
        "open-shape", kCannotRun, "a dimension is a range of sizes", kApple,
        "apple/coreai-models, neural_engine_rules.md: \"Fully static shapes\"; coremltools#1764, "
        "#2370. Conflict: coremltools' flexible-inputs.md allows ranges from iOS17.4",
        "fix every size with option 'dim' SYMBOL=N, or list sizes with option 'dim' SYMBOL=A,B,C "
        "(layer_norm is then slow: see listed-norm)",
        kAne, 0, 0, OpenShape),
    OnOperation("data-dependent-shape", kCannotRun, "a dimension depends on the data", kApple,
                "apple/coreai-models, neural_engine_rules.md: \"Fully static shapes\"",
                "end the model before it (option 'outputs') and do the rest in the app, or return "
                "a tensor of the largest size with a count",
                kAne, 0, 0, DataDependentShape),
    OnOperation(
        "zero-size", kCannotRun, "an operand or result has no elements", kMeasured,
        "sbryngelson/ane-guide, 04-capability-surface.md (aned, M1)",
        "remove the empty tensor from the source model, or fix the size that makes it empty", kAne,
        0, 0, ZeroSized),
    // Apple's compiler states both limits. continue-revolution/sd-webui-animatediff#235 saw 4096 for
    // batches of one addition in 2023; later logs do not.
    OnOperation(
        "long-axis", kCannotRun,
        "an axis has more than 16384 elements (batches and channels of tensors with four "
        "dimensions: "
        "65536)",
        kMeasured,
        "AUTOMATIC1111/stable-diffusion-webui#13527 (Apple's compiler on M1 Max: N, C up to 65536, "
        "D, H, W up to 16384); onnxruntime's Core ML provider (16384)",
        "split the axis, or move it to the channels of a tensor with four dimensions", kAne, 0, 16,
        LongAxis),
    OnOperation("very-long-axis", kCannotRun, "an axis has more than 65536 elements", kCode,
                "sbryngelson/ane-guide, a-op-device-matrix.md (aned, compiler tables of M4 and M5)",
                "split the axis", kAne, 17, 0, VeryLongAxis),
    // --- operators
    OnOperation("recurrent", kCannotRun, "a recurrent layer", kApple,
                "coremltools#1780 (Apple staff); FluidInference/FluidAudio, ANE_Candidates.md (M5)",
                "run this part on the CPU as a separate model, or replace the layer by a "
                "convolution or attention and retrain",
                kAne, 0, 0, IsNamed<kRecurrent>),
    OnOperation("control-flow", kCannotRun, "a loop, a branch or a list", kMeasured,
                "coremltools#2208, #2008; sbryngelson/ANEForge (aned)",
                "unroll the loop in the source model, or call the model once for each step",
                kAne | kGpu, 0, 0, ControlFlow),
    // A comment in coremltools' torch frontend says that gather resides on the Neural Engine, and
    // the two aned sources contradict each other. What Core ML planned on three devices decides.
    OnOperation(
        "gather", kCannotRun, "a lookup with indices that are not constant", kMeasured,
        "roboflow/rf-detr#1495 (M3 Pro), john-rocky/CoreML-LLM EXPERIMENTS.md (iPhone 17 Pro), "
        "FluidInference/FluidAudio (M5): planned on the CPU. Conflict: coremltools, "
        "frontend/torch/ops.py",
        "look up embeddings in the app or in a separate model, and pass the rows; end a detector "
        "before it selects boxes (option 'outputs')",
        kAne, 0, 0, Gather),
    OnOperation(
        "scatter", kCannotRun, "writes at computed indices", kApple,
        "coremltools, frontend/torch/ops.py: scatter and scatter_nd \"fall off ANE\"; "
        "sbryngelson/ANEForge (aned)",
        "write slices at constant positions, or select with a mask: x * (1 - m) + update * m", kAne,
        0, 0, IsNamed<kScatters>),
    OnOperation(
        "selection", kCannotRun, "sorts, or finds the position of the largest elements", kMeasured,
        "roboflow/rf-detr#1495 (M3 Pro): topk planned on the CPU; john-rocky/CoreML-LLM "
        "EXPERIMENTS.md (iPhone 17 Pro): reduce_argmax on the CPU. Conflict: sbryngelson/ANEForge "
        "(aned) runs topk from M2",
        "return the scores (option 'outputs'), and select in the app", kAne, 0, 0,
        IsNamed<kSelections>),
    OnOperation(
        "box-selection", kCannotRun, "non-maximum suppression", kMeasured,
        "sbryngelson/ane-guide, a-op-device-matrix.md (aned)",
        "return boxes and scores (option 'outputs'), and suppress in the app or in a second model",
        kAne, 0, 0, IsNamed<kBoxes>),
    OnOperation(
        "cumulative-sum", kCannotRun, "cumsum", kMeasured,
        "john-rocky/CoreML-LLM, QWEN35_ROADMAP.md: 1088 of 1089 operations planned on the Neural "
        "Engine, all but cumsum",
        "option 'optimize-for' ane multiplies by a constant triangular matrix of ones instead, up "
        "to 2048 elements",
        kAne, 0, 0, IsNamed<kCumulative>),
    OnOperation("computed-size", kCannotRun, "sizes or counted positions as data", kMeasured,
                "sbryngelson/ANEForge, full_mil_vocabulary_sweep.json (aned): shape has no kernel; "
                "sbryngelson/ane-guide (aned): range_1d not on M1",
                "fix the sizes of the inputs (option 'dim'): it then becomes a constant", kAne, 0,
                0, IsNamed<kSizes>),
    OnOperation("no-kernel", kCannotRun, "an operator for which the Neural Engine has no kernel",
                kMeasured, "sbryngelson/ANEForge, full_mil_vocabulary_sweep.json (aned)",
                "compute it in the app, or from arithmetic, slices and concatenations", kAne, 0, 0,
                IsNamed<kUnknown>),
    OnOperation(
        "no-function", kCannotRun, "a function that the Neural Engine does not compute", kMeasured,
        "sbryngelson/ANEForge, full_mil_vocabulary_sweep.json (aned); jafreck/ironmill, "
        "ane-op-support-matrix.md",
        "express it by exp, log, sqrt and divisions, or by a table, within the range that occurs",
        kAne, 0, 0, IsNamed<kFunctions>),
    OnOperation(
        "logic", kCannotRun, "a logical operation on two booleans", kMeasured,
        "sbryngelson/ANEForge (aned), jafreck/ironmill: rejected, although comparisons and select "
        "run",
        "option 'optimize-for' ane multiplies numbers that are 0 or 1 (and), or takes their "
        "maximum (or)",
        kAne, 0, 0, IsNamed<kLogic>),
    OnOperation("random", kCannotRun, "draws random numbers", kMeasured,
                "sbryngelson/ANEForge, full_mil_vocabulary_sweep.json (aned)",
                "pass the random numbers as an input", kAne, 0, 0, Random),
    OnOperation("sine", kCannotRun, "sin or cos", kMeasured,
                "sbryngelson/ane-guide, a-op-device-matrix.md (aned, M1 and M2); jafreck/ironmill",
                "pass sines and cosines as inputs, or as a table if the positions are constant",
                kAne, 0, 15, IsNamed<kAngles>),
    OnOperation("sampling", kCannotRun, "samples at computed positions", kMeasured,
                "sbryngelson/ane-guide, a-op-device-matrix.md (aned): M1 has no unit for it",
                "resize by a constant factor instead, or sample in the app", kAne, 0, 14,
                IsNamed<kSampling>),
    OnOperation("product-rank", kCannotRun, "a matrix product of tensors with five dimensions",
                kMeasured,
                "john-rocky/CoreML-LLM: five dimensions on the CPU, three on the Neural Engine; "
                "sbryngelson/ane-guide (aned)",
                "option 'optimize-for' ane reshapes to four dimensions around the product", kAne, 0,
                0, Product5d),
    // sbryngelson/ANEForge's later documents call three-dimensional convolutions native, but its
    // own probe of each device fails.
    OnOperation(
        "conv-3d", kCannotRun, "a three-dimensional convolution", kMeasured,
        "sbryngelson/ane-guide, 04-capability-surface.md (aned: fails for each device). Conflict: "
        "sbryngelson/ANEForge, op-catalog.md",
        "option 'optimize-for' ane computes one two-dimensional convolution for each step of the "
        "kernel's depth, and adds the results",
        kAne, 0, 0, Conv3d),
    OnOperation("kernel-width", kCannotRun, "a convolution kernel is more than 13 wide", kMeasured,
                "sbryngelson/ane-guide, 04-capability-surface.md (aned, M1)",
                "option 'optimize-for' ane exchanges height and width, since heights up to 29 run; "
                "split longer kernels into several",
                kAne, 0, 17, KernelWider13),
    OnOperation("kernel-width-15", kCannotRun, "a convolution kernel is more than 15 wide",
                kMeasured, "sbryngelson/ANEForge, cross-chip.md (aned, M5)",
                "split the kernel into several, or exchange height and width: heights up to 32 run",
                kAne, 18, 0, KernelWider15),
    OnOperation("transposed-dilation", kCannotRun, "a transposed convolution with dilations", kCode,
                "pkhairkh/MILLer (messages of Apple's compiler in macOS 26, second hand)",
                "option 'optimize-for' ane inserts zeros into the kernel instead", kAne, 0, 0,
                DilatedTransposedConv),
    OnOperation("pool-window-13", kCannotRun, "a pooling window larger than 13", kMeasured,
                "hollance/neural-engine#2 (log of a system of 2020)",
                "pool twice with smaller windows, or reduce over whole axes", kAne, 0, 13,
                PoolWindow13),
    OnOperation("pool-window-29", kCannotRun, "a pooling window larger than 29", kMeasured,
                "sbryngelson/ane-guide, a-op-device-matrix.md (aned, M1)",
                "pool twice with smaller windows, or reduce over whole axes", kAne, 14, 14,
                PoolWindow29),
    OnOperation("pool-window-31", kCannotRun, "a pooling window larger than 31", kMeasured,
                "sbryngelson/ane-guide, a-op-device-matrix.md (aned, from M2)",
                "pool twice with smaller windows, or reduce over whole axes", kAne, 15, 0,
                PoolWindow31),
    OnOperation(
        "old-pool-stride", kCannotRun, "a pooling stride larger than 2", kMeasured,
        "hollance/neural-engine#2 (log of a system of 2020). Conflict: Apple's text of 2026 "
        "recommends strides of 2 or 4, for current chips",
        "pool with stride 1 or 2, and slice", kAne, 0, 13, OldPoolStride),
    OnOperation("old-upsampling", kCannotRun, "upsampling by a factor above 2", kMeasured,
                "hollance/neural-engine#2 (log of a system of 2020)", "upsample several times by 2",
                kAne, 0, 13, OldUpsampling),
    OnOperation("channel-padding", kCannotRun, "pads batches or channels", kCode,
                "pkhairkh/MILLer (messages of Apple's compiler in macOS 26, second hand)",
                "option 'optimize-for' ane concatenates a constant instead", kAne, 0, 0,
                PadsChannels),
    OnOperation("reflection", kCannotRun, "pads by reflection", kMeasured,
                "sbryngelson/ane-guide, 17-model-design-rules.md (aned): M1 has no unit for it",
                "option 'optimize-for' ane concatenates slices instead", kAne, 0, 14, Mirrors),
    OnOperation("response-norm", kCannotRun,
                "local response normalisation of more than 15 channels", kMeasured,
                "sbryngelson/ANEForge, op-quirks.md (aned)",
                "option 'optimize-for' ane divides by a power of a convolution of squares", kAne, 0,
                0, WideResponseNorm),
    // Apple's rules say that no fused form exists. On M4, Core ML takes large ones all the same.
    OnOperation(
        "small-fused-attention", kCannotRun,
        "scaled_dot_product_attention with a query of at most 1048576 elements", kMeasured,
        "vx-lang/Vx#437 (M4). Conflict: apple/coreai-models, neural_engine_rules.md: \"there is no "
        "fused SDPA path\" of any size",
        "compile for iOS17 or older, where attention consists of products and a softmax", kAne, 0,
        0, SmallFusedAttention),
    OnOperation(
        "many-states", kCannotRun, "a function with more than two states", kMeasured,
        "john-rocky/CoreML-LLM, MLSTATE_PATTERN.md (iPhone 17 Pro): prediction fails, although the "
        "plan names the Neural Engine",
        "store keys and values of all layers in one state", kAne, 0, 0, ManyStates),
    OnOperation("state-width", kCannotRun, "a state whose last dimension is not a multiple of 32",
                kMeasured, "coremltools#2631",
                "pad the last dimension of the state to a multiple of 32; for a language model, "
                "option 'dim' tokens=N stores the context last",
                kAne, 0, 0, StateWidth),
    // --- weights
    OnWeights("table-blocks", kCannotRun,
              "weights with lookup tables for blocks of rows and columns", kMeasured,
              "apple/coreai-models#279 (error -14)",
              "use tables for groups of output channels only", kAne, 0, 0, GroupedTables),
    OnWeights("int4-weights", kCannotRun, "weights of four bits with a scale", kMeasured,
              "apple/coreai-models#55, #205: no region on the Neural Engine",
              "use a palette of 16 values for groups of output channels", kAne, 0, 0,
              FourBitWeights),
    OnWeights("block-scales", kInaccurate, "weights with a scale for each block", kMeasured,
              "apple/coreai-models#279 (cosine 0.367 on iPhone 16 Pro Max); coremltools, "
              "opt-quantization-perf.md: blocks are for the GPU, channels for the Neural Engine",
              "use a scale for each channel, or a palette for groups of output channels", kAne, 0,
              0, BlockwiseWeights),
    OnWeights("folded-int8", kNote, "int8 weights are expanded to fp16 when the model is loaded",
              kMeasured, "sbryngelson/ane-guide, a-op-device-matrix.md (aned, M1)",
              "a palette of 64 or 16 values stays compressed on each Neural Engine", kAne, 0, 14,
              AffineWeights),
    OnWeights(
        "int8-activations", kSlow, "quantised activations", kApple,
        "coremltools, opt-quantization-perf.md: faster on A17 Pro and M4, slower where the unit "
        "expands them",
        "quantise the weights only", kAne, 0, 16, QuantizedActivations),
    OnWeights(
        "palette-stride", kSlow, "a convolution with a palette and a stride above 2", kApple,
        "apple/coreai-models, neural_engine_rules.md: \"With palettized kernels ... use up to 2\"",
        "leave the weights of this layer in fp16", kAne, 0, 0, PalettizedStride),
    OnWeights("cpu-palette", kInaccurate, "weights with at most 16 different values in one table",
              kMeasured, "coremltools#2716 (cosine 0.03 on the CPU)",
              "use tables for groups of channels, or run on another unit", kCpu, 0, 0,
              PerTensorPalette),
    OnWeights("expanded-weights", kNote, "compressed weights are expanded when the model is loaded",
              kApple, "coremltools, opt-palettization-perf.md and opt-quantization-perf.md",
              "on the CPU, compression makes the package smaller, not faster", kCpu, 0, 0,
              CompressedWeights),
    OnWeights("gpu-int8", kInaccurate, "weights of eight bits with a scale", kMeasured,
              "FluidInference/mobius#73: MPSGraph ended with \"pass manager failed\"",
              "use a palette of 64 values on the GPU", kGpu, 0, 0, EightBitWeights),
    // --- numbers
    OnOperation(
        "infinity", kInaccurate, "a constant contains an infinity", kApple,
        "apple/coreai-models, common_issues.md: \"does not handle IEEE -inf correctly in softmax\"",
        "mask with -40000, as the pass safe-masks does for attention", kAne, 0, 0,
        InfiniteConstant),
    OnOperation(
        "offset-slice", kInaccurate,
        "a slice that does not start at the beginning of the last axis: magnitudes above 4094 "
        "become "
        "infinite",
        kMeasured,
        "sbryngelson/ane-guide, 19-pitfalls-and-limits.md (aned, M1 and M2; exact on M5)",
        "slice another axis; harmless if the values stay below 4094, and from M3 and A16 on", kAne,
        0, 15, OffsetSlice),
    OnOperation("unshifted-exponential", kInaccurate,
                "computes an exponential that overflows fp16 for operands above 10", kMeasured,
                "coremltools#2690 (reduce_log_sum_exp), #2687 (softplus, M4)",
                "subtract the maximum first, as the pass safe-logarithms does", kAne, 0, 0,
                IsNamed<kUnshifted>),
    OnOperation("fused-mask", kInaccurate, "scaled_dot_product_attention with a mask", kClaim,
                "maderix/ANE, README (M4): the mask is ignored",
                "compile for iOS17 or older, where attention consists of products and a softmax",
                kAne, 0, 0, FusedAttentionMask),
    OnOperation("long-top-k", kInaccurate, "selects from more than 65536 elements", kMeasured,
                "john-rocky/CoreML-LLM, MTP_PATH_C_FINDINGS.md: indices off by multiples of 65536",
                "select from parts of the axis, then from their results", kAne | kGpu | kCpu, 0, 0,
                LongTopK),
    // --- speed
    OnOperation("narrow-rows", kSlow, "rows of a large tensor are padded to a multiple of 64 bytes",
                kApple, "apple/coreai-models, neural_engine_rules.md: \"Tensor memory alignment\"",
                "usually none for images; otherwise put the longest axis last in the source model",
                kAne, 0, 0, NarrowRows),
    OnOperation("linear-layer", kSlow, "a linear layer that is not a convolution", kApple,
                "apple/coreai-models, neural_engine_rules.md: \"Conv2d instead of Linear\"; "
                "onnxsim and erwinzhang7 measured gains of 10 to 22 %",
                "option 'optimize-for' ane writes it as a 1x1 convolution, of tensors (batch, "
                "channels, height, width) for images and (batch, channels, 1, sequence) for text",
                kAne, 0, 0, LinearLayer),
    OnOperation("heads-together", kSlow, "attention that computes several heads at once", kApple,
                "apple/coreai-models, neural_engine_rules.md: \"Per-head attention\"; "
                "apple/ml-ane-transformers",
                "option 'optimize-for' ane computes each head by itself", kAne, 0, 0,
                HeadsTogether),
    OnOperation("row-softmax", kSlow, "a large softmax along a spatial axis", kApple,
                "apple/coreai-models, neural_engine_rules.md: \"Softmax placement\"",
                "option 'optimize-for' ane normalises along the channels: scores of shape (batch, "
                "keys, 1, queries)",
                kAne, 0, 0, SoftmaxOverRows),
    OnOperation("moved-rows", kSlow,
                "a reshape or transpose changes the last axis of a large tensor", kApple,
                "apple/coreai-models, neural_engine_rules.md: \"Avoid unnecessary memory copies\"",
                "option 'optimize-for' ane keeps one layout, from end to end where the source "
                "model allows it",
                kAne, 0, 0, MovesLastAxis),
    OnOperation("conv-stride", kSlow, "a convolution stride with prime factors other than 2 and 3",
                kApple,
                "apple/coreai-models, neural_engine_rules.md: \"Convolution stride optimization\"",
                "use 2, 3, 4, 6, 8, 9, 12, 16, 24 or 32, equal in both directions, and train again",
                kAne, 0, 0, ConvStride),
    OnOperation("large-kernel", kSlow, "a convolution kernel of nine or more", kApple,
                "apple/coreai-models, neural_engine_rules.md: \"Large kernel decomposition\"",
                "use several smaller kernels (two of 5 cover 9), and train again", kAne, 0, 0,
                LargeKernel),
    OnOperation(
        "large-dilation", kSlow, "a dilation above 3", kApple,
        "apple/coreai-models, neural_engine_rules.md: \"Dilated convolution factorization\"; "
        "hollance/neural-engine lists dilated convolutions as unsupported, in 2020",
        "use a chain of convolutions with dilations of 2 and 3, and train again", kAne, 0, 0,
        LargeDilation),
    OnOperation("pool-stride", kSlow, "a pooling stride other than 1, 2 and 4", kApple,
                "apple/coreai-models, neural_engine_rules.md: \"Pooling stride\"",
                "use 2 or 4, and train again", kAne, 14, 0, PoolStride),
    OnOperation("embedding", kSlow, "a lookup in a table of 1 MB or more", kApple,
                "apple/coreai-models, neural_engine_rules.md: \"Model decomposition\"; "
                "apple/ml-ane-transformers",
                "compile the lookup as a model of its own for the CPU", kAne, 0, 0, Embedding),
    OnOperation("listed-norm", kSlow, "layer_norm of a listed shape", kMeasured,
                "coremltools#1909: 175 ms, against 20 ms with a fixed shape",
                "compile one function or package for each size", kAne, 0, 0, ListedShapesOfNorm),
    OnOperation("upcast-activation", kNote, "silu or tanh, which Core AI computes in fp32", kApple,
                "apple/coreai-models, common_issues.md (Core AI, not Core ML)",
                "write silu as x * sigmoid(x), and tanh as 2 * sigmoid(2 x) - 1", kAne, 0, 0,
                UpcastActivation),
    OnOperation("unfused-attention", kSlow, "attention that is not scaled_dot_product_attention",
                kApple, "apple/coreai-models, gpu_rules.md: \"Native SDPA\"",
                "option 'optimize-for' gpu with option 'target' iOS18 or newer fuses it; or write "
                "it as one attention operator in the source model",
                kGpu, 0, 0, UnfusedAttention),
    OnOperation(
        "gpu-pointwise", kSlow, "a linear layer that is written as a convolution", kClaim,
        "erwinzhang7 (vision transformers: the Neural Engine gains 10 to 13 %, the GPU loses)",
        "option 'optimize-for' gpu writes it as a linear layer", kGpu, 0, 0, PointwiseConv),
    OnFunction("segments", kSlow, "the Neural Engine is entered more than once", kMeasured,
               "arXiv 2606.22283: 0.09 to 0.23 ms for each entry; apple/coreai-models, "
               "neural_engine_rules.md: \"Neural Engine residency\"",
               "replace the operations between the segments, which the rules name that cannot run, "
               "or move them out of the model",
               kAne, 0, 0, Fragments),
    OnProgram(
        "package-1gb", kCannotRun, "a package of more than 1 GB, on a phone or tablet", kApple,
        "coremltools, mlmodel-utilities.md: parts of at most 1 GB. Conflict: john-rocky/CoreML-LLM "
        "ran up to 1.4 GB on iPhone 17 Pro",
        "compress the weights, or divide the model", kAne, 0, 0, Above1GB),
    OnProgram("package-2gb", kCannotRun, "a package of more than 2 GB, on a Mac", kClaim,
              "Anemll and 0seba, READMEs", "compress the weights, or divide the model", kAne, 0, 0,
              Above2GB),
};

}  // namespace

bool PlacementRule::AppliesTo(Unit unit, const Chip& chip) const {
  return (units & static_cast<uint8_t>(unit)) != 0 && chip.generation >= oldest &&
         (newest == 0 || chip.generation <= newest);
}

std::span<const PlacementRule> PlacementRules() { return kRules; }

std::string ItIs(const Operation& op) { return fmt::format("it is {}", op.def->name); }

namespace {

std::string UnitsText(const PlacementRule& rule) {
  std::string text;
  for (Unit unit : {Unit::kNeuralEngine, Unit::kGpu, Unit::kCpu})
    if (rule.units & static_cast<uint8_t>(unit))
      text += fmt::format("{}{}", text.empty() ? "" : ", ", Name(unit));
  return text;
}

std::string ChipsText(const PlacementRule& rule) {
  if (rule.oldest == 0 && rule.newest == 0) return "all";
  std::vector<std::string_view> names;
  for (const Chip& chip : Chips())
    if (chip.generation >= rule.oldest && (rule.newest == 0 || chip.generation <= rule.newest))
      names.push_back(chip.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::string PlacementRulesPage() {
  std::string page =
      "# Rules of placement\n\n"
      "What the compute units of Apple silicon are known to run, to run slowly, or not to run. "
      "`mlc explain` applies these rules; this page is generated from lib/analysis/"
      "placement_rules.cpp.\n\n"
      "Standing: \"Apple\" is text published by Apple, \"source code\" was read in published code, "
      "\"measured\" was measured by others on devices, and \"claim\" is a statement without "
      "figures. \"aned\" marks experiments that bypass Core ML.\n\n"
      "| rule | severity | meaning | units | chips | standing | source | fix |\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (const PlacementRule& rule : kRules)
    page += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n", rule.id, Name(rule.severity),
                        rule.meaning, UnitsText(rule), ChipsText(rule), Name(rule.standing),
                        rule.source, rule.fix);
  return page;
}

}  // namespace mlc::analysis
