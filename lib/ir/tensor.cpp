#include "lib/ir/tensor.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <new>
#include <numeric>
#include <optional>

#include "lib/ir/encoding.h"
#include "lib/ir/subbyte.h"
#include "lib/ir/tensor_range.h"
#include "lib/ir/view_reader.h"
#include "lib/support/error.h"
#include "lib/support/hash.h"
#include "lib/support/mapped_file.h"
#include "lib/support/memory_limits.h"

namespace mlc {

namespace {
// Elements per block of a conversion or comparison; a multiple of 8.
constexpr int64_t kBlock = int64_t{1} << 16;

std::shared_ptr<std::byte[]> NewBytes(size_t count) {
  try {
    return std::shared_ptr<std::byte[]>(new std::byte[count]);
  } catch (const std::bad_alloc&) {
    throw OutOfMemory(fmt::format("no memory for a tensor of {} bytes", count));
  }
}

// Returns whether `wide` represents every value of `narrow`; both are floats.
bool Holds(DType wide, DType narrow) {
  return wide == narrow || Bits(narrow) == 8 || wide == DType::kFp64 ||
         (wide == DType::kFp32 && Bits(narrow) == 16);
}
}  // namespace

int64_t ElementCount(const Dims& dims) {
  int64_t count = 1;
  bool empty = false, overflow = false;
  for (int64_t dim : dims) {
    if (dim < 0) throw Error("bad-constant", "a tensor dimension is {}", dim);
    empty |= dim == 0;
    overflow |= __builtin_mul_overflow(count, std::max<int64_t>(dim, 1), &count);
  }
  if (empty) return 0;
  if (overflow || count > std::numeric_limits<int64_t>::max() / 8)
    throw Error("resource-limit", "a tensor of [{}] has too many elements", fmt::join(dims, ", "))
        .Expected("at most 2^60");
  return count;
}

Dims StridesOf(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

size_t ByteCount(DType dtype, int64_t elements) {
  int bits = Bits(dtype);
  if (bits >= 8) return static_cast<size_t>(elements) * static_cast<size_t>(bits / 8);
  return static_cast<size_t>(elements / 8 * bits + (elements % 8 * bits + 7) / 8);
}

// The shared state of tensors. The elements are at `ready`, or are described by exactly one member
// of the source.
struct Tensor::Data {
  // Elements of `source` converted to `dtype` and read with strides: a transposition, a conversion
  // or both.
  struct View {
    Tensor source;
    std::vector<int> perm;       // permutation of the source's dimensions; empty: identity
    Dims dims, strides;          // layout of the result; contiguous neighbours are merged
    std::vector<int64_t> inner;  // elements below each dimension
    int unit = -1;               // the dimension with stride 1

    Dims Unmerged() const {
      Dims result;
      for (int axis : perm) result.push_back(source.dims()[axis]);
      return perm.empty() ? source.dims() : result;
    }
  };

  // For elements that are not initially in memory; most constants are small and need no Source.
  struct Source {
    std::shared_ptr<const MappedFile> file = nullptr;
    uint64_t offset = 0;
    std::string absent = {};              // name of the missing file
    std::vector<std::byte> pattern = {};  // eight elements, repeated
    ReadFn read = nullptr;
    std::function<void(int64_t, int64_t)> release = nullptr;
    Tensor paced_by = {};
    Tensor unordered = {};  // the same elements in an order that is faster to read
    std::unique_ptr<const View> view = nullptr;
    std::weak_ptr<const std::byte[]> pinned = {};  // computed elements, shared by live pins
    std::mutex mutex = {};
  };

  DType dtype;
  int64_t size;
  std::shared_ptr<const void> owner = nullptr;  // keeps `ready` valid; owns the strings
  std::unique_ptr<Source> own_source = nullptr;
  const std::byte* ready = nullptr;  // aligned for the dtype
  bool allocated = false;            // the memory was allocated for this tensor only
  // Up to this many bytes are stored inline: programs have very many small constants.
  static constexpr size_t kFew = 16;
  alignas(8) std::byte few[kFew];

  struct Learnt {
    std::optional<Range> range;
    std::string hash;
  };
  mutable std::unique_ptr<Learnt> learnt;  // guarded by `learning`
  inline static std::mutex learning;

  Data(DType d, int64_t n) : dtype(d), size(n) {}
  size_t byte_size() const { return ByteCount(dtype, size); }
  const Source& source() const {
    static const Source none;
    return own_source ? *own_source : none;
  }
  Source& NewSource() { return *(own_source = std::make_unique<Source>()); }
  // The address of the elements, aligned or not; null if they must be computed.
  const std::byte* Address() const {
    if (ready) return ready;
    const MappedFile* file = source().file.get();
    const std::byte* mapped = file ? file->mapped().data() : nullptr;
    return mapped ? mapped + source().offset : nullptr;
  }
  void Own(std::shared_ptr<const void> keeper, std::span<const std::byte> bytes) {
    static constexpr std::byte kNothing[8] = {};
    owner = std::move(keeper);
    ready = bytes.empty() ? kNothing : bytes.data();
  }
  static Tensor Wrap(std::shared_ptr<const Data> data, Dims dims) {
    Tensor tensor;
    tensor.dtype_ = data->dtype;
    tensor.size_ = data->size;
    tensor.dims_ = std::move(dims);
    tensor.data_ = std::move(data);
    return tensor;
  }
  static std::shared_ptr<Data> New(DType dtype, const Dims& dims) {
    return std::make_shared<Data>(dtype, ElementCount(dims));
  }
  static Tensor Viewed(const Tensor& source, std::vector<int> perm, DType dtype, Dims dims);
  // The range of source elements that a range of this tensor is read from: of paced_by, or of a
  // view's source. For a view, leading dimensions that are not moved bound the range; the
  // dimensions below may be in any order.
  std::pair<int64_t, int64_t> PaceOf(int64_t first, int64_t count) const;
  std::pair<int64_t, int64_t> Viewed(int64_t first, int64_t count) const;
  // Requires that the tensor is not shared yet.
  static Source& SourceOf(const Tensor& tensor) {
    return *const_cast<Data&>(*tensor.data_).own_source;
  }
  static const View* ViewOf(const Tensor& tensor) { return tensor.data_->source().view.get(); }
};

// Sub-byte sources and results are processed element by element, because they are small and sources
// do not store them transposed.
Tensor Tensor::Data::Viewed(const Tensor& source, std::vector<int> perm, DType dtype, Dims dims) {
  auto data = New(dtype, dims);
  auto view = std::make_unique<View>();
  Dims strides = StridesOf(source.dims_);
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t stride = strides[perm.empty() ? i : perm[i]];
    if (dims[i] == 1) continue;
    if (!view->dims.empty() && view->strides.back() == dims[i] * stride) {
      view->dims.back() *= dims[i];
      view->strides.back() = stride;
    } else {
      view->dims.push_back(dims[i]);
      view->strides.push_back(stride);
    }
  }
  if (view->dims.empty()) view->dims = view->strides = {1};
  view->inner = StridesOf(view->dims);
  for (size_t i = 0; i < view->dims.size(); ++i)
    if (view->strides[i] == 1) view->unit = static_cast<int>(i);
  view->source = source;
  view->perm = std::move(perm);
  data->NewSource().view = std::move(view);
  return Wrap(std::move(data), std::move(dims));
}

Tensor Tensor::Owned(DType dtype, Dims dims, std::vector<std::byte> bytes) {
  auto data = Data::New(dtype, dims);
  MLC_CHECK(bytes.size() == data->byte_size(), "{} bytes were given for a tensor of {} bytes",
            bytes.size(), data->byte_size());
  if (bytes.size() <= Data::kFew) {
    std::copy(bytes.begin(), bytes.end(), data->few);
    data->Own(nullptr, {data->few, bytes.size()});
  } else {
    auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
    data->Own(owner, *owner);
  }
  return Data::Wrap(std::move(data), std::move(dims));
}

Tensor Tensor::Borrowed(DType dtype, Dims dims, std::span<const std::byte> bytes,
                        std::function<void()> release) {
  auto data = Data::New(dtype, dims);
  if (bytes.size() != data->byte_size())
    throw Error("bad-constant", "{} bytes were given for a tensor of {} bytes", bytes.size(),
                data->byte_size());
  std::shared_ptr<const void> owner(bytes.data(), [release = std::move(release)](const void*) {
    if (release) release();
  });
  constexpr size_t kAligned = 8;
  if (reinterpret_cast<uintptr_t>(bytes.data()) % kAligned == 0) {
    data->Own(std::move(owner), bytes);
  } else {
    data->owner = std::move(owner);
    data->NewSource().read = [dtype, bytes](int64_t first, int64_t count, std::byte* out) {
      size_t begin = ByteCount(dtype, first);
      std::memcpy(out, bytes.data() + begin, ByteCount(dtype, count));
    };
  }
  return Data::Wrap(std::move(data), std::move(dims));
}

Tensor Tensor::Allocate(DType dtype, Dims dims, std::byte** out) {
  auto data = Data::New(dtype, dims);
  std::shared_ptr<std::byte[]> owner;
  if (data->byte_size() > Data::kFew) owner = NewBytes(data->byte_size());
  *out = owner ? owner.get() : data->few;
  data->allocated = true;
  data->Own(std::move(owner), {*out, data->byte_size()});
  return Data::Wrap(std::move(data), std::move(dims));
}

Tensor Tensor::Strings(Dims dims, std::vector<std::string> values) {
  auto data = Data::New(DType::kString, dims);
  MLC_CHECK(static_cast<int64_t>(values.size()) == data->size,
            "{} strings were given for {} elements", values.size(), data->size);
  data->owner = std::make_shared<const std::vector<std::string>>(std::move(values));
  return Data::Wrap(std::move(data), std::move(dims));
}

Tensor Tensor::FileSlice(std::shared_ptr<const MappedFile> file, uint64_t offset, DType dtype,
                         Dims dims) {
  auto data = Data::New(dtype, dims);
  size_t whole = file->size();
  if (offset > whole || data->byte_size() > whole - offset) {
    throw Error("bad-file",
                "a tensor of {} bytes at offset {} reaches past the end of the file ({} bytes)",
                data->byte_size(), offset, whole)
        .At({file->path().string(), fmt::format("offset {}", offset)});
  }
  const std::byte* mapped = file->mapped().data();
  if (data->size == 0) {
    data->Own(nullptr, {});
  } else if (mapped &&
             reinterpret_cast<uintptr_t>(mapped + offset) % std::max(Bits(dtype) / 8, 1) == 0) {
    data->Own(nullptr, {mapped + offset, data->byte_size()});
  }
  Data::Source& source = data->NewSource();
  source.file = std::move(file);
  source.offset = offset;
  return Data::Wrap(std::move(data), std::move(dims));
}

Tensor Tensor::Absent(std::string file, uint64_t offset, DType dtype, Dims dims) {
  auto data = Data::New(dtype, dims);
  Data::Source& source = data->NewSource();
  source.read = [file, offset](int64_t, int64_t, std::byte*) {
    throw Error("bad-file", "the weights in {} are missing", file)
        .At({file, fmt::format("offset {}", offset)})
        .Help("copy the model's whole folder, including its weights");
  };
  source.absent = std::move(file);
  source.offset = offset;
  return Data::Wrap(std::move(data), std::move(dims));
}

const std::string& Tensor::absent_file() const { return data_->source().absent; }

Tensor Tensor::Lazy(DType dtype, Dims dims, ReadFn read) {
  return Lazy(dtype, std::move(dims), std::move(read), {});
}

Tensor Tensor::Lazy(DType dtype, Dims dims, ReadFn read, Tensor paced_by) {
  auto data = Data::New(dtype, dims);
  Data::Source& source = data->NewSource();
  source.read = std::move(read);
  source.paced_by = std::move(paced_by);
  return Data::Wrap(std::move(data), std::move(dims));
}

Tensor Tensor::Encoded(Encoding encoding) {
  if (encoding.form != Encoding::Form::kAffine)
    encoding.dtype =
        (encoding.form == Encoding::Form::kSparse ? encoding.data : encoding.table).dtype();
  auto shared = std::make_shared<const Encoding>(std::move(encoding));
  Tensor tensor = DecodedFrom(shared);
  if (tensor.size_ == 0) return tensor;
  if (tensor.size_ <= kLazyElements) tensor = tensor.InMemory();
  tensor.encoding_ = std::move(shared);
  return tensor;
}

Tensor Tensor::Full(DType dtype, Dims dims, double value) {
  auto data = Data::New(dtype, dims);
  MLC_CHECK(Bits(dtype) > 0, "cannot fill with {}", Name(dtype));
  std::vector<std::byte> element(8), pattern(static_cast<size_t>(Bits(dtype)));
  if (IsSubByte(dtype)) {
    double high = std::ldexp(1, Bits(dtype) - (IsSigned(dtype) ? 1 : 0)) - 1;
    double clamped =
        std::isnan(value) ? 0 : std::clamp(value, IsSigned(dtype) ? -high - 1 : 0, high);
    for (int i = 0; i < 8; ++i)
      SetSubByte(pattern.data(), dtype, i, static_cast<uint8_t>(static_cast<int>(clamped)));
  } else {
    ConvertElements(DType::kFp64, reinterpret_cast<const std::byte*>(&value), dtype, element.data(),
                    1);
    size_t size = pattern.size() / 8;
    for (size_t i = 0; i < pattern.size(); ++i) pattern[i] = element[i % size];
  }
  if (data->byte_size() <= pattern.size()) {
    pattern.resize(data->byte_size());
    return Owned(dtype, std::move(dims), std::move(pattern));
  }
  if (data->size <= kLazyElements) {
    auto bytes = NewBytes(data->byte_size());
    for (size_t i = 0; i < data->byte_size(); ++i) bytes[i] = pattern[i % pattern.size()];
    data->Own(bytes, {bytes.get(), data->byte_size()});
  }
  data->NewSource().pattern = std::move(pattern);
  return Data::Wrap(std::move(data), std::move(dims));
}

Tensor Tensor::From(Provenance provenance) const {
  Tensor tensor = *this;
  tensor.provenance_ = std::make_shared<const Provenance>(std::move(provenance));
  return tensor;
}

Tensor Tensor::ComputedFrom(const Tensor& input) const {
  if (!input.provenance_) return *this;
  Provenance made;
  const std::vector<std::string> none, &own = provenance_ ? provenance_->sources : none;
  std::ranges::set_union(own, input.provenance_->sources, std::back_inserter(made.sources));
  return From(std::move(made));
}

void Tensor::Read(int64_t first, int64_t count, std::byte* out) const {
  const Data& data = *data_;
  MLC_CHECK(first >= 0 && count >= 0 && count <= size_ - first, "reading [{}, +{}) of {} elements",
            first, count, size_);
  MLC_CHECK(dtype_ != DType::kString, "strings have no bytes");
  MLC_CHECK(first % 8 == 0 || !IsSubByte(dtype_),
            "sub-byte elements are read from a multiple of 8");
  if (count == 0) return;
  if (const std::byte* address = data.Address()) {
    std::memcpy(out, address + ByteCount(dtype_, first), ByteCount(dtype_, count));
  } else if (const MappedFile* file = data.source().file.get()) {
    file->Read(data.source().offset + ByteCount(dtype_, first), {out, ByteCount(dtype_, count)});
  } else if (data.source().view) {
    const Data::View& view = *data.source().view;
    ViewReader<Data::View>(view, view.source.data_->Address(), dtype_)
        .Range(0, 0, first, count, out);
  } else if (data.source().read) {
    data.source().read(first, count, out);
  } else {
    const std::vector<std::byte>& pattern = data.source().pattern;
    const size_t start = ByteCount(dtype_, first), size = ByteCount(dtype_, count);
    if (std::ranges::count(pattern, pattern[0]) == std::ssize(pattern))
      std::memset(out, std::to_integer<int>(pattern[0]), size);
    else
      for (size_t i = 0; i < size; ++i) out[i] = pattern[(start + i) % pattern.size()];
  }
}

Tensor Tensor::Unordered() const {
  if (data_->source().unordered && !data_->Address()) return data_->source().unordered;
  const Data::View* view = data_->Address() ? nullptr : data_->source().view.get();
  bool only_moves = view && view->source.dtype_ == dtype_ && view->source.size_ == size_;
  return only_moves ? view->source.Unordered() : *this;
}

Tensor::Origin Tensor::origin() const {
  Origin origin{*this, ""};
  while (const Data::View* view = Data::ViewOf(origin.held)) {
    if (origin.held.data_->Address()) break;
    origin.plan += fmt::format("{} of [{}] by [{}];", Name(origin.held.dtype_),
                               fmt::join(view->source.dims_, ","), fmt::join(view->perm, ","));
    Tensor source = view->source;  // may be the only owner of the view
    origin.held = source;
  }
  return origin;
}

std::span<const std::byte> Tensor::InPlace(int64_t first, int64_t count) const {
  const std::byte* address = dtype_ == DType::kString ? nullptr : data_->Address();
  if (!address) return {};
  return {address + ByteCount(dtype_, first), ByteCount(dtype_, count)};
}

Pin<std::byte> Tensor::bytes() const {
  const Data& data = *data_;
  MLC_CHECK(dtype_ != DType::kString, "strings have no bytes");
  if (data.ready) return {data_, data.ready, byte_size()};
  Data::Source& source = *data.own_source;
  std::lock_guard lock(source.mutex);
  std::shared_ptr<const std::byte[]> elements = source.pinned.lock();
  if (!elements) {
    std::shared_ptr<std::byte[]> buffer = NewBytes(std::max<size_t>(byte_size(), 1));
    Read(0, size_, buffer.get());
    Release(0, size_);
    source.pinned = elements = std::move(buffer);
  }
  const std::byte* address = elements.get();
  return {std::move(elements), address, byte_size()};
}

Tensor Tensor::InMemory() const {
  if (dtype_ == DType::kString || data_->ready) return *this;
  Pin<std::byte> all = bytes();
  auto data = Data::New(dtype_, dims_);
  data->Own(std::move(all.owner_), {all.data_, all.size_});
  Tensor tensor = Data::Wrap(std::move(data), dims_);
  tensor.encoding_ = encoding_;
  tensor.provenance_ = provenance_;
  return tensor;
}

std::byte* Tensor::Overwritable(int holders) const {
  if (!data_->allocated || encoding_) return nullptr;
  const long others = data_.use_count() + std::max(data_->owner.use_count(), 1L) - 2;
  if (others >= holders) return nullptr;
  // Orders the accesses of threads that released their handles before those that follow: releasing
  // one acquires theirs. The thread sanitizer does not know fences.
  std::shared_ptr<const Data>(data_).reset();
  std::shared_ptr<const void>(data_->owner).reset();
  std::lock_guard lock(Data::learning);
  data_->learnt.reset();
  return const_cast<std::byte*>(data_->ready);
}

int64_t Tensor::BlockElements(int64_t bytes) const {
  MLC_CHECK(Bits(dtype_) > 0, "{} elements have no bytes", Name(dtype_));
  int64_t block = std::max<int64_t>(bytes / Bits(dtype_) * 8, 8);
  const Data::View* view = data_->Address() ? nullptr : data_->source().view.get();
  // Additional constraints from the sources.
  auto asked_by = [&](const Tensor& source) {
    int64_t asked = source.BlockElements(bytes);
    return asked > std::max<int64_t>(bytes / Bits(source.dtype()) * 8, 8) ? asked : 0;
  };
  if (const Tensor& source = data_->source().paced_by; source && !data_->Address())
    return std::max(block, asked_by(source));
  if (!view) return block;
  if (view->source.data_->source().paced_by) block = std::max(block, asked_by(view->source));
  if (view->source.data_->source().view) block = std::max(block, view->source.BlockElements(bytes));
  if (view->unit + 1 == static_cast<int>(view->dims.size())) return block;
  // As many rows as a page of the source has elements, so that each page is read once.
  constexpr int64_t kPage = 4096, kMost = int64_t{32} << 20;
  int64_t row = view->inner[view->unit], element = Bits(dtype_) / 8;
  int64_t rows = std::min(kPage * 8 / Bits(view->source.dtype_), kMost / element / row);
  return std::max(block, row * rows / 8 * 8);
}

bool Tensor::is_lazy() const { return dtype_ != DType::kString && !data_->Address(); }

Tensor::FileView Tensor::file_view() const {
  if (!data_->source().file && data_->source().absent.empty()) return {nullptr, 0, 0};
  return {data_->source().file.get(), data_->source().offset, byte_size()};
}

std::pair<int64_t, int64_t> Tensor::Data::PaceOf(int64_t first, int64_t count) const {
  const Tensor& by = source().paced_by;
  auto place = [&](int64_t i) {
    return by.size_ == size ? i : static_cast<int64_t>(static_cast<__int128>(i) * by.size_ / size);
  };
  return {place(first), place(first + count) - place(first)};
}

std::pair<int64_t, int64_t> Tensor::Data::Viewed(int64_t first, int64_t count) const {
  const View& view = *source().view;
  int64_t inner = size;
  for (size_t i = 0; i < view.dims.size() && view.strides[i] == view.inner[i]; ++i)
    inner = view.inner[i];
  int64_t begin = first / inner * inner;
  return {begin, std::min((first + count + inner - 1) / inner * inner, size) - begin};
}

void Tensor::Release(int64_t first, int64_t count) const {
  const Data& data = *data_;
  if (data.source().file) {
    data.source().file->Release(data.source().offset + ByteCount(dtype_, first),
                                ByteCount(dtype_, count));
  } else if (const Tensor& source = data.source().paced_by; source && size_ > 0) {
    // Releases the source range that this range covers completely.
    auto [begin, part] = data.PaceOf(first, count);
    source.Release(begin, part);
  } else if (data.source().release) {
    data.source().release(first, count);
  } else if (data.source().view && count > 0) {
    auto [begin, part] = data.Viewed(first, count);
    data.source().view->source.Release(begin, part);
  }
}

Tensor::FileView Tensor::Behind(int64_t first, int64_t count) const {
  const Data& data = *data_;
  if (const MappedFile* file = data.source().file.get())
    return {file, data.source().offset + ByteCount(dtype_, first), ByteCount(dtype_, count)};
  if (data.Address() || count == 0) return {nullptr, 0, 0};
  if (const Tensor& source = data.source().paced_by) {
    auto [begin, part] = data.PaceOf(first, count);
    return source.Behind(begin, part);
  }
  if (!data.source().view) return {nullptr, 0, 0};
  auto [begin, part] = data.Viewed(first, count);
  return data.source().view->source.Behind(begin, part);
}

void Tensor::MapIn(int64_t first, int64_t count) const {
  // The source of a transposition is scanned completely, however small the range.
  constexpr uint64_t kMost = uint64_t{8} << 20;
  FileView behind = Behind(first, count);
  if (behind.file && behind.size <= kMost) behind.file->MapIn(behind.offset, behind.size);
}

const std::vector<std::string>& Tensor::strings() const {
  MLC_CHECK(dtype_ == DType::kString, "{} elements are not strings", Name(dtype_));
  return *static_cast<const std::vector<std::string>*>(data_->owner.get());
}

namespace {
// Element i converted to T by the rules of Cast.
template <class T>
T Element(const Tensor& tensor, int64_t i) {
  std::byte raw[8];
  T value;
  DType dtype = tensor.dtype();
  int64_t first = IsSubByte(dtype) ? i / 8 * 8 : i;
  tensor.Read(first, std::min<int64_t>(i - first + 1, tensor.size() - first), raw);
  if (IsSubByte(dtype)) raw[0] = static_cast<std::byte>(GetSubByte(raw, dtype, i - first));
  ConvertElements(InBytes(dtype), raw, kDTypeOf<T>, reinterpret_cast<std::byte*>(&value), 1);
  return value;
}

template <class T>
std::vector<T> Elements(const Tensor& tensor) {
  constexpr int64_t kFew = 64;
  std::vector<T> values(static_cast<size_t>(tensor.size()));
  std::byte* out = reinterpret_cast<std::byte*>(values.data());
  if (tensor.size() <= kFew && tensor.dtype() != DType::kString && !IsSubByte(tensor.dtype())) {
    std::byte raw[kFew * 8];
    tensor.Read(0, tensor.size(), raw);
    ConvertElements(tensor.dtype(), raw, kDTypeOf<T>, out, tensor.size());
  } else if (Tensor cast = tensor.Cast(kDTypeOf<T>); cast.size() > 0) {
    cast.Read(0, cast.size(), out);
  }
  return values;
}
}  // namespace

Tensor::Range Tensor::range() const {
  {
    std::lock_guard lock(Data::learning);
    if (data_->learnt && data_->learnt->range) return *data_->learnt->range;
  }
  Range range = RangeOf(*this);
  std::lock_guard lock(Data::learning);
  if (!data_->learnt) data_->learnt = std::make_unique<Data::Learnt>();
  data_->learnt->range = range;
  return range;
}

const std::string& Tensor::hash() const {
  {
    std::lock_guard lock(Data::learning);
    if (data_->learnt && !data_->learnt->hash.empty()) return data_->learnt->hash;
  }
  Xxh3 hasher;
  const int64_t block = BlockElements(kBlock);
  std::vector<std::byte> buffer;
  for (int64_t first = 0; first < size_; first += block) {
    int64_t count = std::min(block, size_ - first);
    std::span<const std::byte> bytes = InPlace(first, count);
    if (bytes.empty()) {
      buffer.resize(ByteCount(dtype_, count));
      Read(first, count, buffer.data());
      bytes = buffer;
    }
    hasher.Update(bytes);
    Release(first, count);
  }
  std::lock_guard lock(Data::learning);
  if (!data_->learnt) data_->learnt = std::make_unique<Data::Learnt>();
  if (data_->learnt->hash.empty()) data_->learnt->hash = hasher.Hex();
  return data_->learnt->hash;
}

double Tensor::Double(int64_t i) const { return Element<double>(*this, i); }
int64_t Tensor::Int(int64_t i) const { return Element<int64_t>(*this, i); }
std::vector<int64_t> Tensor::Ints() const { return Elements<int64_t>(*this); }
std::vector<double> Tensor::Doubles() const { return Elements<double>(*this); }

Tensor Tensor::Reshaped(Dims dims) const {
  MLC_CHECK(ElementCount(dims) == size_, "[{}] does not have {} elements", fmt::join(dims, ", "),
            size_);
  Tensor tensor = *this;
  tensor.dims_ = std::move(dims);
  if (encoding_ && tensor.dims_ != dims_) {
    std::optional<Encoding> encoding = mlc::Reshaped(*encoding_, tensor.dims_);
    tensor.encoding_ = encoding ? std::make_shared<const Encoding>(*std::move(encoding)) : nullptr;
  }
  return tensor;
}

Tensor Tensor::Transposed(const std::vector<int>& perm) const {
  MLC_CHECK(static_cast<int>(perm.size()) == rank(), "{} axes for rank {}", perm.size(), rank());
  if (encoding_)
    if (std::optional<Encoding> encoding = mlc::Transposed(*encoding_, perm)) {
      Tensor result = Encoded(*std::move(encoding));
      if (result.dtype_ == dtype_ && result.is_lazy())
        Data::SourceOf(result).unordered = Unordered();
      return result.Cast(dtype_);
    }
  Dims dims;
  for (int axis : perm) dims.push_back(dims_.at(axis));
  if (size_ <= 1 || data_->source().pattern.size()) return Reshaped(std::move(dims));
  std::vector<int> moving;  // axes of size above 1, in their new order
  for (int axis : perm)
    if (dims_[axis] != 1) moving.push_back(axis);
  if (std::ranges::is_sorted(moving)) return Reshaped(std::move(dims));

  if (dtype_ == DType::kString) {
    std::vector<int64_t> places(static_cast<size_t>(size_));
    std::iota(places.begin(), places.end(), 0);
    std::vector<std::string> values;
    for (int64_t place : Vector(places).Reshaped(dims_).Transposed(perm).Ints())
      values.push_back(strings()[place]);
    return Strings(std::move(dims), std::move(values));
  }
  if (IsSubByte(dtype_)) {
    return TransposeSubByte(*this, perm);
  }

  // Consecutive transpositions compose at the source, below any conversion.
  if (const Data::View* view = Data::ViewOf(*this)) {
    if (view->perm.empty()) return view->source.Reshaped(dims_).Transposed(perm).Cast(dtype_);
    if (view->Unmerged() == dims_) {
      std::vector<int> total;
      for (int axis : perm) total.push_back(view->perm[axis]);
      return view->source.Transposed(total).Cast(dtype_);
    }
  }
  Tensor result = Data::Viewed(*this, perm, dtype_, std::move(dims)).ComputedFrom(*this);
  return size_ <= kLazyElements ? result.InMemory() : result;
}

Tensor Tensor::Cast(DType dtype) const {
  if (dtype == dtype_) return *this;
  if (dtype == DType::kString || dtype_ == DType::kString || dtype == DType::kNone)
    throw Error("unsupported-dtype", "cannot convert {} to {}", Name(dtype_), Name(dtype));
  if (size_ == 0) return Owned(dtype, dims_, {});
  if (data_->source().pattern.size()) {
    // A pattern of eight elements represents all.
    Tensor eight = Owned(dtype_, {8}, data_->source().pattern).Cast(dtype);
    auto data = Data::New(dtype, dims_);
    Pin<std::byte> pattern = eight.bytes();
    data->NewSource().pattern.assign(pattern.begin(), pattern.end());
    return Data::Wrap(std::move(data), dims_);
  }

  Tensor result;
  if (size_ <= kLazyElements && data_->Address() && !IsSubByte(dtype_) && !IsSubByte(dtype)) {
    std::byte* out = nullptr;
    result = Allocate(dtype, dims_, &out);
    ConvertElements(dtype_, data_->Address(), dtype, out, size_);
    Release(0, size_);
  } else if (IsSubByte(dtype_) || IsSubByte(dtype)) {
    result = CastSubByte(*this, dtype);
  } else {
    const Data::View* view = Data::ViewOf(*this);
    // Converting back from a wider dtype restores the source.
    const bool back = view && view->source.dtype_ == dtype && Holds(dtype_, dtype);
    if (back && view->perm.empty()) {
      result = view->source.Reshaped(dims_);
    } else if (view && (back || view->source.dtype_ == dtype_)) {
      result = Data::Viewed(view->source, view->perm, dtype, view->Unmerged()).Reshaped(dims_);
    } else {
      result = Data::Viewed(*this, {}, dtype, dims_);
    }
  }
  if (size_ <= kLazyElements) result = result.InMemory();
  // A rounded tensor keeps its encoding only if this dtype represents all encoded values.
  if (encoding_ && IsFloat(dtype) && Holds(dtype_, encoding_->dtype)) result.encoding_ = encoding_;
  result.provenance_ = provenance_;
  return IsFloat(dtype) && IsFloat(dtype_) ? result : result.ComputedFrom(*this);
}

Tensor Tensor::Rows(int64_t begin, int64_t end) const {
  MLC_CHECK(rank() > 0 && 0 <= begin && begin <= end && end <= dims_[0], "rows [{}, {}) of [{}]",
            begin, end, fmt::join(dims_, ", "));
  Dims dims = dims_;
  dims[0] = end - begin;
  int64_t row = dims_[0] == 0 ? 0 : size_ / dims_[0], first = begin * row,
          count = (end - begin) * row;
  if (count == size_) return *this;
  const auto rows = [&] {
    if (encoding_)
      if (std::optional<Encoding> encoding = Sliced(*encoding_, 0, begin, end))
        return Encoded(*std::move(encoding)).Cast(dtype_);
    if (dtype_ == DType::kString) {
      auto from = strings().begin() + first;
      return Strings(std::move(dims), {from, from + count});
    }
    if (count == 0) return Owned(dtype_, std::move(dims), {});
    if (IsSubByte(dtype_) && first % 8 != 0) return RowsOfSubByte(*this, begin, end);
    if (data_->source().file)
      return FileSlice(data_->source().file, data_->source().offset + ByteCount(dtype_, first),
                       dtype_, std::move(dims));
    auto data = Data::New(dtype_, dims);
    if (data_->source().pattern.size()) {
      data->NewSource().pattern = data_->source().pattern;
    } else if (const std::byte* address = data_->Address()) {
      data->Own(data_, {address + ByteCount(dtype_, first), data->byte_size()});
    } else {
      Data::Source& from = data->NewSource();
      from.read = [source = *this, first](int64_t at, int64_t n, std::byte* out) {
        source.Read(first + at, n, out);
      };
      from.release = [source = *this, first](int64_t at, int64_t n) {
        source.Release(first + at, n);
      };
    }
    return Data::Wrap(std::move(data), std::move(dims));
  };
  return rows().ComputedFrom(*this);
}

bool Tensor::SameBytes(const Tensor& other) const {
  if (!data_ || !other.data_) return data_ == other.data_;
  if (dtype_ != other.dtype_ || dims_ != other.dims_) return false;
  if (data_ == other.data_) return true;
  if (dtype_ == DType::kString) return strings() == other.strings();
  int64_t block = std::max(BlockElements(kBlock), other.BlockElements(kBlock));
  std::vector<std::byte> a(ByteCount(dtype_, std::min(size_, block))), b(a.size());
  for (int64_t first = 0; first < size_; first += block) {
    int64_t count = std::min(block, size_ - first);
    Read(first, count, a.data());
    other.Read(first, count, b.data());
    size_t bytes = ByteCount(dtype_, count), whole = static_cast<size_t>(count * Bits(dtype_) / 8);
    if (std::memcmp(a.data(), b.data(), whole) != 0) return false;
    // Ignores padding bits after the last sub-byte element.
    if (whole < bytes) {
      auto mask = static_cast<std::byte>((1u << (count * Bits(dtype_) % 8)) - 1);
      if (((a[whole] ^ b[whole]) & mask) != std::byte{0}) return false;
    }
  }
  return true;
}

}  // namespace mlc
