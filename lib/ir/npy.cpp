#include "lib/ir/npy.h"

#include <fmt/ranges.h>
#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <string_view>

#include "lib/support/atomic_install.h"
#include "lib/support/error.h"
#include "lib/support/mapped_file.h"

namespace mlc {

namespace {

using Bytes = std::span<const std::byte>;

static_assert(std::endian::native == std::endian::little);

template <class T>
T Load(Bytes bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

// NumPy's type codes; 'b1' is bool.
constexpr struct {
  std::string_view code;
  DType dtype;
} kCodes[] = {
    {"b1", DType::kBool},  {"f2", DType::kFp16},   {"f4", DType::kFp32},   {"f8", DType::kFp64},
    {"i1", DType::kInt8},  {"i2", DType::kInt16},  {"i4", DType::kInt32},  {"i8", DType::kInt64},
    {"u1", DType::kUint8}, {"u2", DType::kUint16}, {"u4", DType::kUint32}, {"u8", DType::kUint64},
};

struct Header {
  DType dtype = DType::kNone;
  bool swapped = false, fortran = false;
  Dims dims;
  size_t size = 0;  // size of the header, which precedes the elements
};

// Parses the header: magic, version, length, and a Python dictionary with the keys descr,
// fortran_order and shape.
class HeaderParser {
 public:
  HeaderParser(Bytes bytes, const Location& at) : at_(at) {
    if (bytes.size() < 10 || std::memcmp(bytes.data(), "\x93NUMPY", 6) != 0)
      Fail("does not start like a .npy file");
    int major = static_cast<int>(bytes[6]);
    if (major < 1 || major > 3) Fail(fmt::format("has format version {}", major));
    if (major > 1 && bytes.size() < 12) Fail("ends inside its header");
    size_t start = major == 1 ? 10 : 12;
    size_t length = major == 1 ? Load<uint16_t>(bytes, 8) : Load<uint32_t>(bytes, 8);
    if (length > bytes.size() - start) Fail("ends inside its header");
    header_.size = start + length;
    text_ = {reinterpret_cast<const char*>(bytes.data()) + start, length};
  }

  Header Parse() {
    bool descr = false, order = false, shape = false;
    Expect("{");
    while (!Accept("}")) {
      std::string_view key = Quoted();
      Expect(":");
      if (key == "descr" && !descr) {
        descr = true;
        Type(Quoted());
      } else if (key == "fortran_order" && !order) {
        order = true;
        header_.fortran = Accept("True");
        if (!header_.fortran) Expect("False");
      } else if (key == "shape" && !shape) {
        shape = true;
        Shape();
      } else {
        Fail(fmt::format("has an unexpected or repeated key \"{}\"", Printable(key)));
      }
      if (Accept("}")) break;
      Expect(",");
    }
    if (!descr || !order || !shape) Fail("lacks descr, fortran_order or shape");
    return header_;
  }

 private:
  [[noreturn]] void Fail(std::string what) const {
    throw Error("bad-file", "the header " + what).At(at_);
  }
  static std::string Printable(std::string_view text) {
    std::string out;
    for (char c : text.substr(0, 40)) out += c >= 32 && c < 127 ? c : '?';
    return out;
  }
  bool Accept(std::string_view token) {
    while (!text_.empty() && std::string_view(" \t\n").find(text_[0]) != text_.npos)
      text_.remove_prefix(1);
    if (!text_.starts_with(token)) return false;
    text_.remove_prefix(token.size());
    return true;
  }
  void Expect(std::string_view token) {
    if (!Accept(token))
      Fail(fmt::format("has \"{}\" instead of \"{}\"", Printable(text_.substr(0, 20)), token));
  }
  std::string_view Quoted() {
    char quote = Accept("'") ? '\'' : '"';
    if (quote == '"' && !Accept("\"")) {
      if (Accept("["))
        throw Error("unsupported-dtype", "the array has a structured dtype")
            .At(at_)
            .Expected("booleans, integers or floats");
      Fail("lacks a string");
    }
    size_t end = text_.find(quote);
    if (end == text_.npos) Fail("has an unterminated string");
    std::string_view content = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    return content;
  }
  void Type(std::string_view code) {
    bool ordered = !code.empty() && std::string_view("<>|=").find(code[0]) != code.npos;
    std::string_view plain = code.substr(ordered ? 1 : 0);
    for (const auto& row : kCodes)
      if (row.code == plain) header_.dtype = row.dtype;
    if (header_.dtype == DType::kNone) {
      throw Error("unsupported-dtype", "the array has elements of type \"{}\"", Printable(code))
          .At(at_)
          .Expected("booleans, integers or floats of 8 to 64 bits");
    }
    header_.swapped = code[0] == '>' && Bits(header_.dtype) > 8;
  }
  void Shape() {
    Expect("(");
    while (!Accept(")")) {
      Accept("");  // skips spaces
      int64_t dim = 0;
      auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), dim);
      if (error != std::errc() || dim < 0) Fail("has a shape that is not a tuple of sizes");
      text_.remove_prefix(static_cast<size_t>(end - text_.data()));
      Accept("L");  // Python 2
      header_.dims.push_back(dim);
      if (header_.dims.size() > 64) Fail("has more than 64 dimensions");
      if (Accept(")")) break;
      Expect(",");
    }
  }

  Location at_;
  std::string_view text_;
  Header header_;
};

// Swaps the bytes of each element.
Tensor Swapped(const Tensor& tensor) {
  int size = Bits(tensor.dtype()) / 8;
  return Tensor::Lazy(tensor.dtype(), tensor.dims(),
                      [tensor, size](int64_t first, int64_t count, std::byte* out) {
                        tensor.Read(first, count, out);
                        for (std::byte* end = out + count * size; out < end; out += size)
                          std::reverse(out, out + size);
                      });
}

// Reads the array in `content`; `make` creates a tensor from its elements.
template <class Make>
Tensor ReadArray(Bytes content, const Location& at, Make&& make) {
  Header header = HeaderParser(content, at).Parse();
  // Fortran order is C order with reversed dimensions.
  Dims stored = header.dims;
  if (header.fortran) std::ranges::reverse(stored);
  size_t rest = content.size() - header.size;
  // The bytes of bools may have any value; Cast normalises them to 0 or 1.
  DType dtype = header.dtype == DType::kBool ? DType::kUint8 : header.dtype;
  __int128 needed = Bits(dtype) / 8;
  for (int64_t dim : stored)
    needed = dim == 0 ? 0 : std::min<__int128>(needed * dim, __int128{1} << 62);
  if (std::ranges::find(stored, 0) != stored.end()) needed = 0;
  if (needed > static_cast<__int128>(rest)) {
    throw Error("bad-file",
                "the array is truncated: its header declares [{}] of {}, but only {} bytes follow",
                fmt::join(header.dims, ", "), Name(header.dtype), rest)
        .At(at);
  }
  Tensor tensor = make(header.size, dtype, stored);
  if (header.swapped) tensor = Swapped(tensor);
  if (header.fortran) {
    std::vector<int> perm(stored.size());
    std::iota(perm.rbegin(), perm.rend(), 0);
    tensor = tensor.Transposed(perm);
  }
  return tensor.Cast(header.dtype);
}

// An entry of an archive's central directory (PKWARE APPNOTE 4.3.12).
struct Member {
  std::string name;
  uint16_t flags = 0, method = 0;
  uint32_t crc = 0;
  uint64_t packed = 0, size = 0, local = 0;
};

class ZipReader {
 public:
  explicit ZipReader(std::shared_ptr<const MappedFile> file)
      : file_(std::move(file)), bytes_(file_->bytes()) {}

  std::vector<Member> Members() {
    uint64_t end = FindEnd(), count = Get<uint16_t>(end + 10), offset = Get<uint32_t>(end + 16);
    if ((count == 0xFFFF || offset == 0xFFFFFFFF) && end >= 20 &&
        Get<uint32_t>(end - 20) == 0x07064B50) {
      uint64_t large = Get<uint64_t>(end - 12);
      if (Get<uint32_t>(large) != 0x06064B50) Fail("has a damaged end record");
      count = Get<uint64_t>(large + 32);
      offset = Get<uint64_t>(large + 48);
    }
    std::vector<Member> members;
    for (uint64_t i = 0; i < count; ++i) {
      if (Get<uint32_t>(offset) != 0x02014B50) Fail("has a damaged directory");
      Member member;
      member.flags = Get<uint16_t>(offset + 8);
      member.method = Get<uint16_t>(offset + 10);
      member.crc = Get<uint32_t>(offset + 16);
      member.packed = Get<uint32_t>(offset + 20);
      member.size = Get<uint32_t>(offset + 24);
      member.local = Get<uint32_t>(offset + 42);
      uint64_t name = Get<uint16_t>(offset + 28), extra = Get<uint16_t>(offset + 30),
               comment = Get<uint16_t>(offset + 32);
      Bytes text = Slice(offset + 46, name);
      member.name.assign(reinterpret_cast<const char*>(text.data()), text.size());
      ReadExtra(Slice(offset + 46 + name, extra), member);
      offset += 46 + name + extra + comment;
      members.push_back(std::move(member));
    }
    return members;
  }

  // Reads the array stored in a member.
  Tensor Read(const Member& member) {
    Location at{file_->path().string(), fmt::format("member \"{}\"", member.name)};
    auto fail = [&](const char* what) { return Error("bad-file", what).At(at); };
    if (member.flags & 1) throw fail("the member is encrypted");
    if (Get<uint32_t>(member.local) != 0x04034B50) throw fail("the member has a damaged header");
    uint64_t start =
        member.local + 30 + Get<uint16_t>(member.local + 26) + Get<uint16_t>(member.local + 28);
    Bytes packed = Slice(start, member.packed);
    if (member.method == 0) {
      if (member.size != member.packed)
        throw fail("the member's sizes in header and directory differ");
      if (Crc(packed) != member.crc) throw fail("the member is damaged: its CRC does not match");
      file_->Release(start, member.packed);
      return ReadArray(packed, at, [&](size_t offset, DType dtype, const Dims& dims) {
        return Tensor::FileSlice(file_, start + offset, dtype, dims);
      });
    }
    if (member.method != Z_DEFLATED)
      throw fail("the member's compression method is neither stored nor deflate");
    // Deflate compresses by a factor of at most 1032.
    if (member.size / 1032 > member.packed) throw fail("the member's sizes are implausible");
    if (member.size > uint64_t{4} << 30)
      throw Error("resource-limit", "the member decompresses to more than 4 GiB")
          .At(at)
          .Help("save with numpy.savez, which does not compress");
    std::byte* out = nullptr;
    Tensor whole = Tensor::Allocate(DType::kUint8, {static_cast<int64_t>(member.size)}, &out);
    if (!Inflate(packed, out, member.size))
      throw fail("the member does not decompress to its declared size");
    if (Crc({out, member.size}) != member.crc)
      throw fail("the member is damaged: its CRC does not match");
    return ReadArray({out, member.size}, at, [&](size_t offset, DType dtype, const Dims& dims) {
      auto first = static_cast<int64_t>(offset),
           count = static_cast<int64_t>(ByteCount(dtype, ElementCount(dims)));
      std::vector<std::byte> elements(out + first, out + first + count);
      return Tensor::Owned(dtype, dims, std::move(elements));
    });
  }

 private:
  [[noreturn]] void Fail(const char* what) const {
    throw Error("bad-file", "the archive {}", what).At({file_->path().string(), ""});
  }
  Bytes Slice(uint64_t offset, uint64_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) Fail("refers past its end");
    return bytes_.subspan(offset, size);
  }
  template <class T>
  T Get(uint64_t offset) const {
    return Load<T>(Slice(offset, sizeof(T)), 0);
  }
  // The end record is last, except for a comment of at most 65535 bytes.
  uint64_t FindEnd() const {
    for (uint64_t back = 22; back <= std::min<uint64_t>(bytes_.size(), 22 + 65535); ++back)
      if (Get<uint32_t>(bytes_.size() - back) == 0x06054B50) return bytes_.size() - back;
    Fail("has no end record");
  }
  // The 64-bit values of fields that overflow 32 bits (4.5.3).
  void ReadExtra(Bytes extra, Member& member) const {
    while (extra.size() >= 4) {
      size_t size = Load<uint16_t>(extra, 2);
      if (size > extra.size() - 4) Fail("has a damaged extra field");
      if (Load<uint16_t>(extra, 0) == 1) {
        Bytes values = extra.subspan(4, size);
        for (uint64_t* field : {&member.size, &member.packed, &member.local}) {
          if (*field != 0xFFFFFFFF) continue;
          if (values.size() < 8) Fail("has a damaged extra field");
          *field = Load<uint64_t>(values, 0);
          values = values.subspan(8);
        }
      }
      extra = extra.subspan(4 + size);
    }
  }
  static uint32_t Crc(Bytes bytes) {
    return static_cast<uint32_t>(
        crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  }
  // Decompresses exactly `size` bytes, in pieces that fit zlib's 32-bit counters.
  static bool Inflate(Bytes packed, std::byte* out, uint64_t size) {
    z_stream stream = {};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
    constexpr uint64_t kPiece = uint64_t{1} << 30;
    uint64_t in_left = packed.size(), out_left = size;
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
    stream.next_out = reinterpret_cast<Bytef*>(out);
    int result = Z_OK;
    while (result == Z_OK) {
      if (stream.avail_in == 0)
        in_left -= stream.avail_in = static_cast<uInt>(std::min(kPiece, in_left));
      if (stream.avail_out == 0)
        out_left -= stream.avail_out = static_cast<uInt>(std::min(kPiece, out_left));
      result = inflate(&stream, Z_NO_FLUSH);
    }
    bool whole = result == Z_STREAM_END && out_left == 0 && stream.avail_out == 0;
    inflateEnd(&stream);
    return whole;
  }

  std::shared_ptr<const MappedFile> file_;
  Bytes bytes_;
};

}  // namespace

Tensor ReadNpy(const std::filesystem::path& path) {
  auto file = MappedFile::Open(path);
  return ReadArray(file->bytes(), {path.string(), ""},
                   [&](size_t offset, DType dtype, const Dims& dims) {
                     return Tensor::FileSlice(file, offset, dtype, dims);
                   });
}

std::map<std::string, Tensor> ReadNpz(const std::filesystem::path& path) {
  auto file = MappedFile::Open(path);
  ZipReader reader(file);
  std::map<std::string, Tensor> arrays;
  uint64_t left = file->bytes().size();
  for (const Member& member : reader.Members()) {
    if (member.packed > left)
      throw Error("bad-file", "the archive's members overlap").At({path.string(), ""});
    left -= member.packed;
    if (!member.name.ends_with(".npy")) continue;
    std::string name = member.name.substr(0, member.name.size() - 4);
    if (!arrays.emplace(name, reader.Read(member)).second)
      throw Error("bad-file", "the archive has two arrays named \"{}\"", name)
          .At({path.string(), ""});
  }
  return arrays;
}

namespace {

// Converts UTF-8 to little-endian UTF-32; invalid bytes become U+FFFD.
std::vector<uint32_t> CodePoints(const std::string& text) {
  std::vector<uint32_t> points;
  for (size_t i = 0; i < text.size();) {
    auto first = static_cast<unsigned char>(text[i]);
    size_t length = first < 0x80 ? 1 : first < 0xC0 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    bool whole = length > 0 && first < 0xF8 && i + length <= text.size();
    uint32_t point = length < 2 ? first : first & (0x7F >> length);
    for (size_t k = 1; whole && k < length; ++k) {
      auto next = static_cast<unsigned char>(text[i + k]);
      whole = (next & 0xC0) == 0x80;
      point = point << 6 | (next & 0x3F);
    }
    points.push_back(whole ? point : 0xFFFD);
    i += whole ? length : 1;
  }
  return points;
}

// Fixed-width Unicode for NumPy: elements of the maximum length, padded with zeros.
Tensor FixedWidth(const Tensor& strings, size_t& width) {
  std::vector<std::vector<uint32_t>> texts;
  width = 1;
  for (const std::string& text : strings.strings()) {
    texts.push_back(CodePoints(text));
    width = std::max(width, texts.back().size());
  }
  std::vector<uint32_t> all;
  for (std::vector<uint32_t>& text : texts) {
    text.resize(width);
    all.insert(all.end(), text.begin(), text.end());
  }
  return Tensor::Vector(all);
}

}  // namespace

void WriteNpy(const std::filesystem::path& path, const Tensor& tensor) {
  DType dtype = tensor.dtype();
  if (dtype == DType::kBf16 || dtype == DType::kFp8E4M3FN || dtype == DType::kFp8E5M2)
    dtype = DType::kFp32;
  if (IsInteger(dtype) && Bits(dtype) < 8) dtype = IsSigned(dtype) ? DType::kInt8 : DType::kUint8;
  std::string code;
  for (const auto& row : kCodes)
    if (row.dtype == dtype) code = row.code;
  Tensor source = tensor;
  if (dtype == DType::kString) {
    size_t width = 0;
    source = FixedWidth(tensor, width);
    dtype = DType::kUint32;
    code = fmt::format("U{}", width);
  }
  if (code.empty())
    throw Error("unsupported-dtype", "a .npy file cannot store elements of {}", Name(dtype))
        .At({path.string(), ""});

  std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                   Bits(dtype) == 8 ? '|' : '<', code,
                                   fmt::join(tensor.dims(), ", "), tensor.rank() == 1 ? "," : "");
  // Magic, version, length, dictionary, spaces and a newline: a multiple of 64 bytes.
  size_t padding = 64 - (10 + header.size() + 1) % 64;
  header.append(padding % 64, ' ');
  header += '\n';
  auto length = static_cast<uint16_t>(header.size());
  header.insert(0, std::string("\x93NUMPY\1\0", 8) + static_cast<char>(length & 0xFF) +
                       static_cast<char>(length >> 8));

  Staging staging(path, Staging::kFile);
  OutputFile file(staging.path());
  file.Write(header);
  source = source.Cast(dtype);
  int64_t step = source.BlockElements(1 << 20);
  std::vector<std::byte> block(ByteCount(dtype, std::min(step, source.size())));
  for (int64_t first = 0; first < source.size(); first += step) {
    int64_t count = std::min(step, source.size() - first);
    source.Read(first, count, block.data());
    source.Release(first, count);
    file.Write(std::span(block).first(ByteCount(dtype, count)));
  }
  file.Close();
  staging.Commit();
}

}  // namespace mlc
