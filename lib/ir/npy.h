// lib/ir/npy.h - numpy's array files: .npy, and .npz archives of them.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "lib/ir/tensor.h"

namespace mlc {

// Booleans, integers and floats of 8 to 64 bits in either byte order, C or Fortran order. The
// tensor stays a slice of the mapped file where it can. Error "bad-file" for anything damaged,
// without allocating what the file only claims to have; "unsupported-dtype" for strings, objects,
// complex numbers and records.
Tensor ReadNpy(const std::filesystem::path& path);

// The arrays of an archive by name, without ".npy"; other members are ignored. Stored and deflated
// members, checked by their CRC. Error "resource-limit" for a deflated member of more than 4 GiB.
std::map<std::string, Tensor> ReadNpz(const std::filesystem::path& path);

// Writes elements in C order as they stream. What numpy lacks is widened: bf16 and fp8 to float32,
// sub-byte integers to 8 bits; strings, taken as UTF-8, become its Unicode of fixed width. The
// file appears when it is whole. Errors as Staging has them.
void WriteNpy(const std::filesystem::path& path, const Tensor& tensor);

}  // namespace mlc
