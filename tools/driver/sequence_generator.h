// tools/driver/sequence_generator.h - generates tokens with an encoder-decoder
// (lib/networks/encoder_decoder.h): translates, summarises, transcribes.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/driver/generate.h"
#include "tools/driver/generation_settings.h"
#include "tools/driver/model.h"

namespace mlc::driver {

// Returns whether the program has the functions of an encoder-decoder.
bool IsEncoderDecoder(const Program& program);
// The same for a file or folder, which is read; false for what cannot be read.
bool IsEncoderDecoder(const std::filesystem::path& model, const ImportOptions& options);

// Encodes the prompt, the tokens or the sound of `options`, and generates the likeliest tokens under
// the settings of the model. Without a tokenizer, the texts are the tokens. Errors "usage" for
// options that do not suit the model, "bad-input" for tokens and sounds that it does not take, and
// those of predicting.
GenerateResult GenerateSequence(Model& model, const GenerateOptions& options,
                                Diagnostics& diagnostics);

}  // namespace mlc::driver
