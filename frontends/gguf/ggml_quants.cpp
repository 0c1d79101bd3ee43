// The layouts are those of ggml's src/ggml-common.h, the values those of dequantize_row_* in
// src/ggml-quants.c. The unpacking functions read one block and write one integer per byte.
#include "frontends/gguf/ggml_quants.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "frontends/gguf/codebooks.h"
#include "lib/ir/subbyte.h"
#include "lib/support/half.h"

namespace mlc::gguf {

namespace {

static_assert(std::endian::native == std::endian::little, "blocks are read without byte swapping");

template <class T>
T Load(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}
void Store(uint8_t* bytes, uint64_t value) { std::memcpy(bytes, &value, sizeof(value)); }
float LoadHalf(const uint8_t* bytes) { return Half::ToFloat(Load<uint16_t>(bytes)); }

// Unpacks n bytes: first all low nibbles, then all high nibbles.
template <int n>
inline void Nibbles(const uint8_t* in, uint8_t* q) {
  for (int i = 0; i < n; ++i) q[i] = in[i] & 15;
  for (int i = 0; i < n; ++i) q[n + i] = in[i] >> 4;
}

// Unpacks the bit pairs of 32 bytes, starting with the lowest pair of every byte.
inline void Pairs(const uint8_t* in, uint8_t* q) {
  for (int shift = 0; shift < 8; shift += 2)
    for (int i = 0; i < 32; ++i) *q++ = in[i] >> shift & 3;
}

template <int n>
inline void Subtract(uint8_t* q, uint8_t amount) {
  for (int i = 0; i < n; ++i) q[i] = static_cast<uint8_t>(q[i] - amount);
}

// Combines four low bits with a fifth bit from `high`.
inline void FiveBits(const uint8_t* low, uint32_t high, uint8_t* q) {
  Nibbles<16>(low, q);
  for (int i = 0; i < 32; i += 8)
    Store(q + i, Load<uint64_t>(q + i) | Spread(high >> i & 255, 1) << 4);
}
void Q5_0(const uint8_t* block, uint8_t* q) { FiveBits(block + 6, Load<uint32_t>(block + 2), q); }
void Q5_1(const uint8_t* block, uint8_t* q) { FiveBits(block + 8, Load<uint32_t>(block + 4), q); }
void Q8_0(const uint8_t* block, uint8_t* q) { std::memcpy(q, block + 2, 32); }

void Q2K(const uint8_t* block, uint8_t* q) {
  Pairs(block + 16, q);
  Pairs(block + 48, q + 128);
}
void Q2KScales(const uint8_t* block, float* scale, float* bias) {
  const float d = LoadHalf(block + 80), m = LoadHalf(block + 82);
  for (int i = 0; i < 16; ++i) {
    scale[i] = d * static_cast<float>(block[i] & 15);
    bias[i] = -(m * static_cast<float>(block[i] >> 4));
  }
}

void Q3K(const uint8_t* block, uint8_t* q) {
  Pairs(block + 32, q);
  Pairs(block + 64, q + 128);
  for (int bit = 0; bit < 8; ++bit)
    for (int i = 0; i < 32; ++i)
      q[32 * bit + i] |= static_cast<uint8_t>((block[i] >> bit & 1) << 2);
  Subtract<256>(q, 4);
}
void Q3KScales(const uint8_t* block, float* scale, float*) {
  const uint8_t* packed = block + 96;
  const float d = LoadHalf(block + 108);
  for (int i = 0; i < 16; ++i) {
    int low = i < 8 ? packed[i] & 15 : packed[i - 8] >> 4,
        high = packed[8 + i % 4] >> i / 4 * 2 & 3;
    scale[i] = d * static_cast<float>((low | high << 4) - 32);
  }
}

// Unpacks the 6-bit scales and minima of eight cells.
void KScales(const uint8_t* block, float* scale, float* bias) {
  const float d = LoadHalf(block), m = LoadHalf(block + 2);
  // Each step handles four bytes: the scales and minima of the first four cells, and the bytes with
  // the low bits of the last four.
  constexpr uint64_t kSix = 0x3F3F3F3F, kFour = 0x0F0F0F0F, kTwo = 0x03030303;
  const uint64_t scales = Load<uint32_t>(block + 4), minima = Load<uint32_t>(block + 8),
                 both = Load<uint32_t>(block + 12);
  uint8_t s[8], b[8];
  Store(s, (scales & kSix) | ((both & kFour) | (scales >> 6 & kTwo) << 4) << 32);
  Store(b, (minima & kSix) | ((both >> 4 & kFour) | (minima >> 6 & kTwo) << 4) << 32);
  for (int i = 0; i < 8; ++i) scale[i] = d * static_cast<float>(s[i]);
  for (int i = 0; i < 8; ++i) bias[i] = -(m * static_cast<float>(b[i]));
}
void Q5K(const uint8_t* block, uint8_t* q) {
  for (int i = 0; i < 4; ++i) Nibbles<32>(block + 48 + 32 * i, q + 64 * i);
  for (int bit = 0; bit < 8; ++bit)
    for (int i = 0; i < 32; ++i)
      q[32 * bit + i] |= static_cast<uint8_t>((block[16 + i] >> bit & 1) << 4);
}

void Q6K(const uint8_t* block, uint8_t* q) {
  for (int half = 0; half < 2; ++half) {
    Nibbles<64>(block + 64 * half, q + 128 * half);
    uint8_t high[128];
    Pairs(block + 128 + 32 * half, high);
    for (int i = 0; i < 128; ++i) q[128 * half + i] |= static_cast<uint8_t>(high[i] << 4);
  }
}
void Q6KScales(const uint8_t* block, float* scale, float*) {
  const float d = LoadHalf(block + 208);
  for (int i = 0; i < 16; ++i)
    scale[i] = d * static_cast<float>(static_cast<int8_t>(block[192 + i]));
}

void Tq2_0(const uint8_t* block, uint8_t* q) {
  Pairs(block, q);
  Pairs(block + 32, q + 128);
  Subtract<256>(q, 1);
}
// Unpacks base-3 digits, each minus 1. A byte is 256 * 0.abcde (base 3), rounded up. The output has
// the first digit of every byte, then the second of every byte, and so on.
inline uint8_t* Digits(const uint8_t* in, int bytes, int digits, uint8_t* q) {
  for (int digit = 0, power = 1; digit < digits; ++digit, power *= 3)
    for (int i = 0; i < bytes; ++i)
      *q++ = static_cast<uint8_t>((static_cast<uint8_t>(in[i] * power) * 3 >> 8) - 1);
  return q;
}
void Tq1_0(const uint8_t* block, uint8_t* q) {
  q = Digits(block, 32, 5, q);
  q = Digits(block + 32, 16, 5, q);
  Digits(block + 48, 4, 4, q);
}
void Q2_0(const uint8_t* block, uint8_t* q) {
  for (int i = 0; i < 64; i += 8) Store(q + i, Spread(Load<uint16_t>(block + 2 + i / 4), 2));
  Subtract<64>(q, 1);
}
void Q1_0(const uint8_t* block, uint8_t* q) {
  for (int i = 0; i < 128; i += 8) Store(q + i, Spread(block[2 + i / 8], 1));
}

void Iq4XsScales(const uint8_t* block, float* scale, float*) {
  const float d = LoadHalf(block);
  const int high = Load<uint16_t>(block + 2);
  for (int i = 0; i < 8; ++i) {
    int low = block[4 + i / 2] >> i % 2 * 4 & 15;
    scale[i] = d * static_cast<float>((low | (high >> 2 * i & 3) << 4) - 32);
  }
}
// The scale is half of 2^(e - 127), since the palette entries are twice the E2M1 values.
void Mxfp4Scales(const uint8_t* block, float* scale, float*) {
  scale[0] = std::ldexp(1.0f, block[0] - 128);
}
// The scale is half of the unsigned E4M3 value.
void Nvfp4Scales(const uint8_t* block, float* scale, float*) {
  for (int i = 0; i < 4; ++i) {
    const int exponent = block[i] >> 3 & 15, mantissa = block[i] & 7;
    scale[i] = exponent ? std::ldexp(8.0f + static_cast<float>(mantissa), exponent - 11)
                        : std::ldexp(static_cast<float>(mantissa), -10);
    if (block[i] == 0x7F) scale[i] = 0;
  }
}

// Adds an eighth sign bit that makes the number of negative signs even.
uint32_t Signs(uint32_t seven) { return seven | (std::popcount(seven) & 1u) << 7; }

// Unpack a vector of a codebook; the sign bit of each element is stored above its index.
inline void Vector8(uint32_t packed, uint32_t signs, uint8_t* q) {
  Store(q, Spread(packed, 2) | Spread(signs, 1) << 2);
}
inline void Vector4(uint32_t packed, uint32_t signs, uint8_t* q) {
  const auto four = static_cast<uint32_t>(Spread(packed, 3) | Spread(signs & 15, 1) << 3);
  std::memcpy(q, &four, sizeof(four));
}

void Iq2Xxs(const uint8_t* block, uint8_t* q) {
  for (int i = 0; i < 32; ++i) {
    const uint8_t* part = block + 2 + i / 4 * 8;
    uint32_t signs = Signs(Load<uint32_t>(part + 4) >> 7 * (i % 4) & 127);
    Vector8(kIq2XxsCodebook[part[i % 4]], signs, q + 8 * i);
  }
}
void Iq2XxsScales(const uint8_t* block, float* scale, float*) {
  const float d = LoadHalf(block);
  for (int i = 0; i < 8; ++i)
    scale[i] = d * (0.5f + static_cast<float>(block[2 + 8 * i + 7] >> 4)) * 0.25f;
}
void Iq2Xs(const uint8_t* block, uint8_t* q) {
  for (int i = 0; i < 32; ++i) {
    const uint32_t code = Load<uint16_t>(block + 2 + 2 * i);
    Vector8(kIq2XsCodebook[code & 511], Signs(code >> 9), q + 8 * i);
  }
}
template <int at>
void Iq2Scales(const uint8_t* block, float* scale, float*) {
  const float d = LoadHalf(block);
  for (int i = 0; i < 16; ++i)
    scale[i] = d * (0.5f + static_cast<float>(block[at + i / 2] >> i % 2 * 4 & 15)) * 0.25f;
}
void Iq2S(const uint8_t* block, uint8_t* q) {
  for (int i = 0; i < 32; ++i) {
    const uint32_t high = block[66 + i / 4] >> i % 4 * 2 & 3;
    Vector8(kIq2SCodebook[block[2 + i] | high << 8], block[34 + i], q + 8 * i);
  }
}

void Iq3Xxs(const uint8_t* block, uint8_t* q) {
  for (int i = 0; i < 64; ++i) {
    uint32_t signs = Signs(Load<uint32_t>(block + 66 + i / 8 * 4) >> 7 * (i / 2 % 4) & 127);
    Vector4(kIq3XxsCodebook[block[2 + i]], signs >> i % 2 * 4, q + 4 * i);
  }
}
void Iq3XxsScales(const uint8_t* block, float* scale, float*) {
  const float d = LoadHalf(block);
  for (int i = 0; i < 8; ++i)
    scale[i] = d * (0.5f + static_cast<float>(block[66 + 4 * i + 3] >> 4)) * 0.5f;
}
void Iq3S(const uint8_t* block, uint8_t* q) {
  for (int i = 0; i < 64; ++i) {
    const uint32_t high = block[66 + i / 8] >> i % 8 & 1;
    Vector4(kIq3SCodebook[block[2 + i] | high << 8], block[74 + i / 2] >> i % 2 * 4, q + 4 * i);
  }
}
void Iq3SScales(const uint8_t* block, float* scale, float*) {
  const float d = LoadHalf(block);
  for (int i = 0; i < 8; ++i)
    scale[i] = d * static_cast<float>(1 + 2 * (block[106 + i / 2] >> i % 2 * 4 & 15));
}

// The vectors of -1, 0, 1 are shifted up or down by an eighth. The integers are scaled by 8: 8 x
// the element, plus or minus 1.
void Iq1S(const uint8_t* block, uint8_t* q) {
  for (int i = 0; i < 32; ++i) {
    const uint32_t high = Load<uint16_t>(block + 34 + i / 4 * 2);
    Vector8(kIq1Codebook[block[2 + i] | (high >> i % 4 * 3 & 7) << 8], high >> 15 ? 255 : 0,
            q + 8 * i);
  }
}
void Iq1SScales(const uint8_t* block, float* scale, float*) {
  const float d = LoadHalf(block);
  for (int i = 0; i < 8; ++i)
    scale[i] = d * static_cast<float>(2 * (block[34 + 2 * i + 1] >> 4 & 7) + 1) * 0.125f;
}
void Iq1M(const uint8_t* block, uint8_t* q) {
  for (int i = 0; i < 32; ++i) {
    const uint32_t high = block[32 + i / 2] >> i % 2 * 4;
    Vector8(kIq1Codebook[block[i] | (high & 7) << 8], high & 8 ? 255 : 0, q + 8 * i);
  }
}
void Iq1MScales(const uint8_t* block, float* scale, float*) {
  const uint8_t* packed = block + 48;
  uint16_t half = 0;
  for (int i = 0; i < 4; ++i) half = static_cast<uint16_t>(half | packed[2 * i + 1] >> 4 << 4 * i);
  const float d = Half::ToFloat(half);
  for (int i = 0; i < 16; ++i) {
    const int three = Load<uint16_t>(packed + i / 4 * 2) >> i % 4 * 3 & 7;
    scale[i] = d * static_cast<float>(2 * three + 1) * 0.125f;
  }
}

// Packs n one-byte integers into elements of `bits` bits.
template <int bits, int n>
inline void Pack(const uint8_t* q, std::byte* out) {
  if constexpr (bits == 8) {
    std::memcpy(out, q, n);
  } else if constexpr (bits == 4) {
    uint16_t pairs[n / 2];
    std::memcpy(pairs, q, n);
    for (int i = 0; i < n / 2; ++i)
      out[i] = static_cast<std::byte>((pairs[i] & 15) | (pairs[i] >> 4 & 0xF0));
  } else {
    for (int i = 0; i < n / 8; ++i) {
      const uint64_t eight = Gathered(Load<uint64_t>(q + 8 * i), bits);
      std::memcpy(out + bits * i, &eight, bits);
    }
  }
}

constexpr int BitsOf(DType dtype) {
  return dtype == DType::kUint1                            ? 1
         : dtype == DType::kUint3                          ? 3
         : dtype == DType::kInt4 || dtype == DType::kUint4 ? 4
         : dtype == DType::kUint6                          ? 6
                                                           : 8;
}

// Does the same for blocks that contain only nibbles from byte `at` on, in groups of n bytes: the
// low nibbles of a group are its first elements. `sign` is the bit to flip in order to subtract 8.
template <int elements, int bytes, int at, int n, int sign>
void UnpackNibbles(const uint8_t* blocks, int64_t count, std::byte* out) {
  constexpr int kWords = n / 2;
  for (; count > 0; --count, blocks += bytes) {
    for (int part = 0; part < elements / 2; part += n, out += n) {
      uint16_t in[kWords], all[n];
      std::memcpy(in, blocks + at + part, n);
      for (int i = 0; i < kWords; ++i)
        all[i] = static_cast<uint16_t>((in[i] & 15) | (in[i] >> 4 & 0xF0));
      for (int i = 0; i < kWords; ++i)
        all[kWords + i] = static_cast<uint16_t>((in[i] >> 4 & 15) | (in[i] >> 8 & 0xF0));
      uint8_t q[n];
      for (int i = 0; i < n; ++i) q[i] = static_cast<uint8_t>(all[i] ^ sign * 0x11);
      std::memcpy(out, q, n);
    }
  }
}

template <int elements, int bytes, DType integers, auto integers_of>
void Unpack(const uint8_t* blocks, int64_t count, std::byte* out) {
  constexpr int bits = BitsOf(integers);
  for (; count > 0; --count, blocks += bytes, out += elements * bits / 8) {
    uint8_t q[elements];
    integers_of(blocks, q);
    Pack<bits, elements>(q, out);
  }
}

constexpr BlockType Plain(uint32_t id, std::string_view name, int bytes, DType dtype) {
  return {.id = id, .name = name, .bytes = bytes, .plain = dtype};
}
template <int elements, int bytes, DType integers, auto integers_of>
constexpr BlockType Blocks(uint32_t id, std::string_view name) {
  return {.id = id,
          .name = name,
          .elements = elements,
          .bytes = bytes,
          .integers = integers,
          .unpack = Unpack<elements, bytes, integers, integers_of>};
}
template <int elements, int bytes, DType integers, int at, int n, int sign = 0>
constexpr BlockType NibbleBlocks(uint32_t id, std::string_view name) {
  return {.id = id,
          .name = name,
          .elements = elements,
          .bytes = bytes,
          .integers = integers,
          .unpack = UnpackNibbles<elements, bytes, at, n, sign>};
}
// Returns a type with one scale, and an optional bias, per block.
constexpr BlockType One(BlockType type, int scale_at, int bias_at = -1) {
  type.cell = type.elements;
  type.scale_at = scale_at;
  type.bias_at = bias_at;
  type.biased = bias_at >= 0;
  return type;
}
constexpr BlockType Cells(BlockType type, int cell, decltype(BlockType::scales) scales,
                          bool biased = false) {
  type.cell = cell;
  type.scales = scales;
  type.biased = biased;
  return type;
}
constexpr BlockType Of(std::span<const int8_t> palette, BlockType type) {
  type.palette = palette;
  return type;
}

constexpr std::array<int8_t, 64> Shifted(int by, int used) {
  std::array<int8_t, 64> palette = {};
  for (int i = 0; i < used; ++i) palette[i] = static_cast<int8_t>(i - by);
  return palette;
}
constexpr auto kFive = Shifted(16, 32), kSix = Shifted(32, 64);
constexpr int8_t kTwo[] = {-1, 1};
constexpr int8_t kIq1[] = {-7, 1, 9, 0, -9, -1, 7, 0};
constexpr int8_t kIq2[] = {8, 25, 43, 0, -8, -25, -43, 0};
constexpr int8_t kIq3Xxs[] = {4, 12, 20, 28, 36, 44, 52, 62, -4, -12, -20, -28, -36, -44, -52, -62};
constexpr int8_t kIq3S[] = {1, 3, 5, 7, 9, 11, 13, 15, -1, -3, -5, -7, -9, -11, -13, -15};
constexpr int8_t kIq4[] = {-127, -104, -83, -65, -49, -35, -22, -10,
                           1,    13,   25,  38,  53,  69,  89,  113};
constexpr int8_t kE2M1Twice[] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

using enum DType;
//            elements  bytes  integers
constexpr BlockType kTypes[] = {
    Plain(0, "F32", 4, kFp32),
    Plain(1, "F16", 2, kFp16),
    One(NibbleBlocks<32, 18, kInt4, 2, 16, 8>(2, "Q4_0"), 0),
    One(NibbleBlocks<32, 20, kUint4, 4, 16>(3, "Q4_1"), 0, 2),
    Of(kFive, One(Blocks<32, 22, kUint6, Q5_0>(6, "Q5_0"), 0)),
    One(Blocks<32, 24, kUint8, Q5_1>(7, "Q5_1"), 0, 2),
    One(Blocks<32, 34, kInt8, Q8_0>(8, "Q8_0"), 0),
    Cells(Blocks<256, 84, kUint4, Q2K>(10, "Q2_K"), 16, Q2KScales, true),
    Cells(Blocks<256, 110, kInt4, Q3K>(11, "Q3_K"), 16, Q3KScales),
    Cells(NibbleBlocks<256, 144, kUint4, 16, 32>(12, "Q4_K"), 32, KScales, true),
    Cells(Blocks<256, 176, kUint8, Q5K>(13, "Q5_K"), 32, KScales, true),
    Of(kSix, Cells(Blocks<256, 210, kUint6, Q6K>(14, "Q6_K"), 16, Q6KScales)),
    Of(kIq2, Cells(Blocks<256, 66, kUint3, Iq2Xxs>(16, "IQ2_XXS"), 32, Iq2XxsScales)),
    Of(kIq2, Cells(Blocks<256, 74, kUint3, Iq2Xs>(17, "IQ2_XS"), 16, Iq2Scales<66>)),
    Of(kIq3Xxs, Cells(Blocks<256, 98, kUint4, Iq3Xxs>(18, "IQ3_XXS"), 32, Iq3XxsScales)),
    Of(kIq1, Cells(Blocks<256, 50, kUint3, Iq1S>(19, "IQ1_S"), 32, Iq1SScales)),
    Of(kIq4, One(NibbleBlocks<32, 18, kUint4, 2, 16>(20, "IQ4_NL"), 0)),
    Of(kIq3S, Cells(Blocks<256, 110, kUint4, Iq3S>(21, "IQ3_S"), 32, Iq3SScales)),
    Of(kIq2, Cells(Blocks<256, 82, kUint3, Iq2S>(22, "IQ2_S"), 16, Iq2Scales<74>)),
    Of(kIq4, Cells(NibbleBlocks<256, 136, kUint4, 8, 16>(23, "IQ4_XS"), 32, Iq4XsScales)),
    Plain(24, "I8", 1, kInt8),
    Plain(25, "I16", 2, kInt16),
    Plain(26, "I32", 4, kInt32),
    Plain(27, "I64", 8, kInt64),
    Plain(28, "F64", 8, kFp64),
    Of(kIq1, Cells(Blocks<256, 56, kUint3, Iq1M>(29, "IQ1_M"), 16, Iq1MScales)),
    Plain(30, "BF16", 2, kBf16),
    One(Blocks<256, 54, kInt4, Tq1_0>(34, "TQ1_0"), 52),
    One(Blocks<256, 66, kInt4, Tq2_0>(35, "TQ2_0"), 64),
    Of(kE2M1Twice, Cells(NibbleBlocks<32, 17, kUint4, 1, 16>(39, "MXFP4"), 32, Mxfp4Scales)),
    Of(kE2M1Twice, Cells(NibbleBlocks<64, 36, kUint4, 4, 8>(40, "NVFP4"), 16, Nvfp4Scales)),
    Of(kTwo, One(Blocks<128, 18, kUint1, Q1_0>(41, "Q1_0"), 0)),
    One(Blocks<64, 18, kInt4, Q2_0>(42, "Q2_0"), 0),
};

}  // namespace

std::span<const BlockType> BlockTypes() { return kTypes; }

const BlockType* FindBlockType(uint32_t id) {
  auto row = std::ranges::lower_bound(kTypes, id, {}, &BlockType::id);
  return row != std::end(kTypes) && row->id == id ? &*row : nullptr;
}

}  // namespace mlc::gguf
