#include "lib/ir/concat_slice.h"

#include <algorithm>
#include <numeric>

#include "lib/ir/encoding.h"
#include "lib/ir/subbyte.h"
#include "lib/support/error.h"

namespace mlc {

namespace {

void CheckType(const Tensor& x) {
  if (x.dtype() == DType::kString)
    throw Error("unsupported-dtype", "cannot rearrange elements of type {}", Name(x.dtype()));
}

Tensor LazyAbove(DType dtype, const Dims& dims, Tensor::ReadFn read) {
  Tensor result = Tensor::Lazy(dtype, dims, std::move(read));
  return result.size() > Tensor::kLazyElements ? result : result.InMemory();
}

int64_t Product(const Dims& dims, size_t begin, size_t end) {
  return std::accumulate(dims.begin() + begin, dims.begin() + end, int64_t{1}, std::multiplies<>());
}

struct Row {
  std::vector<Tensor> pieces;
  std::vector<int64_t> ends;  // end offset of each piece within a row

  void Read(int64_t first, int64_t count, std::byte* out) const {
    const size_t width = Bits(pieces[0].dtype()) / 8;
    int64_t row = first / ends.back(), column = first % ends.back();
    size_t k = std::ranges::upper_bound(ends, column) - ends.begin();
    while (count > 0) {
      int64_t begin = k ? ends[k - 1] : 0, size = ends[k] - begin;
      int64_t run = std::min(count, ends[k] - column);
      if (run > 0) pieces[k].Read(row * size + column - begin, run, out);
      out += run * width;
      count -= run;
      column += run;
      if (++k == ends.size()) {
        k = 0;
        column = 0;
        ++row;
      }
    }
  }
};

}  // namespace

Tensor Slice(const Tensor& x, int axis, int64_t begin, int64_t end) {
  CheckType(x);
  Dims dims = x.dims();
  if (begin == 0 && end == dims[axis]) return x;
  dims[axis] = end - begin;
  if (ElementCount(dims) == 0) return Tensor::Owned(x.dtype(), std::move(dims), {});
  if (x.encoding())
    if (std::optional<Encoding> encoding = Sliced(*x.encoding(), axis, begin, end))
      return Tensor::Encoded(*std::move(encoding)).Cast(x.dtype());
  if (Product(dims, 0, axis) == 1) {
    Dims inner(x.dims().begin() + axis, x.dims().end());
    return x.Reshaped(std::move(inner)).Rows(begin, end).Reshaped(std::move(dims));
  }
  if (IsSubByte(x.dtype()))
    return Slice(x.Cast(InBytes(x.dtype())), axis, begin, end).Cast(x.dtype());
  const int64_t inner = Product(dims, axis + 1, dims.size()), row = x.dims()[axis] * inner,
                kept = dims[axis] * inner, skipped = begin * inner;
  const size_t width = Bits(x.dtype()) / 8;
  return LazyAbove(x.dtype(), dims, [=](int64_t first, int64_t count, std::byte* out) {
    while (count > 0) {
      int64_t at = first % kept, run = std::min(count, kept - at);
      x.Read(first / kept * row + skipped + at, run, out);
      first += run, count -= run, out += run * width;
    }
  });
}

Tensor SideBySide(const std::vector<Tensor>& pieces, int64_t outer, const Dims& dims) {
  std::vector<Tensor> used;
  for (const Tensor& piece : pieces)
    if (piece.size() > 0) used.push_back(piece);
  if (used.empty()) return pieces.at(0).Reshaped(dims);
  if (used.size() == 1) return used[0].Reshaped(dims);
  CheckType(used[0]);
  const DType dtype = used[0].dtype();
  Row row;
  int64_t end = 0;
  for (const Tensor& piece : used) {
    row.pieces.push_back(IsSubByte(dtype) ? piece.Cast(InBytes(dtype)) : piece);
    row.ends.push_back(end += piece.size() / outer);
  }
  auto shared = std::make_shared<const Row>(std::move(row));
  return LazyAbove(InBytes(dtype), dims,
                   [shared](int64_t first, int64_t count, std::byte* out) {
                     shared->Read(first, count, out);
                   })
      .Cast(dtype);
}

Tensor Join(const std::vector<Tensor>& parts, int axis) {
  Dims dims = parts.at(0).dims();
  dims[axis] = 0;
  std::vector<const Encoding*> encodings;
  for (const Tensor& part : parts) {
    dims[axis] += part.dims()[axis];
    if (part.encoding()) encodings.push_back(part.encoding());
  }
  if (encodings.size() == parts.size())
    if (std::optional<Encoding> encoding = Joined(encodings, axis))
      return Tensor::Encoded(*std::move(encoding)).Cast(parts[0].dtype());
  return SideBySide(parts, std::max<int64_t>(Product(dims, 0, axis), 1), dims);
}

}  // namespace mlc
