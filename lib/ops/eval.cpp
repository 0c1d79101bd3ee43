#include "lib/ops/eval.h"

#include <algorithm>
#include <cmath>

namespace mlc {

Tensor MapFloats(const Tensor& x, const std::function<double(double)>& f) {
  return Dispatch(x.dtype(), [&]<class T>(T) -> Tensor {
    if constexpr (kIsFloat<T>)
      return Map<T>(x, f);
    else
      throw Error("unsupported-dtype", "{} arithmetic is not supported", Name(x.dtype()))
          .Expected("floats");
  });
}

Shape BroadcastShapes(const OpContext& context, const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape out = longer;
  size_t lead = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    const Dim &x = longer[lead + i], &y = shorter[i];
    if (x == y || y == Dim(1)) continue;
    if (x.is_constant() && y.is_constant() && x != Dim(1))
      context.Fail("shapes {} and {} do not broadcast", ToString(a), ToString(b));
    if (x == Dim(1) || y.is_constant())
      out[lead + i] = y;
    else if (!x.is_constant())
      out[lead + i] = Max(x, y);  // equal at run time, or one of them is 1
  }
  return out;
}

bool MayEqual(const Shape& a, const Shape& b) {
  return std::ranges::equal(a, b, [](const Dim& x, const Dim& y) {
    return !x.is_constant() || !y.is_constant() || x == y;
  });
}

void InferSameAsX(InferContext& context) { context.Result(context.type("x")); }

void InferFloatX(InferContext& context) {
  if (!IsFloat(context.dtype("x")))
    context.Fail("x is {}, expected a float type", context.type("x").ToString());
  context.Result(context.type("x"));
}

DType SharedDType(const OpContext& context, std::string_view a, std::string_view b) {
  if (context.dtype(a) != context.dtype(b))
    context.Fail("{} is {} and {} is {}, expected the same element type", a,
                 context.type(a).ToString(), b, context.type(b).ToString());
  return context.dtype(a);
}

double CountKnown(const OpContext& context, std::string_view name, int i, size_t from) {
  double product = 1;
  const Shape& shape = context.shape(name, i);
  for (size_t d = from; d < shape.size(); ++d)
    product *= static_cast<double>(shape[d].is_constant() ? shape[d].constant() : 1);
  return product;
}

double WorkOfWeight(const OpContext& context) { return CountKnown(context, "weight", 0, 1); }

void CheckScalars(const OpContext& context, std::initializer_list<std::string_view> names) {
  for (std::string_view name : names)
    if (context.def().Find(name) >= 0 && context.rank(name) != 0)
      context.Fail("{} is {}, expected a scalar", name, context.type(name).ToString());
}

void CheckPerChannel(const OpContext& context, std::initializer_list<std::string_view> names) {
  const Dim& channels = context.shape("x")[1];
  for (std::string_view name : names) {
    if (!context.has(name)) continue;
    const Shape& shape = context.shape(name);
    if (shape.size() != 1 || (shape[0] != channels && channels.is_constant()))
      context.Fail("{} is {}, expected one element per channel ({}) of x", name,
                   context.type(name).ToString(), channels.ToString());
  }
}

int64_t VectorLength(const OpContext& context, std::string_view name) {
  const Shape& shape = context.shape(name);
  if (shape.size() != 1)
    context.Fail("{} is {}, expected a vector", name, context.type(name).ToString());
  if (!shape[0].is_constant())
    throw Error("needs-constant", "{}: the length of \"{}\" must be known at compile time",
                context.def().name, name);
  return shape[0].constant();
}

std::optional<std::vector<Dim>> WholeElements(const OpContext& context, std::string_view name,
                                              int i) {
  const Type& type = context.type(name, i);
  if (!type.is_tensor() || type.rank() > 1) return std::nullopt;
  if (!IsFloat(type.dtype)) return context.Elements(name, i);
  if (type.dtype != DType::kFp32 && type.dtype != DType::kFp64) return std::nullopt;
  Tensor value = context.value(name, i);
  if (!value) return context.Elements(name, i);
  if (value.size() > 64) return std::nullopt;  // too long for a shape
  std::vector<Dim> elements;
  for (double element : value.Doubles()) {
    if (std::fabs(element) > 0x1p53 || element != std::floor(element)) return std::nullopt;
    elements.push_back(Dim(static_cast<int64_t>(element)));
  }
  return elements;
}

}  // namespace mlc
