#include <algorithm>
#include <cctype>

#include "frontends/coreml/read.h"
#include "lib/coreml/dtypes.h"
#include "proto/mil.pb.h"

namespace mlc::coreml {

namespace {

namespace mil = mlc::schema::mil;

constexpr int kMaxRank = 32;

DType ReadDType(int number) {
  std::optional<DType> dtype = FromMilDataType(number);
  if (!dtype) throw Error("bad-file", "invalid element type of a tensor (number {})", number);
  return *dtype;
}

Dim ReadDim(const mil::Dimension& dim) {
  if (dim.has_constant()) {
    if (dim.constant().size() > INT64_MAX)
      throw Error("bad-file", "invalid dimension {}", dim.constant().size());
    return static_cast<int64_t>(dim.constant().size());
  }
  if (!dim.has_unknown()) throw Error("bad-file", "a dimension has no size");
  if (dim.unknown().variadic())
    throw Error("unsupported-field", "tensors of variable rank are not supported");
  return Dim::Symbol(kOpenDim);
}

[[noreturn]] void WrongCount(int64_t have, const Type& type) {
  throw Error("bad-constant", "a constant of type {} has the wrong number of values: {}",
              type.ToString(), have);
}

template <class T, class Values>
Tensor FromValues(const Values& values, const Type& type, Dims dims) {
  if (values.size() != ElementCount(dims)) WrongCount(values.size(), type);
  std::vector<T> elements(values.begin(), values.end());
  return Tensor::Of<T>(std::move(dims), elements);
}

Tensor ReadImmediate(const mil::TensorValue& value, const Type& type, Dims dims) {
  const DType dtype = type.dtype;
  const auto field = value.value_case();
  if (field == mil::TensorValue::kFloats && dtype == DType::kFp32)
    return FromValues<float>(value.floats().values(), type, std::move(dims));
  if (field == mil::TensorValue::kDoubles && dtype == DType::kFp64)
    return FromValues<double>(value.doubles().values(), type, std::move(dims));
  if (field == mil::TensorValue::kBools && dtype == DType::kBool)
    return FromValues<bool>(value.bools().values(), type, std::move(dims));
  if (field == mil::TensorValue::kLongInts && (dtype == DType::kInt64 || dtype == DType::kUint64))
    return FromValues<int64_t>(value.longints().values(), type, std::move(dims)).Cast(dtype);
  if (field == mil::TensorValue::kInts &&
      (dtype == DType::kInt32 || dtype == DType::kInt16 || dtype == DType::kUint16))
    return FromValues<int32_t>(value.ints().values(), type, std::move(dims)).Cast(dtype);
  if (field == mil::TensorValue::kStrings && dtype == DType::kString) {
    const auto& strings = value.strings().values();
    if (strings.size() != ElementCount(dims)) WrongCount(strings.size(), type);
    return Tensor::Strings(std::move(dims), {strings.begin(), strings.end()});
  }
  if (field == mil::TensorValue::kBytes && dtype != DType::kString && dtype != DType::kBool) {
    const std::string& bytes = value.bytes().values();
    if (bytes.size() != ByteCount(dtype, ElementCount(dims)))
      throw Error("bad-constant", "a constant of type {} has the wrong number of bytes: {}",
                  type.ToString(), bytes.size());
    const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
    return Tensor::Owned(dtype, std::move(dims), {data, data + bytes.size()});
  }
  throw Error("bad-constant", "a constant of type {} is stored in a field for another type",
              type.ToString());
}

}  // namespace

Type ReadType(const mil::ValueType& source) {
  switch (source.type_case()) {
    case mil::ValueType::kTensorType: {
      const mil::TensorType& tensor = source.tensortype();
      if (tensor.rank() != tensor.dimensions_size() || tensor.rank() > kMaxRank)
        throw Error("bad-file", "invalid tensor type: rank {} with {} dimensions", tensor.rank(),
                    tensor.dimensions_size());
      if (tensor.attributes_size())
        throw Error("unsupported-field", "attributes of tensor types are not supported");
      Shape shape;
      for (const mil::Dimension& dim : tensor.dimensions()) shape.push_back(ReadDim(dim));
      return Type::Tensor(ReadDType(tensor.datatype()), std::move(shape));
    }
    case mil::ValueType::kListType:
      return Type::List(ReadType(source.listtype().type()), ReadDim(source.listtype().length()));
    case mil::ValueType::kStateType: {
      Type wrapped = ReadType(source.statetype().wrappedtype());
      if (!wrapped.is_tensor()) throw Error("bad-file", "a state does not hold a tensor");
      return Type::State(std::move(wrapped));
    }
    case mil::ValueType::kTupleType: {
      Type type;
      type.kind = Type::Kind::kTuple;
      for (const mil::ValueType& element : source.tupletype().types())
        type.elements.push_back(ReadType(element));
      return type;
    }
    case mil::ValueType::kDictionaryType: {
      Type type;
      type.kind = Type::Kind::kDict;
      type.elements = {ReadType(source.dictionarytype().keytype()),
                       ReadType(source.dictionarytype().valuetype())};
      return type;
    }
    case mil::ValueType::TYPE_NOT_SET:
      break;
  }
  throw Error("bad-file", "a value has no type");
}

// Reads a list of scalars (class labels, strings or int64) as a vector.
Tensor ReadList(const Type& type, const mil::ListValue& list) {
  DType dtype = type.elements[0].dtype;
  if (!type.elements[0].is_tensor() || type.elements[0].rank() != 0 ||
      (dtype != DType::kString && dtype != DType::kInt64))
    throw Error("unsupported-field", "constants of type {} are not supported", type.ToString());
  std::vector<std::string> strings;
  std::vector<int64_t> ints;
  for (const mil::Value& value : list.values()) {
    const mil::TensorValue& tensor = value.immediatevalue().tensor();
    if (tensor.strings().values_size() == 1)
      strings.push_back(tensor.strings().values(0));
    else if (tensor.longints().values_size() == 1)
      ints.push_back(tensor.longints().values(0));
  }
  size_t found = dtype == DType::kString ? strings.size() : ints.size();
  if (found != static_cast<size_t>(list.values_size()) ||
      type.length != Dim(static_cast<int64_t>(found)))
    throw Error("bad-constant", "a constant of type {} has {} elements of that type",
                type.ToString(), found);
  if (dtype == DType::kInt64) return Tensor::Vector(ints);
  return Tensor::Strings({static_cast<int64_t>(found)}, std::move(strings));
}

Tensor ReadValue(const mil::Value& value, WeightFiles& weights) {
  if (!value.docstring().empty())
    throw Error("unsupported-field", "docString of a constant is not supported");
  Type type = ReadType(value.type());
  if (type.kind == Type::Kind::kList && value.has_immediatevalue())
    return ReadList(type, value.immediatevalue().list());
  if (!type.is_tensor())
    throw Error("unsupported-field", "constants of type {} are not supported", type.ToString());
  if (!IsStatic(type.shape))
    throw Error("bad-constant", "a constant of type {} has a dimension of unknown size",
                type.ToString());
  Dims dims = StaticDims(type.shape);
  if (value.has_blobfilevalue())
    return weights.Read(value.blobfilevalue().filename(), value.blobfilevalue().offset(),
                        type.dtype, dims);
  if (!value.has_immediatevalue() || !value.immediatevalue().has_tensor())
    throw Error("bad-constant", "a constant of type {} has no value", type.ToString());
  return ReadImmediate(value.immediatevalue().tensor(), type, std::move(dims));
}

void CheckIdentifier(const std::string& name) {
  auto legal = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '@'; };
  if (name.empty() || !std::ranges::all_of(name, legal) || name[0] == '@' || std::isdigit(name[0]))
    throw Error("bad-file", "\"{}\" is not a valid MIL identifier", name);
}

std::string ReadString(const mil::Value& value) {
  const auto& strings = value.immediatevalue().tensor().strings().values();
  if (strings.size() != 1) throw Error("bad-file", "expected a scalar string");
  return strings.Get(0);
}

}  // namespace mlc::coreml
