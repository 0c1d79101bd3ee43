#include "frontends/safetensors/encoder_decoder_rows.h"

namespace mlc::safetensors {

namespace {

using SequenceInput = networks::EncoderDecoderConfig::Input;
using SequencePositions = networks::EncoderDecoderConfig::Positions;

constexpr std::string_view kT5Defaults = R"({"vocab_size": 32128, "d_model": 512, "d_kv": 64,
    "d_ff": 2048, "num_layers": 6, "num_heads": 8, "relative_attention_num_buckets": 32,
    "relative_attention_max_distance": 128, "layer_norm_epsilon": 1e-6,
    "feed_forward_proj": "relu", "tie_word_embeddings": true, "n_positions": 512,
    "eos_token_id": 1, "pad_token_id": 0})";
constexpr std::string_view kMt5Defaults = R"({"vocab_size": 250112, "d_model": 512, "d_kv": 64,
    "d_ff": 1024, "num_layers": 8, "num_heads": 6, "relative_attention_num_buckets": 32,
    "relative_attention_max_distance": 128, "layer_norm_epsilon": 1e-6,
    "feed_forward_proj": "gated-gelu", "tie_word_embeddings": false, "n_positions": 512,
    "eos_token_id": 1, "pad_token_id": 0})";
constexpr std::string_view kBartDefaults = R"({"vocab_size": 50265, "d_model": 1024,
    "max_position_embeddings": 1024, "encoder_layers": 12, "encoder_ffn_dim": 4096,
    "encoder_attention_heads": 16, "decoder_layers": 12, "decoder_ffn_dim": 4096,
    "decoder_attention_heads": 16, "activation_function": "gelu", "scale_embedding": false,
    "bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1, "forced_eos_token_id": 2,
    "decoder_start_token_id": 2, "tie_word_embeddings": true})";
// Without a decoder_start_token_id, as MBartConfig.
constexpr std::string_view kMbartDefaults = R"({"vocab_size": 50265, "d_model": 1024,
    "max_position_embeddings": 1024, "encoder_layers": 12, "encoder_ffn_dim": 4096,
    "encoder_attention_heads": 16, "decoder_layers": 12, "decoder_ffn_dim": 4096,
    "decoder_attention_heads": 16, "activation_function": "gelu", "scale_embedding": false,
    "bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1, "forced_eos_token_id": 2,
    "tie_word_embeddings": true})";
constexpr std::string_view kMarianDefaults = R"({"vocab_size": 58101, "d_model": 1024,
    "max_position_embeddings": 1024, "encoder_layers": 12, "encoder_ffn_dim": 4096,
    "encoder_attention_heads": 16, "decoder_layers": 12, "decoder_ffn_dim": 4096,
    "decoder_attention_heads": 16, "activation_function": "gelu", "scale_embedding": false,
    "share_encoder_decoder_embeddings": true, "eos_token_id": 0, "pad_token_id": 58100,
    "forced_eos_token_id": 0, "decoder_start_token_id": 58100, "tie_word_embeddings": true})";
constexpr std::string_view kM2mDefaults = R"({"vocab_size": 128112, "d_model": 1024,
    "max_position_embeddings": 1024, "encoder_layers": 12, "encoder_ffn_dim": 4096,
    "encoder_attention_heads": 16, "decoder_layers": 12, "decoder_ffn_dim": 4096,
    "decoder_attention_heads": 16, "activation_function": "relu", "scale_embedding": true,
    "bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1, "decoder_start_token_id": 2,
    "tie_word_embeddings": true})";
// The sizes of older versions are in encoder_decoders.cpp.
constexpr std::string_view kWhisperDefaults = R"({"vocab_size": 51865, "num_mel_bins": 80,
    "d_model": 384, "encoder_layers": 4, "encoder_attention_heads": 6, "encoder_ffn_dim": 1536,
    "decoder_layers": 4, "decoder_attention_heads": 6, "decoder_ffn_dim": 1536,
    "activation_function": "gelu", "max_source_positions": 1500, "max_target_positions": 448,
    "decoder_start_token_id": 50257, "bos_token_id": 50256, "eos_token_id": 50256,
    "pad_token_id": 50256, "tie_word_embeddings": true})";
constexpr std::string_view kMoonshineDefaults = R"({"vocab_size": 32768, "hidden_size": 288,
    "intermediate_size": 1152, "encoder_num_hidden_layers": 6, "decoder_num_hidden_layers": 6,
    "encoder_num_attention_heads": 8, "decoder_num_attention_heads": 8,
    "encoder_hidden_act": "gelu", "decoder_hidden_act": "silu", "max_position_embeddings": 512,
    "rope_theta": 10000.0, "partial_rotary_factor": 0.9, "decoder_start_token_id": 1,
    "bos_token_id": 1, "eos_token_id": 2, "tie_word_embeddings": true})";

// The decoder's own configuration is read with these; the encoder's, with those of its class.
constexpr std::string_view kPictureDefaults = R"({"tie_word_embeddings": false})";
constexpr std::string_view kBlipDefaults = R"({"tie_word_embeddings": false,
    "text_config": {}, "vision_config": {}})";

// Follow transformers' models/*/modeling_*.py.
constexpr EncoderDecoderRow kSequenceRows[] = {
    {.model_type = "blip",
     .family = SequenceFamily::kBlip,
     .input = SequenceInput::kOther,
     .pre_norms = false,
     .final_norms = false,
     .normed_embeddings = true,
     .takes_scale = false,
     .defaults = kBlipDefaults},
    {.model_type = "bart",
     .family = SequenceFamily::kBart,
     .position_offset = 2,
     .pre_norms = false,
     .final_norms = false,
     .normed_embeddings = true,
     .defaults = kBartDefaults},
    {.model_type = "m2m_100",
     .family = SequenceFamily::kBart,
     .positions = SequencePositions::kFairseq,
     .position_offset = 2,
     .defaults = kM2mDefaults},
    {.model_type = "marian",
     .family = SequenceFamily::kBart,
     .positions = SequencePositions::kHalves,
     .pre_norms = false,
     .final_norms = false,
     .defaults = kMarianDefaults},
    {.model_type = "mbart",
     .family = SequenceFamily::kBart,
     .position_offset = 2,
     .normed_embeddings = true,
     .defaults = kMbartDefaults},
    {.model_type = "moonshine",
     .family = SequenceFamily::kMoonshine,
     .input = SequenceInput::kSamples,
     .positions = SequencePositions::kRotary,
     .takes_scale = false,
     .defaults = kMoonshineDefaults},
    {.model_type = "mt5",
     .family = SequenceFamily::kT5,
     .positions = SequencePositions::kDistances,
     .takes_scale = false,
     .defaults = kMt5Defaults},
    {.model_type = "t5",
     .family = SequenceFamily::kT5,
     .positions = SequencePositions::kDistances,
     .takes_scale = false,
     .defaults = kT5Defaults},
    {.model_type = "vision-encoder-decoder",
     .family = SequenceFamily::kPictures,
     .input = SequenceInput::kOther,
     .defaults = kPictureDefaults},
    {.model_type = "whisper",
     .family = SequenceFamily::kWhisper,
     .input = SequenceInput::kMel,
     .takes_scale = false,
     .defaults = kWhisperDefaults},
};

}  // namespace

std::span<const EncoderDecoderRow> EncoderDecoderRows() { return kSequenceRows; }

const EncoderDecoderRow* FindEncoderDecoderRow(const Config& config) {
  const std::string type = config.Text("model_type", "");
  for (const EncoderDecoderRow& row : kSequenceRows)
    if (row.model_type == type) return &row;
  return nullptr;
}

const std::vector<TensorName>& EncoderDecoderNames(SequenceFamily family) {
  static const std::vector<TensorName> bart = {
      {"encoder.tokens", "encoder.embed_tokens"},
      {"encoder.tokens", "shared"},
      {"encoder.tokens", "decoder.embed_tokens"},
      {"decoder.tokens", "decoder.embed_tokens"},
      {"decoder.tokens", "shared"},
      {"decoder.tokens", "encoder.embed_tokens"},
      {"encoder.positions", "encoder.embed_positions"},
      {"decoder.positions", "decoder.embed_positions"},
      {"encoder.embedding_norm", "encoder.layernorm_embedding"},
      {"decoder.embedding_norm", "decoder.layernorm_embedding"},
      {"encoder.norm", "encoder.layer_norm"},
      {"decoder.norm", "decoder.layer_norm"},
      {"encoder.layer.{}.query", "encoder.layers.{}.self_attn.q_proj"},
      {"encoder.layer.{}.key", "encoder.layers.{}.self_attn.k_proj"},
      {"encoder.layer.{}.value", "encoder.layers.{}.self_attn.v_proj"},
      {"encoder.layer.{}.attention", "encoder.layers.{}.self_attn.out_proj"},
      {"encoder.layer.{}.attention_norm", "encoder.layers.{}.self_attn_layer_norm"},
      {"encoder.layer.{}.up", "encoder.layers.{}.fc1"},
      {"encoder.layer.{}.down", "encoder.layers.{}.fc2"},
      {"encoder.layer.{}.norm", "encoder.layers.{}.final_layer_norm"},
      {"decoder.layer.{}.query", "decoder.layers.{}.self_attn.q_proj"},
      {"decoder.layer.{}.key", "decoder.layers.{}.self_attn.k_proj"},
      {"decoder.layer.{}.value", "decoder.layers.{}.self_attn.v_proj"},
      {"decoder.layer.{}.attention", "decoder.layers.{}.self_attn.out_proj"},
      {"decoder.layer.{}.attention_norm", "decoder.layers.{}.self_attn_layer_norm"},
      {"decoder.layer.{}.cross_query", "decoder.layers.{}.encoder_attn.q_proj"},
      {"decoder.layer.{}.cross_key", "decoder.layers.{}.encoder_attn.k_proj"},
      {"decoder.layer.{}.cross_value", "decoder.layers.{}.encoder_attn.v_proj"},
      {"decoder.layer.{}.cross", "decoder.layers.{}.encoder_attn.out_proj"},
      {"decoder.layer.{}.cross_norm", "decoder.layers.{}.encoder_attn_layer_norm"},
      {"decoder.layer.{}.up", "decoder.layers.{}.fc1"},
      {"decoder.layer.{}.down", "decoder.layers.{}.fc2"},
      {"decoder.layer.{}.norm", "decoder.layers.{}.final_layer_norm"},
      {"output.weight", "lm_head.weight"},
      {"output.weight", "proj_out.weight"},
      {"output.weight", "output_projection.weight"},
      {"output.bias", "final_logits_bias"},
      {"projection", "enc_to_dec_proj"},
  };
  static const std::vector<TensorName> t5 = {
      {"encoder.tokens", "encoder.embed_tokens"},
      {"encoder.tokens", "shared"},
      {"encoder.tokens", "decoder.embed_tokens"},
      {"decoder.tokens", "decoder.embed_tokens"},
      {"decoder.tokens", "shared"},
      {"decoder.tokens", "encoder.embed_tokens"},
      {"encoder.distances", "encoder.block.0.layer.0.SelfAttention.relative_attention_bias"},
      {"decoder.distances", "decoder.block.0.layer.0.SelfAttention.relative_attention_bias"},
      {"encoder.norm", "encoder.final_layer_norm"},
      {"decoder.norm", "decoder.final_layer_norm"},
      {"encoder.layer.{}.query", "encoder.block.{}.layer.0.SelfAttention.q"},
      {"encoder.layer.{}.key", "encoder.block.{}.layer.0.SelfAttention.k"},
      {"encoder.layer.{}.value", "encoder.block.{}.layer.0.SelfAttention.v"},
      {"encoder.layer.{}.attention", "encoder.block.{}.layer.0.SelfAttention.o"},
      {"encoder.layer.{}.attention_norm", "encoder.block.{}.layer.0.layer_norm"},
      {"encoder.layer.{}.up", "encoder.block.{}.layer.1.DenseReluDense.wi"},
      {"encoder.layer.{}.up", "encoder.block.{}.layer.1.DenseReluDense.wi_1"},
      {"encoder.layer.{}.gate", "encoder.block.{}.layer.1.DenseReluDense.wi_0"},
      {"encoder.layer.{}.down", "encoder.block.{}.layer.1.DenseReluDense.wo"},
      {"encoder.layer.{}.norm", "encoder.block.{}.layer.1.layer_norm"},
      {"decoder.layer.{}.query", "decoder.block.{}.layer.0.SelfAttention.q"},
      {"decoder.layer.{}.key", "decoder.block.{}.layer.0.SelfAttention.k"},
      {"decoder.layer.{}.value", "decoder.block.{}.layer.0.SelfAttention.v"},
      {"decoder.layer.{}.attention", "decoder.block.{}.layer.0.SelfAttention.o"},
      {"decoder.layer.{}.attention_norm", "decoder.block.{}.layer.0.layer_norm"},
      {"decoder.layer.{}.cross_query", "decoder.block.{}.layer.1.EncDecAttention.q"},
      {"decoder.layer.{}.cross_key", "decoder.block.{}.layer.1.EncDecAttention.k"},
      {"decoder.layer.{}.cross_value", "decoder.block.{}.layer.1.EncDecAttention.v"},
      {"decoder.layer.{}.cross", "decoder.block.{}.layer.1.EncDecAttention.o"},
      {"decoder.layer.{}.cross_norm", "decoder.block.{}.layer.1.layer_norm"},
      {"decoder.layer.{}.up", "decoder.block.{}.layer.2.DenseReluDense.wi"},
      {"decoder.layer.{}.up", "decoder.block.{}.layer.2.DenseReluDense.wi_1"},
      {"decoder.layer.{}.gate", "decoder.block.{}.layer.2.DenseReluDense.wi_0"},
      {"decoder.layer.{}.down", "decoder.block.{}.layer.2.DenseReluDense.wo"},
      {"decoder.layer.{}.norm", "decoder.block.{}.layer.2.layer_norm"},
      {"output.weight", "lm_head.weight"},
  };
  static const std::vector<TensorName> moonshine = {
      {"decoder.tokens", "decoder.embed_tokens"},
      {"encoder.conv_norm", "encoder.groupnorm"},
      {"encoder.norm", "encoder.layer_norm"},
      {"decoder.norm", "decoder.norm"},
      {"encoder.layer.{}.query", "encoder.layers.{}.self_attn.q_proj"},
      {"encoder.layer.{}.key", "encoder.layers.{}.self_attn.k_proj"},
      {"encoder.layer.{}.value", "encoder.layers.{}.self_attn.v_proj"},
      {"encoder.layer.{}.attention", "encoder.layers.{}.self_attn.o_proj"},
      {"encoder.layer.{}.attention_norm", "encoder.layers.{}.input_layernorm"},
      {"encoder.layer.{}.up", "encoder.layers.{}.mlp.fc1"},
      {"encoder.layer.{}.down", "encoder.layers.{}.mlp.fc2"},
      {"encoder.layer.{}.norm", "encoder.layers.{}.post_attention_layernorm"},
      {"decoder.layer.{}.query", "decoder.layers.{}.self_attn.q_proj"},
      {"decoder.layer.{}.key", "decoder.layers.{}.self_attn.k_proj"},
      {"decoder.layer.{}.value", "decoder.layers.{}.self_attn.v_proj"},
      {"decoder.layer.{}.attention", "decoder.layers.{}.self_attn.o_proj"},
      {"decoder.layer.{}.attention_norm", "decoder.layers.{}.input_layernorm"},
      {"decoder.layer.{}.cross_query", "decoder.layers.{}.encoder_attn.q_proj"},
      {"decoder.layer.{}.cross_key", "decoder.layers.{}.encoder_attn.k_proj"},
      {"decoder.layer.{}.cross_value", "decoder.layers.{}.encoder_attn.v_proj"},
      {"decoder.layer.{}.cross", "decoder.layers.{}.encoder_attn.o_proj"},
      {"decoder.layer.{}.cross_norm", "decoder.layers.{}.post_attention_layernorm"},
      {"decoder.layer.{}.up_gate", "decoder.layers.{}.mlp.fc1"},
      {"decoder.layer.{}.down", "decoder.layers.{}.mlp.fc2"},
      {"decoder.layer.{}.norm", "decoder.layers.{}.final_layernorm"},
      {"output.weight", "proj_out.weight"},
  };
  static const std::vector<TensorName> blip = {
      {"decoder.tokens", "embeddings.word_embeddings"},
      {"decoder.positions", "embeddings.position_embeddings"},
      {"decoder.embedding_norm", "embeddings.LayerNorm"},
      {"decoder.layer.{}.query", "encoder.layer.{}.attention.self.query"},
      {"decoder.layer.{}.key", "encoder.layer.{}.attention.self.key"},
      {"decoder.layer.{}.value", "encoder.layer.{}.attention.self.value"},
      {"decoder.layer.{}.attention", "encoder.layer.{}.attention.output.dense"},
      {"decoder.layer.{}.attention_norm", "encoder.layer.{}.attention.output.LayerNorm"},
      {"decoder.layer.{}.cross_query", "encoder.layer.{}.crossattention.self.query"},
      {"decoder.layer.{}.cross_key", "encoder.layer.{}.crossattention.self.key"},
      {"decoder.layer.{}.cross_value", "encoder.layer.{}.crossattention.self.value"},
      {"decoder.layer.{}.cross", "encoder.layer.{}.crossattention.output.dense"},
      {"decoder.layer.{}.cross_norm", "encoder.layer.{}.crossattention.output.LayerNorm"},
      {"decoder.layer.{}.up", "encoder.layer.{}.intermediate.dense"},
      {"decoder.layer.{}.down", "encoder.layer.{}.output.dense"},
      {"decoder.layer.{}.norm", "encoder.layer.{}.output.LayerNorm"},
      {"lm.dense", "cls.predictions.transform.dense"},
      {"lm.norm", "cls.predictions.transform.LayerNorm"},
      {"output.weight", "cls.predictions.decoder.weight"},
      {"output.bias", "cls.predictions.bias"},
      {"output.bias", "cls.predictions.decoder.bias"},
  };
  switch (family) {
    case SequenceFamily::kBlip:
      return blip;
    case SequenceFamily::kT5:
      return t5;
    case SequenceFamily::kMoonshine:
      return moonshine;
    default:
      return bart;
  }
}

}  // namespace mlc::safetensors
