#include "lib/engine/product_weights.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>

#include "lib/engine/fp32_view.h"
#include "lib/ir/block_grid.h"
#include "lib/ir/encoding.h"
#include "lib/ir/subbyte.h"
#include "lib/support/error.h"

namespace mlc::engine {

namespace {

constexpr int64_t kChunk =
    2048;  // elements that are decoded at a time, which fit into the L1 cache

const DecodingLoops& Fastest() {
  static const DecodingLoops& loops = AvailableDecodingLoops().front();
  return loops;
}

// Evaluates a lazy tensor that will be read repeatedly.
Tensor Ready(const Tensor& tensor) { return tensor.is_lazy() ? tensor.InMemory() : tensor; }

// Prefetches the data that is likely to be read next into the L2 cache.
void Expect(const void* next, int64_t bytes) {
  constexpr int64_t kLine = 64;
  for (int64_t at = 0; at < bytes; at += kLine)
    __builtin_prefetch(static_cast<const std::byte*>(next) + at, 0, 2);
}

// Reads elements of at most 8 bits into sign-extended bytes.
void ReadSmall(const Tensor& tensor, int64_t first, int64_t count, uint8_t* out) {
  const DType dtype = tensor.dtype();
  if (Bits(dtype) == 4 && first % 2 == 0 && count % 2 == 0)
    if (auto packed = tensor.InPlace(first, count); !packed.empty())
      return Fastest().split(reinterpret_cast<const uint8_t*>(packed.data()), count / 2,
                             IsSigned(dtype) ? 8 : 0, out);
  ReadBytes(tensor, first, count, reinterpret_cast<std::byte*>(out));
}

// Returns 4-bit elements in memory, or null.
const uint8_t* PackedInPlace(const Tensor& tensor) {
  if (Bits(tensor.dtype()) != 4) return nullptr;
  return reinterpret_cast<const uint8_t*>(tensor.InPlace(0, tensor.size()).data());
}

bool IsSmallInteger(DType dtype) { return IsInteger(dtype) && Bits(dtype) <= 8; }

// Returns whether fp32 arithmetic on values of these types gives the result that Encoding defines:
// the exact result has at most 53 bits, and only one rounding follows.
bool IsExact(const Encoding& e) {
  if (e.mask || e.bias || (e.dtype != DType::kFp32 && e.dtype != DType::kFp16)) return false;
  auto fits = [&](DType dtype) {
    return dtype == DType::kFp16 || (dtype == DType::kFp32 && e.dtype == DType::kFp32);
  };
  if (!fits(e.scale.dtype())) return false;
  if (IsSmallInteger(e.data.dtype())) return !e.offset || IsSmallInteger(e.offset.dtype());
  return fits(e.data.dtype()) && !e.offset;
}

// Rounds to odd: if `x` is not a float, the last bit of the result is set, so that rounding it to
// fp16 gives the same result as rounding `x`.
float ToOdd(double x) {
  const auto near = static_cast<float>(x);
  const double lost = x - near;
  auto bits = std::bit_cast<uint32_t>(near);
  if (lost != 0 && near != 0 && bits % 2 == 0) bits += (lost > 0) == (near > 0) ? 1 : -1;
  return std::bit_cast<float>(bits);
}

// Returns whether fp32 can represent all parts.
bool IsInDouble(const Encoding& e) {
  return std::ranges::all_of(std::array{&e.data, &e.scale, &e.offset, &e.bias},
                             [](const Tensor* part) {
                               return !*part || IsSmallInteger(part->dtype()) ||
                                      (IsFloat(part->dtype()) && Bits(part->dtype()) <= 32);
                             });
}

}  // namespace

// A plain tensor, or an affine, palette or sparse encoding whose parts are sources.
struct Weights::Source {
  Tensor tensor;                  // fp32, fp16 or integers; the mask of a sparse encoding
  std::optional<BlockGrid> grid;  // the blocks of an encoding
  std::unique_ptr<Source> data, scale, offset, bias, table;
  int64_t entries = 0;            // number of entries of a palette
  std::vector<int64_t> before;    // number of set bits before each chunk of a mask
  DType computed = DType::kNone;  // result type of arithmetic in double
  bool rounds = false;            // whether values are rounded to fp16

  // Returns the form for products that do not store the decoded elements.
  std::optional<PackedBlocks> Blocks() const {
    if (!grid || !grid->is_one_row() || grid->block() % kInBlock || entries || !before.empty() ||
        computed != DType::kNone || offset || data->grid || scale->grid)
      return std::nullopt;
    const uint8_t* elements = PackedInPlace(data->tensor);
    const Tensor& scales = scale->tensor;
    const std::byte* at = scales.InPlace(0, scales.size()).data();
    if (!elements || !at || scales.dtype() != DType::kFp16 ||
        reinterpret_cast<uintptr_t>(at) % alignof(Half))
      return std::nullopt;
    return PackedBlocks{elements, reinterpret_cast<const Half*>(at), grid->block(),
                        IsSigned(data->tensor.dtype()), rounds};
  }

  bool IsFp32() const { return !grid && tensor.dtype() == DType::kFp32 && !tensor.is_lazy(); }

  void Read(int64_t first, int64_t count, float* out) const {
    for (int64_t done = 0; done < count; done += kChunk)
      ReadChunk(first + done, std::min(kChunk, count - done), out + done);
  }

 private:
  void ReadChunk(int64_t first, int64_t count, float* out) const {
    if (!before.empty())
      ReadSparse(first, count, out);
    else if (entries)
      ReadPalette(first, count, out);
    else if (computed != DType::kNone)
      ReadInDouble(first, count, out);
    else if (grid)
      ReadAffine(first, count, out);
    else
      ReadPlain(first, count, out);
  }

  void ReadPlain(int64_t first, int64_t count, float* out) const {
    const DType dtype = tensor.dtype();
    if (IsSmallInteger(dtype)) {
      std::array<uint8_t, kChunk> small;
      ReadSmall(tensor, first, count, small.data());
      if (IsSigned(dtype))
        Fastest().widen_signed(reinterpret_cast<const int8_t*>(small.data()), count, out);
      else
        Fastest().widen_unsigned(small.data(), count, out);
      return;
    }
    auto* bytes = reinterpret_cast<std::byte*>(out);
    if (dtype == DType::kFp32) return tensor.Read(first, count, bytes);
    std::array<std::byte, kChunk * 8> raw;
    const std::byte* in = tensor.InPlace(first, count).data();
    if (!in || reinterpret_cast<uintptr_t>(in) % 2 != 0) {
      tensor.Read(first, count, raw.data());
      in = raw.data();
    }
    if (dtype == DType::kFp16) {
      Expect(in + 2 * count, 2 * count);
      HalfToFloat(reinterpret_cast<const Half*>(in), out, count);
    } else
      ConvertElements(dtype, in, DType::kFp32, bytes, count);
  }

  void ReadAffine(int64_t first, int64_t count, float* out) const {
    const DecodingLoops& loops = Fastest();
    const DType dtype = data->grid ? DType::kNone : data->tensor.dtype();
    const uint8_t* packed = nullptr;
    if (loops.scale_levels && IsSmallInteger(dtype) && IsWorthLevels(grid->block()))
      packed = PackedInPlace(data->tensor);
    std::array<uint8_t, kChunk> small;
    if (!IsSmallInteger(dtype))
      data->Read(first, count, out);
    else if (!packed)
      ReadSmall(data->tensor, first, count, small.data());
    std::array<float, kChunk> scales, offsets;
    grid->Rows(first, count, [&](int64_t i, int64_t n, int64_t cell, int64_t used) {
      const int64_t cells = (used + n - 1) / grid->block() + 1, at = i - first;
      scale->Read(cell, cells, scales.data());
      if (offset)
        offset->Read(cell, cells, offsets.data());
      else
        std::fill_n(offsets.data(), cells, 0.0f);
      const Scaling how{scales.data(), offsets.data(), grid->block(), used, rounds};
      if (!IsSmallInteger(dtype))
        loops.scale_floats(out + at, how, n, out + at);
      else if (packed)
        loops.scale_levels(packed, i, IsSigned(dtype) ? kSignedLevels : kUnsignedLevels, how, n,
                           out + at);
      else if (IsSigned(dtype))
        loops.scale_signed(reinterpret_cast<const int8_t*>(&small[at]), how, n, out + at);
      else
        loops.scale_unsigned(&small[at], how, n, out + at);
    });
  }

  // Computes in double what Encoding defines, if fp32 would round differently.
  void ReadInDouble(int64_t first, int64_t count, float* out) const {
    std::array<float, kChunk> x, scales, offsets, biases;
    data->Read(first, count, x.data());
    grid->Rows(first, count, [&](int64_t i, int64_t n, int64_t cell, int64_t used) {
      const int64_t cells = (used + n - 1) / grid->block() + 1, end = i - first + n;
      auto read = [&](const std::unique_ptr<Source>& from, float none,
                      std::array<float, kChunk>& to) {
        if (from)
          from->Read(cell, cells, to.data());
        else
          std::fill_n(to.data(), cells, none);
      };
      read(scale, 1, scales), read(offset, 0.0f, offsets);
      read(bias, -0.0f, biases);  // adding -0 preserves -0
      for (int64_t k = i - first, c = 0; k < end; ++c, used = 0) {
        const double s = scales[c], o = offsets[c], b = biases[c];
        for (const int64_t stop = std::min(end, k + grid->block() - used); k < stop; ++k)
          out[k] = computed == DType::kFp16 ? ToOdd(s * (x[k] - o) + b)
                                            : static_cast<float>(s * (x[k] - o) + b);
      }
    });
    if (rounds) RoundToHalf(out, count);
  }

  void ReadSparse(int64_t first, int64_t count, float* out) const {
    const int64_t chunk = first / kChunk, start = chunk * kChunk, bits = first + count - start;
    std::array<std::byte, kChunk / 4 + 1> mask;  // bits of two chunks
    tensor.Read(start, bits, mask.data());
    auto is_set = [&](int64_t i) {
      return std::to_integer<unsigned>(mask[(i - start) / 8]) >> (i % 8) & 1;
    };
    int64_t number = before[chunk], set = 0;
    for (int64_t i = start; i < first / 8 * 8; i += 8)
      number += std::popcount(std::to_integer<unsigned>(mask[(i - start) / 8]));
    for (int64_t i = first / 8 * 8; i < first; ++i) number += is_set(i);
    for (int64_t i = 0; i < count; ++i) set += is_set(first + i);
    std::array<float, kChunk> values;
    data->Read(number, set, values.data());
    const float* next = values.data();
    for (int64_t i = 0; i < count; ++i) out[i] = is_set(first + i) ? *next++ : 0.0f;
    if (rounds) RoundToHalf(out, count);
  }

  void ReadPalette(int64_t first, int64_t count, float* out) const {
    std::array<uint8_t, kChunk> indices;
    ReadSmall(data->tensor, first, count, indices.data());
    std::array<float, 256> values;
    int64_t known = -1;
    grid->Rows(first, count, [&](int64_t i, int64_t n, int64_t cell, int64_t used) {
      for (; n > 0; ++cell, used = 0) {
        if (cell != known) table->Read(cell * entries, entries, values.data());
        known = cell;
        const int64_t run = std::min(n, grid->block() - used);
        for (int64_t k = i; k < i + run; ++k) out[k - first] = values[indices[k - first]];
        i += run, n -= run;
      }
    });
    if (rounds) RoundToHalf(out, count);
  }

  static std::unique_ptr<Source> Plain(Tensor tensor) {
    auto source = std::make_unique<Source>();
    source->tensor = std::move(tensor);
    return source;
  }

 public:
  static std::unique_ptr<Source> Of(const Tensor& tensor) {
    const Encoding* e = tensor.is_lazy() ? tensor.encoding() : nullptr;
    if (!e) {
      // An fp16 tensor that was only converted to fp32 stays fp16, in place if there was no other
      // change.
      Tensor::Origin origin = tensor.origin();
      if (tensor.dtype() != DType::kFp32 || origin.held.dtype() != DType::kFp16)
        return Plain(Ready(tensor));
      const bool as_it_lies = origin.plan == origin.held.Cast(DType::kFp32).origin().plan;
      return Plain(Ready(as_it_lies ? origin.held : tensor.Cast(DType::kFp16)));
    }
    auto source = std::make_unique<Source>();
    const bool affine = e->form == Encoding::Form::kAffine && !e->mask && IsKernelFloat(e->dtype);
    if (affine && (IsExact(*e) || IsInDouble(*e))) {
      source->grid.emplace(e->data.dims(), e->scale.dims());
      source->data = Of(e->data);
      source->scale = Of(e->scale);
      if (e->offset) source->offset = Of(e->offset);
      if (e->bias) source->bias = Of(e->bias);
      if (!IsExact(*e)) source->computed = e->dtype;
      source->rounds = e->dtype == DType::kFp16 || tensor.dtype() == DType::kFp16;
      return source;
    }
    if (e->form == Encoding::Form::kSparse && IsKernelFloat(e->dtype)) {
      source->tensor = Ready(e->mask);
      source->data = Of(e->data);
      source->before = {0};
      for (int64_t i = 0; i < e->mask.size(); i += kChunk)
        source->before.push_back(source->before.back() +
                                 CountSet(e->mask, i, std::min(i + kChunk, e->mask.size())));
      source->rounds = tensor.dtype() == DType::kFp16;
      return source;
    }
    if (e->form == Encoding::Form::kPalette && !e->mask && e->vector() == 1 &&
        IsKernelFloat(e->dtype)) {
      Dims cells(e->table.dims().begin(), e->table.dims().end() - 2);
      source->grid.emplace(e->data.dims(), cells);
      source->data = Plain(Ready(e->data));
      source->table = Of(e->table);
      source->entries = e->entries();
      source->rounds = tensor.dtype() == DType::kFp16;
      return source;
    }
    // Decode encodings without loops once: palettes of vectors, encoded values of sparse encodings.
    return Plain(e->dtype == DType::kFp16 ? tensor.Cast(DType::kFp16).InMemory()
                                          : tensor.InMemory());
  }
};

// Returns a key that is the same only for equal constants, during their lifetimes.
static std::string Identity(const Tensor& tensor) {
  std::string text = fmt::format("{}[{}]", Name(tensor.dtype()), fmt::join(tensor.dims(), ","));
  if (tensor.size() == 0) return text;
  if (tensor.is_lazy())
    if (const Encoding* e = tensor.encoding()) {
      text += fmt::format("{} {} {}(", static_cast<int>(e->form), Name(e->dtype), e->vector_axis);
      for (const Tensor* part : {&e->data, &e->scale, &e->offset, &e->bias, &e->table, &e->mask})
        text += *part ? Identity(*part) + ";" : ";";
      return text + ")";
    }
  const auto [held, plan] = tensor.origin();
  if (held.is_lazy()) return text + tensor.hash();
  return text + fmt::format("@{} {} {}", static_cast<const void*>(held.InPlace(0, 1).data()),
                            Name(held.dtype()), plan);
}

std::shared_ptr<const void> PreparedWeights::Find(
    const Tensor& tensor, std::string_view form,
    const std::function<std::shared_ptr<const void>()>& make) {
  const auto entry_of = [&](const std::string& key) -> Entry& {
    std::lock_guard lock(mutex_);
    return entries_[key];
  };
  Entry& entry = entry_of(fmt::format("{} {}", form, Identity(tensor)));
  std::lock_guard lock(entry.making);
  if (!entry.made) {
    entry.made = make();
    entry.tensor = tensor;
  }
  return entry.made;
}

bool IsNarrow(const Tensor& weights) {
  return weights.encoding() || Bits(weights.dtype()) < 32 ||
         Bits(weights.origin().held.dtype()) < 32;
}

Weights Weights::AsTheyAre(const Tensor& tensor) {
  Weights weights;
  std::unique_ptr<Source> source = Source::Of(tensor);
  if (source->IsFp32()) {
    source->tensor = source->tensor.InMemory();
    weights.data_ = reinterpret_cast<const float*>(source->tensor.InPlace(0, tensor.size()).data());
  }
  weights.blocks_ = source->Blocks();
  weights.source_ = std::move(source);
  return weights;
}

Weights Weights::Expanded(const Tensor& tensor) {
  Weights weights = AsTheyAre(tensor);
  if (weights.data_ || tensor.size() == 0) return weights;
  std::byte* out = nullptr;
  auto source = std::make_shared<Source>();
  source->tensor = Tensor::Allocate(DType::kFp32, tensor.dims(), &out);
  weights.data_ = reinterpret_cast<float*>(out);
  weights.source_->Read(0, tensor.size(), reinterpret_cast<float*>(out));
  tensor.Release(0, tensor.size());
  weights.source_ = std::move(source);
  return weights;
}

void Weights::Read(int64_t first, int64_t count, float* out) const {
  if (data_)
    std::copy_n(data_ + first, count, out);
  else
    source_->Read(first, count, out);
}

}  // namespace mlc::engine
