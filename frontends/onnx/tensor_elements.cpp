#include "frontends/onnx/tensor_elements.h"

#include <onnx/onnx_pb.h>

#include <cstring>
#include <vector>

#include "lib/ir/tensor.h"

namespace mlc::onnx {

using ::onnx::TensorProto;

bool IsFloatTensor(const TensorProto& tensor) {
  switch (tensor.data_type()) {
    case TensorProto::FLOAT:
    case TensorProto::DOUBLE:
    case TensorProto::FLOAT16:
    case TensorProto::BFLOAT16:
      return true;
    default:
      return false;
  }
}

void MakeRaw(TensorProto& tensor) {
  std::string raw;
  const auto append = [&](const auto& values, size_t bytes) {
    for (const auto& value : values) raw.append(reinterpret_cast<const char*>(&value), bytes);
  };
  if (tensor.has_raw_data()) return;
  const size_t int32_bytes = tensor.data_type() == TensorProto::INT32 ? 4 : 2;
  append(tensor.float_data(), 4);
  append(tensor.double_data(), 8);
  append(tensor.int32_data(), int32_bytes);
  append(tensor.int64_data(), 8);
  tensor.clear_float_data();
  tensor.clear_double_data();
  tensor.clear_int32_data();
  tensor.clear_int64_data();
  tensor.set_raw_data(std::move(raw));
}

namespace {

// The bytes of the float `number` (0 or 1) in the type of the tensor.
std::string ElementBytes(int data_type, bool one) {
  const auto bytes = [](auto value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  switch (data_type) {
    case TensorProto::FLOAT:
      return bytes(one ? 1.0f : 0.0f);
    case TensorProto::DOUBLE:
      return bytes(one ? 1.0 : 0.0);
    case TensorProto::FLOAT16:
      return bytes(static_cast<uint16_t>(one ? 0x3c00 : 0));
    default:  // bfloat16
      return bytes(static_cast<uint16_t>(one ? 0x3f80 : 0));
  }
}

// All elements of the tensor have the bytes of its first element.
bool IsUniform(const std::string& raw, size_t element) {
  return raw.size() <= element ||
         std::memcmp(raw.data(), raw.data() + element, raw.size() - element) == 0;
}

}  // namespace

bool IsExternal(const TensorProto& tensor) {
  return tensor.data_location() == TensorProto::EXTERNAL;
}

bool CanSimplify(const TensorProto& given, Simplification how) {
  if (!IsFloatTensor(given)) return false;
  if (IsExternal(given)) return true;
  TensorProto tensor = given;
  MakeRaw(tensor);
  const size_t element = ElementBytes(tensor.data_type(), false).size();
  const std::string& raw = tensor.raw_data();
  if (raw.size() < element) return false;
  const bool uniform = IsUniform(raw, element);
  if (how == Simplification::kUniform) return !uniform;
  return !uniform || (raw.substr(0, element) != ElementBytes(tensor.data_type(), false) &&
                      raw.substr(0, element) != ElementBytes(tensor.data_type(), true));
}

void Simplify(TensorProto& tensor, Simplification how) {
  MakeRaw(tensor);
  std::string element = ElementBytes(tensor.data_type(), how == Simplification::kOne);
  std::string raw = tensor.raw_data();
  if (how == Simplification::kUniform) element = raw.substr(0, element.size());
  for (size_t at = 0; at + element.size() <= raw.size(); at += element.size())
    raw.replace(at, element.size(), element);
  tensor.set_raw_data(std::move(raw));
}

void Shrink(TensorProto& tensor, const std::set<int64_t>& sizes) {
  const bool is_int = tensor.data_type() == TensorProto::INT64;
  if ((!is_int && !IsFloatTensor(tensor)) || IsExternal(tensor)) return;
  MakeRaw(tensor);
  const std::string raw = tensor.raw_data();
  if (is_int) {
    std::vector<int64_t> values(raw.size() / sizeof(int64_t));
    if (!values.empty()) std::memcpy(values.data(), raw.data(), values.size() * sizeof(int64_t));
    for (int64_t& value : values)
      if (sizes.contains(value)) value = 1;
    tensor.set_raw_data(values.data(), values.size() * sizeof(int64_t));
    return;
  }
  const size_t element = ElementBytes(tensor.data_type(), false).size();
  const Dims before(tensor.dims().begin(), tensor.dims().end());
  if (raw.size() != element * static_cast<size_t>(ElementCount(before))) return;
  Dims dims = before;
  for (int64_t& dim : dims)
    if (sizes.contains(dim)) dim = 1;
  const Dims strides = StridesOf(before);
  std::string shrunk;
  Dims at(dims.size());
  for (int64_t i = ElementCount(dims); i > 0; --i) {
    size_t offset = 0;
    for (size_t d = 0; d < dims.size(); ++d) offset += static_cast<size_t>(at[d] * strides[d]);
    shrunk.append(raw, offset * element, element);
    for (size_t d = dims.size(); d-- > 0;) {
      if (++at[d] < dims[d]) break;
      at[d] = 0;
    }
  }
  tensor.set_raw_data(std::move(shrunk));
  tensor.clear_dims();
  for (int64_t dim : dims) tensor.add_dims(dim);
}

}  // namespace mlc::onnx
