// Lists of tensors of one type, which grow when written.
//
// At run time, a list is a single tensor [length, ...] with its elements as rows. Unwritten
// elements are zero; if their size is unknown, they are empty until the first write.
#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "lib/ir/program.h"
#include "lib/ops/eval.h"
#include "lib/ops/range_rules.h"
#include "lib/ops/row.h"

namespace mlc {

namespace {

constexpr int64_t kMostElements = int64_t{1} << 31;  // in total over all elements of the list

const Type& ElementOf(const InferContext& context) {
  const Type& list = context.type("ls");
  if (list.kind != Type::Kind::kList || !list.elements[0].is_tensor())
    context.Fail("ls is {}, expected a list of tensors", list.ToString());
  return list.elements[0];
}

// A list of known length does not grow.
Dim LengthAfterWrite(InferContext& context) {
  const Dim& length = context.type("ls").length;
  return length.is_constant() ? length : context.Fresh("length");
}

// Requires that the value matches the element type of the list.
void CheckElement(InferContext& context, const Type& value) {
  const Type& element = ElementOf(context);
  if (value.dtype != element.dtype || !MayEqual(value.shape, element.shape))
    context.Fail("value is {}, but the list elements are {}", value.ToString(), element.ToString());
}

void InferMakeList(InferContext& context) {
  std::optional<DType> dtype = ParseDType(context.String("dtype"));
  constexpr DTypeSet kHeld =
      SetOf(DType::kBool) | SetOf(DType::kFp16) | SetOf(DType::kFp32) | SetOf(DType::kInt32);
  if (!dtype || !Contains(kHeld, *dtype))
    context.Fail("dtype is \"{}\", expected bool, fp16, fp32 or int32", context.String("dtype"));
  Shape shape;
  std::map<std::string, Dim> others;
  // A symbol of the function, or else a new symbol per name; equal names mean equal sizes.
  auto named = [&](const std::string& name) {
    if (context.symbols().contains(name)) return Dim::Symbol(name);
    auto it = others.find(name);
    return it != others.end() ? it->second
                              : others.emplace(name, context.Fresh("size")).first->second;
  };
  for (int i = 0; i < context.count("elem_shape"); ++i) {
    Tensor dim = context.value("elem_shape", i);
    if (!dim || dim.size() != 1)
      throw Error("needs-constant",
                  "make_list: each value of elem_shape must be a constant with one element");
    if (dim.dtype() == DType::kString)
      shape.push_back(named(dim.strings()[0]));
    else if (dim.Int(0) >= 0)
      shape.push_back(dim.Int(0));
    else
      context.Fail("invalid dimension {} in elem_shape", dim.Int(0));
  }
  Tensor length = context.value("init_length");
  bool grows = context.Bool("dynamic_length");
  if (length && length.size() == 1 && length.Int(0) < 0)
    context.Fail("init_length is {}", length.Int(0));
  context.Result(Type::List(Type::Tensor(*dtype, std::move(shape)),
                            length && !grows ? Dim(length.Int(0)) : context.Fresh("length")));
}

void EvalMakeList(EvalContext& context) {
  DType dtype = *ParseDType(context.String("dtype"));
  Dims dims = {std::max<int64_t>(context.Int("init_length"), 0)};
  for (int i = 0; i < context.count("elem_shape"); ++i) {
    Tensor dim = context.in("elem_shape", i);
    dims.push_back(dim.dtype() == DType::kString ? 0 : dim.Int(0));
  }
  if (ElementCount(dims) > kMostElements || dims[0] > kMostElements)
    throw Error("resource-limit", "a list of {} elements is too long", dims[0]);
  context.Set(Tensor::Full(dtype, dims, 0));
}

void InferListLength(InferContext& context) {
  ElementOf(context);
  context.Result(DType::kInt32, {});
  const Dim& length = context.type("ls").length;
  if (length.is_constant()) context.Elements({length});
}
void EvalListLength(EvalContext& context) {
  context.Set(Tensor::Scalar<int32_t>(static_cast<int32_t>(context.in("ls").dims()[0])));
}

int64_t CheckIndex(const OpContext& context, int64_t index, int64_t length) {
  if (index < 0 || index >= length)
    context.Fail("index {} is out of range for a list of length {}", index, length);
  return index;
}

void InferListRead(InferContext& context) { context.Result(ElementOf(context)); }
void EvalListRead(EvalContext& context) {
  Tensor list = context.in("ls");
  int64_t index = CheckIndex(context, context.Int("index"), list.dims()[0]);
  context.Set(
      list.Rows(index, index + 1).Reshaped(Dims(list.dims().begin() + 1, list.dims().end())));
}

void InferListGather(InferContext& context) {
  const Type& element = ElementOf(context);
  if (context.rank("indices") != 1) context.Fail("indices must be a vector");
  Shape shape = {context.shape("indices")[0]};
  shape.insert(shape.end(), element.shape.begin(), element.shape.end());
  context.Result(element.dtype, std::move(shape));
}
void EvalListGather(EvalContext& context) {
  Tensor list = context.in("ls"), indices = context.in("indices");
  Dims dims = list.dims();
  int64_t length = std::exchange(dims[0], indices.size());
  std::byte* to = nullptr;
  Tensor result = Tensor::Allocate(list.dtype(), dims, &to);
  size_t row = length ? list.byte_size() / static_cast<size_t>(length) : 0;
  Pin<std::byte> all = list.bytes();
  const std::byte* from = all.data();
  for (int64_t i = 0; i < indices.size(); ++i) {
    size_t index = static_cast<size_t>(CheckIndex(context, indices.Int(i), length));
    if (row) std::memcpy(to + static_cast<size_t>(i) * row, from + index * row, row);
  }
  context.Set(result);
}

// Sets the result to the list with the rows of `values` stored at `indices`, extended if an index
// is beyond its end.
void SetWritten(EvalContext& context, std::span<const int64_t> indices, const Tensor& values) {
  const Dims old = context.in("ls").dims();
  Dims dims = values.dims();
  dims[0] = old[0];
  for (int64_t index : indices) {
    if (index < 0) context.Fail("negative list index {}", index);
    dims[0] = std::max(dims[0], index + 1);
  }
  bool known = std::equal(dims.begin() + 1, dims.end(), old.begin() + 1);
  if (!known && ElementCount(old) > 0)
    context.Fail("value is {}, unlike other elements of the list",
                 Type::Tensor(values.dtype(), ToShape(values.dims())).ToString());
  if (ElementCount(dims) > kMostElements)
    throw Error("resource-limit", "a list of {} elements is too long", dims[0]);
  std::byte* to = nullptr;
  Tensor result;
  if (dims == old) {
    result = context.Change("ls", &to);
  } else {
    const Tensor list = context.in("ls");
    result = Tensor::Allocate(list.dtype(), dims, &to);
    std::memset(to, 0, result.byte_size());
    if (list.size() > 0) list.Read(0, list.size(), to);
  }
  if (size_t size = result.byte_size()) {
    size_t row = size / static_cast<size_t>(dims[0]);
    Pin<std::byte> all = values.bytes();
    const std::byte* from = all.data();
    for (size_t i = 0; i < indices.size(); ++i)
      std::memcpy(to + static_cast<size_t>(indices[i]) * row, from + i * row, row);
  }
  context.Set(std::move(result));
}

void InferListWrite(InferContext& context) {
  CheckElement(context, context.type("value"));
  context.Result(Type::List(ElementOf(context), LengthAfterWrite(context)));
}
void EvalListWrite(EvalContext& context) {
  Tensor value = context.in("value");
  Dims row = value.dims();
  row.insert(row.begin(), 1);
  int64_t index = context.Int("index");
  SetWritten(context, {&index, 1}, value.Reshaped(row));
}

void InferListScatter(InferContext& context) {
  Type value = context.type("value");
  if (value.rank() == 0 || context.rank("indices") != 1)
    context.Fail("indices must be a vector, and value must have one element per index");
  const Dim &count = context.shape("indices")[0], &rows = value.shape[0];
  if (count.is_constant() && rows.is_constant() && !(count == rows))
    context.Fail("{} indices do not match {} elements", count.ToString(), rows.ToString());
  value.shape.erase(value.shape.begin());
  CheckElement(context, value);
  context.Result(Type::List(ElementOf(context), LengthAfterWrite(context)));
}
void EvalListScatter(EvalContext& context) {
  SetWritten(context, context.in("indices").Ints(), context.in("value"));
}

Interval RangeLength(const RangeContext&, int) { return {0, static_cast<double>(kMostElements)}; }

constexpr OpRow kListRows[] = {
    {.name = "list_gather",
     .doc = "the list elements at indices, stacked into one tensor",
     .signatures = {{{kIos15, "ls:list indices:int32"}}},
     .infer = InferListGather,
     .eval = EvalListGather,
     .effect = Effect::kList,
     .no_range = "list contents are not analysed"},
    {.name = "list_length",
     .doc = "the number of elements of a list",
     .signatures = {{{kIos15, "ls:list"}}},
     .infer = InferListLength,
     .eval = EvalListLength,
     .effect = Effect::kList,
     .range = RangeLength},
    {.name = "list_read",
     .doc = "the list element at index",
     .signatures = {{{kIos15, "ls:list index:int32"}}},
     .infer = InferListRead,
     .eval = EvalListRead,
     .effect = Effect::kList,
     .no_range = "list contents are not analysed"},
    {.name = "list_scatter",
     .doc = "the list with the rows of value stored at indices",
     .signatures = {{{kIos15, "ls:list indices:int32 value:T | T=fp16/fp32/bool/int32"}}},
     .infer = InferListScatter,
     .eval = EvalListScatter,
     .effect = Effect::kList,
     .no_range = "a list"},
    {.name = "list_write",
     .doc = "the list with value stored at index",
     .signatures = {{{kIos15, "ls:list index:int32 value:T | T=fp16/fp32/bool/int32"}}},
     .infer = InferListWrite,
     .eval = EvalListWrite,
     .effect = Effect::kList,
     .no_range = "a list"},
    {.name = "make_list",
     .doc = "a new list of tensors; elem_shape may contain symbol names",
     .signatures = {{{kIos15,
                      "init_length:int32=1 dynamic_length:bool!=true elem_shape:int32/string... "
                      "dtype:string!=fp32"}}},
     .infer = InferMakeList,
     .eval = EvalMakeList,
     .effect = Effect::kList,
     .no_range = "a list"},
};

}  // namespace

std::span<const OpRow> ListRows() { return kListRows; }

}  // namespace mlc
