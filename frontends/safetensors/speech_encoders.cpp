#include "frontends/safetensors/speech_encoders.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "frontends/safetensors/activation_names.h"
#include "frontends/safetensors/folder_weights.h"
#include "lib/networks/conformer.h"
#include "lib/networks/speech_encoder.h"
#include "lib/support/mapped_file.h"
#include "lib/support/regular_file.h"

namespace mlc::safetensors {

namespace fs = std::filesystem;

namespace {

using SpeechHead = networks::SpeechEncoderConfig::Head;

// The defaults of transformers' Wav2Vec2Config, HubertConfig, WavLMConfig and UniSpeechConfig.
constexpr std::string_view kSpeechDefaults = R"({"vocab_size": 32, "hidden_size": 768,
    "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072,
    "hidden_act": "gelu", "layer_norm_eps": 1e-5, "feat_extract_norm": "group",
    "feat_extract_activation": "gelu", "conv_dim": [512, 512, 512, 512, 512, 512, 512],
    "conv_stride": [5, 2, 2, 2, 2, 2, 2], "conv_kernel": [10, 3, 3, 3, 3, 2, 2],
    "conv_bias": false, "num_conv_pos_embeddings": 128, "num_conv_pos_embedding_groups": 16,
    "do_stable_layer_norm": false, "classifier_proj_size": 256, "use_weighted_layer_sum": false,
    "add_adapter": false, "adapter_kernel_size": 3, "adapter_stride": 2, "num_adapter_layers": 3,
    "feat_proj_layer_norm": true, "conv_pos_batch_norm": false, "num_buckets": 320,
    "max_bucket_distance": 800, "tdnn_dim": [512, 512, 512, 512, 1500],
    "tdnn_kernel": [5, 3, 3, 1, 1], "tdnn_dilation": [1, 2, 3, 1, 1], "xvector_output_dim": 512,
    "squeeze_factor": 1})";
constexpr std::string_view kData2VecDefaults = R"({"feat_extract_norm": "layer",
    "num_conv_pos_embeddings": 5, "conv_pos_kernel_size": 19})";
constexpr std::string_view kSewDefaults = R"({"squeeze_factor": 2,
    "conv_dim": [64, 128, 128, 128, 128, 256, 256, 256, 256, 512, 512, 512, 512],
    "conv_stride": [5, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1],
    "conv_kernel": [10, 3, 1, 3, 1, 3, 1, 3, 1, 2, 1, 2, 1]})";

constexpr std::string_view kConformerDefaults = R"({"position_embeddings_type": "relative",
    "rotary_embedding_base": 10000, "conv_depthwise_kernel_size": 31})";
constexpr std::string_view kSpectrumDefaults = R"({"hidden_size": 1024, "num_hidden_layers": 24,
    "num_attention_heads": 16, "intermediate_size": 4096, "feature_projection_input_dim": 160,
    "hidden_act": "swish", "classifier_proj_size": 768, "num_adapter_layers": 1,
    "adapter_act": "relu", "use_intermediate_ffn_before_adapter": false,
    "position_embeddings_type": "relative_key", "rotary_embedding_base": 10000,
    "max_source_positions": 5000, "left_max_position_embeddings": 64,
    "right_max_position_embeddings": 8, "conv_depthwise_kernel_size": 31})";

struct SpeechRow {
  std::string_view model_type, prefix;
  bool gated_distances = false;
  bool adapters = false;             // reads adapter_attn_dim and add_adapter
  bool feature_options = false;      // reads feat_proj_layer_norm and conv_pos_batch_norm
  bool conformer = false;            // has the layers of one
  bool spectrum = false;             // reads spectrograms, not samples
  std::string_view defaults = "{}";  // those that differ
};
constexpr SpeechRow kSpeechRows[] = {
    {.model_type = "data2vec-audio",
     .prefix = "data2vec_audio.",
     .adapters = true,
     .defaults = kData2VecDefaults},
    {.model_type = "hubert", .prefix = "hubert.", .feature_options = true},
    {.model_type = "sew", .prefix = "sew.", .defaults = kSewDefaults},
    {.model_type = "unispeech", .prefix = "unispeech.", .adapters = true},
    {.model_type = "unispeech-sat", .prefix = "unispeech_sat.", .adapters = true},
    {.model_type = "wav2vec2", .prefix = "wav2vec2.", .adapters = true},
    {.model_type = "wav2vec2-bert",
     .prefix = "wav2vec2_bert.",
     .adapters = true,
     .conformer = true,
     .spectrum = true,
     .defaults = kSpectrumDefaults},
    {.model_type = "wav2vec2-conformer",
     .prefix = "wav2vec2_conformer.",
     .adapters = true,
     .conformer = true,
     .defaults = kConformerDefaults},
    {.model_type = "wavlm", .prefix = "wavlm.", .gated_distances = true, .adapters = true},
};

struct SpeechHeadRow {
  std::string_view suffix;  // of the architecture's name: Wav2Vec2ForCTC
  SpeechHead head;
  std::string_view name;  // of the head's tensors
};
constexpr SpeechHeadRow kSpeechHeads[] = {
    {"ForCTC", SpeechHead::kFrames, "lm_head"},
    {"ForAudioFrameClassification", SpeechHead::kFrames, "classifier"},
    {"ForSequenceClassification", SpeechHead::kSequence, "classifier"},
    {"ForXVector", SpeechHead::kSpeaker, "classifier"},
    {"ForPreTraining", SpeechHead::kHidden, ""},
    {"Model", SpeechHead::kHidden, ""},
};

// Names of both generations of torch's weight normalisation, and of transformers' modules.
const std::vector<TensorName> kSpeechNames = {
    {"features.{}.conv", "feature_extractor.conv_layers.{}.conv"},
    {"features.{}.norm", "feature_extractor.conv_layers.{}.layer_norm"},
    {"projection.norm", "feature_projection.layer_norm"},
    {"projection.norm", "layer_norm"},
    {"projection.weight", "feature_projection.projection.weight"},
    {"projection.weight", "feature_projection.weight"},
    {"projection.bias", "feature_projection.projection.bias"},
    {"projection.bias", "feature_projection.bias"},
    {"positions.{}.conv", "encoder.pos_conv_embed.layers.{}.conv"},
    {"upsample", "encoder.upsample.projection"},
    {"head.delays.{}", "tdnn.{}.kernel"},
    {"head.embedding", "feature_extractor"},
    {"positions.conv.weight_g", "encoder.pos_conv_embed.conv.weight_g"},
    {"positions.conv.weight_g", "encoder.pos_conv_embed.conv.parametrizations.weight.original0"},
    {"positions.conv.weight_v", "encoder.pos_conv_embed.conv.weight_v"},
    {"positions.conv.weight_v", "encoder.pos_conv_embed.conv.parametrizations.weight.original1"},
    {"positions.conv.weight", "encoder.pos_conv_embed.conv.weight"},
    {"positions.conv.bias", "encoder.pos_conv_embed.conv.bias"},
    {"positions.norm", "encoder.pos_conv_embed.batch_norm"},
    {"norm", "encoder.layer_norm"},
    {"layer.{}.query", "encoder.layers.{}.attention.q_proj"},
    {"layer.{}.key", "encoder.layers.{}.attention.k_proj"},
    {"layer.{}.value", "encoder.layers.{}.attention.v_proj"},
    {"layer.{}.attention", "encoder.layers.{}.attention.out_proj"},
    {"layer.{}.attention_norm", "encoder.layers.{}.layer_norm"},
    {"layer.{}.up", "encoder.layers.{}.feed_forward.intermediate_dense"},
    {"layer.{}.down", "encoder.layers.{}.feed_forward.output_dense"},
    {"layer.{}.norm", "encoder.layers.{}.final_layer_norm"},
    {"layer.{}.adapter.norm", "encoder.layers.{}.adapter_layer.norm"},
    {"layer.{}.adapter.down", "encoder.layers.{}.adapter_layer.linear_1"},
    {"layer.{}.adapter.up", "encoder.layers.{}.adapter_layer.linear_2"},
    {"layer.{}.gate", "encoder.layers.{}.attention.gru_rel_pos_linear"},
    {"layer.{}.gate_scale", "encoder.layers.{}.attention.gru_rel_pos_const"},
    {"distances", "encoder.layers.0.attention.rel_attn_embed"},
    {"layer.{}.norm1", "encoder.layers.{}.ffn1_layer_norm"},
    {"layer.{}.up1", "encoder.layers.{}.ffn1.intermediate_dense"},
    {"layer.{}.down1", "encoder.layers.{}.ffn1.output_dense"},
    {"layer.{}.attention_norm", "encoder.layers.{}.self_attn_layer_norm"},
    {"layer.{}.query", "encoder.layers.{}.self_attn.linear_q"},
    {"layer.{}.key", "encoder.layers.{}.self_attn.linear_k"},
    {"layer.{}.value", "encoder.layers.{}.self_attn.linear_v"},
    {"layer.{}.attention", "encoder.layers.{}.self_attn.linear_out"},
    {"layer.{}.relative_key", "encoder.layers.{}.self_attn.linear_pos"},
    {"layer.{}.bias_u", "encoder.layers.{}.self_attn.pos_bias_u"},
    {"layer.{}.bias_v", "encoder.layers.{}.self_attn.pos_bias_v"},
    {"layer.{}.distances", "encoder.layers.{}.self_attn.distance_embedding"},
    {"layer.{}.conv_norm", "encoder.layers.{}.conv_module.layer_norm"},
    {"layer.{}.conv_in", "encoder.layers.{}.conv_module.pointwise_conv1"},
    {"layer.{}.depthwise", "encoder.layers.{}.conv_module.depthwise_conv"},
    {"layer.{}.batch_norm", "encoder.layers.{}.conv_module.batch_norm"},
    {"layer.{}.depthwise_norm", "encoder.layers.{}.conv_module.depthwise_layer_norm"},
    {"layer.{}.conv_out", "encoder.layers.{}.conv_module.pointwise_conv2"},
    {"layer.{}.norm2", "encoder.layers.{}.ffn2_layer_norm"},
    {"layer.{}.up2", "encoder.layers.{}.ffn2.intermediate_dense"},
    {"layer.{}.down2", "encoder.layers.{}.ffn2.output_dense"},
    {"half.up", "intermediate_ffn.intermediate_dense"},
    {"half.down", "intermediate_ffn.output_dense"},
    {"output.{}.residual_norm", "adapter.layers.{}.residual_layer_norm"},
    {"output.{}.residual", "adapter.layers.{}.residual_conv"},
    {"output.{}.attention_norm", "adapter.layers.{}.self_attn_layer_norm"},
    {"output.{}.shortened", "adapter.layers.{}.self_attn_conv"},
    {"output.{}.query", "adapter.layers.{}.self_attn.linear_q"},
    {"output.{}.key", "adapter.layers.{}.self_attn.linear_k"},
    {"output.{}.value", "adapter.layers.{}.self_attn.linear_v"},
    {"output.{}.attention", "adapter.layers.{}.self_attn.linear_out"},
    {"output.{}.norm", "adapter.layers.{}.ffn_layer_norm"},
    {"output.{}.up", "adapter.layers.{}.ffn.intermediate_dense"},
    {"output.{}.down", "adapter.layers.{}.ffn.output_dense"},
    {"output.projection", "adapter.proj"},
    {"output.norm", "adapter.proj_layer_norm"},
    {"output.{}", "adapter.layers.{}.conv"},
};

const SpeechRow* FindSpeechRow(const Config& config) {
  const std::string type = config.Text("model_type", "");
  for (const SpeechRow& row : kSpeechRows)
    if (row.model_type == type) return &row;
  return nullptr;
}

// Training uses these tensors, and the network does not.
bool IsLeftOverOfSpeech(std::string_view name) {
  for (std::string_view part : {"masked_spec_embed", "quantizer.", "project_q.", "project_hid.",
                                "label_embeddings_concat", "final_proj.", "objective."})
    if (name.find(part) != std::string_view::npos) return true;
  return false;
}

// The layers of a conformer have their own positions, but its folders also have the convolution that
// the others read (modeling_wav2vec2_conformer.py).
bool IsLeftOverOfConformers(std::string_view name) {
  return IsLeftOverOfSpeech(name) || name.find("pos_conv_embed.") != std::string_view::npos ||
         name.ends_with("embed_positions.inv_freq");
}

class SpeechImporter {
 public:
  SpeechImporter(const Folder& folder, const SpeechRow& row)
      : folder_(folder),
        json_(folder.config().WithDefaults(row.defaults).WithDefaults(kSpeechDefaults)),
        row_(row) {}

  Program Run(const ImportOptions& options, Diagnostics& diagnostics, std::vector<fs::path>* read) {
    const SpeechHeadRow& head = HeadOf();
    ReadConfig(head.head);
    std::vector<TensorName> names = kSpeechNames;
    const std::string weight = fmt::format("{}.weight", head.name),
                      bias = fmt::format("{}.bias", head.name);
    names.push_back({"head.weight", weight});
    names.push_back({"head.bias", bias});
    names.push_back({"head.projection", "projector"});
    FolderWeights weights(folder_, {std::string(row_.prefix), ""}, names);
    if (head.name.empty()) ReadHeadless(weights);
    std::optional<Folder> adapter = ReadAdapter(weights, read);
    // The head of a language has its own number of tokens.
    if (adapter && config_.head == SpeechHead::kFrames) config_.labels = -1;
    std::optional<FolderWeights> language;
    if (adapter)
      language.emplace(*adapter, std::vector<std::string>{"", std::string(row_.prefix)}, names);
    const networks::NetworkWeights own = weights.ForNetwork();
    const networks::NetworkWeights found{
        .find =
            [&](const std::string& name) {
              if (!language || !language->Has(name)) return own.find(name);
              own.find(name);  // the folder's tensor counts as used
              return language->Find(name);
            },
        .name =
            [&](const std::string& name) {
              return language && language->Has(name) ? language->Name(name) : own.name(name);
            }};
    Program program = networks::BuildSpeechEncoder(config_, found, options, diagnostics);
    weights.CheckAllUsed(row_.conformer ? IsLeftOverOfConformers : IsLeftOverOfSpeech);
    if (folder_.architecture().ends_with("ForCTC"))
      program.interface.metadata.emplace_back(kCtcSettings, CtcSettings(read));
    return program;
  }

 private:
  const SpeechHeadRow& HeadOf() const {
    const std::string architecture = folder_.architecture();
    std::vector<std::string> known;
    for (const SpeechHeadRow& row : kSpeechHeads) {
      if (architecture.ends_with(row.suffix)) return row;
      known.push_back("..." + std::string(row.suffix));
    }
    if (architecture.empty()) return kSpeechHeads[std::size(kSpeechHeads) - 1];
    json_.Refuse("architectures", fmt::format("{}", fmt::join(known, ", ")));
  }

  // Returns a file of the folder; a file that does not exist has no members.
  Config Further(const char* name, std::vector<fs::path>* read) const {
    const fs::path file = folder_.path() / name;
    std::error_code nowhere;
    if (!fs::exists(file, nowhere)) return {};
    if (read) read->push_back(file);
    return Config::Read(file);
  }
  std::string CtcSettings(std::vector<fs::path>* read) const {
    const Config sound = Further("preprocessor_config.json", read),
                 tokenizer = Further("tokenizer_config.json", read);
    std::string text = fmt::format("{{\"blank\": {}, \"sampling_rate\": {}, \"do_normalize\": {}",
                                   json_.Int("pad_token_id", 0), sound.Int("sampling_rate", 16000),
                                   sound.Bool("do_normalize", true));
    const fs::path file = folder_.path() / "vocab.json";
    if (std::error_code nowhere; !fs::exists(file, nowhere)) return text + "}";
    if (read) read->push_back(file);
    const auto mapped = MappedFile::Open(file);
    const Config whole = Config::Parse(
        fmt::format("{{\"vocabulary\": {}}}", AsText(mapped->bytes())), file.string());
    Config tokens = whole.Object("vocabulary");
    std::string vocabulary = whole.Json("vocabulary");
    // Massively multilingual models have a vocabulary for each language.
    const std::string language = tokenizer.Text("target_lang", json_.Text("target_lang", ""));
    if (!language.empty() && tokens.kind(language) == Config::Kind::kObject) {
      vocabulary = tokens.Json(language);
      tokens = tokens.Object(language);
    }
    for (const std::string& token : tokens.keys()) tokens.Int(token);
    text += fmt::format(
        ", \"vocabulary\": {}, \"word_delimiter\": {}", vocabulary,
        tokenizer.has("word_delimiter_token") ? tokenizer.Json("word_delimiter_token") : "\"|\"");
    return text + "}";
  }

  // Tensors of a head that earlier training left behind are not used.
  void ReadHeadless(FolderWeights& weights) const {
    for (const char* name : {"lm_head.weight", "lm_head.bias"})
      if (folder_.has(name)) weights.Use(name);
  }

  void ReadConfig(SpeechHead head) {
    config_.head = head;
    if (row_.conformer) ReadConformer();
    const std::string norm = json_.Text("feat_extract_norm");
    if (norm != "group" && norm != "layer")
      json_.Refuse("feat_extract_norm", "\"group\" or \"layer\"");
    config_.group_norm = norm == "group";
    config_.activation = ActivationOf(json_, "hidden_act");
    config_.feature_activation = ActivationOf(json_, "feat_extract_activation");
    if (!row_.spectrum)
      config_.convolutions = Convolutions("conv_dim", "conv_kernel", "conv_stride");
    // A conformer has a norm at the end if it reads samples.
    config_.pre_norms = row_.conformer ? !row_.spectrum : json_.Bool("do_stable_layer_norm");
    config_.layers = json_.Int("num_hidden_layers");
    config_.width = json_.Int("hidden_size");
    config_.heads = json_.Int("num_attention_heads");
    config_.feed_forward = json_.Int("intermediate_size");
    config_.position_taps = json_.Int("num_conv_pos_embeddings");
    config_.position_groups = json_.Int("num_conv_pos_embedding_groups");
    config_.epsilon = json_.Number("layer_norm_eps");
    config_.weighted_layers = head != SpeechHead::kHidden && json_.Bool("use_weighted_layer_sum");
    config_.projected = json_.Int("classifier_proj_size");
    config_.labels =
        folder_.architecture().ends_with("ForCTC") ? json_.Int("vocab_size") : Labels();
    if (row_.feature_options) {
      config_.normed_features = json_.Bool("feat_proj_layer_norm");
      config_.batch_norm = json_.Bool("conv_pos_batch_norm");
      config_.weight_norm = !config_.batch_norm;
    }
    if (row_.adapters) {
      // Only layers with norms of their inputs have this adapter.
      if (config_.pre_norms && !row_.conformer) config_.adapter = json_.Int("adapter_attn_dim", 0);
      if (json_.Bool("add_adapter")) {
        config_.output_adapters = json_.Int("num_adapter_layers");
        config_.output_taps = json_.Int("adapter_kernel_size");
        config_.output_stride = json_.Int("adapter_stride");
        config_.output_width = json_.Int("output_hidden_size", config_.width);
      }
    }
    if (json_.has("conv_pos_kernel_size")) {
      config_.position_layers = config_.position_taps;
      config_.position_taps = json_.Int("conv_pos_kernel_size");
      if (config_.position_layers < 1) json_.Refuse("num_conv_pos_embeddings", "1 or more");
    }
    config_.squeeze = json_.Int("squeeze_factor");
    if (head == SpeechHead::kSpeaker) {
      config_.delays = Convolutions("tdnn_dim", "tdnn_kernel", "tdnn_dilation");
      config_.embedding = json_.Int("xvector_output_dim");
    }
    config_.gated_distances = row_.gated_distances;
    config_.buckets = json_.Int("num_buckets");
    config_.max_distance = json_.Int("max_bucket_distance");
  }
  void ReadConformer() {
    using Layers = networks::ConformerLayersConfig;
    Layers& layers = config_.conformer.emplace();
    layers.taps = json_.Int("conv_depthwise_kernel_size");
    // null means none, and a missing key its default.
    const std::string kind =
        json_.has("position_embeddings_type") ? json_.Text("position_embeddings_type") : "none";
    if (kind == "relative")
      layers.positions = Layers::Positions::kSines;
    else if (kind == "rotary")
      layers.positions = Layers::Positions::kRotary;
    else if (kind == "relative_key" && row_.spectrum)
      layers.positions = Layers::Positions::kRows;
    else if (kind == "none")
      layers.positions = Layers::Positions::kNone;
    else
      json_.Refuse("position_embeddings_type", row_.spectrum
                                                   ? "relative_key, relative, rotary or null"
                                                   : "relative, rotary or null");
    layers.rotary_base = json_.Number("rotary_embedding_base");
    if (!row_.spectrum) return;
    layers.left = json_.Int("left_max_position_embeddings");
    layers.right = json_.Int("right_max_position_embeddings");
    layers.causal = true;
    layers.epsilon = json_.Number("layer_norm_eps");
    config_.bands = json_.Int("feature_projection_input_dim");
    config_.most_frames = json_.Int("max_source_positions");
    config_.half_feed_forward = json_.Bool("use_intermediate_ffn_before_adapter");
    config_.attending_adapters = true;
    config_.adapter_activation = ActivationOf(json_, "adapter_act");
  }

  // Reads a list of convolutions from three lists of numbers.
  std::vector<networks::SpeechEncoderConfig::Convolution> Convolutions(
      const char* of_channels, const char* of_taps, const char* of_strides) const {
    const std::vector<int64_t> channels = json_.Ints(of_channels), taps = json_.Ints(of_taps),
                               strides = json_.Ints(of_strides);
    for (auto [key, list] : {std::pair{of_taps, &taps}, {of_strides, &strides}})
      if (list->size() != channels.size())
        throw Error("bad-file", "\"{}\" has {} numbers, \"{}\" has {}", key, list->size(),
                    of_channels, channels.size())
            .At({json_.file(), fmt::format("key \"{}\"", key)});
    std::vector<networks::SpeechEncoderConfig::Convolution> made;
    for (size_t i = 0; i < channels.size(); ++i) made.push_back({channels[i], taps[i], strides[i]});
    return made;
  }
  int64_t Labels() const {
    if (json_.has("id2label")) return std::ssize(json_.Object("id2label").keys());
    return json_.Int("num_labels", 2);
  }

  // Massively multilingual models store the adapters and the head of each language in a file of their
  // own. transformers reads the file of target_lang; without that key, the model has those of one
  // language itself.
  std::optional<Folder> ReadAdapter(const FolderWeights& weights,
                                    std::vector<fs::path>* read) const {
    constexpr std::string_view kBefore = "adapter.", kAfter = ".safetensors";
    if (config_.adapter == 0) return std::nullopt;
    std::vector<std::string> languages;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_.path(), error)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with(kBefore) && name.ends_with(kAfter) &&
          name.size() > kBefore.size() + kAfter.size())
        languages.push_back(
            name.substr(kBefore.size(), name.size() - kBefore.size() - kAfter.size()));
    }
    std::ranges::sort(languages);
    std::string wanted = json_.Text("target_lang", "");
    if (wanted.empty() && weights.Has("layer.0.adapter.down.weight")) return std::nullopt;
    if (wanted.empty() && languages.size() == 1) wanted = languages[0];
    if (std::ranges::find(languages, wanted) == languages.end())
      throw Error("missing-tensor", "the folder has no adapter of the language \"{}\"", wanted)
          .At({json_.file(), "key \"target_lang\""})
          .Expected(languages.empty() ? "a file adapter.LANGUAGE.safetensors"
                                      : fmt::format("{}", fmt::join(languages, ", ")));
    const fs::path file = folder_.path() / fmt::format("{}{}{}", kBefore, wanted, kAfter);
    if (read) read->push_back(file);
    return Folder::Open(file);
  }

  const Folder& folder_;
  const Config json_;
  const SpeechRow& row_;
  networks::SpeechEncoderConfig config_;
};

constexpr std::string_view kParakeet = "parakeet_ctc", kParakeetEncoder = "parakeet_encoder";
constexpr std::string_view kParakeetDefaults =
    R"({"vocab_size": 1025, "pad_token_id": 1024, "encoder_config": {}})";
constexpr std::string_view kParakeetEncoderDefaults = R"({"hidden_size": 1024,
    "num_hidden_layers": 24, "num_attention_heads": 8, "intermediate_size": 4096,
    "hidden_act": "silu", "conv_kernel_size": 9, "subsampling_factor": 8,
    "subsampling_conv_channels": 256, "num_mel_bins": 80, "subsampling_conv_kernel_size": 3,
    "subsampling_conv_stride": 2, "max_position_embeddings": 5000, "scale_input": true})";

const std::vector<TensorName> kParakeetNames = {
    {"stem.0", "subsampling.layers.0"},
    {"stem.1.depthwise", "subsampling.layers.2"},
    {"stem.1.pointwise", "subsampling.layers.3"},
    {"stem.2.depthwise", "subsampling.layers.5"},
    {"stem.2.pointwise", "subsampling.layers.6"},
    {"stem.3.depthwise", "subsampling.layers.8"},
    {"stem.3.pointwise", "subsampling.layers.9"},
    {"stem.linear", "subsampling.linear"},
    {"layer.{}.norm1", "layers.{}.norm_feed_forward1"},
    {"layer.{}.up1", "layers.{}.feed_forward1.linear1"},
    {"layer.{}.down1", "layers.{}.feed_forward1.linear2"},
    {"layer.{}.attention_norm", "layers.{}.norm_self_att"},
    {"layer.{}.query", "layers.{}.self_attn.q_proj"},
    {"layer.{}.key", "layers.{}.self_attn.k_proj"},
    {"layer.{}.value", "layers.{}.self_attn.v_proj"},
    {"layer.{}.attention", "layers.{}.self_attn.o_proj"},
    {"layer.{}.relative_key", "layers.{}.self_attn.relative_k_proj"},
    {"layer.{}.bias_u", "layers.{}.self_attn.bias_u"},
    {"layer.{}.bias_v", "layers.{}.self_attn.bias_v"},
    {"layer.{}.conv_norm", "layers.{}.norm_conv"},
    {"layer.{}.conv_in", "layers.{}.conv.pointwise_conv1"},
    {"layer.{}.depthwise", "layers.{}.conv.depthwise_conv"},
    {"layer.{}.batch_norm", "layers.{}.conv.norm"},
    {"layer.{}.conv_out", "layers.{}.conv.pointwise_conv2"},
    {"layer.{}.norm2", "layers.{}.norm_feed_forward2"},
    {"layer.{}.up2", "layers.{}.feed_forward2.linear1"},
    {"layer.{}.down2", "layers.{}.feed_forward2.linear2"},
    {"layer.{}.norm", "layers.{}.norm_out"},
    {"head", "ctc_head"},
};

bool IsParakeet(const Config& config) {
  const std::string type = config.Text("model_type", "");
  return type == kParakeet || type == kParakeetEncoder;
}

// With the defaults of transformers' ParakeetFeatureExtractor.
networks::MelSpectrogram ParakeetSpectrogram(const Folder& folder, int64_t bands,
                                             std::vector<fs::path>* read) {
  networks::MelSpectrogram mel{
      .bands = bands, .transform = 512, .preemphasis = 0.97, .symmetric = true};
  const fs::path file = folder.path() / "preprocessor_config.json";
  std::error_code nowhere;
  if (!fs::exists(file, nowhere)) return mel;
  const Config features = Config::Read(file);
  if (read) read->push_back(file);
  mel.window = features.Int("win_length", mel.window);
  mel.transform = features.Int("n_fft", mel.transform);
  mel.hop = features.Int("hop_length", mel.hop);
  mel.rate = features.Int("sampling_rate", mel.rate);
  mel.preemphasis = features.has("preemphasis") ? features.Number("preemphasis") : mel.preemphasis;
  if (const int64_t size = features.Int("feature_size", bands); size != bands)
    throw Error("bad-file", "\"feature_size\" is {}, but the encoder takes {} mel bands", size,
                bands)
        .At({features.file(), "key \"feature_size\""});
  return mel;
}

// Parakeet, a conformer with a head for CTC or without one.
Program ImportParakeet(const Folder& folder, const ImportOptions& options, Diagnostics& diagnostics,
                       std::vector<fs::path>* read) {
  const Config whole = folder.config().WithDefaults(kParakeetDefaults);
  const bool headless = whole.Text("model_type") == kParakeetEncoder;
  const Config json =
      (headless ? whole : whole.Object("encoder_config")).WithDefaults(kParakeetEncoderDefaults);
  networks::ConformerConfig config{.root_width_scale = json.Bool("scale_input"),
                                   .activation = ActivationOf(json, "hidden_act"),
                                   .layers = json.Int("num_hidden_layers"),
                                   .width = json.Int("hidden_size"),
                                   .heads = json.Int("num_attention_heads"),
                                   .feed_forward = json.Int("intermediate_size"),
                                   .bands = json.Int("num_mel_bins"),
                                   .taps = json.Int("conv_kernel_size"),
                                   .channels = json.Int("subsampling_conv_channels"),
                                   .stem_taps = json.Int("subsampling_conv_kernel_size"),
                                   .most = json.Int("max_position_embeddings"),
                                   .vocabulary = headless ? 0 : whole.Int("vocab_size")};
  if (json.Int("subsampling_conv_stride") != 2) json.Refuse("subsampling_conv_stride", "2");
  const int64_t factor = json.Int("subsampling_factor");
  if (factor != 2 && factor != 4 && factor != 8 && factor != 16)
    json.Refuse("subsampling_factor", "2, 4, 8 or 16");
  config.halvings = std::countr_zero(static_cast<uint64_t>(factor));
  // Functions besides the first one need iOS18.
  if (!options.target || *options.target >= Opset::kIos18)
    config.mel = ParakeetSpectrogram(folder, config.bands, read);
  else
    diagnostics.Note(
        "the function features, which makes spectrograms of samples, is left out: packages with "
        "several functions need iOS18");
  FolderWeights weights(folder, {"encoder.", ""}, kParakeetNames);
  const networks::NetworkWeights found = weights.ForNetwork();
  Program program = networks::BuildConformer(config, found, options, diagnostics);
  weights.CheckAllUsed();
  if (!headless && config.mel)
    program.interface.metadata.emplace_back(
        kCtcSettings, fmt::format(R"({{"blank": {}, "sampling_rate": {}, "do_normalize": false}})",
                                  whole.Int("pad_token_id"), config.mel->rate));
  return program;
}

}  // namespace

bool IsSpeechEncoder(const Config& config) { return FindSpeechRow(config) || IsParakeet(config); }

std::set<std::string> SpeechEncoderModelTypes() {
  std::set<std::string> types;
  for (const SpeechRow& row : kSpeechRows) types.emplace(row.model_type);
  types.insert({std::string(kParakeet), std::string(kParakeetEncoder)});
  return types;
}

Program ImportSpeechEncoder(const Folder& folder, const ImportOptions& options,
                            Diagnostics& diagnostics, std::vector<fs::path>* read) {
  if (IsParakeet(folder.config())) return ImportParakeet(folder, options, diagnostics, read);
  const SpeechRow* row = FindSpeechRow(folder.config());
  MLC_CHECK(row, "no row for {}", folder.model_type());
  return SpeechImporter(folder, *row).Run(options, diagnostics, read);
}

}  // namespace mlc::safetensors
