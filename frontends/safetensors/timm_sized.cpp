// Networks of timm whose sizes are those of their tensors (lib/networks/sized_layers.h): rows have only
// what these do not show.

#include <algorithm>

#include "frontends/safetensors/activation_names.h"
#include "frontends/safetensors/timm.h"
#include "lib/networks/efficientformer.h"
#include "lib/networks/ghostnet.h"
#include "lib/networks/levit.h"
#include "lib/networks/metaformer.h"
#include "lib/networks/pvt.h"
#include "lib/networks/repvgg.h"
#include "lib/networks/sized_networks.h"

namespace mlc::safetensors {

namespace {

using networks::Activation;

bool IsLeftOver(std::string_view name) {
  return name.ends_with("attention_bias_idxs") || name.starts_with("AuxLogits.");
}

// Builds a network whose tensors have timm's names, with the picture and the labels of the folder.
template <class NetConfig>
Program BuiltSized(const TimmFolder& timm, NetConfig config,
                   Program (*build)(const NetConfig&, const networks::NetworkWeights&,
                                    Diagnostics&),
                   std::vector<TensorName> names = {}) {
  config.picture = timm.picture;
  config.labels = timm.labels;
  return BuiltTimm(timm, std::move(names), config, build, IsLeftOver);
}

constexpr TensorName kRepVggTensors[] = {
    {"stem.branch.0.conv", "stem.conv_kxk.conv"},
    {"stem.branch.0.norm", "stem.conv_kxk.bn"},
    {"stem.branch.{}.conv", "stem.conv_kxk.{}.conv"},
    {"stem.branch.{}.norm", "stem.conv_kxk.{}.bn"},
    {"stem.scale.conv", "stem.conv_1x1.conv"},
    {"stem.scale.norm", "stem.conv_1x1.bn"},
    {"stem.scale.conv", "stem.conv_scale.conv"},
    {"stem.scale.norm", "stem.conv_scale.bn"},
    {"stem.fused", "stem.reparam_conv"},
    {"stem.squeeze", "stem.attn"},
    {"stage.{}.{}.branch.0.conv", "stages.{}.{}.conv_kxk.conv"},
    {"stage.{}.{}.branch.0.norm", "stages.{}.{}.conv_kxk.bn"},
    {"stage.{}.{}.branch.{}.conv", "stages.{}.{}.conv_kxk.{}.conv"},
    {"stage.{}.{}.branch.{}.norm", "stages.{}.{}.conv_kxk.{}.bn"},
    {"stage.{}.{}.scale.conv", "stages.{}.{}.conv_1x1.conv"},
    {"stage.{}.{}.scale.norm", "stages.{}.{}.conv_1x1.bn"},
    {"stage.{}.{}.scale.conv", "stages.{}.{}.conv_scale.conv"},
    {"stage.{}.{}.scale.norm", "stages.{}.{}.conv_scale.bn"},
    {"stage.{}.{}.identity", "stages.{}.{}.identity"},
    {"stage.{}.{}.fused", "stages.{}.{}.reparam_conv"},
    {"stage.{}.{}.squeeze", "stages.{}.{}.attn"},
    {"classifier", "head.fc"},
};

Program BuildRepVgg(const TimmFolder& timm) {
  CheckArguments(timm, {"inference_mode", "width_factor"});
  return BuiltSized(timm, networks::RepVggConfig(), networks::BuildRepVgg,
                    {std::begin(kRepVggTensors), std::end(kRepVggTensors)});
}

Program BuildGhostNet(const TimmFolder& timm) {
  CheckArguments(timm, {"width"});
  return BuiltSized(timm, networks::GhostNetConfig(), networks::BuildGhostNet);
}

Program BuildEfficientFormer(const TimmFolder& timm) {
  CheckArguments(timm,
                 {"act_layer", "depths", "distillation", "embed_dims", "mlp_ratios", "num_vit"});
  return BuiltSized(
      timm,
      networks::EfficientFormerConfig{.second = timm.architecture.starts_with("efficientformerv2"),
                                      .activation = TimmActivation(timm, Activation::kGelu)},
      networks::BuildEfficientFormer);
}

Program BuildLevit(const TimmFolder& timm) {
  CheckArguments(timm, {"act_layer", "attn_act_layer", "attn_ratio", "depth", "embed_dim",
                        "key_dim", "mlp_ratio", "num_heads", "stem_type"});
  const Activation activation = TimmActivation(timm, Activation::kHardSwish);
  return BuiltSized(timm,
                    networks::LevitConfig{
                        .heads = timm.arguments.Ints("num_heads"),
                        .key = timm.arguments.Int("key_dim"),
                        .activation = activation,
                        .attention_activation = timm.arguments.has("attn_act_layer")
                                                    ? ActivationOf(timm.arguments, "attn_act_layer")
                                                    : activation},
                    networks::BuildLevit);
}

Program BuildMetaFormer(const TimmFolder& timm) {
  CheckArguments(timm, {"depths", "dims", "head_dim"});
  return BuiltSized(
      timm,
      networks::MetaFormerConfig{.group_norms = timm.architecture.starts_with("poolformer"),
                                 .head = timm.arguments.Int("head_dim", 32)},
      networks::BuildMetaFormer);
}

Program BuildPvt(const TimmFolder& timm) {
  CheckArguments(
      timm, {"depths", "embed_dims", "linear", "mlp_ratios", "num_heads", "qkv_bias", "sr_ratios"});
  return BuiltSized(timm,
                    networks::PvtConfig{.heads = timm.arguments.Ints("num_heads"),
                                        .pooled = timm.arguments.Bool("linear", false)},
                    networks::BuildPvt);
}

// Networks without options.
template <Program (*kBuild)(const networks::SizedConfig&, const networks::NetworkWeights&,
                            Diagnostics&)>
Program BuildPlain(const TimmFolder& timm) {
  CheckArguments(timm, {});
  return BuiltSized(timm, networks::SizedConfig(), kBuild);
}

Program BuildDla(const TimmFolder& timm) {
  CheckArguments(timm, {"base_width", "cardinality", "channels", "levels", "shortcut_root"});
  return BuiltSized(
      timm, networks::DlaConfig{.residual_roots = timm.arguments.Bool("shortcut_root", false)},
      networks::BuildDla);
}

Program BuildVovNet(const TimmFolder& timm) {
  CheckArguments(timm, {});
  return BuiltSized(timm, networks::VovNetConfig{.residual = timm.architecture.starts_with("ese_")},
                    networks::BuildVovNet);
}

Program BuildResNetAa(const TimmFolder& timm) {
  using Antialias = networks::SizedResNetConfig::Antialias;
  CheckArguments(timm, {});
  const bool blurs = timm.architecture.find("blur") != std::string::npos,
             averages = timm.architecture.find("aa") != std::string::npos;
  return BuiltSized(timm,
                    networks::SizedResNetConfig{.antialias = blurs      ? Antialias::kBlur
                                                             : averages ? Antialias::kAverage
                                                                        : Antialias::kNone},
                    networks::BuildSizedResNet);
}

Program BuildResNetV2(const TimmFolder& timm) {
  CheckArguments(timm, {"channels", "layers", "width_factor"});
  return BuiltSized(timm,
                    networks::ResNetV2Config{.standardised = timm.architecture.ends_with("_bit")},
                    networks::BuildResNetV2);
}

Program BuildBlockNet(const TimmFolder& timm) {
  CheckArguments(timm, {"act_layer", "group_size", "num_features", "width_factor"});
  networks::BlockNetConfig config{.stem_pools = timm.arguments.Bool("stem_pools", false),
                                  .linear_blocks = timm.architecture.starts_with("regnetz_"),
                                  .activation = TimmActivation(timm, Activation::kRelu)};
  if (timm.arguments.has("strides")) config.strides = timm.arguments.Ints("strides");
  networks::CheckPositive("strides", config.strides);
  return BuiltSized(timm, config, networks::BuildBlockNet);
}

Program BuildNormFreeNet(const TimmFolder& timm) {
  CheckArguments(timm, {"act_layer", "group_size", "num_features", "width_factor"});
  const Activation activation = TimmActivation(timm, Activation::kGelu);
  const bool original = timm.architecture.starts_with("dm_");
  networks::NormFreeConfig config{.activation = activation, .gamma_in_activation = original};
  if (original) config.padding = networks::PictureWindow::Padding::kSame;
  // timm/models/nfnet.py, _nonlin_gamma: what makes the variance of an activation 1.
  switch (activation) {
    case Activation::kGelu:
      config.gamma = 1.7015043497085571;
      break;
    case Activation::kRelu:
      config.gamma = 1.7139588594436646;
      break;
    case Activation::kSilu:
      config.gamma = 1.7881293296813965;
      break;
    default:
      timm.arguments.Refuse("act_layer", "gelu, relu or silu");
  }
  return BuiltSized(timm, config, networks::BuildNormFreeNet);
}

Program BuildMambaOut(const TimmFolder& timm) {
  CheckArguments(timm, {"act_layer", "conv_ratio", "depths", "dims", "downsample",
                        "expansion_ratio", "kernel_size", "stem_mid_norm"});
  return BuiltSized(
      timm,
      networks::MambaOutConfig{.norm_first = timm.arguments.Text("downsample", "conv") == "conv_nf",
                               .activation = TimmActivation(timm, Activation::kGelu)},
      networks::BuildMambaOut);
}

Program BuildEfficientVit(const TimmFolder& timm) {
  CheckArguments(timm, {"depths", "head_dim", "head_widths", "widths"});
  const bool large = timm.architecture.starts_with("efficientvit_l");
  return BuiltSized(timm,
                    networks::EfficientVitConfig{
                        .head = timm.arguments.Int("head_dim"),
                        .activation = large ? Activation::kGeluTanh : Activation::kHardSwish,
                        .epsilon = large ? 1e-7 : 1e-5},
                    networks::BuildEfficientVit);
}

Program BuildTinyVit(const TimmFolder& timm) {
  CheckArguments(timm, {"depths", "embed_dims", "mlp_ratio", "num_heads", "window_sizes"});
  return BuiltSized(timm,
                    networks::TinyVitConfig{.heads = timm.arguments.Ints("num_heads"),
                                            .windows = timm.arguments.Ints("window_sizes")},
                    networks::BuildTinyVit);
}

constexpr TimmRow kRepVggs[] = {
    {"repvgg_{a0,a1,a2,b0,b1,b1g4,b2,b2g4,b3,b3g4,d2se}", "{}"},
    {"mobileone_{s0,s1,s2,s3,s4}", "{}"},
};
constexpr TimmRow kGhostNets[] = {{"ghostnet_{050,100,130}", "{}"},
                                  {"ghostnetv2_{100,130,160}", "{}"}};
constexpr TimmRow kEfficientFormers[] = {{"efficientformer_{l1,l3,l7}", "{}"},
                                         {"efficientformerv2_{s0,s1,s2,l}", "{}"}};
constexpr TimmRow kLevits[] = {
    {"levit{,_conv}_128s", R"({"key_dim": 16, "num_heads": [4, 6, 8]})"},
    {"levit{,_conv}_128", R"({"key_dim": 16, "num_heads": [4, 8, 12]})"},
    {"levit{,_conv}_192", R"({"key_dim": 32, "num_heads": [3, 5, 6]})"},
    {"levit{,_conv}_256", R"({"key_dim": 32, "num_heads": [4, 6, 8]})"},
    {"levit{,_conv}_256d", R"({"key_dim": 32, "num_heads": [4, 6, 8], "act_layer": "silu"})"},
    {"levit{,_conv}_384", R"({"key_dim": 32, "num_heads": [6, 9, 12]})"},
    {"levit{,_conv}_384_s8", R"({"key_dim": 32, "num_heads": [6, 9, 12], "act_layer": "silu"})"},
    {"levit{,_conv}_512", R"({"key_dim": 64, "num_heads": [8, 12, 16], "act_layer": "silu"})"},
    {"levit{,_conv}_512d", R"({"key_dim": 64, "num_heads": [8, 10, 12], "act_layer": "silu"})"},
    {"levit{,_conv}_512_s8", R"({"key_dim": 64, "num_heads": [8, 10, 14], "act_layer": "silu"})"},
};
constexpr TimmRow kMetaFormers[] = {
    {"poolformer_{s12,s24,s36,m36,m48}", "{}"},
    {"poolformerv2_{s12,s24,s36,m36,m48}", "{}"},
    {"{convformer,caformer}_{s18,s36,m36,b36}", "{}"},
};
constexpr TimmRow kPvts[] = {
    {"pvt_v2_b0", R"({"num_heads": [1, 2, 5, 8]})"},
    {"pvt_v2_{b1,b2,b3,b4,b5}", R"({"num_heads": [1, 2, 5, 8]})"},
    {"pvt_v2_b2_li", R"({"num_heads": [1, 2, 5, 8], "linear": true})"},
};
constexpr TimmRow kDlas[] = {
    {"dla{34,46_c,46x_c,60,60x,60x_c,60_res2net,60_res2next}", "{}"},
    {"dla{102,102x,102x2,169}", R"({"shortcut_root": true})"},
};
constexpr TimmRow kHrNets[] = {
    {"hrnet_{w18_small,w18_small_v2,w18,w18_ssld,w30,w32,w40,w44,w48,w48_ssld,w64}", "{}"}};
constexpr TimmRow kInceptionV3[] = {{"inception_v3", "{}"}};
constexpr TimmRow kInceptionV4[] = {{"inception_v4", "{}"}};
constexpr TimmRow kVovNets[] = {
    {"vovnet{39,57}a", "{}"},
    {"ese_vovnet{19b_slim_dw,19b_dw,19b_slim,39b,57b,99b}", "{}"},
};
constexpr TimmRow kXceptions[] = {{"legacy_xception", "{}"}, {"xception", "{}"}};
constexpr TimmRow kResNetAas[] = {
    {"resnetaa{34d,50,50d,101d}", "{}"},
    {"resnetblur{18,50,50d,101d}", "{}"},
    {"seresnetaa50d", "{}"},
    {"seresnextaa{101d,201d}_32x8d", "{}"},
    {"senet154", "{}"},
    {"ecaresnet{light,50d_pruned,101d_pruned}", "{}"},
    {"test_resnet", "{}"},
};
constexpr TimmRow kBlockNets[] = {
    {"gernet_{s,m,l}", R"({"strides": [2, 2, 2, 2, 1]})"},
    {"{,se,eca_}resnext26ts",
     R"({"strides": [1, 2, 2, 2], "stem_pools": true, "act_layer": "silu"})"},
    {"{,se,eca_}resnet33ts", R"({"strides": [1, 2, 2, 2], "act_layer": "silu"})"},
    {"resnet32ts", R"({"strides": [1, 2, 2, 2], "act_layer": "silu"})"},
    {"resnet{51q,61q}", R"({"strides": [1, 2, 2, 2], "act_layer": "silu"})"},
    {"regnetz_{b16,c16}", R"({"act_layer": "silu"})"},
    {"regnetz_{d32,d8,e8}", R"({"strides": [1, 2, 2, 2], "act_layer": "silu"})"},
    {"test_byobnet", "{}"},
};
constexpr TimmRow kNormFreeNets[] = {
    {"dm_nfnet_{f0,f1,f2,f3,f4,f5,f6}", "{}"},
    {"nfnet_{f0,f1,f2,f3,f4,f5,f6,f7}", "{}"},
    {"{,eca_}nfnet_l0", R"({"act_layer": "silu"})"},
    {"eca_nfnet_{l1,l2,l3}", R"({"act_layer": "silu"})"},
    {"nf_{,se,eca}resnet{26,50,101}", R"({"act_layer": "relu"})"},
    {"test_nfnet", R"({"act_layer": "silu"})"},
};
constexpr TimmRow kMambaOuts[] = {
    {"mambaout_{femto,kobe,tiny,small,base}", "{}"},
    {"mambaout_{small_rw,base_short_rw,base_tall_rw}", R"({"downsample": "conv_nf"})"},
    {"mambaout_{base_wide_rw,base_plus_rw}", R"({"downsample": "conv_nf", "act_layer": "silu"})"},
    {"test_mambaout", R"({"downsample": "conv_nf", "act_layer": "silu"})"},
};
constexpr TimmRow kEfficientVits[] = {
    {"efficientvit_{b0,b1}", R"({"head_dim": 16})"},
    {"efficientvit_{b2,b3,l1,l2,l3}", R"({"head_dim": 32})"},
};
constexpr TimmRow kTinyVits[] = {
    {"tiny_vit_5m_224", R"({"num_heads": [2, 4, 5, 10], "window_sizes": [7, 7, 14, 7]})"},
    {"tiny_vit_11m_224", R"({"num_heads": [2, 4, 8, 14], "window_sizes": [7, 7, 14, 7]})"},
    {"tiny_vit_21m_224", R"({"num_heads": [3, 6, 12, 18], "window_sizes": [7, 7, 14, 7]})"},
    {"tiny_vit_21m_384", R"({"num_heads": [3, 6, 12, 18], "window_sizes": [12, 12, 24, 12]})"},
    {"tiny_vit_21m_512", R"({"num_heads": [3, 6, 12, 18], "window_sizes": [16, 16, 32, 16]})"},
};
constexpr TimmRow kHgNets[] = {{"hgnetv2_{b0,b1,b2,b3,b4,b5,b6}", "{}"}};
constexpr TimmRow kResNetV2s[] = {
    {"resnetv2_{50x1,50x3,101x1,101x3,152x2,152x4}_bit", "{}"},
    {"resnetv2_{18,34,50,101,152}{,d}", "{}"},
    {"resnetv2_50d_gn", "{}"},
};
constexpr TimmFamily kSized[] = {
    {kResNetV2s, BuildResNetV2},
    {kEfficientVits, BuildEfficientVit},
    {kTinyVits, BuildTinyVit},
    {kHgNets, BuildPlain<networks::BuildSizedHgNet>},
    {kBlockNets, BuildBlockNet},
    {kMambaOuts, BuildMambaOut},
    {kNormFreeNets, BuildNormFreeNet},
    {kResNetAas, BuildResNetAa},
    {kDlas, BuildDla},
    {kHrNets, BuildPlain<networks::BuildHrNet>},
    {kInceptionV3, BuildPlain<networks::BuildInceptionV3>},
    {kInceptionV4, BuildPlain<networks::BuildInceptionV4>},
    {kVovNets, BuildVovNet},
    {kXceptions, BuildPlain<networks::BuildXception>},
    {kEfficientFormers, BuildEfficientFormer},
    {kGhostNets, BuildGhostNet},
    {kLevits, BuildLevit},
    {kMetaFormers, BuildMetaFormer},
    {kPvts, BuildPvt},
    {kRepVggs, BuildRepVgg},
};

}  // namespace

std::span<const TimmFamily> TimmSized() { return kSized; }

}  // namespace mlc::safetensors
