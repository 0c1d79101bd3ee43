// lib/networks/architectures.h - the families of decoders that are known, a row of flags each.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/networks/decoder.h"

namespace mlc {

struct Architecture {
  std::string_view gguf;          // as general.architecture has it; empty: not from there
  std::string_view hugging_face;  // as config.json's model_type has it; empty: not from there
  DecoderConfig flags = {};       // as GGUF files want them; `hugging_face` where that differs
  // Models of so many layers divide scores by the root of width / heads, which GGUF says nowhere
  // (llama.cpp, src/models/gemma3.cpp, goes by the layers, too).
  int64_t even_scale_layers = 0;
  // GGUF: only models of so many layers have windows (llama.cpp, src/models/exaone4.cpp); 0: all.
  int64_t windowed_layers = 0;
  // What a folder of Hugging Face has otherwise than GGUF's converter leaves it.
  bool neighbours_there = false;  // pairs that turn together are neighbours there, too
  bool adds_one_there = false;    // scales of norms are stored less 1
  Bend bend_there = flags.bend;   // where config.json says nothing, or it is fixed
  bool fixed_bend_there = false;
};

std::span<const Architecture> Architectures();  // sorted by GGUF's name, those without one last
// Null: there is no such row.
const Architecture* FindGgufArchitecture(std::string_view name);
const Architecture* FindHuggingFaceArchitecture(std::string_view model_type);

// Rows whose names are most like one that has none, the nearest first. `of` says which names: a member
// of Architecture.
std::vector<const Architecture*> NearArchitectures(const std::string& name,
                                                   std::string_view Architecture::*of);
// The error "unsupported-architecture" for it: the nearest one, encoders included, and all.
Error UnknownArchitecture(const std::string& name, std::string_view Architecture::*of);

}  // namespace mlc
