// frontends/safetensors/encoder_decoders.h - folders of encoder-decoders: T5, BART, Marian, M2M-100,
// Whisper, Moonshine, TrOCR, BLIP (lib/networks/encoder_decoder.h).
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "frontends/safetensors/folder.h"
#include "lib/ir/import_options.h"

namespace mlc::safetensors {

// The member of a program's metadata that has the settings of generation_config.json, and those of
// config.json that stand in for it, as a JSON object with transformers' names.
inline constexpr const char* kGenerationSettings = "generation_config";

bool IsEncoderDecoder(const Config& config);
bool IsPictureDecoder(const Config& config);  // an encoder of pictures and a decoder of text
Program ImportEncoderDecoder(const Folder& folder, const ImportOptions& options,
                             Diagnostics& diagnostics, std::vector<std::filesystem::path>* read);
std::set<std::string> EncoderDecoderModelTypes();
std::set<std::string> PictureDecoderModelTypes();

}  // namespace mlc::safetensors
