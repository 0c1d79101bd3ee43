#include "lib/ops/strided_view.h"

#include <algorithm>
#include <memory>

#include "lib/ir/concat_slice.h"
#include "lib/ops/eval.h"

namespace mlc {

namespace {

// Elements read at once from a lazy source if the step is not 1.
constexpr int64_t kBlock = 1 << 14;

void Pick(size_t width, const std::byte* in, int64_t step, int64_t count, std::byte* out) {
  auto copy = [&]<class Word>(Word) {
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(out + i * sizeof(Word), in + i * step * static_cast<int64_t>(sizeof(Word)),
                  sizeof(Word));
  };
  switch (width) {
    case 1:
      return copy(uint8_t{});
    case 2:
      return copy(uint16_t{});
    case 4:
      return copy(uint32_t{});
    default:
      return copy(uint64_t{});
  }
}

// Removes dimensions of size 1 and merges neighbours that a single stride can cover.
void Simplify(Dims& dims, Dims& strides) {
  Dims d, s;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 1) continue;
    if (!d.empty() && s.back() == strides[i] * dims[i]) {
      d.back() *= dims[i];
      s.back() = strides[i];
    } else {
      d.push_back(dims[i]);
      s.push_back(strides[i]);
    }
  }
  dims = std::move(d);
  strides = std::move(s);
}

struct View {
  ElementSource source;
  Dims dims, strides;  // simplified, rank at least 1
  int64_t base;

  void Read(int64_t first, int64_t count, std::byte* out) const {
    int last = static_cast<int>(dims.size()) - 1;
    Dims index(dims.size());
    int64_t offset = base;
    for (int d = last; d >= 0; --d) {
      index[d] = first % dims[d];
      first /= dims[d];
      offset += index[d] * strides[d];
    }
    while (count > 0) {
      int64_t run = std::min(count, dims[last] - index[last]);
      source.Copy(offset, strides[last], run, out);
      out += run * source.width();
      count -= run;
      offset += run * strides[last];
      index[last] += run;
      for (int d = last; d > 0 && index[d] == dims[d]; --d) {
        offset += strides[d - 1] - index[d] * strides[d];
        index[d] = 0;
        ++index[d - 1];
      }
    }
  }
};

template <class Reader>
Tensor Make(DType dtype, const Dims& dims, Reader reader) {
  int64_t count = ElementCount(dims);
  if (count > Tensor::kLazyElements) {
    auto shared = std::make_shared<const Reader>(std::move(reader));
    return Tensor::Lazy(dtype, dims, [shared](int64_t first, int64_t n, std::byte* out) {
      shared->Read(first, n, out);
    });
  }
  std::byte* out = nullptr;
  Tensor tensor = Tensor::Allocate(dtype, dims, &out);
  reader.Read(0, count, out);
  return tensor;
}

}  // namespace

ElementSource::ElementSource(Tensor tensor)
    : tensor_(std::move(tensor)),
      width_(DispatchWidth(tensor_.dtype(), [](auto word) { return sizeof(word); })) {
  if (!tensor_.file_view().file) memory_ = tensor_.InPlace(0, tensor_.size()).data();
}

void ElementSource::Copy(int64_t first, int64_t step, int64_t count, std::byte* out) const {
  if (count <= 0) return;
  if (memory_ && step == 1) {
    std::memcpy(out, memory_ + first * width_, count * width_);
  } else if (memory_) {
    Pick(width_, memory_ + first * static_cast<int64_t>(width_), step, count, out);
  } else if (step == 1 || count == 1) {
    tensor_.Read(first, count, out);
  } else {
    int64_t reach = step < 0 ? -step : step;
    int64_t block = reach > kBlock ? 1 : kBlock / std::max<int64_t>(reach, 1);
    std::vector<std::byte> buffer;
    for (int64_t i = 0; i < count; i += block) {
      int64_t n = std::min(block, count - i), from = first + i * step, to = from + (n - 1) * step;
      buffer.resize((std::abs(to - from) + 1) * width_);
      tensor_.Read(std::min(from, to), std::abs(to - from) + 1, buffer.data());
      Pick(width_, buffer.data() + (from - std::min(from, to)) * width_, step, n, out + i * width_);
    }
  }
}

namespace {
// The view as a slice along each axis, to preserve an encoding; an empty Tensor if it is not such a
// slice.
Tensor BoxOf(const Tensor& x, const Dims& dims, const Dims& strides, int64_t base) {
  if (static_cast<int>(dims.size()) != x.rank()) return {};
  Dims own = StridesOf(x.dims());
  Tensor box = x;
  for (int d = 0; d < x.rank(); ++d) {
    int64_t begin = base / own[d];
    base %= own[d];
    if ((dims[d] > 1 && strides[d] != own[d]) || begin + dims[d] > x.dims()[d]) return {};
    box = Slice(box, d, begin, begin + dims[d]);
    if (!box.encoding()) return {};
  }
  return box;
}
}  // namespace

Tensor StridedView(const Tensor& x, const Dims& dims, const Dims& strides, int64_t base) {
  MLC_CHECK(dims.size() == strides.size(), "{} dims, {} strides", dims.size(), strides.size());
  int64_t count = ElementCount(dims);
  if (count == 0) return Tensor::Owned(x.dtype(), dims, {});
  View view{ElementSource(Tensor::Scalar<bool>(false)), dims, strides, base};
  Simplify(view.dims, view.strides);
  int64_t low = base, high = base;
  for (size_t d = 0; d < view.dims.size(); ++d)
    (view.strides[d] < 0 ? low : high) += (view.dims[d] - 1) * view.strides[d];
  MLC_CHECK(low >= 0 && high < x.size(), "view [{}, {}] of {} elements", low, high, x.size());
  if (view.dims.empty() || (view.dims.size() == 1 && view.strides[0] == 1)) {
    if (count == x.size()) return x.Reshaped(dims);
    DispatchWidth(x.dtype(), [](auto) {});
    if (x.encoding())
      if (Tensor box = BoxOf(x, dims, strides, base)) return box;
    return x.Reshaped({x.size()}).Rows(base, base + count).Reshaped(dims);
  }
  if (x.encoding())
    if (Tensor box = BoxOf(x, dims, strides, base)) return box;
  view.source = ElementSource(x);
  return Make(x.dtype(), dims, std::move(view));
}

void CheckResultSize(const OpContext& context, const Dims& dims) {
  constexpr int64_t kMaxElements = int64_t{1} << 32;
  if (int64_t count = ElementCount(dims); count > kMaxElements)
    throw Error("resource-limit", "{}: the result has {} elements", context.def().name, count);
}

Dim Min(const Dim& a, const Dim& b) { return a + b - Max(a, b); }

void PassElements(InferContext& context, std::string_view name) {
  if (context.results.back().rank() > 1) return;
  if (auto elements = WholeElements(context, name)) context.Elements(std::move(*elements));
}

}  // namespace mlc
