#include "lib/ir/encoding.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "lib/ir/block_grid.h"
#include "lib/ir/dispatch_width.h"
#include "lib/ir/subbyte.h"
#include "lib/support/error.h"

namespace mlc {

namespace {

constexpr int64_t kChunk = 4096;  // elements decoded at a time; a multiple of 8

[[noreturn]] void Fail(std::string text) { throw Error("bad-constant", std::move(text)); }

std::string Text(const Dims& dims) { return fmt::format("[{}]", fmt::join(dims, ", ")); }

void ReadDoubles(const Tensor& tensor, int64_t first, int64_t count, double* out) {
  constexpr int64_t kFew = 64;
  std::array<std::byte, kFew * 8> few;
  std::vector<std::byte> many;
  std::byte* raw = few.data();
  const DType dtype = InBytes(tensor.dtype());
  if (count > kFew) {
    many.resize(ByteCount(dtype, count));
    raw = many.data();
  }
  ReadBytes(tensor, first, count, raw);
  ConvertElements(dtype, raw, DType::kFp64, reinterpret_cast<std::byte*>(out), count);
}

// A mask with the number of set elements before each chunk.
class MaskIndex {
 public:
  explicit MaskIndex(Tensor mask) : mask_(std::move(mask)), before_{0} {
    for (int64_t first = 0; first < mask_.size(); first += kChunk)
      before_.push_back(before_.back() +
                        mlc::CountSet(mask_, first, std::min(first + kChunk, mask_.size())));
  }
  const Tensor& mask() const { return mask_; }
  int64_t count() const { return before_.back(); }
  // The number of set elements before element i.
  int64_t Before(int64_t i) const {
    int64_t chunk = i / kChunk;
    return before_[chunk] + mlc::CountSet(mask_, chunk * kChunk, i);
  }
  // Calls f(index) for the set elements with ordinals [first, first + count), in order.
  template <class F>
  void Places(int64_t first, int64_t count, F&& f) const {
    if (count == 0) return;
    auto chunk = std::ranges::upper_bound(before_, first) - before_.begin() - 1;
    int64_t number = before_[chunk];
    std::array<std::byte, kChunk> bits;
    for (int64_t place = chunk * kChunk; number < first + count; place += kChunk) {
      int64_t n = std::min(kChunk, mask_.size() - place);
      ReadBytes(mask_, place, n, bits.data());
      for (int64_t i = 0; i < n && number < first + count; ++i)
        if (bits[i] != std::byte{0} && number++ >= first) f(place + i);
    }
  }

 private:
  Tensor mask_;
  std::vector<int64_t> before_;
};

// The source of an element of a vector palette: which index, and which element of the entry.
struct Place {
  int64_t index, element;
};
Place PlaceOf(int64_t i, int64_t inner, int64_t size, int64_t vector) {
  int64_t position = i / inner % size;
  return {(i / inner / size * (size / vector) + position / vector) * inner + i % inner,
          position % vector};
}

int64_t InnerOf(const Dims& dims, int axis) {
  return ElementCount(Dims(dims.begin() + axis + 1, dims.end()));
}

// Reads the rows of a table one at a time.
class TableReader {
 public:
  explicit TableReader(const Encoding& encoding)
      : table_(encoding.table), row_(encoding.entries() * encoding.vector()) {}
  const std::byte* At(int64_t cell) {
    if (cell == cell_) return bytes_;
    cell_ = cell;
    std::span<const std::byte> there = table_.InPlace(cell * row_, row_);
    bytes_ = there.data();
    if (there.empty()) {
      buffer_.resize(ByteCount(table_.dtype(), row_));
      table_.Read(cell * row_, row_, buffer_.data());
      bytes_ = buffer_.data();
    }
    return bytes_;
  }

 private:
  const Tensor& table_;
  int64_t row_, cell_ = -1;
  std::vector<std::byte> buffer_;
  const std::byte* bytes_ = nullptr;
};

template <class Word>
Word WordAt(const std::byte* bytes, int64_t i) {
  Word word;
  std::memcpy(&word, bytes + i * static_cast<int64_t>(sizeof(Word)), sizeof(Word));
  return word;
}

// decode(first, count, out) writes at most kChunk elements of `dtype`.
template <class F>
Tensor Chunked(DType dtype, Dims dims, Tensor paced_by, F decode) {
  return Tensor::Lazy(
      dtype, std::move(dims),
      [dtype, decode = std::move(decode)](int64_t first, int64_t count, std::byte* out) {
        for (int64_t done = 0; done < count; done += kChunk)
          decode(first + done, std::min(kChunk, count - done), out + ByteCount(dtype, done));
      },
      std::move(paced_by));
}

using Shared = std::shared_ptr<const Encoding>;

// Affine parameters of consecutive cells.
struct Parameters {
  std::vector<double> scale, offset, bias;
  void Read(const Encoding& e, int64_t first, int64_t count) {
    for (auto [tensor, values] :
         {std::pair(&e.scale, &scale), {&e.offset, &offset}, {&e.bias, &bias}}) {
      values->assign(static_cast<size_t>(count), 0.0);
      if (*tensor) ReadDoubles(*tensor, first, count, values->data());
    }
  }
  double Value(int64_t cell, double x) const {
    return scale[cell] * (x - offset[cell]) + bias[cell];
  }
};

// Like Chunked, for encodings with one data element per value: decode(first, count, data, out)
// receives data elements unpacked to bytes. Computed data are read in the block size that is
// fastest for them.
template <class F>
Tensor ChunkedData(const Shared& e, Dims dims, F decode) {
  constexpr int64_t kSegmentBytes = int64_t{1} << 20;
  auto read = [e, decode = std::move(decode)](int64_t first, int64_t count, std::byte* out) {
    const auto width = static_cast<int64_t>(ByteCount(InBytes(e->data.dtype()), 1));
    const bool there = !IsSubByte(e->data.dtype()) && !e->data.is_lazy();
    const int64_t segment =
        there ? count : std::min(count, std::max(e->data.BlockElements(kSegmentBytes), kChunk));
    std::vector<std::byte> buffer(there ? 0 : static_cast<size_t>(segment * width));
    for (int64_t done = 0; done < count; done += segment) {
      int64_t n = std::min(segment, count - done);
      const std::byte* data = buffer.data();
      if (there)
        data = e->data.InPlace(first + done, n).data();
      else
        ReadBytes(e->data, first + done, n, buffer.data());
      for (int64_t at = 0; at < n; at += kChunk)
        decode(first + done + at, std::min(kChunk, n - at), data + at * width,
               out + ByteCount(e->dtype, done + at));
    }
  };
  return Tensor::Lazy(e->dtype, std::move(dims), std::move(read), e->data);
}

Tensor DecodedAffine(const Shared& e) {
  BlockGrid grid(e->data.dims(), e->scale.dims());
  return ChunkedData(
      e, e->dims(), [e, grid](int64_t first, int64_t count, const std::byte* data, std::byte* out) {
        std::array<double, kChunk> values;
        auto* raw = reinterpret_cast<std::byte*>(values.data());
        ConvertElements(InBytes(e->data.dtype()), data, DType::kFp64, raw, count);
        Parameters parameters;
        const bool bias = static_cast<bool>(e->bias);
        grid.Rows(first, count, [&](int64_t i, int64_t n, int64_t cell, int64_t used) {
          const int64_t block = grid.block();
          parameters.Read(*e, cell, (used + n - 1) / block + 1);
          double* x = &values[i - first];
          for (int64_t c = 0; n > 0; ++c, used = 0) {
            int64_t run = std::min(n, block - used);
            double scale = parameters.scale[c], offset = parameters.offset[c];
            if (bias)
              for (int64_t k = 0; k < run; ++k) x[k] = parameters.Value(c, x[k]);
            else
              for (int64_t k = 0; k < run; ++k) x[k] = scale * (x[k] - offset);
            x += run, n -= run;
          }
        });
        ConvertElements(DType::kFp64, raw, e->dtype, out, count);
      });
}

Tensor DecodedValues(const Shared& e, MaskIndex index) {
  auto mask = std::make_shared<const MaskIndex>(std::move(index));
  BlockGrid grid(e->mask.dims(), e->scale.dims());
  return Chunked(
      e->dtype, e->dims(), e->data, [e, grid, mask](int64_t first, int64_t count, std::byte* out) {
        std::array<double, kChunk> values;
        ReadDoubles(e->data, first, count, values.data());
        Parameters parameters;
        int64_t known = -1;
        double* x = values.data();
        mask->Places(first, count, [&](int64_t place) {
          int64_t cell = grid.CellOf(place);
          if (cell != known) parameters.Read(*e, cell, 1);
          known = cell;
          *x =
              e->bias ? parameters.Value(0, *x) : parameters.scale[0] * (*x - parameters.offset[0]);
          ++x;
        });
        ConvertElements(DType::kFp64, reinterpret_cast<std::byte*>(values.data()), e->dtype, out,
                        count);
      });
}

Tensor DecodedPalette(const Shared& e) {
  const int64_t vector = e->vector();
  Dims dims = e->dims(), table(e->table.dims().begin(), e->table.dims().end() - 2);
  BlockGrid grid(e->data.dims(), table);
  if (vector == 1)
    return ChunkedData(
        e, dims, [e, grid](int64_t first, int64_t count, const std::byte* indices, std::byte* out) {
          TableReader reader(*e);
          DispatchWidth(e->dtype, [&]<class Word>(Word) {
            grid.Rows(first, count, [&](int64_t i, int64_t n, int64_t cell, int64_t used) {
              for (; n > 0; ++cell, used = 0) {
                int64_t run = std::min(n, grid.block() - used);
                // Local copies, so that the compiler knows that the output does not alias them.
                const std::byte *row = reader.At(cell), *from = indices + (i - first);
                std::byte* to = out + (i - first) * static_cast<int64_t>(sizeof(Word));
                for (int64_t k = 0; k < run; ++k, to += sizeof(Word)) {
                  auto entry = WordAt<Word>(row, std::to_integer<int64_t>(from[k]));
                  std::memcpy(to, &entry, sizeof(Word));
                }
                i += run, n -= run;
              }
            });
          });
        });
  const int64_t inner = InnerOf(dims, e->vector_axis), size = dims[e->vector_axis];
  return Chunked(e->dtype, dims, {}, [=](int64_t first, int64_t count, std::byte* out) {
    std::array<Place, kChunk> places;
    int64_t low = e->data.size(), high = 0;
    for (int64_t i = 0; i < count; ++i) {
      places[i] = PlaceOf(first + i, inner, size, vector);
      low = std::min(low, places[i].index);
      high = std::max(high, places[i].index + 1);
    }
    std::vector<std::byte> indices(static_cast<size_t>(high - low));
    ReadBytes(e->data, low, high - low, indices.data());
    TableReader reader(*e);
    DispatchWidth(e->dtype, [&]<class Word>(Word) {
      for (int64_t i = 0; i < count; ++i) {
        const std::byte* row = reader.At(grid.CellOf(places[i].index));
        auto index = std::to_integer<int64_t>(indices[places[i].index - low]);
        Word entry = WordAt<Word>(row, index * vector + places[i].element);
        std::memcpy(out + i * static_cast<int64_t>(sizeof(Word)), &entry, sizeof(Word));
      }
    });
  });
}

Tensor DecodedEntries(const Shared& e, MaskIndex index) {
  const int64_t vector = e->vector();
  BlockGrid grid(e->mask.dims(), Dims(e->table.dims().begin(), e->table.dims().end() - 2));
  // With vectors, values are ordered by the mask, in which each element stands for a whole vector.
  Tensor mask = Repeated(e->mask, e->vector_axis, vector);
  const int64_t inner = InnerOf(mask.dims(), e->vector_axis), size = mask.dims()[e->vector_axis];
  auto all = std::make_shared<const MaskIndex>(vector == 1 ? index : MaskIndex(mask));
  auto own = std::make_shared<const MaskIndex>(std::move(index));
  return Chunked(e->dtype, e->dims(), {}, [=](int64_t first, int64_t count, std::byte* out) {
    TableReader reader(*e);
    DispatchWidth(e->dtype, [&]<class Word>(Word) {
      int64_t number = first;
      all->Places(first, count, [&](int64_t i) {
        Place place = PlaceOf(i, inner, size, vector);
        std::byte at;
        ReadBytes(e->data, vector == 1 ? number : own->Before(place.index), 1, &at);
        Word entry = WordAt<Word>(reader.At(grid.CellOf(place.index)),
                                  std::to_integer<int64_t>(at) * vector + place.element);
        std::memcpy(out + (number++ - first) * static_cast<int64_t>(sizeof(Word)), &entry,
                    sizeof(Word));
      });
    });
  });
}

Tensor DecodedSparse(const Shared& e, MaskIndex index) {
  auto mask = std::make_shared<const MaskIndex>(std::move(index));
  return Chunked(e->dtype, e->dims(), e->mask,
                 [e, mask](int64_t first, int64_t count, std::byte* out) {
                   std::array<std::byte, kChunk> bits;
                   ReadBytes(e->mask, first, count, bits.data());
                   auto set = count - std::count(bits.begin(), bits.begin() + count, std::byte{0});
                   const DType dtype = InBytes(e->dtype);
                   std::vector<std::byte> values(ByteCount(dtype, set));
                   ReadBytes(e->data, mask->Before(first), set, values.data());
                   std::memset(out, 0, ByteCount(e->dtype, count));
                   const auto width = static_cast<size_t>(Bits(dtype) / 8);
                   const std::byte* next = values.data();
                   for (int64_t i = 0; i < count; ++i) {
                     if (bits[i] == std::byte{0}) continue;
                     if (IsSubByte(e->dtype))
                       SetSubByte(out, e->dtype, i, static_cast<uint8_t>(*next));
                     else
                       std::memcpy(out + i * width, next, width);
                     next += width;
                   }
                 });
}

// Requires that the grid divides the dimensions that it covers.
void CheckGrid(const Dims& of, const Dims& grid, std::string_view what) {
  bool fits = of.size() == grid.size();
  for (size_t d = 0; fits && d < of.size(); ++d) fits = grid[d] > 0 && of[d] % grid[d] == 0;
  if (!fits)
    Fail(fmt::format("{} has the shape {}, which does not divide {}", what, Text(grid), Text(of)));
}

}  // namespace

Dims Encoding::dims() const {
  if (form == Encoding::Form::kSparse) return mask.dims();
  Dims dims = data.dims();
  if (form == Encoding::Form::kPalette) dims[mask ? 0 : vector_axis] *= vector();
  return dims;
}

int64_t CountSet(const Tensor& mask, int64_t first, int64_t last) {
  constexpr int64_t kStep = int64_t{1} << 15;
  std::array<std::byte, kStep / 8 + 1> bytes;
  int64_t count = 0;
  for (int64_t i = first; i < last;) {
    int64_t start = i / 8 * 8, end = std::min(last, start + kStep), bits = end - start;
    mask.Read(start, bits, bytes.data());
    bytes[0] &= static_cast<std::byte>(0xFF << (i - start));
    if (bits % 8) bytes[bits / 8] &= static_cast<std::byte>((1 << bits % 8) - 1);
    for (int64_t k = 0; k < (bits + 7) / 8; ++k)
      count += std::popcount(std::to_integer<unsigned>(bytes[k]));
    i = end;
  }
  return count;
}

Tensor Repeated(const Tensor& mask, int axis, int64_t vector) {
  if (vector == 1) return mask;
  Dims dims = mask.dims();
  dims[axis] *= vector;
  const int64_t inner = InnerOf(dims, axis), size = dims[axis];
  return Tensor::Lazy(mask.dtype(), std::move(dims),
                      [=](int64_t first, int64_t count, std::byte* out) {
                        std::fill_n(out, ByteCount(mask.dtype(), count), std::byte{0});
                        for (int64_t i = 0; i < count; ++i) {
                          std::byte bit;
                          ReadBytes(mask, PlaceOf(first + i, inner, size, vector).index, 1, &bit);
                          SetSubByte(out, mask.dtype(), i, static_cast<uint8_t>(bit));
                        }
                      });
}

Tensor Taken(const Tensor& tensor, const Tensor& mask) {
  auto index = std::make_shared<const MaskIndex>(mask);
  const DType dtype = tensor.dtype();
  return Chunked(dtype, {index->count()}, {}, [=](int64_t first, int64_t count, std::byte* out) {
    std::array<int64_t, kChunk> places;
    int64_t n = 0;
    index->Places(first, count, [&](int64_t place) { places[n++] = place; });
    const auto width = static_cast<size_t>(Bits(InBytes(dtype)) / 8);
    std::vector<std::byte> block(kChunk * width);
    if (IsSubByte(dtype)) std::fill_n(out, ByteCount(dtype, count), std::byte{0});
    for (int64_t i = 0; i < n;) {
      int64_t begin = places[i], end = i;
      while (end < n && places[end] - begin < kChunk) ++end;
      ReadBytes(tensor, begin, places[end - 1] - begin + 1, block.data());
      for (; i < end; ++i) {
        const std::byte* from = &block[(places[i] - begin) * width];
        if (IsSubByte(dtype))
          SetSubByte(out, dtype, i, static_cast<uint8_t>(*from));
        else
          std::memcpy(out + i * width, from, width);
      }
    }
  });
}

Tensor DecodedFrom(const std::shared_ptr<const Encoding>& e) {
  const bool masked = static_cast<bool>(e->mask);
  if (masked && e->mask.dtype() != DType::kUint1)
    Fail(fmt::format("the mask is {}, expected uint1", Name(e->mask.dtype())));
  if (masked && e->data.rank() != 1) Fail("the values of a mask are not a vector");
  const Dims& served = masked ? e->mask.dims() : e->data.dims();
  if (e->form == Encoding::Form::kAffine) {
    CheckGrid(served, e->scale.dims(), "scale");
    for (const Tensor* other : {&e->offset, &e->bias})
      if (*other && other->dims() != e->scale.dims())
        Fail(fmt::format("the offset or bias has the shape {}, the scale {}", Text(other->dims()),
                         Text(e->scale.dims())));
    if (!IsFloat(e->dtype)) Fail(fmt::format("the values are {}, expected floats", Name(e->dtype)));
  } else if (e->form == Encoding::Form::kPalette) {
    Dims table = e->table.dims();
    if (table.size() != served.size() + 2 || IsSigned(e->data.dtype()) ||
        !IsInteger(e->data.dtype()) || Bits(e->data.dtype()) > 8 ||
        e->entries() != int64_t{1} << Bits(e->data.dtype()))
      Fail(fmt::format("a table of shape {} does not match indices {} {}", Text(table),
                       Name(e->data.dtype()), Text(served)));
    table.resize(served.size());
    CheckGrid(served, table, "table");
  }
  if (ElementCount(e->dims()) == 0) return Tensor::Owned(e->dtype, e->dims(), {});
  if (!masked) return e->form == Encoding::Form::kAffine ? DecodedAffine(e) : DecodedPalette(e);
  MaskIndex index(e->mask);
  if (index.count() != e->data.size())
    Fail(fmt::format("the mask has {} bits set, but there are {} values", index.count(),
                     e->data.size()));
  switch (e->form) {
    case Encoding::Form::kAffine:
      return DecodedValues(e, std::move(index));
    case Encoding::Form::kPalette:
      return DecodedEntries(e, std::move(index));
    default:
      return DecodedSparse(e, std::move(index));
  }
}

Tensor Dense(const Tensor& tensor) {
  if (!tensor.encoding()) return tensor;
  return Tensor::Lazy(
      tensor.dtype(), tensor.dims(),
      [tensor](int64_t first, int64_t count, std::byte* out) { tensor.Read(first, count, out); },
      tensor);
}

}  // namespace mlc
