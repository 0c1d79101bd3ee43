#include "lib/ir/packed.h"

#include <algorithm>
#include <cmath>

namespace mlc {

namespace {
constexpr int64_t kBlock = int64_t{1} << 16;  // elements held at a time; a multiple of 8

void ReadUnpacked(const Tensor& source, int64_t first, int64_t count, DType dtype, std::byte* out) {
  const DType bytes = InBytes(source.dtype());
  if (dtype == bytes) return ReadBytes(source, first, count, out);
  std::vector<std::byte> block(static_cast<size_t>(std::min(count, kBlock)));
  if (IsSubByte(dtype)) std::fill_n(out, ByteCount(dtype, count), std::byte{0});
  for (int64_t done = 0; done < count; done += kBlock) {
    int64_t n = std::min(count - done, kBlock);
    ReadBytes(source, first + done, n, block.data());
    if (IsSubByte(dtype)) {
      for (int64_t i = 0; i < n; ++i)
        PutPacked(out, dtype, done + i, static_cast<uint8_t>(block[i]));
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
  std::fill_n(out, ByteCount(dtype, count), std::byte{0});
  const auto most = static_cast<size_t>(std::min(count, kBlock));
  std::vector<std::byte> block(copy ? 0 : most * 8), raw(most * Bits(source.dtype()) / 8);
  for (int64_t done = 0; done < count; done += kBlock) {
    int64_t n = std::min(kBlock, count - done);
    source.Read(first + done, n, raw.data());
    if (!copy) ConvertElements(source.dtype(), raw.data(), wide, block.data(), n);
    for (int64_t i = 0; i < n; ++i) {
      int64_t value;
      if (copy) {
        value = static_cast<int64_t>(raw[i]);
      } else if (saturate) {
        double real = reinterpret_cast<const double*>(block.data())[i];
        value = std::isnan(real) ? 0 : static_cast<int64_t>(std::clamp(real, low, high));
      } else {
        value = reinterpret_cast<const int64_t*>(block.data())[i];
      }
      PutPacked(out, dtype, done + i, static_cast<uint8_t>(value));
    }
  }
}
}  // namespace

DType InBytes(DType dtype) {
  return !IsSubByte(dtype) ? dtype : IsSigned(dtype) ? DType::kInt8 : DType::kUint8;
}

uint8_t GetPacked(const std::byte* bytes, DType dtype, int64_t i) {
  int bits = Bits(dtype), shift = static_cast<int>(i * bits % 8);
  const std::byte* from = bytes + i * bits / 8;
  unsigned value = static_cast<unsigned>(from[0]) >> shift;
  if (shift + bits > 8) value |= static_cast<unsigned>(from[1]) << (8 - shift);
  value &= (1u << bits) - 1;
  return static_cast<uint8_t>(IsSigned(dtype) && value >> (bits - 1) ? value | (0xFFu << bits)
                                                                     : value);
}

void PutPacked(std::byte* bytes, DType dtype, int64_t i, uint8_t value) {
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
  constexpr int64_t kStep = 2048;
  std::byte packed[kStep + 2];
  for (int64_t done = 0; done < count;) {
    int64_t start = (first + done) / 8 * 8, skip = first + done - start;
    int64_t n = std::min(count - done, kStep - skip);
    source.Read(start, skip + n, packed);
    packed[ByteCount(dtype, skip + n)] = std::byte{0};  // what the last pair below reaches into
    for (int64_t i = 0; i < n; ++i) {
      int64_t bit = (skip + i) * bits;
      unsigned pair =
          static_cast<unsigned>(packed[bit / 8]) | static_cast<unsigned>(packed[bit / 8 + 1]) << 8;
      out[done + i] = static_cast<std::byte>(((pair >> (bit % 8) & mask) ^ sign) - sign);
    }
    done += n;
  }
}

Tensor CastPacked(const Tensor& source, DType dtype) {
  return Tensor::Lazy(
      dtype, source.dims(),
      [source, dtype](int64_t first, int64_t count, std::byte* out) {
        (IsSubByte(source.dtype()) ? ReadUnpacked : ReadPacked)(source, first, count, dtype, out);
      },
      source);
}

Tensor TransposePacked(const Tensor& source, const std::vector<int>& perm) {
  return source.Cast(InBytes(source.dtype())).Transposed(perm).Cast(source.dtype());
}

Tensor ViewedPacked(const Tensor& bytes, DType dtype, Dims dims) {
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
        // Eight elements are as many bytes as one has bits.
        const int64_t bits = Bits(tensor.dtype()), start = first / bits * bits;
        const int64_t from = start / bits * 8, to = (first + count + bits - 1) / bits * 8;
        const int64_t elements = std::min(to, tensor.size()) - from;
        std::vector<std::byte> bytes(ByteCount(tensor.dtype(), elements));
        tensor.Read(from, elements, bytes.data());
        std::copy_n(bytes.begin() + (first - start), count, out);
      });
}

Tensor RowsOfPacked(const Tensor& source, int64_t begin, int64_t end) {
  Dims dims = source.dims();
  const int64_t origin = begin * (source.size() / dims[0]);
  dims[0] = end - begin;
  return Tensor::Lazy(source.dtype(), std::move(dims),
                      [source, origin](int64_t first, int64_t count, std::byte* out) {
                        std::vector<std::byte> bytes(static_cast<size_t>(count));
                        ReadBytes(source, origin + first, count, bytes.data());
                        std::fill_n(out, ByteCount(source.dtype(), count), std::byte{0});
                        for (int64_t i = 0; i < count; ++i)
                          PutPacked(out, source.dtype(), i, static_cast<uint8_t>(bytes[i]));
                      });
}

}  // namespace mlc
