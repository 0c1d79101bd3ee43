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

// The member of a program's metadata that says how its logits of CTC become text, a JSON object:
//
//   blank           the token that separates others, and is no text
//   sampling_rate   of the samples
//   do_normalize    whether the samples are to have the mean 0 and the variance 1
//   vocabulary      tokens by their text; absent if the folder has no vocab.json
//   word_delimiter  the text that stands for a space
inline constexpr const char* kCtcSettings = "ctc";

bool IsSpeechEncoder(const Config& config);
// `read` receives the file of an adapter, if one was read.
Program ImportSpeechEncoder(const Folder& folder, const ImportOptions& options,
                            Diagnostics& diagnostics, std::vector<std::filesystem::path>* read);
std::set<std::string> SpeechEncoderModelTypes();

}  // namespace mlc::safetensors
