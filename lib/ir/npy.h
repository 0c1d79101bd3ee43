// lib/ir/npy.h - NumPy array files: .npy, and .npz archives.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "lib/ir/tensor.h"

namespace mlc {

// Reads booleans, integers and floats of 8 to 64 bits in either byte order, in C or Fortran order.
// The tensor is a slice of the mapped file where possible. Error "bad-file" if the file is
// malformed; sizes are validated before memory is allocated. Error "unsupported-dtype" for strings,
// objects, complex numbers and records.
Tensor ReadNpy(const std::filesystem::path& path);

// Reads the arrays of an archive, keyed by name without ".npy"; other members are ignored. Supports
// stored and deflated members and verifies their CRC. Error "resource-limit" if a deflated member
// exceeds 4 GiB.
std::map<std::string, Tensor> ReadNpz(const std::filesystem::path& path);

// Writes elements in C order, streaming. Dtypes that NumPy lacks are widened: bf16 and fp8 to
// float32, sub-byte integers to 8 bits; UTF-8 strings become fixed-width Unicode. The file appears
// only once it is complete. Throws the errors of Staging.
void WriteNpy(const std::filesystem::path& path, const Tensor& tensor);

}  // namespace mlc
