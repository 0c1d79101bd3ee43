// EfficientNets and MobileNets of timm: definitions of blocks, and multipliers of their widths and
// depths (timm/models/efficientnet.py and mobilenetv3.py).

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "frontends/safetensors/timm.h"
#include "lib/networks/inverted_residual_network.h"

namespace mlc::safetensors {

namespace {

using networks::Activation;
using networks::InvertedBlock;
using networks::PictureWindow;

// One block of a definition, "ir_r2_k3_s2_e6_c24_se0.25" (timm/models/_efficientnet_builder.py,
// _decode_block_str): its kind, and by letter how often it is repeated, the kernel (and that of a
// convolution before the expansion), the stride, the ratio of expansion, the channels, squeeze and excitation, and of attention
// the heads, the stride of keys and values, and their dimensions, which those of the tensors show.
struct BlockText {
  std::string kind;
  int64_t repeats = 1, start = 0, kernel = 1, stride = 1, channels = 0, heads = 0, key_stride = 1,
          width = 0;
  double expansion = 1;
  bool squeeze = false, relu = false, skip = true;
};

BlockText ReadBlock(std::string_view text) {
  const std::vector<std::string> parts = Split(text, '_');
  BlockText block{.kind = parts[0]};
  // Plain convolutions, and the blocks of MobileNetV1, have no residual unless they say so.
  block.skip = block.kind != "cn" && block.kind != "dsa";
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::string& part = parts[i];
    if (part == "skip") {
      block.skip = true;
    } else if (part == "noskip") {
      block.skip = false;
    } else if (part == "nre") {
      block.relu = true;
    } else if (part.starts_with("se")) {
      block.squeeze = true;
    } else if (part.starts_with("fc")) {
      std::from_chars(part.data() + 2, part.data() + part.size(), block.width);
    } else {
      double value = 0;
      std::from_chars(part.data() + 1, part.data() + part.size(), value);
      const auto whole = static_cast<int64_t>(value);
      if (part[0] == 'r') block.repeats = whole;
      if (part[0] == 'a') block.start = whole;
      if (part[0] == 'k') block.kernel = whole;
      if (part[0] == 's') block.stride = whole;
      if (part[0] == 'c') block.channels = whole;
      if (part[0] == 'h') block.heads = whole;
      if (part[0] == 'v') block.key_stride = whole;
      if (part[0] == 'e') block.expansion = value;
    }
  }
  return block;
}

// The definitions of stages, separated by "|".
constexpr std::string_view kEfficientNet =
    "ds_r1_k3_s1_e1_c16_se0.25|ir_r2_k3_s2_e6_c24_se0.25|ir_r2_k5_s2_e6_c40_se0.25|"
    "ir_r3_k3_s2_e6_c80_se0.25|ir_r3_k5_s1_e6_c112_se0.25|ir_r4_k5_s2_e6_c192_se0.25|"
    "ir_r1_k3_s1_e6_c320_se0.25";
constexpr std::string_view kEfficientNetLite =
    "ds_r1_k3_s1_e1_c16|ir_r2_k3_s2_e6_c24|ir_r2_k5_s2_e6_c40|ir_r3_k3_s2_e6_c80|"
    "ir_r3_k5_s1_e6_c112|ir_r4_k5_s2_e6_c192|ir_r1_k3_s1_e6_c320";
constexpr std::string_view kEfficientNetV2Base =
    "cn_r1_k3_s1_e1_c16_skip|er_r2_k3_s2_e4_c32|er_r2_k3_s2_e4_c48|ir_r3_k3_s2_e4_c96_se0.25|"
    "ir_r5_k3_s1_e6_c112_se0.25|ir_r8_k3_s2_e6_c192_se0.25";
constexpr std::string_view kEfficientNetV2S =
    "cn_r2_k3_s1_e1_c24_skip|er_r4_k3_s2_e4_c48|er_r4_k3_s2_e4_c64|ir_r6_k3_s2_e4_c128_se0.25|"
    "ir_r9_k3_s1_e6_c160_se0.25|ir_r15_k3_s2_e6_c256_se0.25";
constexpr std::string_view kEfficientNetV2Rw =
    "er_r2_k3_s1_e1_c24|er_r4_k3_s2_e4_c48|er_r4_k3_s2_e4_c64|ir_r6_k3_s2_e4_c128_se0.25|"
    "ir_r9_k3_s1_e6_c160_se0.25|ir_r15_k3_s2_e6_c272_se0.25";
constexpr std::string_view kEfficientNetV2M =
    "cn_r3_k3_s1_e1_c24_skip|er_r5_k3_s2_e4_c48|er_r5_k3_s2_e4_c80|ir_r7_k3_s2_e4_c160_se0.25|"
    "ir_r14_k3_s1_e6_c176_se0.25|ir_r18_k3_s2_e6_c304_se0.25|ir_r5_k3_s1_e6_c512_se0.25";
constexpr std::string_view kEfficientNetV2L =
    "cn_r4_k3_s1_e1_c32_skip|er_r7_k3_s2_e4_c64|er_r7_k3_s2_e4_c96|ir_r10_k3_s2_e4_c192_se0.25|"
    "ir_r19_k3_s1_e6_c224_se0.25|ir_r25_k3_s2_e6_c384_se0.25|ir_r7_k3_s1_e6_c640_se0.25";
constexpr std::string_view kMobileNetV1 =
    "dsa_r1_k3_s1_c64|dsa_r2_k3_s2_c128|dsa_r2_k3_s2_c256|dsa_r6_k3_s2_c512|dsa_r2_k3_s2_c1024";
constexpr std::string_view kMobileNetV2 =
    "ds_r1_k3_s1_c16|ir_r2_k3_s2_e6_c24|ir_r3_k3_s2_e6_c32|ir_r4_k3_s2_e6_c64|"
    "ir_r3_k3_s1_e6_c96|ir_r3_k3_s2_e6_c160|ir_r1_k3_s1_e6_c320";
constexpr std::string_view kMobileNetV3Large =
    "ds_r1_k3_s1_e1_c16_nre|ir_r1_k3_s2_e4_c24_nre ir_r1_k3_s1_e3_c24_nre|"
    "ir_r3_k5_s2_e3_c40_se0.25_nre|"
    "ir_r1_k3_s2_e6_c80 ir_r1_k3_s1_e2.5_c80 ir_r2_k3_s1_e2.3_c80|ir_r2_k3_s1_e6_c112_se0.25|"
    "ir_r3_k5_s2_e6_c160_se0.25|cn_r1_k1_s1_c960";
constexpr std::string_view kMobileNetV3LargeMinimal =
    "ds_r1_k3_s1_e1_c16|ir_r1_k3_s2_e4_c24 ir_r1_k3_s1_e3_c24|ir_r3_k3_s2_e3_c40|"
    "ir_r1_k3_s2_e6_c80 ir_r1_k3_s1_e2.5_c80 ir_r2_k3_s1_e2.3_c80|ir_r2_k3_s1_e6_c112|"
    "ir_r3_k3_s2_e6_c160|cn_r1_k1_s1_c960";
constexpr std::string_view kMobileNetV3Small =
    "ds_r1_k3_s2_e1_c16_se0.25_nre|ir_r1_k3_s2_e4.5_c24_nre ir_r1_k3_s1_e3.67_c24_nre|"
    "ir_r1_k5_s2_e4_c40_se0.25 ir_r2_k5_s1_e6_c40_se0.25|ir_r2_k5_s1_e3_c48_se0.25|"
    "ir_r3_k5_s2_e6_c96_se0.25|cn_r1_k1_s1_c576";
constexpr std::string_view kMobileNetV3SmallMinimal =
    "ds_r1_k3_s2_e1_c16|ir_r1_k3_s2_e4.5_c24 ir_r1_k3_s1_e3.67_c24|"
    "ir_r1_k3_s2_e4_c40 ir_r2_k3_s1_e6_c40|ir_r2_k3_s1_e3_c48|ir_r3_k3_s2_e6_c96|"
    "cn_r1_k1_s1_c576";
constexpr std::string_view kMobileNetV4Small =
    "cn_r1_k3_s2_e1_c32 cn_r1_k1_s1_e1_c32|cn_r1_k3_s2_e1_c96 cn_r1_k1_s1_e1_c64|"
    "uir_r1_a5_k5_s2_e3_c96 uir_r4_a0_k3_s1_e2_c96 uir_r1_a3_k0_s1_e4_c96|"
    "uir_r1_a3_k3_s2_e6_c128 uir_r1_a5_k5_s1_e4_c128 uir_r1_a0_k5_s1_e4_c128 "
    "uir_r1_a0_k5_s1_e3_c128 uir_r2_a0_k3_s1_e4_c128|cn_r1_k1_s1_c960";
constexpr std::string_view kMobileNetV4Medium =
    "er_r1_k3_s2_e4_c48|uir_r1_a3_k5_s2_e4_c80 uir_r1_a3_k3_s1_e2_c80|"
    "uir_r1_a3_k5_s2_e6_c160 uir_r2_a3_k3_s1_e4_c160 uir_r1_a3_k5_s1_e4_c160 "
    "uir_r1_a3_k3_s1_e4_c160 uir_r1_a3_k0_s1_e4_c160 uir_r1_a0_k0_s1_e2_c160 "
    "uir_r1_a3_k0_s1_e4_c160|"
    "uir_r1_a5_k5_s2_e6_c256 uir_r1_a5_k5_s1_e4_c256 uir_r2_a3_k5_s1_e4_c256 "
    "uir_r1_a0_k0_s1_e4_c256 uir_r1_a3_k0_s1_e4_c256 uir_r1_a3_k5_s1_e2_c256 "
    "uir_r1_a5_k5_s1_e4_c256 uir_r2_a0_k0_s1_e4_c256 uir_r1_a5_k0_s1_e2_c256|cn_r1_k1_s1_c960";
constexpr std::string_view kMobileNetV4Large =
    "er_r1_k3_s2_e4_c48|uir_r1_a3_k5_s2_e4_c96 uir_r1_a3_k3_s1_e4_c96|"
    "uir_r1_a3_k5_s2_e4_c192 uir_r3_a3_k3_s1_e4_c192 uir_r1_a3_k5_s1_e4_c192 "
    "uir_r5_a5_k3_s1_e4_c192 uir_r1_a3_k0_s1_e4_c192|"
    "uir_r4_a5_k5_s2_e4_c512 uir_r1_a5_k0_s1_e4_c512 uir_r1_a5_k3_s1_e4_c512 "
    "uir_r2_a5_k0_s1_e4_c512 uir_r1_a5_k3_s1_e4_c512 uir_r1_a5_k5_s1_e4_c512 "
    "uir_r3_a5_k0_s1_e4_c512|cn_r1_k1_s1_c960";
constexpr std::string_view kMobileNetV4HybridMedium =
    "er_r1_k3_s2_e4_c48|uir_r1_a3_k5_s2_e4_c80 uir_r1_a3_k3_s1_e2_c80|"
    "uir_r1_a3_k5_s2_e6_c160 uir_r1_a0_k0_s1_e2_c160 uir_r1_a3_k3_s1_e4_c160 "
    "uir_r1_a3_k5_s1_e4_c160 mqa_r1_k3_h4_s1_v2_d64_c160 uir_r1_a3_k3_s1_e4_c160 "
    "mqa_r1_k3_h4_s1_v2_d64_c160 uir_r1_a3_k0_s1_e4_c160 mqa_r1_k3_h4_s1_v2_d64_c160 "
    "uir_r1_a3_k3_s1_e4_c160 mqa_r1_k3_h4_s1_v2_d64_c160 uir_r1_a3_k0_s1_e4_c160|"
    "uir_r1_a5_k5_s2_e6_c256 uir_r1_a5_k5_s1_e4_c256 uir_r2_a3_k5_s1_e4_c256 "
    "uir_r1_a0_k0_s1_e2_c256 uir_r1_a3_k5_s1_e2_c256 uir_r1_a0_k0_s1_e2_c256 "
    "uir_r1_a0_k0_s1_e4_c256 mqa_r1_k3_h4_s1_d64_c256 uir_r1_a3_k0_s1_e4_c256 "
    "mqa_r1_k3_h4_s1_d64_c256 uir_r1_a5_k5_s1_e4_c256 mqa_r1_k3_h4_s1_d64_c256 "
    "uir_r1_a5_k0_s1_e4_c256 mqa_r1_k3_h4_s1_d64_c256 uir_r1_a5_k0_s1_e4_c256|cn_r1_k1_s1_c960";
constexpr std::string_view kMobileNetV4HybridLarge =
    "er_r1_k3_s2_e4_c48|uir_r1_a3_k5_s2_e4_c96 uir_r1_a3_k3_s1_e4_c96|"
    "uir_r1_a3_k5_s2_e4_c192 uir_r3_a3_k3_s1_e4_c192 uir_r1_a3_k5_s1_e4_c192 "
    "uir_r2_a5_k3_s1_e4_c192 mqa_r1_k3_h8_s1_v2_d48_c192 uir_r1_a5_k3_s1_e4_c192 "
    "mqa_r1_k3_h8_s1_v2_d48_c192 uir_r1_a5_k3_s1_e4_c192 mqa_r1_k3_h8_s1_v2_d48_c192 "
    "uir_r1_a5_k3_s1_e4_c192 mqa_r1_k3_h8_s1_v2_d48_c192 uir_r1_a3_k0_s1_e4_c192|"
    "uir_r4_a5_k5_s2_e4_c512 uir_r1_a5_k0_s1_e4_c512 uir_r1_a5_k3_s1_e4_c512 "
    "uir_r2_a5_k0_s1_e4_c512 uir_r1_a5_k3_s1_e4_c512 uir_r1_a5_k5_s1_e4_c512 "
    "mqa_r1_k3_h8_s1_d64_c512 uir_r1_a5_k0_s1_e4_c512 mqa_r1_k3_h8_s1_d64_c512 "
    "uir_r1_a5_k0_s1_e4_c512 mqa_r1_k3_h8_s1_d64_c512 uir_r1_a5_k0_s1_e4_c512 "
    "mqa_r1_k3_h8_s1_d64_c512 uir_r1_a5_k0_s1_e4_c512|cn_r1_k1_s1_c960";
constexpr std::string_view kMnasNet =
    "ds_r1_k3_s1_c16_noskip|ir_r3_k3_s2_e3_c24|ir_r3_k5_s2_e3_c40|ir_r3_k5_s2_e6_c80|"
    "ir_r2_k3_s1_e6_c96|ir_r4_k5_s2_e6_c192|ir_r1_k3_s1_e6_c320_noskip";
constexpr std::string_view kSqueezingMnasNet =
    "ds_r1_k3_s1_e1_c16_noskip|ir_r2_k3_s2_e6_c24|ir_r3_k5_s2_e3_c40_se0.25|ir_r4_k3_s2_e6_c80|"
    "ir_r2_k3_s1_e6_c112_se0.25|ir_r3_k5_s2_e6_c160_se0.25|ir_r1_k3_s1_e6_c320";
constexpr std::string_view kSmallMnasNet =
    "ds_r1_k3_s1_c8|ir_r1_k3_s2_e3_c16|ir_r2_k3_s2_e6_c16|ir_r4_k5_s2_e6_c32_se0.25|"
    "ir_r3_k3_s1_e6_c32_se0.25|ir_r3_k5_s2_e6_c88_se0.25|ir_r1_k3_s1_e6_c144";
constexpr std::string_view kLcNet =
    "dsa_r1_k3_s1_c32|dsa_r2_k3_s2_c64|dsa_r2_k3_s2_c128|dsa_r1_k3_s2_c256 dsa_r1_k5_s1_c256|"
    "dsa_r4_k5_s1_c256|dsa_r2_k5_s2_c512_se0.25";
constexpr std::string_view kMobileNetV3Rw =
    "ds_r1_k3_s1_e1_c16_nre_noskip|ir_r1_k3_s2_e4_c24_nre ir_r1_k3_s1_e3_c24_nre|"
    "ir_r3_k5_s2_e3_c40_se0.25_nre|"
    "ir_r1_k3_s2_e6_c80 ir_r1_k3_s1_e2.5_c80 ir_r2_k3_s1_e2.3_c80|ir_r2_k3_s1_e6_c112_se0.25|"
    "ir_r3_k5_s2_e6_c160_se0.25|cn_r1_k1_s1_c960";
constexpr std::string_view kSinglePathNas =
    "ds_r1_k3_s1_c16_noskip|ir_r3_k3_s2_e3_c24|ir_r1_k5_s2_e6_c40 ir_r3_k3_s1_e3_c40|"
    "ir_r1_k5_s2_e6_c80 ir_r3_k3_s1_e3_c80|ir_r1_k5_s1_e6_c96 ir_r3_k5_s1_e3_c96|"
    "ir_r4_k5_s2_e6_c192|ir_r1_k3_s1_e6_c320_noskip";
constexpr std::string_view kFbNetC =
    "ir_r1_k3_s1_e1_c16|ir_r1_k3_s2_e6_c24 ir_r2_k3_s1_e1_c24|"
    "ir_r1_k5_s2_e6_c32 ir_r1_k5_s1_e3_c32 ir_r1_k5_s1_e6_c32 ir_r1_k3_s1_e6_c32|"
    "ir_r1_k5_s2_e6_c64 ir_r1_k5_s1_e3_c64 ir_r2_k5_s1_e6_c64|"
    "ir_r3_k5_s1_e6_c112 ir_r1_k5_s1_e3_c112|ir_r4_k5_s2_e6_c184|ir_r1_k3_s1_e6_c352";
constexpr std::string_view kEfficientNetEdge =
    "er_r1_k3_s1_e4_c24_fc24_noskip|er_r2_k3_s2_e8_c32|er_r4_k3_s2_e8_c48|ir_r5_k5_s2_e8_c96|"
    "ir_r4_k5_s1_e8_c144|ir_r2_k5_s2_e8_c192";
constexpr std::string_view kEfficientNetV2Xl =
    "cn_r4_k3_s1_e1_c32_skip|er_r8_k3_s2_e4_c64|er_r8_k3_s2_e4_c96|ir_r16_k3_s2_e4_c192_se0.25|"
    "ir_r24_k3_s1_e6_c256_se0.25|ir_r32_k3_s2_e6_c512_se0.25|ir_r8_k3_s1_e6_c640_se0.25";
constexpr std::string_view kTestEfficientNet =
    "cn_r1_k3_s1_e1_c16_skip|er_r1_k3_s2_e4_c24|er_r1_k3_s2_e4_c32|ir_r1_k3_s2_e4_c48_se0.25|"
    "ir_r1_k3_s2_e4_c64_se0.25";

struct MobileRow {
  std::string_view architecture, stages;
  double width = 1, depth = 1;  // multipliers
  int64_t stem = 32, head = 1280;
  Activation activation = Activation::kSilu;
  bool fixed_ends = false;   // neither stem and head nor the first and last stage are scaled
  bool pooled_head = false;  // MobileNetV3's
  bool tensorflow = false;   // its padding, and its epsilon of norms
  double least_share = 0.9;  // of a width after rounding
  bool pooled_norm = false;  // a pooled head has a norm
  bool fixed_head = false;   // its width is not scaled
  bool fixed_stem = false;
  bool rounded_depth = false;  // scaled numbers of blocks are rounded to the nearest number, not up
};
constexpr Activation kRelu = Activation::kRelu, kRelu6 = Activation::kRelu6,
                     kHardSwish = Activation::kHardSwish;
// timm/models/efficientnet.py and mobilenetv3.py
const MobileRow kMobileRows[] = {
    {"efficientnet_b0", kEfficientNet, 1.0, 1.0},
    {"efficientnet_b1", kEfficientNet, 1.0, 1.1},
    {"efficientnet_b2", kEfficientNet, 1.1, 1.2},
    {"efficientnet_b3", kEfficientNet, 1.2, 1.4},
    {"efficientnet_b4", kEfficientNet, 1.4, 1.8},
    {"efficientnet_b5", kEfficientNet, 1.6, 2.2},
    {"efficientnet_b6", kEfficientNet, 1.8, 2.6},
    {"efficientnet_b7", kEfficientNet, 2.0, 3.1},
    {"efficientnet_b8", kEfficientNet, 2.2, 3.6},
    {"efficientnet_l2", kEfficientNet, 4.3, 5.3},
    {"efficientnet_es", kEfficientNetEdge, 1.0, 1.0, 32, 1280, kRelu},
    {"efficientnet_em", kEfficientNetEdge, 1.0, 1.1, 32, 1280, kRelu},
    {"efficientnet_el", kEfficientNetEdge, 1.2, 1.4, 32, 1280, kRelu},
    {"efficientnet_lite0", kEfficientNetLite, 1.0, 1.0, 32, 1280, kRelu6, true},
    {"efficientnet_lite1", kEfficientNetLite, 1.0, 1.1, 32, 1280, kRelu6, true},
    {"efficientnet_lite2", kEfficientNetLite, 1.1, 1.2, 32, 1280, kRelu6, true},
    {"efficientnet_lite3", kEfficientNetLite, 1.2, 1.4, 32, 1280, kRelu6, true},
    {"efficientnet_lite4", kEfficientNetLite, 1.4, 1.8, 32, 1280, kRelu6, true},
    {"efficientnetv2_b0", kEfficientNetV2Base, 1.0, 1.0, 32, 1280, Activation::kSilu, false, false,
     false, 0},
    {"efficientnetv2_b1", kEfficientNetV2Base, 1.0, 1.1, 32, 1280, Activation::kSilu, false, false,
     false, 0},
    {"efficientnetv2_b2", kEfficientNetV2Base, 1.1, 1.2, 32, 1280, Activation::kSilu, false, false,
     false, 0},
    {"efficientnetv2_b3", kEfficientNetV2Base, 1.2, 1.4, 32, 1280, Activation::kSilu, false, false,
     false, 0},
    {"efficientnetv2_rw_t", kEfficientNetV2S, 0.8, 0.9, 24},
    {"efficientnetv2_rw_s", kEfficientNetV2Rw, 1.0, 1.0, 24, 1792},
    {"efficientnetv2_s", kEfficientNetV2S, 1.0, 1.0, 24},
    {"efficientnetv2_m", kEfficientNetV2M, 1.0, 1.0, 24},
    {"efficientnetv2_l", kEfficientNetV2L, 1.0, 1.0, 32},
    {"efficientnetv2_xl", kEfficientNetV2Xl, 1.0, 1.0, 32},
    {"mobilenetv1_100", kMobileNetV1, 1.0, 1.0, 32, 0, kRelu6},
    {"mobilenetv1_100h", kMobileNetV1, 1.0, 1.0, 32, 1024, kRelu6},
    {"mobilenetv1_125", kMobileNetV1, 1.25, 1.0, 32, 0, kRelu6},
    {"mobilenetv2_035", kMobileNetV2, 0.35, 1.0, 32, 1280, kRelu6},
    {"mobilenetv2_050", kMobileNetV2, 0.5, 1.0, 32, 1280, kRelu6},
    {"mobilenetv2_075", kMobileNetV2, 0.75, 1.0, 32, 1280, kRelu6},
    {"mobilenetv2_100", kMobileNetV2, 1.0, 1.0, 32, 1280, kRelu6},
    {"mobilenetv2_140", kMobileNetV2, 1.4, 1.0, 32, 1280, kRelu6},
    {"mobilenetv2_110d", kMobileNetV2, 1.1, 1.2, 32, 1280, kRelu6, true},
    {"mobilenetv2_120d", kMobileNetV2, 1.2, 1.4, 32, 1280, kRelu6, true},
    {"mobilenetv3_large_075", kMobileNetV3Large, 0.75, 1, 16, 1280, kHardSwish, false, true},
    {"mobilenetv3_large_100", kMobileNetV3Large, 1.0, 1, 16, 1280, kHardSwish, false, true},
    {"mobilenetv3_large_150d", kMobileNetV3Large, 1.5, 1.2, 16, 1280, kHardSwish, false, true},
    {"mobilenetv3_rw", kMobileNetV3Rw, 1.0, 1, 16, 1280, kHardSwish, false, true},
    {"mobilenetv3_large_minimal_100", kMobileNetV3LargeMinimal, 1.0, 1, 16, 1280, kRelu, false,
     true},
    {"mobilenetv3_small_minimal_100", kMobileNetV3SmallMinimal, 1.0, 1, 16, 1024, kRelu, false,
     true},
    {"mobilenetv3_small_050", kMobileNetV3Small, 0.5, 1, 16, 1024, kHardSwish, false, true},
    {"mobilenetv3_small_075", kMobileNetV3Small, 0.75, 1, 16, 1024, kHardSwish, false, true},
    {"mobilenetv3_small_100", kMobileNetV3Small, 1.0, 1, 16, 1024, kHardSwish, false, true},
    {"mobilenetv4_conv_small_035", kMobileNetV4Small, 0.35, 1, 32, 1280, kRelu, false, true, false,
     0.9, true},
    {"mobilenetv4_conv_small_050", kMobileNetV4Small, 0.5, 1, 32, 1280, kRelu, false, true, false,
     0.9, true},
    {"mobilenetv4_conv_small", kMobileNetV4Small, 1, 1, 32, 1280, kRelu, false, true, false, 0.9,
     true},
    {"mobilenetv4_conv_medium", kMobileNetV4Medium, 1, 1, 32, 1280, kRelu, false, true, false, 0.9,
     true},
    {"mobilenetv4_conv_large", kMobileNetV4Large, 1, 1, 24, 1280, kRelu, false, true, false, 0.9,
     true},
    {"mobilenetv4_hybrid_medium_075", kMobileNetV4HybridMedium, 0.75, 1, 32, 1280, kRelu, false,
     true, false, 0.9, true},
    {"mobilenetv4_hybrid_medium", kMobileNetV4HybridMedium, 1, 1, 32, 1280, kRelu, false, true,
     false, 0.9, true},
    {"mobilenetv4_hybrid_large_075", kMobileNetV4HybridLarge, 0.75, 1, 24, 1280, Activation::kGelu,
     false, true, false, 0.9, true},
    {"mobilenetv4_hybrid_large", kMobileNetV4HybridLarge, 1, 1, 24, 1280, Activation::kGelu, false,
     true, false, 0.9, true},
    {"mnasnet_050", kMnasNet, 0.5, 1, 32, 1280, kRelu, false, false, false, 0.9, false, true},
    {"mnasnet_075", kMnasNet, 0.75, 1, 32, 1280, kRelu, false, false, false, 0.9, false, true},
    {"mnasnet_100", kMnasNet, 1, 1, 32, 1280, kRelu, false, false, false, 0.9, false, true},
    {"mnasnet_140", kMnasNet, 1.4, 1, 32, 1280, kRelu, false, false, false, 0.9, false, true},
    {"mnasnet_small", kSmallMnasNet, 1, 1, 8, 1280, kRelu, false, false, false, 0.9, false, true},
    {"semnasnet_050", kSqueezingMnasNet, 0.5, 1, 32, 1280, kRelu, false, false, false, 0.9, false,
     true},
    {"semnasnet_075", kSqueezingMnasNet, 0.75, 1, 32, 1280, kRelu, false, false, false, 0.9, false,
     true},
    {"semnasnet_100", kSqueezingMnasNet, 1, 1, 32, 1280, kRelu, false, false, false, 0.9, false,
     true},
    {"semnasnet_140", kSqueezingMnasNet, 1.4, 1, 32, 1280, kRelu, false, false, false, 0.9, false,
     true},
    {"spnasnet_100", kSinglePathNas, 1, 1, 32, 1280, kRelu, false, false, false, 0.9, false, true},
    {"fbnetc_100", kFbNetC, 1, 1, 16, 1984, kRelu, false, false, false, 0.9, false, true},
    {.architecture = "tinynet_a",
     .stages = kEfficientNet,
     .width = 1.0,
     .depth = 1.2,
     .fixed_head = true,
     .fixed_stem = true,
     .rounded_depth = true},
    {.architecture = "tinynet_b",
     .stages = kEfficientNet,
     .width = 0.75,
     .depth = 1.1,
     .fixed_head = true,
     .fixed_stem = true,
     .rounded_depth = true},
    {.architecture = "tinynet_c",
     .stages = kEfficientNet,
     .width = 0.54,
     .depth = 0.85,
     .fixed_head = true,
     .fixed_stem = true,
     .rounded_depth = true},
    {.architecture = "tinynet_d",
     .stages = kEfficientNet,
     .width = 0.54,
     .depth = 0.695,
     .fixed_head = true,
     .fixed_stem = true,
     .rounded_depth = true},
    {.architecture = "tinynet_e",
     .stages = kEfficientNet,
     .width = 0.51,
     .depth = 0.6,
     .fixed_head = true,
     .fixed_stem = true,
     .rounded_depth = true},
    {"test_efficientnet", kTestEfficientNet, 1, 1, 24, 256, Activation::kSilu, false, false, false,
     0},
    {"lcnet_035", kLcNet, 0.35, 1, 16, 1280, kHardSwish, false, true},
    {"lcnet_050", kLcNet, 0.5, 1, 16, 1280, kHardSwish, false, true},
    {"lcnet_075", kLcNet, 0.75, 1, 16, 1280, kHardSwish, false, true},
    {"lcnet_100", kLcNet, 1, 1, 16, 1280, kHardSwish, false, true},
    {"lcnet_150", kLcNet, 1.5, 1, 16, 1280, kHardSwish, false, true},
};

struct Mobile {
  const MobileRow& row;
  const Config& arguments;

  int64_t Width(int64_t channels) const {
    return networks::MakeDivisible(static_cast<double>(channels) * Multiplier(), 8, 0,
                                   row.least_share);
  }
  double Multiplier() const { return arguments.Number("channel_multiplier", row.width); }
  double Depth() const { return arguments.Number("depth_multiplier", row.depth); }
};

// How often each block of a stage is repeated (_scale_stage_depth): a rounded share of the stage's
// blocks, distributed from the last definition on.
std::vector<int64_t> Repeats(const std::vector<BlockText>& blocks, double depth, bool rounded) {
  int64_t all = 0;
  for (const BlockText& block : blocks) all += block.repeats;
  const double exact = static_cast<double>(all) * depth;
  auto scaled = rounded ? std::max<int64_t>(1, static_cast<int64_t>(std::nearbyint(exact)))
                        : static_cast<int64_t>(std::ceil(exact));
  std::vector<int64_t> repeats(blocks.size());
  for (size_t i = blocks.size(); i-- > 0;) {
    const double share = static_cast<double>(blocks[i].repeats) / static_cast<double>(all);
    repeats[i] = std::max<int64_t>(
        1, static_cast<int64_t>(std::nearbyint(share * static_cast<double>(scaled))));
    all -= blocks[i].repeats;
    scaled -= repeats[i];
  }
  return repeats;
}

// The convolutions of a kind of block, by the parts of InvertedBlock.
struct BlockTensors {
  std::string_view kind, ours, conv, norm;
};
constexpr BlockTensors kBlockTensors[] = {
    {"cn", "expand", "conv", "bn1"},
    {"ds", "depthwise", "conv_dw", "bn1"},
    {"ds", "project", "conv_pw", "bn2"},
    {"dsa", "depthwise", "conv_dw", "bn1"},
    {"dsa", "project", "conv_pw", "bn2"},
    {"er", "expand", "conv_exp", "bn1"},
    {"er", "project", "conv_pwl", "bn2"},
    {"ir", "expand", "conv_pw", "bn1"},
    {"ir", "depthwise", "conv_dw", "bn2"},
    {"ir", "project", "conv_pwl", "bn3"},
    {"uir", "start", "dw_start.conv", "dw_start.bn"},
    {"uir", "expand", "pw_exp.conv", "pw_exp.bn"},
    {"uir", "depthwise", "dw_mid.conv", "dw_mid.bn"},
    {"uir", "project", "pw_proj.conv", "pw_proj.bn"},
};

// Returns the row of an architecture; those with the prefix "tf_" were trained with TensorFlow.
std::optional<MobileRow> FindMobile(std::string_view architecture) {
  constexpr std::string_view kTensorflow = "tf_";
  const bool tensorflow = architecture.starts_with(kTensorflow);
  const std::string_view name = tensorflow ? architecture.substr(kTensorflow.size()) : architecture;
  for (const MobileRow& row : kMobileRows)
    if (row.architecture == name) {
      MobileRow found = row;
      found.tensorflow = tensorflow;
      return found;
    }
  return std::nullopt;
}

}  // namespace

Program BuildTimmMobile(const TimmFolder& timm) {
  const MobileRow row = *FindMobile(timm.architecture);
  CheckArguments(timm, {"bn_eps", "channel_multiplier", "depth_multiplier"});
  const Mobile mobile{row, timm.arguments};
  const double depth = mobile.Depth();
  if (!(mobile.Multiplier() > 0 && mobile.Multiplier() <= 64 && depth > 0 && depth <= 64))
    throw Error("bad-file", "the multipliers of channels and depths are {} and {}",
                mobile.Multiplier(), depth)
        .Expected("more than 0, at most 64");
  const auto padding =
      row.tensorflow ? PictureWindow::Padding::kSame : PictureWindow::Padding::kHalf;
  // Stems of MobileNetV3 and V4 keep their width in small networks.
  const double least = row.pooled_norm ? 1 : row.pooled_head && row.stages != kLcNet ? 0.75 : 0;
  const bool fixed_stem = row.fixed_ends || row.fixed_stem || mobile.Multiplier() < least;
  // These were trained with TensorFlow's epsilon, too.
  const bool large = row.tensorflow || row.stages == kFbNetC || row.stages == kMobileNetV3Rw;
  networks::InvertedResidualConfig config{
      .stem = fixed_stem ? row.stem : mobile.Width(row.stem),
      .head = row.head,
      .pooled_head = row.pooled_head,
      .pooled_norm = row.pooled_norm,
      .activation = row.activation,
      .padding = padding,
      .epsilon = timm.arguments.Number("bn_eps", large ? 1e-3 : 1e-5),
      .picture = timm.picture,
      .labels = timm.labels};
  if (row.pooled_head) {
    if (row.stages != kMobileNetV3Rw) config.squeeze = Activation::kRelu;
    config.gate = Activation::kHardSigmoid;
  } else if (row.head > 0 && !row.fixed_ends && !row.fixed_head) {
    config.head = mobile.Width(row.head);
    if (row.stages == kMobileNetV2) config.head = std::max(row.head, config.head);
  }
  TensorNameList names;
  names.Add("stem.conv", "conv_stem");
  names.Add("stem.norm", "bn1");
  names.Add("head.conv", "conv_head");
  names.Add("head.norm", row.pooled_norm ? "norm_head" : "bn2");
  int64_t in = config.stem;
  const std::vector<std::string> stages = Split(row.stages, '|');
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    std::vector<BlockText> blocks;
    for (const std::string& text : Split(stages[stage], ' ')) blocks.push_back(ReadBlock(text));
    const bool fixed = row.fixed_ends && (stage == 0 || stage + 1 == stages.size());
    const std::vector<int64_t> repeats = Repeats(blocks, fixed ? 1 : depth, row.rounded_depth);
    int64_t place = 0;
    for (size_t i = 0; i < blocks.size(); ++i)
      for (int64_t again = 0; again < repeats[i]; ++again, ++place) {
        const BlockText& text = blocks[i];
        const int64_t out = mobile.Width(text.channels);
        InvertedBlock block{.start_kernel = text.start,
                            .squeeze = text.squeeze,
                            .out = out,
                            .activated = text.kind == "dsa",
                            // Only the first block of a stage has a stride.
                            .stride = place == 0 ? text.stride : 1,
                            .activation = text.relu ? Activation::kRelu : row.activation,
                            .padding = padding};
        block.residual = text.skip && block.stride == 1 && in == out;
        if (text.kind == "cn") {
          block.expanded = out, block.expansion_kernel = text.kernel, block.out = 0;
        } else if (text.kind == "er" || text.kind == "ir" || text.kind == "uir") {
          // A definition may count from another width than that of the input.
          const int64_t width = text.width > 0 ? mobile.Width(text.width) : in;
          block.expanded = networks::MakeDivisible(static_cast<double>(width) * text.expansion);
          (text.kind == "er" ? block.expansion_kernel : block.depthwise_kernel) = text.kernel;
        } else if (text.kind == "mqa") {
          block.heads = text.heads, block.key_stride = text.key_stride, block.out = 0;
        } else {
          block.depthwise_kernel = text.kernel;
        }
        const std::string ours = fmt::format("block.{}.", config.blocks.size()),
                          theirs = fmt::format("blocks.{}.{}.", stage, place);
        for (const BlockTensors& tensors : kBlockTensors)
          if (tensors.kind == text.kind) {
            names.Add(fmt::format("{}{}.conv", ours, tensors.ours),
                      fmt::format("{}{}", theirs, tensors.conv));
            names.Add(fmt::format("{}{}.norm", ours, tensors.ours),
                      fmt::format("{}{}", theirs, tensors.norm));
          }
        names.Add(ours + "squeeze.reduce", theirs + "se.conv_reduce");
        names.Add(ours + "squeeze.expand", theirs + "se.conv_expand");
        names.Add(ours + "scale", theirs + "layer_scale.gamma");
        names.Add(ours + "attention_norm", theirs + "norm");
        for (const std::string part : {"query", "key", "value", "output"}) {
          names.Add(ours + part, theirs + "attn." + part + ".proj");
          names.Add(ours + part + "_down", theirs + "attn." + part + ".down_conv");
          names.Add(ours + part + "_norm", theirs + "attn." + part + ".norm");
        }
        config.blocks.push_back(block);
        in = out;
      }
  }
  return BuiltTimm(timm, names.rows(), config, networks::BuildInvertedResidualNetwork);
}

bool IsTimmMobile(std::string_view architecture) { return FindMobile(architecture).has_value(); }

std::vector<std::string> TimmMobileNames() {
  std::vector<std::string> names;
  for (const MobileRow& row : kMobileRows) names.emplace_back(row.architecture);
  return names;
}

}  // namespace mlc::safetensors
