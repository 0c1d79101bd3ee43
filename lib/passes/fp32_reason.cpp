#include "lib/passes/fp32_reason.h"

#include <array>

namespace mlc::passes {

namespace {
// Indexed by Fp32Reason.
constexpr std::array<std::string_view, 9> kNames = {
    "", "overflow", "index", "angle", "logarithm", "loop", "no-fp16-form", "rounding", "option"};
}  // namespace

std::string_view Name(Fp32Reason reason) { return kNames[static_cast<size_t>(reason)]; }

}  // namespace mlc::passes
