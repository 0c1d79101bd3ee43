#include "lib/lower/image_input.h"

#include <algorithm>

namespace mlc::lower {

Value* AddImageInput(Builder& b, Function& function, std::string_view name, const Shape& shape,
                     const ImportOptions::Image& image) {
  Value* value = function.AddInput(name, Type::Tensor(DType::kFp32, shape));
  function.inputs.push_back({.name = value->name, .feature = image.feature});
  b.SetName(value->name + "_in");
  const int64_t channels = image.feature == Port::Feature::kImageGray ? 1 : 3;
  auto apply = [&](std::string_view op, const std::vector<float>& numbers, float neutral) {
    if (std::ranges::all_of(numbers, [&](float number) { return number == neutral; })) return;
    Tensor each = numbers.size() == 1 ? Tensor::Scalar(numbers[0])
                                      : Tensor::Of<float>({1, channels, 1, 1}, numbers);
    value = b.Make(op, {{"x", value}, {"y", each}});
  };
  apply("mul", image.scale, 1);
  apply("add", image.bias, 0);
  return value;
}

}  // namespace mlc::lower
