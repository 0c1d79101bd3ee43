#include "lib/ir/packed.h"

#include <algorithm>
#include <cmath>

namespace mlc {

namespace {
constexpr int64_t kBlock = int64_t{1} << 16;  // elements held at a time; a multiple of 8

void ReadUnpacked(const Tensor& source, int64_t first, int64_t count, DType dtype, std::byte* out) {
  const DType from = source.dtype(), to = InBytes(dtype);
  std::vector<std::byte> packed(ByteCount(from, kBlock)), bytes(kBlock);
  if (IsSubByte(dtype)) std::fill_n(out, ByteCount(dtype, count), std::byte{0});
  for (int64_t done = 0; done < count;) {
    int64_t start = (first + done) / 8 * 8, skip = first + done - start;
    int64_t n = std::min(count - done, kBlock - skip);
    source.Read(start, skip + n, packed.data());
    for (int64_t i = 0; i < n; ++i)
      bytes[i] = static_cast<std::byte>(GetPacked(packed.data(), from, skip + i));
    if (IsSubByte(dtype)) {
      for (int64_t i = 0; i < n; ++i)
        PutPacked(out, dtype, done + i, static_cast<uint8_t>(bytes[i]));
    } else {
      ConvertElements(InBytes(from), bytes.data(), to, out + ByteCount(to, done), n);
    }
    done += n;
  }
}

void ReadPacked(const Tensor& source, int64_t first, int64_t count, DType dtype, std::byte* out) {
  double high = std::ldexp(1, Bits(dtype) - (IsSigned(dtype) ? 1 : 0)) - 1;
  double low = IsSigned(dtype) ? -high - 1 : 0;
  bool saturate = IsFloat(source.dtype());
  DType wide = saturate ? DType::kFp64 : DType::kInt64;
  std::fill_n(out, ByteCount(dtype, count), std::byte{0});
  std::vector<std::byte> block(kBlock * 8), raw(ByteCount(source.dtype(), kBlock));
  for (int64_t done = 0; done < count; done += kBlock) {
    int64_t n = std::min(kBlock, count - done);
    source.Read(first + done, n, raw.data());
    ConvertElements(source.dtype(), raw.data(), wide, block.data(), n);
    for (int64_t i = 0; i < n; ++i) {
      int64_t value;
      if (saturate) {
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

Tensor CastPacked(const Tensor& source, DType dtype) {
  return Tensor::Lazy(
      dtype, source.dims(), [source, dtype](int64_t first, int64_t count, std::byte* out) {
        (IsSubByte(source.dtype()) ? ReadUnpacked : ReadPacked)(source, first, count, dtype, out);
      });
}

Tensor TransposePacked(const Tensor& source, const std::vector<int>& perm) {
  const size_t rank = perm.size();
  Dims strides(rank, 1), dims, steps(rank, 1);
  for (int axis : perm) dims.push_back(source.dims()[axis]);
  for (size_t i = rank; i-- > 1;) {
    strides[i - 1] = strides[i] * source.dims()[i];
    steps[i - 1] = steps[i] * dims[i];
  }
  return Tensor::Lazy(source.dtype(), std::move(dims),
                      [source, perm, strides, steps](int64_t first, int64_t count, std::byte* out) {
                        std::fill_n(out, ByteCount(source.dtype(), count), std::byte{0});
                        const std::byte* bytes = source.bytes().data();
                        for (int64_t i = 0; i < count; ++i) {
                          int64_t index = 0, rest = first + i;
                          for (size_t axis = 0; axis < perm.size(); ++axis) {
                            index += rest / steps[axis] * strides[perm[axis]];
                            rest %= steps[axis];
                          }
                          PutPacked(out, source.dtype(), i,
                                    GetPacked(bytes, source.dtype(), index));
                        }
                      });
}

Tensor RowsOfPacked(const Tensor& source, int64_t begin, int64_t end) {
  Dims dims = source.dims();
  const int64_t origin = begin * (source.size() / dims[0]);
  dims[0] = end - begin;
  return Tensor::Lazy(source.dtype(), std::move(dims),
                      [source, origin](int64_t first, int64_t count, std::byte* out) {
                        int64_t start = (origin + first) / 8 * 8, skip = origin + first - start;
                        std::vector<std::byte> packed(ByteCount(source.dtype(), skip + count));
                        source.Read(start, skip + count, packed.data());
                        std::fill_n(out, ByteCount(source.dtype(), count), std::byte{0});
                        for (int64_t i = 0; i < count; ++i)
                          PutPacked(out, source.dtype(), i,
                                    GetPacked(packed.data(), source.dtype(), skip + i));
                      });
}

}  // namespace mlc
