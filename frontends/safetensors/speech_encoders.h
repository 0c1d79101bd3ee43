// frontends/safetensors/speech_encoders.h - folders of encoders of speech: wav2vec 2.0 and its
// relatives (lib/networks/speech_encoder.h).
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "frontends/safetensors/folder.h"
#include "lib/ir/import_options.h"

namespace mlc::safetensors {

bool IsSpeechEncoder(const Config& config);
// `read` receives the file of an adapter, if one was read.
Program ImportSpeechEncoder(const Folder& folder, const ImportOptions& options,
                            Diagnostics& diagnostics, std::vector<std::filesystem::path>* read);
std::set<std::string> SpeechEncoderModelTypes();

}  // namespace mlc::safetensors
