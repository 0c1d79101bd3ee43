// lib/networks/encoder_architectures.h - the families of encoders that are known, a row of flags each.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lib/networks/encoder.h"

namespace mlc {

struct EncoderArchitecture {
  std::string_view gguf;          // as general.architecture has it; empty: not from there
  std::string_view hugging_face;  // as config.json's model_type has it
  EncoderConfig flags = {};
  Bend gguf_bend = Bend::kGeluTanh;  // of feed-forward layers, which GGUF says nowhere
};

std::span<const EncoderArchitecture> EncoderArchitectures();  // sorted by Hugging Face's name
// Null: there is no such row.
const EncoderArchitecture* FindGgufEncoder(std::string_view name);
const EncoderArchitecture* FindHuggingFaceEncoder(std::string_view model_type);

// All names that are not empty, for people: "bert, modern-bert, ...".
std::string EncoderNames(std::string_view EncoderArchitecture::*of);

}  // namespace mlc
