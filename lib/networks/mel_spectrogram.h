// lib/networks/mel_spectrogram.h - log-mel spectrograms of sounds, in fp32: their floor of 1e-10 is 0
// in fp16.
#pragma once

#include "lib/ir/builder.h"

namespace mlc::networks {

struct MelSpectrogram {
  int64_t bands = 80, window = 400, hop = 160, rate = 16000;
  int64_t transform = 0;   // size of the Fourier transform; 0: that of the window
  double preemphasis = 0;  // this much of the sample before is subtracted from each
  bool symmetric = false;  // the window ends as it begins; otherwise it is periodic
};

// Returns Whisper's log-mel spectrogram of samples [1, N] (transformers'
// feature_extraction_whisper.py): [1, bands, N / hop]. N is a multiple of the hop, and larger than half
// of the window.
Value* WhisperMel(Builder& b, Value* samples, const MelSpectrogram& how);
// Returns Parakeet's spectrogram of samples [1, N], of which each band has the mean 0 and the standard
// deviation 1 (transformers' feature_extraction_parakeet.py): [1, N / hop, bands]. There are at least two
// frames.
Value* ParakeetMel(Builder& b, Value* samples, const MelSpectrogram& how);

}  // namespace mlc::networks
