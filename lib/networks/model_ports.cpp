#include "lib/networks/model_ports.h"

#include "lib/lower/image_input.h"

namespace mlc::networks {

Value* AddPictureInput(Builder& b, Function& function, const PictureInput& picture) {
  const Shape shape = {1, picture.channels, picture.size.height, picture.size.width};
  Value* pixels = nullptr;
  if (picture.image) {
    pixels = lower::AddImageInput(b, function, picture.name, shape, *picture.image);
  } else {
    pixels = function.AddInput(picture.name, Type::Tensor(DType::kFp32, shape));
    function.inputs.push_back({.name = pixels->name});
  }
  Port& port = function.inputs.back();
  port.source_name = picture.name;
  port.source_dtype = DType::kFp32;
  port.source_shape = shape;
  port.description = picture.description;
  return pixels;
}

Value* AddTokenInput(Function& function, const char* name, const Symbol& sizes) {
  const bool fixed = sizes.low == sizes.high;
  const Shape shape = {1,
                       fixed ? Dim(sizes.low) : Dim::Symbol(function.FreshSymbol("tokens", sizes))};
  Value* value = function.AddInput(name, Type::Tensor(DType::kInt32, shape));
  function.inputs.push_back({.name = value->name,
                             .source_name = name,
                             .source_dtype = DType::kInt32,
                             .source_shape = shape});
  return value;
}

void AddOutput(Function& function, Value* value, const std::string& name) {
  function.Rename(value, name);
  function.outputs.push_back({.name = value->name,
                              .source_name = name,
                              .source_dtype = DType::kFp32,
                              .source_shape = value->type.shape});
}

}  // namespace mlc::networks
