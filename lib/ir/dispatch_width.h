// lib/ir/dispatch_width.h - dispatches on the width of an element, for operations that move
// elements without interpreting them.
#pragma once

#include <cstdint>

#include "lib/ir/dtype.h"
#include "lib/support/error.h"

namespace mlc {

// Calls f(uintN_t{}) with the unsigned integer type that has the width of dtype. Error
// "unsupported-dtype" for strings and sub-byte types.
template <class F>
decltype(auto) DispatchWidth(DType dtype, F&& f) {
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
  throw Error("unsupported-dtype", "cannot rearrange elements of {}", Name(dtype));
}

}  // namespace mlc
