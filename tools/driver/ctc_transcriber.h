// tools/driver/ctc_transcriber.h - transcribes sounds with encoders of speech that have a head for CTC
// (lib/networks/speech_encoder.h): wav2vec 2.0 and its relatives.
#pragma once

#include "tools/driver/generate.h"
#include "tools/driver/model.h"

namespace mlc::driver {

// Returns whether the program has logits of CTC for samples.
bool IsCtcTranscriber(const Program& program);

// Transcribes the sound of `options`: the likeliest token of each frame, once where it is repeated,
// without blanks. Without a vocabulary, the text are the tokens. Errors "usage" for options that do
// not suit the model, "bad-input" for sounds that it does not take, and those of predicting.
GenerateResult TranscribeByCtc(Model& model, const GenerateOptions& options);

}  // namespace mlc::driver
