// lib/networks/mel_spectrogram.h - log-mel spectrograms of sounds, in fp32: their floor of 1e-10 is 0
// in fp16.
#pragma once

#include "lib/ir/builder.h"

namespace mlc::networks {

struct MelSpectrogram {
  int64_t bands = 80, window = 400, hop = 160, rate = 16000;
};

// Returns Whisper's log-mel spectrogram of samples [1, N] (transformers'
// feature_extraction_whisper.py): [1, bands, N / hop]. N is a multiple of the hop, and larger than half
// of the window.
Value* WhisperMel(Builder& b, Value* samples, const MelSpectrogram& how);

}  // namespace mlc::networks
