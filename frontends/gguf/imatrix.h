// frontends/gguf/imatrix.h - reads importance matrices of llama.cpp: the mean squares of what the
// matrices of a model are multiplied by.
//
// The format is that of llama.cpp's tools/imatrix: a GGUF file whose general.type is "imatrix", with
// the tensors NAME.in_sum2 [matrices, columns], the sums of squares, and NAME.counts [matrices], the
// numbers of vectors; there are several matrices only for experts. The older format (.dat) is not
// read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace mlc::gguf {

struct Importance {
  int64_t matrices = 1, columns = 0;
  std::vector<float> squares;  // [matrices, columns]: means
  std::vector<int64_t> counts;
};
struct Imatrix {
  std::map<std::string, Importance> tensors;  // by the name of the matrix
  int64_t chunks = 0;                         // of text; 0: unknown
};

bool IsImatrix(const std::filesystem::path& path);  // never throws
// Error "bad-file" if a tensor is missing or has another shape or type, or if a number is negative
// or not finite.
Imatrix ReadImatrix(const std::filesystem::path& path);

}  // namespace mlc::gguf
