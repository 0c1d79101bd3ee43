#include "lib/ir/input_conversion.h"

#include <fmt/ranges.h>

#include <cmath>
#include <limits>
#include <utility>
#include <variant>

#include "lib/support/error.h"

namespace mlc {

namespace {

// Every element type converts losslessly to one of these.
using Numbers = std::variant<std::vector<double>, std::vector<int64_t>, std::vector<uint64_t>>;

Numbers NumbersOf(const Tensor& tensor) {
  if (IsFloat(tensor.dtype())) return tensor.Doubles();
  std::vector<int64_t> ints = tensor.Ints();
  if (tensor.dtype() != DType::kUint64) return ints;
  return std::vector<uint64_t>(ints.begin(), ints.end());
}

template <class A, class B>
bool IsSame(A a, B b) {
  if constexpr (std::is_floating_point_v<A> && std::is_floating_point_v<B>) {
    return a == b || (std::isnan(a) && std::isnan(b));
  } else if constexpr (std::is_floating_point_v<B>) {
    constexpr double kLow = static_cast<double>(std::numeric_limits<A>::min());
    const double high = std::ldexp(1, std::numeric_limits<A>::digits);
    return b >= kLow && b < high && std::trunc(b) == b && static_cast<A>(b) == a;
  } else if constexpr (std::is_floating_point_v<A>) {
    return IsSame(b, a);
  } else {
    return std::cmp_equal(a, b);
  }
}

std::string IndexText(int64_t index, const Dims& dims) {
  if (dims.empty()) return "the scalar";
  Dims place(dims.size());
  for (size_t d = dims.size(); d-- > 0; index /= dims[d]) place[d] = index % dims[d];
  return fmt::format("element [{}]", fmt::join(place, ", "));
}

template <class N>
std::string NumberText(N number, DType dtype) {
  bool narrow = IsFloat(dtype) && dtype != DType::kFp64;  // prints as many digits as the dtype has
  return narrow ? fmt::format("{}", static_cast<float>(number)) : fmt::format("{}", number);
}

// tensor.Cast(to) with checks. `rounds`: floats may be rounded but must stay finite.
Tensor Converted(const Tensor& tensor, DType to, bool rounds, const Given& name) {
  if (tensor.dtype() == to) return tensor;
  auto fail = [&](std::string text) { return Error(name.error_id, "{}: {}", name.what, text); };
  if (tensor.dtype() == DType::kString || to == DType::kString)
    throw fail(fmt::format("the file contains elements of type {}", Name(tensor.dtype())))
        .Expected("{}", Name(to));
  Tensor converted = tensor.Cast(to);
  const Numbers before = NumbersOf(tensor), after = NumbersOf(converted);
  std::visit(
      [&](const auto& from, const auto& into) {
        for (size_t i = 0; i < from.size(); ++i) {
          if (IsSame(from[i], into[i])) continue;
          double was = static_cast<double>(from[i]), is = static_cast<double>(into[i]);
          bool inside = IsFloat(to) ? std::isfinite(was) == std::isfinite(is)
                                    : was != is && std::fabs(was - is) < 1;
          if (rounds && inside && IsFloat(to)) continue;
          Error error = fail(fmt::format("{} is {}, which {} {}",
                                         IndexText(static_cast<int64_t>(i), tensor.dims()),
                                         NumberText(from[i], tensor.dtype()), Name(to),
                                         inside ? "cannot represent exactly" : "cannot represent"));
          error.Expected("{}, or numbers that it represents exactly", Name(to));
          if (inside && IsFloat(tensor.dtype()) && to != DType::kBf16 && Bits(to) >= 8)
            error.Help("{} it to {} at its source", IsFloat(to) ? "convert" : "round and convert",
                       Name(to));
          throw error;
        }
      },
      before, after);
  return converted;
}

}  // namespace

Tensor WithBfloat16(const Tensor& given, DType declared) {
  if (declared != DType::kBf16 || given.dtype() != DType::kUint16) return given;
  Pin<std::byte> bits = given.bytes();
  return Tensor::Owned(DType::kBf16, given.dims(), {bits.begin(), bits.end()});
}

Tensor ConvertInput(const Tensor& given, DType declared, DType border, const Given& name) {
  Tensor exact = Converted(WithBfloat16(given, declared), declared, false, name);
  return Converted(exact, border, true, name);
}

bool IsValueOf(const AbsentInput& input, const Tensor& given) {
  if (input.hash.empty()) return true;
  if (given.dims() != input.dims) return false;
  try {
    return ConvertInput(given, input.dtype, {"bad-input", ""}).hash() == input.hash;
  } catch (const Error&) {
    return false;  // the dtype does not represent the value
  }
}

}  // namespace mlc
