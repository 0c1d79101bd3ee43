// frontends/safetensors/timm.h - the networks of timm (huggingface/pytorch-image-models): rows by the
// names of its functions, with the arguments that those pass on (timm/models/*.py).
#pragma once

#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/safetensors/picture_nets.h"

namespace mlc::safetensors {

struct TimmRow {
  // A name, or several with alternatives in braces: "vit_{small,base}_patch16_224".
  std::string_view architectures;
  std::string_view arguments;  // of the model, as a JSON object
};

// A folder of timm.
struct TimmFolder {
  const PictureFolder& from;
  std::string architecture;
  Config arguments;            // of the row; model_args of config.json replaces them
  networks::GridSize trained;  // the size of pictures by config.json
  networks::PictureInput picture;
  int64_t labels = 0;
};

struct TimmFamily {
  std::span<const TimmRow> rows;
  Program (*build)(const TimmFolder& timm);
  std::string_view pool = "avg";  // unless arguments have a global_pool
};
std::span<const TimmFamily> TimmConvolutions();  // timm_convolutions.cpp
std::span<const TimmFamily> TimmTransformers();  // timm_transformers.cpp
std::span<const TimmFamily> TimmRepVits();       // repvit.cpp
std::span<const TimmFamily> TimmSized();         // timm_sized.cpp

// EfficientNets and MobileNets (timm_mobile.cpp); those with the prefix "tf_" were trained with
// TensorFlow.
std::vector<std::string> TimmMobileNames();
bool IsTimmMobile(std::string_view architecture);
Program BuildTimmMobile(const TimmFolder& timm);

// Returns the names of a text with alternatives in braces.
std::vector<std::string> Alternatives(std::string_view text);
std::vector<std::string> Split(std::string_view text, char separator);

// Throws Error "unsupported-architecture" if model_args has a key that is not among these, nor one
// of those that do not change results or that this frontend reads for all networks.
void CheckArguments(const TimmFolder& timm, std::initializer_list<std::string_view> known);
// Returns the activation of the argument act_layer, by its name in timm.
networks::Activation TimmActivation(const TimmFolder& timm, networks::Activation usual);

template <class NetConfig>
Program BuiltTimm(const TimmFolder& timm, std::vector<TensorName> names, const NetConfig& config,
                  Program (*build)(const NetConfig&, const networks::NetworkWeights&, Diagnostics&),
                  bool (*is_left_over)(std::string_view) = nullptr) {
  // The wrapper of transformers puts all into one module.
  return BuiltFrom(timm.from, {"", "timm_model."}, std::move(names), config, build, is_left_over);
}

}  // namespace mlc::safetensors
