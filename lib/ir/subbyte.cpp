#include "lib/ir/subbyte.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace mlc {

namespace {
constexpr int64_t kBlock = int64_t{1} << 16;  // elements per block; a multiple of 8

// Packs groups of eight elements of one byte each, and returns how many elements these are.
template <int kBits>
int64_t PutEights(const std::byte* from, int64_t count, std::byte* out) {
  constexpr uint64_t kKept = ((1u << kBits) - 1) * 0x0101010101010101u;
  auto eight = [&](int64_t i) {
    uint64_t bytes;
    std::memcpy(&bytes, from + i, 8);
    return Gathered(bytes & kKept, kBits);
  };
  int64_t i = 0;
  // Excess bits are overwritten by later elements, while there is room for them.
  for (; (count - i) / 8 * kBits >= 8; i += 8, out += kBits) {
    const uint64_t packed = eight(i);
    std::memcpy(out, &packed, 8);
  }
  for (; i + 8 <= count; i += 8, out += kBits) {
    const uint64_t packed = eight(i);
    std::memcpy(out, &packed, kBits);
  }
  return i;
}

// Packs elements of one byte each. Writes whole bytes.
void PutAll(const std::byte* from, int64_t count, DType dtype, std::byte* out) {
  constexpr decltype(&PutEights<1>) kByBits[] = {PutEights<1>, PutEights<2>, PutEights<3>,
                                                 PutEights<4>, PutEights<5>, PutEights<6>,
                                                 PutEights<7>};
  const int bits = Bits(dtype);
  int64_t i = kByBits[bits - 1](from, count, out);
  out += i / 8 * bits;
  std::fill_n(out, ByteCount(dtype, count - i), std::byte{0});
  for (int64_t k = 0; i < count; ++i, ++k) SetSubByte(out, dtype, k, static_cast<uint8_t>(from[i]));
}

void ReadUnpacked(const Tensor& source, int64_t first, int64_t count, DType dtype, std::byte* out) {
  const DType bytes = InBytes(source.dtype());
  if (dtype == bytes) return ReadBytes(source, first, count, out);
  std::vector<std::byte> block(static_cast<size_t>(std::min(count, kBlock)));
  for (int64_t done = 0; done < count; done += kBlock) {
    int64_t n = std::min(count - done, kBlock);
    ReadBytes(source, first + done, n, block.data());
    if (IsSubByte(dtype)) {
      PutAll(block.data(), n, dtype, out + ByteCount(dtype, done));
    } else {
      ConvertElements(bytes, block.data(), dtype, out + ByteCount(dtype, done), n);
    }
  }
}

void ReadPacked(const Tensor& source, int64_t first, int64_t count, DType dtype, std::byte* out) {
  double high = std::ldexp(1, Bits(dtype) - (IsSigned(dtype) ? 1 : 0)) - 1;
  double low = IsSigned(dtype) ? -high - 1 : 0;
  const bool saturate = IsFloat(source.dtype()), copy = source.dtype() == InBytes(dtype);
  DType wide = saturate ? DType::kFp64 : DType::kInt64;
  if (!copy) std::fill_n(out, ByteCount(dtype, count), std::byte{0});
  const auto most = static_cast<size_t>(std::min(count, kBlock));
  std::vector<std::byte> block(copy ? 0 : most * 8), raw(most * Bits(source.dtype()) / 8);
  for (int64_t done = 0; done < count; done += kBlock) {
    int64_t n = std::min(kBlock, count - done);
    source.Read(first + done, n, raw.data());
    if (copy) {
      PutAll(raw.data(), n, dtype, out + ByteCount(dtype, done));
      continue;
    }
    ConvertElements(source.dtype(), raw.data(), wide, block.data(), n);
    for (int64_t i = 0; i < n; ++i) {
      int64_t value;
      if (saturate) {
        double real = reinterpret_cast<const double*>(block.data())[i];
        value = std::isnan(real) ? 0 : static_cast<int64_t>(std::clamp(real, low, high));
      } else {
        value = reinterpret_cast<const int64_t*>(block.data())[i];
      }
      SetSubByte(out, dtype, done + i, static_cast<uint8_t>(value));
    }
  }
}
}  // namespace

DType InBytes(DType dtype) {
  return !IsSubByte(dtype) ? dtype : IsSigned(dtype) ? DType::kInt8 : DType::kUint8;
}

uint8_t GetSubByte(const std::byte* bytes, DType dtype, int64_t i) {
  int bits = Bits(dtype), shift = static_cast<int>(i * bits % 8);
  const std::byte* from = bytes + i * bits / 8;
  unsigned value = static_cast<unsigned>(from[0]) >> shift;
  if (shift + bits > 8) value |= static_cast<unsigned>(from[1]) << (8 - shift);
  value &= (1u << bits) - 1;
  return static_cast<uint8_t>(IsSigned(dtype) && value >> (bits - 1) ? value | (0xFFu << bits)
                                                                     : value);
}

void SetSubByte(std::byte* bytes, DType dtype, int64_t i, uint8_t value) {
  int bits = Bits(dtype), shift = static_cast<int>(i * bits % 8);
  unsigned field = (value & ((1u << bits) - 1)) << shift;
  bytes[i * bits / 8] |= static_cast<std::byte>(field & 0xFF);
  if (field >> 8) bytes[i * bits / 8 + 1] |= static_cast<std::byte>(field >> 8);
}

void ReadBytes(const Tensor& source, int64_t first, int64_t count, std::byte* out) {
  const DType dtype = source.dtype();
  if (!IsSubByte(dtype)) return source.Read(first, count, out);
  const int bits = Bits(dtype);
  const unsigned mask = (1u << bits) - 1, sign = IsSigned(dtype) ? 1u << (bits - 1) : 0;
  constexpr int64_t kStep = 4096;
  std::byte packed[kStep + 8];  // reads eight bytes at a time
  for (int64_t done = 0; done < count;) {
    int64_t start = (first + done) / 8 * 8, skip = first + done - start;
    int64_t n = std::min(count - done, kStep - skip);
    source.Read(start, skip + n, packed);
    std::fill_n(packed + ByteCount(dtype, skip + n), 8, std::byte{0});
    int64_t i = 0;
    for (; skip == 0 && i + 8 <= n; i += 8) {
      uint64_t eight;
      std::memcpy(&eight, packed + i / 8 * bits, sizeof(eight));
      eight = Spread(eight, bits);
      // Multiplies each sign bit by the mask of the bits above it.
      eight |= (eight & sign * 0x0101010101010101u) * ((1u << (9 - bits)) - 2);
      std::memcpy(out + done + i, &eight, 8);
    }
    for (; i < n; ++i) {
      int64_t bit = (skip + i) * bits;
      unsigned pair =
          static_cast<unsigned>(packed[bit / 8]) | static_cast<unsigned>(packed[bit / 8 + 1]) << 8;
      out[done + i] = static_cast<std::byte>(((pair >> (bit % 8) & mask) ^ sign) - sign);
    }
    done += n;
  }
}

Tensor CastSubByte(const Tensor& source, DType dtype) {
  return Tensor::Lazy(
      dtype, source.dims(),
      [source, dtype](int64_t first, int64_t count, std::byte* out) {
        (IsSubByte(source.dtype()) ? ReadUnpacked : ReadPacked)(source, first, count, dtype, out);
      },
      source);
}

Tensor TransposeSubByte(const Tensor& source, const std::vector<int>& perm) {
  return source.Cast(InBytes(source.dtype())).Transposed(perm).Cast(source.dtype());
}

Tensor ViewSubByte(const Tensor& bytes, DType dtype, Dims dims) {
  if (!IsSubByte(dtype)) return bytes.Reshaped(std::move(dims));
  return Tensor::Lazy(
      dtype, std::move(dims), [bytes, dtype](int64_t first, int64_t count, std::byte* out) {
        bytes.Read(first * Bits(dtype) / 8, static_cast<int64_t>(ByteCount(dtype, count)), out);
      });
}

Tensor BytesOf(const Tensor& tensor) {
  const auto size = static_cast<int64_t>(tensor.byte_size());
  if (Bits(tensor.dtype()) == 8 && IsInteger(tensor.dtype()))
    return tensor.Cast(DType::kUint8).Reshaped({size});
  return Tensor::Lazy(
      DType::kUint8, {size}, [tensor](int64_t first, int64_t count, std::byte* out) {
        // Eight elements take as many bytes as one element has bits.
        const int64_t bits = Bits(tensor.dtype()), start = first / bits * bits;
        const int64_t from = start / bits * 8, to = (first + count + bits - 1) / bits * 8;
        const int64_t elements = std::min(to, tensor.size()) - from;
        std::vector<std::byte> bytes(ByteCount(tensor.dtype(), elements));
        tensor.Read(from, elements, bytes.data());
        std::copy_n(bytes.begin() + (first - start), count, out);
      });
}

Tensor RowsOfSubByte(const Tensor& source, int64_t begin, int64_t end) {
  Dims dims = source.dims();
  const int64_t origin = begin * (source.size() / dims[0]);
  dims[0] = end - begin;
  return Tensor::Lazy(source.dtype(), std::move(dims),
                      [source, origin](int64_t first, int64_t count, std::byte* out) {
                        std::vector<std::byte> bytes(static_cast<size_t>(count));
                        ReadBytes(source, origin + first, count, bytes.data());
                        PutAll(bytes.data(), count, source.dtype(), out);
                      });
}

}  // namespace mlc
