#include "frontends/safetensors/encoder_decoders.h"

#include <cmath>
#include <optional>

#include "frontends/safetensors/activation_names.h"
#include "frontends/safetensors/encoder_decoder_rows.h"
#include "frontends/safetensors/folder_weights.h"
#include "frontends/safetensors/image_processor.h"
#include "frontends/safetensors/picture_decoders.h"
#include "frontends/safetensors/picture_nets.h"
#include "frontends/safetensors/vision_rows.h"
#include "lib/networks/davit.h"
#include "lib/networks/vision_transformer.h"
#include "lib/networks/whisper_kit.h"

namespace mlc::safetensors {

namespace fs = std::filesystem;

namespace {

using SequenceConfig = networks::EncoderDecoderConfig;

// The keys of generation_config.json that affect which tokens are generated.
constexpr const char* kGenerationKeys[] = {"alignment_heads",
                                           "bad_words_ids",
                                           "begin_suppress_tokens",
                                           "bos_token_id",
                                           "decoder_start_token_id",
                                           "do_sample",
                                           "early_stopping",
                                           "encoder_no_repeat_ngram_size",
                                           "eos_token_id",
                                           "forced_bos_token_id",
                                           "forced_decoder_ids",
                                           "forced_eos_token_id",
                                           "is_multilingual",
                                           "lang_to_id",
                                           "length_penalty",
                                           "max_initial_timestamp_index",
                                           "max_length",
                                           "max_new_tokens",
                                           "min_length",
                                           "min_new_tokens",
                                           "no_repeat_ngram_size",
                                           "no_timestamps_token_id",
                                           "num_beam_groups",
                                           "num_beams",
                                           "pad_token_id",
                                           "prev_sot_token_id",
                                           "repetition_penalty",
                                           "return_timestamps",
                                           "suppress_tokens",
                                           "task_to_id"};

// Returns the settings of generation_config.json, or else those of config.json.
std::string GenerationSettings(const Folder& folder, const Config& json,
                               std::vector<fs::path>* read) {
  const fs::path file = folder.path() / "generation_config.json";
  std::error_code nowhere;
  Config settings = json;
  if (fs::exists(file, nowhere)) {
    settings = Config::Read(file);
    if (read) read->push_back(file);
  }
  std::string text;
  for (const char* key : kGenerationKeys)
    if (settings.has(key))
      text += fmt::format("{}\"{}\": {}", text.empty() ? "" : ", ", key, settings.Json(key));
  return "{" + text + "}";
}

using SequenceHead = networks::EncoderDecoderConfig::Head;

// The classes of models by the end of their names; the first one that matches counts.
struct SequenceHeadRow {
  std::string_view suffix;  // of architectures
  SequenceHead head;
  std::string_view task;  // for the package's metadata; empty: depends on the input
};
constexpr SequenceHeadRow kSequenceHeads[] = {
    {"ForConditionalGeneration", SequenceHead::kTokens, ""},
    {"MarianMTModel", SequenceHead::kTokens, ""},
    {"VisionEncoderDecoderModel", SequenceHead::kTokens, ""},
    {"ForSequenceClassification", SequenceHead::kSequence, "text-classification"},
    {"ForQuestionAnswering", SequenceHead::kSpans, "question-answering"},
    {"ForAudioClassification", SequenceHead::kSound, "audio-classification"},
    {"Model", SequenceHead::kHidden, "feature-extraction"},
};

// The prompts of Florence-2's tasks (transformers' models/florence2/processing_florence2.py).
constexpr std::string_view kFlorenceTasks = R"({"task_prompts": {
    "<OCR>": "What is the text in the image?",
    "<OCR_WITH_REGION>": "What is the text in the image, with regions?",
    "<CAPTION>": "What does the image describe?",
    "<DETAILED_CAPTION>": "Describe in detail what is shown in the image.",
    "<MORE_DETAILED_CAPTION>": "Describe with a paragraph what is shown in the image.",
    "<OD>": "Locate the objects with category name in the image.",
    "<DENSE_REGION_CAPTION>": "Locate the objects in the image, with their descriptions.",
    "<REGION_PROPOSAL>": "Locate the region proposals in the image.",
    "<CAPTION_TO_PHRASE_GROUNDING>": "Locate the phrases in the caption: {input}",
    "<REFERRING_EXPRESSION_SEGMENTATION>": "Locate {input} in the image with mask",
    "<REGION_TO_SEGMENTATION>": "What is the polygon mask of region {input}",
    "<OPEN_VOCABULARY_DETECTION>": "Locate {input} in the image.",
    "<REGION_TO_CATEGORY>": "What is the region {input}?",
    "<REGION_TO_DESCRIPTION>": "What does the region {input} describe?",
    "<REGION_TO_OCR>": "What text is in the region {input}?"}})";
constexpr std::string_view kBlipTextDefaults = R"({"vocab_size": 30524, "hidden_size": 768,
    "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 8,
    "max_position_embeddings": 512, "hidden_act": "gelu", "layer_norm_eps": 1e-12,
    "bos_token_id": 30522, "sep_token_id": 102, "pad_token_id": 0})";

std::vector<std::string> PrefixesOf(SequenceFamily family) {
  if (family == SequenceFamily::kPictures) return {"encoder.", ""};
  if (family == SequenceFamily::kBlip)
    return {"text_decoder.bert.", "text_decoder.", "vision_model.", ""};
  if (family == SequenceFamily::kT5) return {"", "transformer."};
  if (family == SequenceFamily::kFlorence)
    return {"model.language_model.", "language_model.", "model.", ""};
  return {"model.", ""};
}

// Returns whether Swin encodes pictures, as in Donut, and not a vision transformer.
bool HasSwinEncoder(const Config& config, const EncoderDecoderRow& row) {
  if (row.family != SequenceFamily::kPictures) return false;
  const std::string type = config.Object("encoder").Text("model_type", "");
  return type == "donut-swin" || type == "swin" || type == "swinv2";
}

const VisionRow* PictureEncoder(const Config& config, const EncoderDecoderRow& row) {
  if (HasSwinEncoder(config, row)) return nullptr;
  if (row.family == SequenceFamily::kBlip) return FindVisionRow("blip_vision_model");
  if (row.family != SequenceFamily::kPictures) return nullptr;
  const std::string type = config.Object("encoder").Text("model_type", "");
  const VisionRow* vision = FindVisionRow(type);
  if (!vision)
    throw Error("unsupported-architecture", "unsupported encoder \"{}\"", type)
        .At({config.file(), "key \"encoder.model_type\""})
        .Expected("a vision transformer such as vit, deit or beit, or donut-swin or swin");
  return vision;
}

TensorNameList NamesOf(const EncoderDecoderRow& row, const PictureDecoder* decoder,
                       const VisionRow* vision, bool swin) {
  TensorNameList names;
  auto add = [&](std::span<const TensorName> more, const std::string& prefix = "") {
    for (const TensorName& name : more)
      names.Add(std::string(name.ours), prefix + std::string(name.theirs));
  };
  // Both parts may have tensors of one name, so that those of the decoder are named as a whole.
  if (decoder) {
    for (std::string_view prefix : {decoder->prefix, std::string_view("decoder.")})
      add(decoder->names(), std::string(prefix));
    names.Add("projection", "enc_to_dec_proj");
  } else {
    add(EncoderDecoderNames(row.family));
  }
  if (swin) add(SwinNames());
  if (vision) add(TensorNames(*vision));
  return names;
}

class SequenceImporter {
 public:
  SequenceImporter(const Folder& folder, const EncoderDecoderRow& row, const ImportOptions& options)
      : folder_(folder),
        row_(row),
        options_(options),
        json_(folder.config().WithDefaults(row.defaults)),
        swin_(HasSwinEncoder(json_, row)),
        vision_(PictureEncoder(json_, row)),
        decoder_(row.family == SequenceFamily::kPictures
                     ? &PictureDecoderOf(json_.Object("decoder"))
                     : nullptr),
        names_(NamesOf(row, decoder_, vision_, swin_)),
        weights_(folder, PrefixesOf(row.family), names_.rows()) {}

  Program Run(Diagnostics& diagnostics, std::vector<fs::path>* read) {
    ReadHead();
    config_.input = row_.input;
    config_.positions = row_.positions;
    config_.position_offset = row_.position_offset;
    config_.pre_norms = row_.pre_norms;
    config_.final_norms = row_.final_norms;
    config_.normed_embeddings = row_.normed_embeddings;
    config_.positions_after_norm = row_.positions_after_norm;
    config_.own_distances = row_.own_distances;
    switch (row_.family) {
      case SequenceFamily::kT5:
        ReadT5();
        break;
      case SequenceFamily::kBart:
        ReadBart(json_);
        break;
      case SequenceFamily::kWhisper:
        ReadWhisper(read);
        break;
      case SequenceFamily::kMoonshine:
        ReadMoonshine();
        break;
      case SequenceFamily::kPictures:
        ReadPictures(read);
        break;
      case SequenceFamily::kBlip:
        ReadBlip(read);
        break;
      case SequenceFamily::kFlorence:
        ReadFlorence(read);
        break;
    }
    const networks::NetworkWeights own = weights_.ForNetwork();
    const bool tied = Tied();
    auto find = [&](const std::string& name) {
      if (tied && name == kOutputName) return Tensor();
      return decoder_ && decoder_->find ? decoder_->find(weights_, name) : own.find(name);
    };
    const networks::NetworkWeights found{.find = find, .name = own.name};
    Program program =
        options_.runtime == kWhisperKit
            ? networks::BuildWhisperKit(config_, AlignmentHeads(read), found, diagnostics)
            : networks::BuildEncoderDecoder(config_, found, options_, diagnostics);
    weights_.CheckAllUsed(IsLeftOverOfSequences);
    program.interface.metadata = {
        {"co.huggingface.exporters.task",
         !head_->task.empty()                           ? std::string(head_->task)
         : row_.family == SequenceFamily::kFlorence     ? "image-text-to-text"
         : reads_pictures()                             ? "image-to-text"
         : row_.input != SequenceConfig::Input::kTokens ? "automatic-speech-recognition"
                                                        : "text2text-generation"},
        {kGenerationSettings, Settings(read)}};
    if (reads_pictures()) DescribePictures(program, picture_);
    return program;
  }

 private:
  bool reads_pictures() const {
    return vision_ || swin_ || row_.family == SequenceFamily::kFlorence;
  }
  std::string Settings(std::vector<fs::path>* read) const {
    switch (row_.family) {
      case SequenceFamily::kBlip:
        return BlipSettings(json_.Object("text_config"));
      case SequenceFamily::kFlorence:
        return FlorenceSettings(read);
      default:
        return GenerationSettings(folder_, json_, read);
    }
  }

  static constexpr const char* kOutputName = "output.weight";

  bool Has(SequenceHead head) const {
    switch (head) {
      case SequenceHead::kTokens:
        return true;
      case SequenceHead::kHidden:
        return !vision_ && !swin_ && options_.runtime != kWhisperKit;
      case SequenceHead::kSound:
        return row_.family == SequenceFamily::kWhisper && options_.runtime != kWhisperKit;
      default:
        return row_.classifies;
    }
  }
  void ReadHead() {
    const std::string architecture = folder_.architecture();
    std::string known;
    for (const SequenceHeadRow& row : kSequenceHeads) {
      if (!Has(row.head)) continue;
      if (architecture.empty() || architecture.ends_with(row.suffix)) {
        head_ = &row;
        break;
      }
      known += fmt::format("{}...{}", known.empty() ? "" : ", ", row.suffix);
    }
    if (!head_) json_.Refuse("architectures", known);
    config_.head = head_->head;
    if (config_.head == SequenceHead::kSequence || config_.head == SequenceHead::kSpans) {
      config_.wraps = row_.wraps;
      if (row_.wraps)
        config_.padding = TokenAt("pad_token_id");
      else
        config_.start = TokenAt("decoder_start_token_id");
      config_.end = TokenAt("eos_token_id");
    }
    if (config_.head == SequenceHead::kSound) {
      config_.projected = json_.Int("classifier_proj_size");
      config_.weighted_layers = json_.Bool("use_weighted_layer_sum");
    }
  }
  int32_t TokenAt(const std::string& key) const {
    const int64_t token = json_.Int(key);
    if (token < 0 || token > INT32_MAX) json_.Refuse(key, "a token");
    return static_cast<int32_t>(token);
  }

  // Copies of shared tables, and tables that are computed.
  static bool IsLeftOverOfSequences(std::string_view name) {
    for (std::string_view end :
         {"embed_tokens.weight", "shared.weight", "lm_head.weight", "proj_out.weight",
          "embed_positions.weights", "embed_positions.weight", "embed_positions._float_tensor",
          "rotary_emb.inv_freq", "cls.predictions.decoder.bias", "relative_position_index",
          "relative_coords_table", "attn_mask", "mask_token", ".attn.bias", ".masked_bias",
          ".crossattention.bias", "cls.predictions.decoder.weight", "lm_head.decoder.weight",
          "visual_temporal_embed.pos_idx_to_embed"})
      if (name.ends_with(end)) return true;
    // The pooled picture is not read.
    if (name.find("encoder.pooler.") != std::string_view::npos) return true;
    // In old files of T5 (transformers' modeling_t5.py, _keys_to_ignore_on_load_unexpected).
    return name.find("EncDecAttention.relative_attention_bias") != std::string_view::npos;
  }

  // Returns whether logits use the embeddings of the decoder. Version 5 writes tie_word_embeddings
  // for all T5 models, tied or not; it also writes scale_decoder_outputs.
  bool Tied() const {
    if (!weights_.Has(kOutputName)) {
      // Version 5 does not look at the key either if the tensor is missing.
      return true;
    }
    if (json_.has("scale_decoder_outputs")) return false;
    return json_.Bool("tie_word_embeddings");
  }

  void ReadT5() {
    config_.norm = networks::NormKind::kRms;
    config_.epsilon = json_.Number("layer_norm_epsilon");
    config_.attention_scale = 1;
    config_.buckets = json_.Int("relative_attention_num_buckets");
    config_.max_distance = json_.Int("relative_attention_max_distance");
    SequenceConfig::Side side{.layers = json_.Int("num_layers"),
                              .width = json_.Int("d_model"),
                              .heads = json_.Int("num_heads"),
                              .head_dim = json_.Int("d_kv"),
                              .feed_forward = json_.Int("d_ff"),
                              .vocabulary = json_.Int("vocab_size"),
                              .most = json_.Int("n_positions")};
    const std::string kind = json_.Text("feed_forward_proj");
    side.gated = kind.starts_with("gated-");
    // "gated-gelu" means the tanh approximation (transformers' configuration_t5.py).
    const std::string activation =
        kind == "gated-gelu" ? "gelu_new" : kind.substr(side.gated ? 6 : 0);
    side.activation = ActivationOf(
        Config::Parse(
            fmt::format("{{\"feed_forward_proj\": \"{}\"}}",
                        activation.find_first_of("\"\\\n") == std::string::npos ? activation
                                                                                : std::string("?")),
            json_.file()),
        "feed_forward_proj");
    config_.encoder = config_.decoder = side;
    config_.decoder.layers = json_.Int("num_decoder_layers", side.layers);
    bool scaled = json_.Bool("scale_decoder_outputs", json_.Bool("tie_word_embeddings"));
    // Version 5 ties all mT5 models, and scales none.
    if (row_.model_type == "mt5" && json_.Text("transformers_version", "").starts_with("5."))
      scaled = json_.Bool("scale_decoder_outputs", false);
    if (scaled) config_.logit_scale = 1 / std::sqrt(static_cast<double>(side.width));
  }

  static SequenceConfig::Side BartSide(const Config& config, const std::string& side) {
    return {.layers = config.Int(side + "_layers"),
            .width = config.Int("d_model"),
            .heads = config.Int(side + "_attention_heads"),
            .feed_forward = config.Int(side + "_ffn_dim"),
            .vocabulary = config.Int("vocab_size"),
            .most = config.Int("max_position_embeddings", 0),
            .activation = ActivationOf(config, "activation_function")};
  }
  void ReadBart(const Config& config) {
    config_.encoder = BartSide(config, "encoder");
    config_.decoder = BartSide(config, "decoder");
    if (row_.input == SequenceConfig::Input::kFrames) ReadFrames();
    if (!config.Bool("share_encoder_decoder_embeddings", true))
      config_.decoder.vocabulary = config.Int("decoder_vocab_size", config_.decoder.vocabulary);
    if (row_.takes_scale && config.Bool("scale_embedding"))
      config_.embedding_scale = std::sqrt(static_cast<double>(config_.encoder.width));
  }

  void ReadFrames() {
    config_.encoder.most = json_.Int("max_source_positions");
    config_.decoder.most = json_.Int("max_target_positions");
    const int64_t bands = json_.Int("input_feat_per_channel"),
                  sources = json_.Int("input_channels");
    networks::CheckPositive({{"input_feat_per_channel", bands}, {"input_channels", sources}});
    config_.bands = bands * std::min<int64_t>(sources, INT16_MAX);
    config_.stem_channels = json_.Int("conv_channels");
    config_.stem_taps = json_.Ints("conv_kernel_sizes");
    const auto convolutions = static_cast<int64_t>(config_.stem_taps.size());
    if (json_.Int("num_conv_layers") != convolutions)
      json_.Refuse("num_conv_layers", std::to_string(convolutions));
  }

  void ReadWhisper(std::vector<fs::path>* read) {
    config_.encoder = BartSide(json_, "encoder");
    config_.decoder = BartSide(json_, "decoder");
    config_.encoder.most = json_.Int("max_source_positions");
    config_.decoder.most = json_.Int("max_target_positions");
    config_.bands = json_.Int("num_mel_bins");
    ReadOldDefaults();
    config_.mel = networks::MelSpectrogram{.bands = config_.bands};
    const fs::path file = folder_.path() / "preprocessor_config.json";
    std::error_code nowhere;
    if (!fs::exists(file, nowhere)) return;
    const Config features = Config::Read(file);
    if (read) read->push_back(file);
    config_.mel->window = features.Int("n_fft", config_.mel->window);
    config_.mel->hop = features.Int("hop_length", config_.mel->hop);
    config_.mel->rate = features.Int("sampling_rate", config_.mel->rate);
    if (const int64_t bands = features.Int("feature_size", config_.bands); bands != config_.bands)
      throw Error("bad-file", "\"feature_size\" is {}, but the encoder takes {} mel bands", bands,
                  config_.bands)
          .At({features.file(), "key \"feature_size\""});
  }
  // Up to version 4.33, WhisperConfig was d 256, 6 layers, 4 heads; the size of a norm tells which
  // defaults are meant.
  void ReadOldDefaults() {
    if (folder_.config().has("d_model")) return;
    const Tensor norm = weights_.Find("decoder.norm.weight");
    constexpr int64_t kOldWidth = 256;
    if (!norm || norm.size() != kOldWidth) return;
    for (auto [name, side] :
         {std::pair{"encoder", &config_.encoder}, {"decoder", &config_.decoder}}) {
      side->width = kOldWidth;
      if (!folder_.config().has(fmt::format("{}_layers", name))) side->layers = 6;
      if (!folder_.config().has(fmt::format("{}_attention_heads", name))) side->heads = 4;
    }
  }

  std::vector<std::pair<int64_t, int64_t>> AlignmentHeads(std::vector<fs::path>* read) const {
    const Config settings =
        Config::Parse(GenerationSettings(folder_, json_, read), "generation_config.json");
    std::vector<std::pair<int64_t, int64_t>> heads;
    for (const std::vector<int64_t>& head : settings.IntLists("alignment_heads")) {
      if (head.size() != 2)
        throw Error("bad-file", "an alignment head has {} numbers", head.size())
            .At({settings.file(), "key \"alignment_heads\""})
            .Expected("a layer and a head");
      heads.emplace_back(head[0], head[1]);
    }
    return heads;
  }

  void ReadMoonshine() {
    for (auto [name, side] :
         {std::pair{"encoder", &config_.encoder}, {"decoder", &config_.decoder}}) {
      const std::string own = std::string(name) + "_";
      side->layers = json_.Int(own + "num_hidden_layers");
      side->width = json_.Int("hidden_size");
      side->heads = json_.Int(own + "num_attention_heads");
      side->kv_heads = json_.Int(own + "num_key_value_heads", side->heads);
      side->feed_forward = json_.Int("intermediate_size");
      side->vocabulary = json_.Int("vocab_size");
      side->most = json_.Int("max_position_embeddings");
      side->activation = ActivationOf(json_, own + "hidden_act");
    }
    config_.decoder.gated = true;
    const Config rope = json_.has("rope_parameters") ? json_.Object("rope_parameters") : json_;
    if (rope.has("rope_type") && rope.Text("rope_type") != "default")
      throw Error("unsupported-architecture", "\"rope_type\" is \"{}\"", rope.Text("rope_type"))
          .At({json_.file(), "key \"rope_parameters\""})
          .Expected("\"default\"");
    if (json_.has("rope_scaling")) json_.Refuse("rope_scaling", "none");
    config_.rotary_theta = rope.Number("rope_theta", json_.Number("rope_theta"));
    const double part = rope.Number("partial_rotary_factor", json_.Number("partial_rotary_factor"));
    if (config_.decoder.heads < 1 || !(part > 0 && part <= 1)) return;  // rejected by the builder
    // An odd number of dimensions has one more, which makes the last pair.
    const int64_t size =
        Truncated(static_cast<double>(config_.decoder.width / config_.decoder.heads) * part);
    config_.rotary_base_size = size;
    config_.rotary_size = (size + 1) / 2 * 2;
  }

  void ReadPictures(std::vector<fs::path>* read) {
    decoder_->read(json_.Object("decoder").WithDefaults(decoder_->defaults), config_);
    if (swin_)
      ReadSwinEncoder(json_.Object("encoder").WithDefaults(kSwinDefaults), read);
    else
      ReadEncoder(json_.Object("encoder"), read);
  }

  void ReadBlip(std::vector<fs::path>* read) {
    const Config config = json_.Object("text_config").WithDefaults(kBlipTextDefaults);
    config_.epsilon = config.Number("layer_norm_eps");
    config_.dense_logits = true;
    config_.output_ids = "input_ids";
    config_.states = "last_hidden_state";
    config_.decoder = {.layers = config.Int("num_hidden_layers"),
                       .width = config.Int("hidden_size"),
                       .heads = config.Int("num_attention_heads"),
                       .feed_forward = config.Int("intermediate_size"),
                       .vocabulary = config.Int("vocab_size"),
                       .most = config.Int("max_position_embeddings"),
                       .activation = ActivationOf(config, "hidden_act")};
    ReadEncoder(json_.Object("vision_config"), read);
  }
  // A caption begins with bos and ends with sep (transformers' modeling_blip.py, generate).
  static std::string BlipSettings(const Config& given) {
    const Config config = given.WithDefaults(kBlipTextDefaults);
    return fmt::format(
        "{{\"decoder_start_token_id\": {}, \"eos_token_id\": {}, \"pad_token_id\": {}, "
        "\"max_length\": {}}}",
        config.Int("bos_token_id"), config.Int("sep_token_id"), config.Int("pad_token_id"),
        config.Int("max_length", 20));
  }

  // BART, in whose encoder the tokens of a picture have the embeddings of a DaViT (transformers'
  // modeling_florence2.py).
  void ReadFlorence(std::vector<fs::path>* read) {
    const Config given = json_.Object("vision_config");
    if (given.Text("model_type", "florence_vision") != "florence_vision")
      throw Error("unsupported-architecture", "\"{}\" is \"{}\"", given.KeyPath("model_type"),
                  given.Text("model_type"))
          .At({json_.file(), "key \"vision_config.model_type\""})
          .Expected(
              "\"florence_vision\": a folder of transformers' own Florence-2 classes, such as "
              "those of florence-community");
    const Config vision = given.WithDefaults(kFlorenceVisionDefaults);
    ReadBart(json_.Object("text_config").WithDefaults(kFlorenceTextDefaults));
    networks::DaVitConfig tower{.window = vision.Int("window_size"),
                                .feed_forward = vision.Number("mlp_ratio"),
                                .query_bias = vision.Bool("qkv_bias"),
                                .activation = ActivationOf(vision, "activation_function")};
    const std::vector<int64_t> depths = vision.Ints("depths"), widths = vision.Ints("embed_dim"),
                               heads = vision.Ints("num_heads"), groups = vision.Ints("num_groups"),
                               kernels = vision.Ints("patch_size"),
                               strides = vision.Ints("patch_stride"),
                               paddings = vision.Ints("patch_padding");
    const std::vector<bool> norms = vision.Bools("patch_prenorm");
    for (const auto& [key, size] : {std::pair{"depths", depths.size()},
                                    {"num_heads", heads.size()},
                                    {"num_groups", groups.size()},
                                    {"patch_size", kernels.size()},
                                    {"patch_stride", strides.size()},
                                    {"patch_padding", paddings.size()},
                                    {"patch_prenorm", norms.size()}})
      if (size != widths.size()) vision.Refuse(key, "as many members as \"embed_dim\" has");
    for (size_t i = 0; i < widths.size(); ++i) {
      if (paddings[i] != kernels[i] / 2) vision.Refuse("patch_padding", "half of \"patch_size\"");
      tower.stages.push_back({.depth = depths[i],
                              .width = widths[i],
                              .heads = heads[i],
                              .groups = groups[i],
                              .kernel = kernels[i],
                              .stride = strides[i],
                              .norm_first = norms[i]});
    }
    networks::CheckDaVit(tower);
    constexpr int64_t kSide = 768;  // of the image processor of all published models
    picture_ = PictureInputOf(ReadImageProcessor(folder_.path(), read), {kSide, kSide},
                              vision.Int("in_channels"), options_);
    networks::CheckPositive({{"height of a picture", picture_.size.height},
                             {"width of a picture", picture_.size.width},
                             {"number of channels of a picture", picture_.channels}});
    const int64_t width = vision.Int("projection_dim"),
                  positions = vision.Int("max_position_embeddings");
    if (width != config_.encoder.width)
      vision.Refuse("projection_dim", "the width of the language model");
    config_.picture_token = TokenAt("image_token_id");
    tokens_of_picture_ = 1;
    networks::GridSize map = picture_.size;
    for (const networks::DaVitConfig::Stage& stage : tower.stages)
      for (int64_t* side : {&map.height, &map.width}) *side = (*side - 1) / stage.stride + 1;
    tokens_of_picture_ += map.count();
    config_.picture = [this, tower, width, positions](Function& function, Builder& b) {
      Value* pixels = networks::AddPictureInput(b, function, picture_);
      const networks::NetworkWeights weights = weights_.ForNetwork();
      networks::Layers layers(b, weights);
      return networks::FlorenceTokens(b, layers, networks::DaVitMap(b, layers, tower, pixels),
                                      positions, width);
    };
  }
  // With the tokens that stand before a prompt, and the prompts of tasks.
  std::string FlorenceSettings(std::vector<fs::path>* read) const {
    const Config text = json_.Object("text_config").WithDefaults(kFlorenceTextDefaults);
    std::string settings = GenerationSettings(folder_, text, read);
    settings.pop_back();
    return fmt::format(
        "{}{}\"image_token_id\": {}, \"num_image_tokens\": {}, \"task_prompts\": {}}}", settings,
        settings == "{" ? "" : ", ", config_.picture_token, tokens_of_picture_,
        Config::Parse(std::string(kFlorenceTasks), "").Json("task_prompts"));
  }

  void ReadSwinEncoder(const Config& config, std::vector<fs::path>* read) {
    const bool both = config.kind("image_size") == Config::Kind::kList;
    const std::vector<int64_t> sides =
        both ? config.Ints("image_size") : std::vector<int64_t>(2, config.Int("image_size"));
    if (sides.size() != 2)
      throw Error("bad-file", "\"{}\" has {} numbers", config.KeyPath("image_size"), sides.size())
          .At({config.file(), "key \"encoder.image_size\""})
          .Expected("a number, or [height, width]");
    networks::WindowTransformerConfig tower = ReadSwin(config, config.Text("model_type"));
    const networks::GridSize own{sides[0], sides[1]};
    if (tower.second) tower.trained = own;
    tower.picture = picture_ = PictureInputOf(ReadImageProcessor(folder_.path(), read), own,
                                              config.Int("num_channels", 3), options_);
    networks::CheckPositive({{"height of a picture", picture_.size.height},
                             {"width of a picture", picture_.size.width}});
    config_.other = [this, tower](Function& function, Builder& b) {
      Value* pixels = networks::AddPictureInput(b, function, picture_);
      const networks::NetworkWeights weights = weights_.ForNetwork();
      networks::Layers layers(b, weights);
      return networks::WindowTokens(b, layers, tower, pixels);
    };
  }

  void ReadEncoder(const Config& config, std::vector<fs::path>* read) {
    const networks::VisionConfig tower = ReadVision(config, *vision_);
    const bool normed = LastNormed(config, *vision_);
    picture_ = PictureInputOf(ReadImageProcessor(folder_.path(), read), tower.picture,
                              tower.channels, options_);
    networks::VisionConfig sized = tower;
    sized.picture = picture_.size;
    networks::CheckVision(sized);
    config_.other = [this, sized, normed](Function& function, Builder& b) {
      Value* pixels = networks::AddPictureInput(b, function, picture_);
      const networks::NetworkWeights weights = weights_.ForNetwork();
      networks::Layers layers(b, weights);
      Value* x = networks::VisionTower(b, layers, sized, pixels).back();
      return normed ? networks::VisionNorm(layers, sized, x) : x;
    };
  }

  const Folder& folder_;
  const EncoderDecoderRow& row_;
  const ImportOptions& options_;
  const Config json_;
  const bool swin_;                // encodes pictures
  const VisionRow* vision_;        // null unless a vision transformer encodes pictures
  const PictureDecoder* decoder_;  // null unless the folder names it
  const TensorNameList names_;
  FolderWeights weights_;
  networks::PictureInput picture_;
  int64_t tokens_of_picture_ = 0;  // Florence-2
  const SequenceHeadRow* head_ = nullptr;
  SequenceConfig config_;
};

bool ReadsPictures(const EncoderDecoderRow& row) {
  return row.family == SequenceFamily::kPictures || row.family == SequenceFamily::kBlip ||
         row.family == SequenceFamily::kFlorence;
}

std::set<std::string> TypesOfRows(bool pictures) {
  std::set<std::string> types;
  for (const EncoderDecoderRow& row : EncoderDecoderRows())
    if (ReadsPictures(row) == pictures) types.emplace(row.model_type);
  return types;
}

}  // namespace

bool IsEncoderDecoder(const Config& config) {
  const EncoderDecoderRow* row = FindEncoderDecoderRow(config);
  if (!row || ReadsPictures(*row)) return false;
  // T5's encoder alone is a text encoder.
  if (config.kind("architectures") != Config::Kind::kList) return true;
  const std::vector<std::string> heads = config.Texts("architectures");
  return heads.empty() || !heads[0].ends_with("EncoderModel");
}

bool IsPictureDecoder(const Config& config) {
  const EncoderDecoderRow* row = FindEncoderDecoderRow(config);
  return row && ReadsPictures(*row);
}

std::set<std::string> EncoderDecoderModelTypes() { return TypesOfRows(false); }
std::set<std::string> PictureDecoderModelTypes() { return TypesOfRows(true); }

Program ImportEncoderDecoder(const Folder& folder, const ImportOptions& options,
                             Diagnostics& diagnostics, std::vector<fs::path>* read) {
  const EncoderDecoderRow* row = FindEncoderDecoderRow(folder.config());
  MLC_CHECK(row, "no row for {}", folder.model_type());
  if (options.runtime == kWhisperKit && row->family != SequenceFamily::kWhisper)
    throw Error("usage", "option 'runtime' {}: the model is {}, not Whisper", kWhisperKit,
                row->model_type);
  if (options.runtime != kWhisperKit && options.target && *options.target < Opset::kIos18)
    throw Error("target-too-old",
                "decoders keep their cache in states, and functions share weights")
        .Expected("iOS18 or later");
  return SequenceImporter(folder, *row, options).Run(diagnostics, read);
}

}  // namespace mlc::safetensors
