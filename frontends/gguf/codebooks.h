// frontends/gguf/codebooks.h - the codebooks of ggml's IQ1, IQ2 and IQ3 types.
//
// A vector is packed into a number, its first element lowest: eight elements of two bits, or four
// of three bits. Each element is an index into the levels of the type: 8, 25, 43 (IQ2), -1, 0, 1
// (IQ1), 4, 12, 20, 28, 36, 44, 52, 62 (IQ3_XXS), 1, 3, ..., 15 (IQ3_S).
#pragma once

#include <cstdint>

namespace mlc::gguf {

extern const uint16_t kIq2XxsCodebook[256], kIq2XsCodebook[512], kIq2SCodebook[1024];
extern const uint16_t kIq3XxsCodebook[256], kIq3SCodebook[512];
extern const uint16_t kIq1Codebook[2048];

}  // namespace mlc::gguf
