// Encodings of reshaped, transposed, sliced and concatenated constants.
#include <algorithm>
#include <array>
#include <numeric>

#include "lib/ir/concat_slice.h"
#include "lib/ir/encoding.h"
#include "lib/support/error.h"

namespace mlc {

namespace {

// The tensors that have the shape of the grid.
constexpr std::array kOnGrid = {&Encoding::scale, &Encoding::offset, &Encoding::bias,
                                &Encoding::table};

Dims GridOf(const Encoding& e) {
  Dims grid = e.form == Encoding::Form::kAffine ? e.scale.dims() : e.table.dims();
  if (e.form == Encoding::Form::kPalette) grid.resize(grid.size() - 2);
  return grid;
}

// The dimensions that the grid divides: those of the data, or those of the mask for the values of a
// sparse constant.
const Dims& ServedBy(const Encoding& e) { return e.mask ? e.mask.dims() : e.data.dims(); }

// The grid for the same elements, in the same order, under other dimensions; nullopt if a block
// would not be a box. Dimensions are matched in the smallest groups with equal products.
std::optional<Dims> Regrouped(const Dims& grid, const Dims& from, const Dims& to) {
  Dims result(to.size(), 1);
  for (size_t f = 0, t = 0; f < from.size() || t < to.size();) {
    size_t f0 = f, t0 = t;
    int64_t a = 1, b = 1;
    do {
      if (a <= b && f < from.size())
        a *= from[f++];
      else if (t < to.size())
        b *= to[t++];
      else
        return std::nullopt;
    } while (a != b);
    // The block of the group as a single dimension: whole inner dimensions, at most one that is
    // split, and outer dimensions of block size 1.
    int64_t block = 1;
    bool cut = false;
    for (size_t i = f; i-- > f0;) {
      if (from[i] == 1) continue;
      if (cut && grid[i] != from[i]) return std::nullopt;
      if (!cut) block *= from[i] / grid[i];
      cut |= grid[i] != 1;
    }
    for (size_t i = t; i-- > t0;) {
      int64_t part = std::gcd(block, to[i]);
      if (part != block && part != to[i]) return std::nullopt;
      result[i] = to[i] / part;
      block /= part;
    }
    if (block != 1) return std::nullopt;
  }
  return result;
}

// Replaces the grid of an encoding by one with the same number of cells.
Encoding WithGrid(Encoding e, const Dims& grid) {
  for (auto member : kOnGrid) {
    Tensor& tensor = e.*member;
    if (!tensor) continue;
    Dims dims = grid;
    if (member == &Encoding::table) dims.insert(dims.end(), {e.entries(), e.vector()});
    tensor = tensor.Reshaped(std::move(dims));
  }
  return e;
}

Encoding WithTransposedGrid(Encoding e, const std::vector<int>& perm) {
  for (auto member : kOnGrid) {
    Tensor& tensor = e.*member;
    if (!tensor) continue;
    std::vector<int> order = perm;
    if (member == &Encoding::table) {
      auto rank = static_cast<int>(perm.size());
      order.insert(order.end(), {rank, rank + 1});
    }
    tensor = tensor.Transposed(order);
  }
  return e;
}

// The encoding of elements [begin, end) along an axis.
std::optional<Encoding> WithSlicedGrid(Encoding e, int axis, int64_t begin, int64_t end) {
  int64_t cells = GridOf(e)[axis], block = ServedBy(e)[axis] / cells;
  int64_t first = begin / block, last = (end + block - 1) / block;
  if (last - first > 1 && (begin % block || end % block)) return std::nullopt;
  for (auto member : kOnGrid)
    if (e.*member) e.*member = Slice(e.*member, axis, first, last);
  return e;
}

// Concatenates the grids of several encodings along an axis; nullopt if their block sizes differ. A
// single cell shared by all is extended.
std::optional<Encoding> WithJoinedGrids(const std::vector<const Encoding*>& parts, int axis) {
  Encoding e = *parts[0];
  const Dims grid = GridOf(e), served = ServedBy(e);
  bool same = grid[axis] == 1, joins = true;
  for (const Encoding* part : parts) {
    Dims other = GridOf(*part);
    for (auto member : kOnGrid) {
      const Tensor &a = e.*member, &b = part->*member;
      if (static_cast<bool>(a) != static_cast<bool>(b) || (a && a.dtype() != b.dtype()))
        return std::nullopt;
      same = same && (!a || a.SameBytes(b));
      if (member == &Encoding::table && a)
        joins = joins && e.entries() == part->entries() && e.vector() == part->vector();
    }
    for (size_t d = 0; d < grid.size(); ++d)
      joins = joins && served[d] / grid[d] == ServedBy(*part)[d] / other[d];
  }
  if (same) return e;
  if (!joins) return std::nullopt;
  for (auto member : kOnGrid) {
    if (!(e.*member)) continue;
    std::vector<Tensor> tensors;
    for (const Encoding* part : parts) tensors.push_back(part->*member);
    e.*member = Join(tensors, axis);
  }
  return e;
}

// Decodes a sparse constant.
Tensor Dense(const Tensor& values, const Tensor& mask) {
  Encoding e{
      .form = Encoding::Form::kSparse, .dtype = values.dtype(), .data = values, .mask = mask};
  return DecodedFrom(std::make_shared<const Encoding>(std::move(e)));
}

// The values of a sparse constant whose elements are rearranged. `moved` is the rearranged mask;
// move(tensor) rearranges a tensor, and move_grid(encoding) rearranges a grid.
template <class Move, class MoveGrid>
std::optional<Tensor> MovedValues(const Tensor& values, const Tensor& mask, const Tensor& moved,
                                  Move&& move, MoveGrid&& move_grid) {
  const Encoding* e = values.encoding();
  if (!e) return Taken(move(Dense(values, mask)), moved);
  if (!e->mask || e->form == Encoding::Form::kSparse || e->dims() != e->data.dims() ||
      !e->mask.SameBytes(mask))
    return std::nullopt;
  std::optional<Encoding> result = move_grid(*e);
  std::optional<Tensor> data = MovedValues(e->data, mask, moved, move, move_grid);
  if (!result || !data) return std::nullopt;
  result->data = *std::move(data);
  result->mask = moved;
  return Tensor::Encoded(*std::move(result)).Cast(values.dtype());
}

template <class Move, class MoveGrid>
std::optional<Encoding> MovedSparse(const Encoding& e, Move&& move, MoveGrid&& move_grid) {
  Tensor mask = move(e.mask);
  std::optional<Tensor> data = MovedValues(e.data, e.mask, mask, move, move_grid);
  if (!data || data->size() == 0) return std::nullopt;
  return Encoding{.form = Encoding::Form::kSparse,
                  .dtype = e.dtype,
                  .data = *std::move(data),
                  .mask = std::move(mask)};
}

// Concatenates the values of sparse constants.
std::optional<Tensor> JoinedValues(const std::vector<Tensor>& values,
                                   const std::vector<Tensor>& masks, const Tensor& joined,
                                   int axis) {
  std::vector<const Encoding*> encodings;
  std::vector<Tensor> parts;
  for (size_t i = 0; i < values.size(); ++i) {
    const Encoding* e = values[i].encoding();
    if (e && e->mask && e->form != Encoding::Form::kSparse && e->dims() == e->data.dims() &&
        e->mask.SameBytes(masks[i]))
      encodings.push_back(e);
    else if (e)
      return std::nullopt;
    parts.push_back(e ? e->data : Dense(values[i], masks[i]));
  }
  if (encodings.empty()) return Taken(Join(parts, axis), joined);
  if (encodings.size() != values.size()) return std::nullopt;
  for (const Encoding* e : encodings)
    if (e->form != encodings[0]->form || e->dtype != encodings[0]->dtype ||
        e->data.dtype() != parts[0].dtype())
      return std::nullopt;
  std::optional<Encoding> result = WithJoinedGrids(encodings, axis);
  std::optional<Tensor> data = JoinedValues(parts, masks, joined, axis);
  if (!result || !data) return std::nullopt;
  result->data = *std::move(data);
  result->mask = joined;
  return Tensor::Encoded(*std::move(result)).Cast(values[0].dtype());
}

}  // namespace

std::optional<Encoding> Reshaped(const Encoding& e, const Dims& dims) {
  if (e.form == Encoding::Form::kSparse) {
    Encoding sparse = e;
    sparse.mask = e.mask.Reshaped(dims);
    if (!e.data.encoding()) return sparse;
    return MovedSparse(
        e, [&](const Tensor& tensor) { return tensor.Reshaped(dims); },
        [&](const Encoding& values) -> std::optional<Encoding> {
          std::optional<Dims> grid = Regrouped(GridOf(values), e.mask.dims(), dims);
          return grid ? std::optional(WithGrid(values, *grid)) : std::nullopt;
        });
  }
  if (e.mask) return std::nullopt;
  Dims indices = dims;
  Encoding result = e;
  if (e.form == Encoding::Form::kPalette && e.vector() > 1) {
    // The axis of vectors must remain a single dimension.
    Dims from = e.dims();
    auto before = [](const Dims& of, int axis) {
      return ElementCount(Dims(of.begin(), of.begin() + axis));
    };
    int axis = 0, rank = static_cast<int>(dims.size());
    while (axis < rank &&
           (dims[axis] != from[e.vector_axis] || before(dims, axis) != before(from, e.vector_axis)))
      ++axis;
    if (axis == rank) return std::nullopt;
    indices[axis] /= e.vector();
    result.vector_axis = axis;
  }
  std::optional<Dims> grid = Regrouped(GridOf(e), e.data.dims(), indices);
  if (!grid) return std::nullopt;
  result = WithGrid(std::move(result), *grid);
  result.data = e.data.Reshaped(std::move(indices));
  return result;
}

std::optional<Encoding> Transposed(const Encoding& e, const std::vector<int>& perm) {
  if (e.form == Encoding::Form::kSparse)
    return MovedSparse(
        e, [&](const Tensor& tensor) { return tensor.Transposed(perm); },
        [&](const Encoding& values) { return std::optional(WithTransposedGrid(values, perm)); });
  if (e.mask) return std::nullopt;
  Encoding result = WithTransposedGrid(e, perm);
  result.data = e.data.Transposed(perm);
  if (e.form == Encoding::Form::kPalette)
    result.vector_axis = static_cast<int>(std::ranges::find(perm, e.vector_axis) - perm.begin());
  return result;
}

std::optional<Encoding> Sliced(const Encoding& e, int axis, int64_t begin, int64_t end) {
  if (begin >= end) return std::nullopt;
  if (e.form == Encoding::Form::kSparse)
    return MovedSparse(
        e, [&](const Tensor& tensor) { return Slice(tensor, axis, begin, end); },
        [&](const Encoding& values) { return WithSlicedGrid(values, axis, begin, end); });
  if (e.mask) return std::nullopt;
  if (e.form == Encoding::Form::kPalette && axis == e.vector_axis) {
    if (begin % e.vector() || end % e.vector()) return std::nullopt;
    begin /= e.vector(), end /= e.vector();
  }
  std::optional<Encoding> result = WithSlicedGrid(e, axis, begin, end);
  if (result) result->data = Slice(e.data, axis, begin, end);
  return result;
}

std::optional<Encoding> Joined(const std::vector<const Encoding*>& parts, int axis) {
  const Encoding& first = *parts.at(0);
  std::vector<Tensor> data, masks;
  for (const Encoding* part : parts) {
    bool sparse = part->form == Encoding::Form::kSparse;
    if (part->form != first.form || part->dtype != first.dtype ||
        part->data.dtype() != first.data.dtype() || (part->mask && !sparse) ||
        part->vector_axis != first.vector_axis)
      return std::nullopt;
    data.push_back(part->data);
    masks.push_back(part->mask);
  }
  if (first.form == Encoding::Form::kSparse) {
    Tensor mask = Join(masks, axis);
    std::optional<Tensor> values = JoinedValues(data, masks, mask, axis);
    if (!values) return std::nullopt;
    return Encoding{.form = Encoding::Form::kSparse,
                    .dtype = first.dtype,
                    .data = *std::move(values),
                    .mask = std::move(mask)};
  }
  std::optional<Encoding> result = WithJoinedGrids(parts, axis);
  if (result) result->data = Join(data, axis);
  return result;
}

}  // namespace mlc
