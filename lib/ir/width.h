// lib/ir/width.h - elements as words: what only moves them asks how wide they are, not what they mean.
#pragma once

#include <cstdint>

#include "lib/ir/dtype.h"
#include "lib/support/error.h"

namespace mlc {

// Calls f(uintN_t{}) with the unsigned integer as wide as an element of dtype. Error
// "unsupported-dtype" for strings and types below a byte.
template <class F>
decltype(auto) ByWidth(DType dtype, F&& f) {
  if (dtype != DType::kString) switch (Bits(dtype)) {
      case 8:
        return f(uint8_t{});
      case 16:
        return f(uint16_t{});
      case 32:
        return f(uint32_t{});
      case 64:
        return f(uint64_t{});
    }
  throw Error("unsupported-dtype", fmt::format("cannot rearrange elements of {}", Name(dtype)));
}

}  // namespace mlc
