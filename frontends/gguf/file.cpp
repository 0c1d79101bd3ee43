#include "frontends/gguf/file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <tuple>

#include "lib/support/byte_window.h"
#include "lib/support/error.h"
#include "lib/support/regular_file.h"
#include "lib/support/utf8.h"

namespace fs = std::filesystem;

namespace mlc::gguf {

namespace {

// Name and size in bytes of a value (0: variable). Rows are in the order of GgufType.
struct TypeRow {
  std::string_view name;
  int bytes;
};
constexpr TypeRow kTypeRows[] = {{"uint8", 1},  {"int8", 1},  {"uint16", 2},  {"int16", 2},
                                 {"uint32", 4}, {"int32", 4}, {"float32", 4}, {"bool", 1},
                                 {"string", 0}, {"array", 0}, {"uint64", 8},  {"int64", 8},
                                 {"float64", 8}};

int BytesOf(GgufType type) { return kTypeRows[static_cast<int>(type)].bytes; }
bool IsFloat(GgufType type) { return type == GgufType::kFloat32 || type == GgufType::kFloat64; }
bool IsInteger(GgufType type) {
  return BytesOf(type) > 0 && !IsFloat(type) && type != GgufType::kBool;
}
bool IsBool(GgufType type) { return type == GgufType::kBool; }
bool IsString(GgufType type) { return type == GgufType::kString; }

constexpr uint64_t kMostEntries = 1 << 16;  // limit for keys and for tensors; models have thousands
constexpr uint64_t kMostName = 65535;       // limit for the bytes of a key, from the specification
constexpr int kMostDepth = 8, kMostDims = 4;
constexpr std::string_view kAgain = "download or convert the model again";

std::string KeyText(std::string_view key) { return fmt::format("key \"{}\"", key); }

// Reads consecutive values and checks that each lies within the file.
class Cursor {
 public:
  explicit Cursor(const MappedFile& file, uint64_t at = 0) : file_(file), window_(file), at_(at) {}

  uint64_t at() const { return at_; }
  uint64_t left() const { return window_.size() - at_; }
  // Sets the context for error messages.
  void Enter(std::string where) { where_ = std::move(where); }

  [[noreturn]] void Fail(std::string text, std::string_view id = "bad-file") const {
    std::string where = where_.empty() ? "" : where_ + ", ";
    throw Error(id, std::move(text))
        .At({file_.path().string(), fmt::format("{}offset {}", where, at_)})
        .Help(std::string(kAgain));
  }
  void Need(uint64_t bytes, std::string_view what) const {
    if (bytes > left())
      Fail(fmt::format("the file ends inside {}: {} bytes are needed, but only {} are left", what,
                       bytes, left()));
  }
  void Skip(uint64_t bytes, std::string_view what) {
    Need(bytes, what);
    at_ += bytes;
  }
  template <class T>
  T Take(std::string_view what) {
    Need(sizeof(T), what);
    T value;
    std::memcpy(&value, window_.At(at_, sizeof(T)).data(), sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  // Reads a key or the name of a tensor: UTF-8 without control characters.
  std::string Name(std::string_view what) {
    const auto size = Take<uint64_t>(what);
    if (size > kMostName) {
      at_ -= sizeof(size);
      Fail(fmt::format("{} has {} bytes, more than the limit of {}", what, size, kMostName));
    }
    Need(size, what);
    std::string name(AsText(window_.At(at_, size)));
    auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
    if (name.empty() || FirstBadUtf8(name) != std::string::npos ||
        std::ranges::any_of(name, control))
      Fail(fmt::format("{} {}", what,
                       name.empty() ? "is empty" : "is not UTF-8 text without control characters"));
    at_ += size;
    return name;
  }
  GgufType Type() {
    const auto type = Take<uint32_t>("the type of a value");
    if (type >= std::size(kTypeRows)) {
      at_ -= sizeof(type);
      Fail(fmt::format("a value has the unknown type {}; types are 0 to 12", type));
    }
    return static_cast<GgufType>(type);
  }
  // Returns the location of a value, whose type has been read, and skips it.
  GgufValue Value(GgufType type, int depth = 0) {
    GgufValue value{.type = type, .element = type};
    if (type == GgufType::kString) {
      value.bytes = Take<uint64_t>("a string");
    } else if (type == GgufType::kArray) {
      if (depth == kMostDepth)
        Fail(fmt::format("arrays are nested more than {} levels deep", kMostDepth),
             "resource-limit");
      value.element = Type();
      value.count = Take<uint64_t>("an array");
      value.offset = at_;
      return SkipElements(value, depth);
    } else {
      value.bytes = static_cast<uint64_t>(BytesOf(type));
    }
    value.offset = at_;
    if (value.bytes > left())
      Need(value.bytes, fmt::format("a value of type {}", gguf::Name(type)));
    at_ += value.bytes;
    return value;
  }

 private:
  GgufValue SkipElements(GgufValue value, int depth) {
    // The minimum size of an element: a string has a length, an array a type and a length.
    const auto least =
        static_cast<uint64_t>(value.element == GgufType::kString  ? 8
                              : value.element == GgufType::kArray ? 12
                                                                  : BytesOf(value.element));
    if (value.count > left() / least)
      Fail(fmt::format("an array has {} elements of type {}, but only {} bytes are left",
                       value.count, gguf::Name(value.element), left()));
    if (BytesOf(value.element) > 0) {
      Skip(value.count * least, "an array");
    } else {
      for (uint64_t i = 0; i < value.count; ++i)
        Value(value.element, value.element == GgufType::kArray ? depth + 1 : depth);
    }
    value.bytes = at_ - value.offset;
    return value;
  }

  const MappedFile& file_;
  ByteWindow window_;
  uint64_t at_;
  std::string where_;
};

template <class T>
T ReadAs(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

// Returns the integer at an address; empty above the range of int64.
std::optional<int64_t> IntegerAt(GgufType type, const std::byte* from) {
  uint64_t bits = 0;  // little-endian, as in the file
  std::memcpy(&bits, from, static_cast<size_t>(BytesOf(type)));
  const int unused = 64 - 8 * BytesOf(type);
  if (Name(type).starts_with("int")) return static_cast<int64_t>(bits << unused) >> unused;
  if (bits > std::numeric_limits<int64_t>::max()) return std::nullopt;
  return type == GgufType::kBool ? bits != 0 : static_cast<int64_t>(bits);
}
double FloatAt(GgufType type, const std::byte* from) {
  return type == GgufType::kFloat32 ? ReadAs<float>(from) : ReadAs<double>(from);
}

std::array<std::byte, 8> ReadScalar(const MappedFile& file, const GgufValue& value) {
  std::array<std::byte, 8> raw = {};
  file.Read(value.offset, std::span(raw).first(static_cast<size_t>(BytesOf(value.type))));
  return raw;
}

const GgufValue* FindIn(const std::vector<GgufEntry>& entries, std::string_view key) {
  for (const GgufEntry& entry : entries)
    if (entry.key == key) return &entry.value;
  return nullptr;
}

// Returns an integer that the reader itself needs.
std::optional<int64_t> OwnInteger(const MappedFile& file, const std::vector<GgufEntry>& entries,
                                  std::string_view key) {
  const GgufValue* value = FindIn(entries, key);
  if (!value) return std::nullopt;
  std::optional<int64_t> number;
  if (IsInteger(value->type)) number = IntegerAt(value->type, ReadScalar(file, *value).data());
  if (!number || *number < 0)
    throw Error("bad-file", number ? fmt::format("{} is {}", key, *number)
                                   : fmt::format("{} has type {}", key, Name(value->type)))
        .Expected("a non-negative integer")
        .At({file.path().string(), KeyText(key)})
        .Help(std::string(kAgain));
  return number;
}

// Checks the magic number of a file and reads its version.
void CheckMagic(Cursor& cursor, const MappedFile& file, uint32_t& version) {
  auto refuse = [&](std::string text, std::string help) {
    throw Error("unknown-format", std::move(text))
        .At({file.path().string(), ""})
        .Help(std::move(help));
  };
  constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
  if (cursor.left() < sizeof(kMagic) || cursor.Take<uint32_t>("the header") != kMagic)
    refuse("not a GGUF file", "pass the path of a .gguf file");
  version = cursor.Take<uint32_t>("the header");
  if (version != 0 && (version & 0xFFFF) == 0)
    refuse("big-endian GGUF files are not supported",
           "convert it with `gguf-convert-endian FILE little`, which is part of gguf-py");
  if (version < 2 || version > 3)
    refuse(fmt::format("GGUF version {} is not supported; versions 2 and 3 are", version),
           "convert the model again with a current llama.cpp");
}

// Reads the dimensions, type and offset of a tensor, which follow its name. The offset is relative
// to the tensor data.
void ReadTensorEntry(Cursor& cursor, GgufTensor& tensor) {
  const auto rank = cursor.Take<uint32_t>("a tensor's entry");
  if (rank > kMostDims)
    cursor.Fail(fmt::format("a tensor has {} dimensions; ggml allows at most {}", rank, kMostDims));
  int64_t elements = 1;
  for (uint32_t d = 0; d < rank; ++d) {
    const auto size = cursor.Take<uint64_t>("a tensor's entry");
    constexpr int64_t kMost = int64_t{1} << 56;
    if (size == 0 || size > static_cast<uint64_t>(kMost) ||
        __builtin_mul_overflow(elements, static_cast<int64_t>(size), &elements) || elements > kMost)
      cursor.Fail(fmt::format("a tensor has a dimension of {}{}", size,
                              size == 0 ? "" : ", too many elements"));
    tensor.dims.insert(tensor.dims.begin(), static_cast<int64_t>(size));
  }
  const auto id = cursor.Take<uint32_t>("a tensor's entry");
  tensor.type = FindBlockType(id);
  if (!tensor.type)
    cursor.Fail(fmt::format("a tensor has the unknown ggml type {}", id), "unsupported-dtype");
  const int64_t row = rank == 0 ? 1 : tensor.dims.back();
  if (row % tensor.type->elements != 0)
    cursor.Fail(
        fmt::format("a tensor has rows of {} elements, not a multiple of the block size of {}, {}",
                    row, tensor.type->name, tensor.type->elements));
  tensor.bytes = static_cast<uint64_t>(elements / tensor.type->elements) *
                 static_cast<uint64_t>(tensor.type->bytes);
  tensor.offset = cursor.Take<uint64_t>("a tensor's entry");
}

// Makes the tensors' offsets relative to the file, whose tensor data start at `begin`.
void PlaceTensors(const MappedFile& file, uint64_t begin, uint64_t alignment,
                  std::vector<GgufTensor>& tensors) {
  auto refuse = [&](const GgufTensor& tensor, std::string text) {
    throw Error("bad-file", std::move(text))
        .At({file.path().string(), fmt::format("tensor \"{}\"", tensor.name)})
        .Help(std::string(kAgain));
  };
  size_t beyond = 0;
  const GgufTensor* last = nullptr;  // the last tensor that ends beyond the end of the file
  for (GgufTensor& tensor : tensors) {
    if (tensor.offset % alignment != 0)
      refuse(tensor, fmt::format("the data offset {} is not a multiple of the alignment {}",
                                 tensor.offset, alignment));
    if (tensor.offset > std::numeric_limits<int64_t>::max() - begin)
      refuse(tensor, fmt::format("the data offset {} is too large", tensor.offset));
    tensor.offset += begin;
    if (tensor.offset <= file.size() && tensor.bytes <= file.size() - tensor.offset) continue;
    ++beyond;
    if (!last || tensor.offset > last->offset) last = &tensor;
  }
  if (last)
    refuse(*last,
           fmt::format("the file is truncated: it has {} bytes, but its tensors need {}; {} of {} "
                       "tensors are incomplete",
                       file.size(), last->offset + last->bytes, beyond, tensors.size()));
  std::vector<const GgufTensor*> order;
  for (const GgufTensor& tensor : tensors) order.push_back(&tensor);
  std::ranges::stable_sort(order, {}, &GgufTensor::offset);
  for (size_t i = 1; i < order.size(); ++i)
    if (order[i]->offset < order[i - 1]->offset + order[i - 1]->bytes)
      refuse(*order[i], fmt::format("the data overlap those of tensor \"{}\"", order[i - 1]->name));
}

}  // namespace

std::string_view Name(GgufType type) { return kTypeRows[static_cast<int>(type)].name; }

struct GgufFile::Header {
  std::shared_ptr<const MappedFile> file;
  uint32_t version = 0;
  std::vector<GgufEntry> metadata;
  std::vector<GgufTensor> tensors;
};

GgufFile::Header GgufFile::ReadHeader(std::shared_ptr<const MappedFile> file) {
  Header header{.file = file};
  Cursor cursor(*file);
  CheckMagic(cursor, *file, header.version);
  const auto tensors = cursor.Take<uint64_t>("the header"),
             keys = cursor.Take<uint64_t>("the header");
  // The minimum sizes: a key takes a length, a byte, a type and a value of one byte; a tensor's
  // entry a length, a byte, the rank, a type and an offset.
  for (auto [count, least, what] : {std::tuple(keys, 14, "keys"), {tensors, 25, "tensors"}}) {
    if (count > cursor.left() / static_cast<uint64_t>(least))
      cursor.Fail(
          fmt::format("the header declares {} {}, more than fit into the file", count, what));
    if (count > kMostEntries)
      cursor.Fail(fmt::format("the file has {} {}; the limit is {}", count, what, kMostEntries),
                  "resource-limit");
  }
  std::set<std::string_view> seen;
  header.metadata.reserve(keys);
  for (uint64_t i = 0; i < keys; ++i) {
    cursor.Enter(fmt::format("key {} of {}", i + 1, keys));
    const std::string& key = header.metadata.emplace_back(cursor.Name("a key")).key;
    cursor.Enter(KeyText(key));
    if (!seen.insert(key).second) cursor.Fail("duplicate key");
    header.metadata.back().value = cursor.Value(cursor.Type());
  }
  constexpr std::string_view kAlignment = "general.alignment";
  constexpr int64_t kUsual = 32;
  const auto alignment =
      static_cast<uint64_t>(OwnInteger(*file, header.metadata, kAlignment).value_or(kUsual));
  cursor.Enter(KeyText(kAlignment));
  if (!std::has_single_bit(alignment))
    cursor.Fail(fmt::format("the alignment {} is not a power of 2", alignment));
  seen.clear();
  header.tensors.reserve(tensors);
  for (uint64_t i = 0; i < tensors; ++i) {
    cursor.Enter(fmt::format("tensor {} of {}", i + 1, tensors));
    GgufTensor& tensor = header.tensors.emplace_back(cursor.Name("a tensor's name"));
    cursor.Enter(fmt::format("tensor \"{}\"", tensor.name));
    if (!seen.insert(tensor.name).second) cursor.Fail("two tensors have this name");
    ReadTensorEntry(cursor, tensor);
  }
  PlaceTensors(*file, (cursor.at() + alignment - 1) / alignment * alignment, alignment,
               header.tensors);
  return header;
}

void GgufFile::Take(Header header) {
  for (GgufTensor& tensor : header.tensors) {
    tensor.part = static_cast<int>(files_.size());
    if (!names_.emplace(tensor.name, tensors_.size()).second)
      throw Error("bad-file", "the tensor is also in another part")
          .At({header.file->path().string(), fmt::format("tensor \"{}\"", tensor.name)});
    tensors_.push_back(std::move(tensor));
  }
  if (files_.empty()) {
    version_ = header.version;
    metadata_ = std::move(header.metadata);
    for (size_t i = 0; i < metadata_.size(); ++i) keys_.emplace(metadata_[i].key, i);
  }
  files_.push_back(std::move(header.file));
}

GgufFile GgufFile::Open(const fs::path& path) { return Open(MappedFile::Open(path)); }

GgufFile GgufFile::Open(std::shared_ptr<const MappedFile> file) {
  GgufFile model;
  const fs::path path = file->path();
  Header given = ReadHeader(std::move(file));
  auto number = [](const Header& header, std::string_view key) {
    return OwnInteger(*header.file, header.metadata, key).value_or(0);
  };
  const int64_t parts = number(given, "split.count"), own = number(given, "split.no");
  if (parts <= 1) {
    model.Take(std::move(given));
    return model;
  }
  // llama.cpp's file names: NAME-00001-of-00003.gguf.
  auto ending = [&](int64_t part) { return fmt::format("-{:05}-of-{:05}.gguf", part + 1, parts); };
  const std::string name = path.filename().string();
  if (own >= parts || !name.ends_with(ending(own)))
    throw Error("bad-file", "the file is part {} of {}, but its name does not say so", own + 1,
                parts)
        .At({path.string(), KeyText("split.no")})
        .Expected("a name that ends in {}", ending(own));
  const std::string stem = name.substr(0, name.size() - ending(own).size());
  for (int64_t i = 0; i < parts; ++i) {
    const fs::path part = path.parent_path() / (stem + ending(i));
    std::error_code ignored;
    if (i != own && !fs::exists(part, ignored))
      throw Error("external-data", "part {} of {} is missing", i + 1, parts)
          .At({part.string(), ""})
          .Help("put all parts of the model into one folder");
    Header header = i == own ? given : ReadHeader(MappedFile::Open(part));
    if (number(header, "split.count") != parts || number(header, "split.no") != i)
      throw Error("bad-file", "this is part {} of {} instead of part {} of {}",
                  number(header, "split.no") + 1, number(header, "split.count"), i + 1, parts)
          .At({part.string(), KeyText("split.no")})
          .Help("put all parts of the same model into one folder");
    model.Take(std::move(header));
  }
  const auto all = static_cast<int64_t>(model.tensors_.size());
  if (model.Has("split.tensors.count") && model.Int("split.tensors.count") != all)
    throw Error("bad-file", "the parts have {} tensors in total, but the model declares {}", all,
                model.Int("split.tensors.count"))
        .At({path.string(), KeyText("split.tensors.count")})
        .Help(std::string(kAgain));
  return model;
}

const GgufValue* GgufFile::Find(std::string_view key) const {
  auto found = keys_.find(key);
  return found == keys_.end() ? nullptr : &metadata_[found->second].value;
}

const GgufValue& GgufFile::Several(std::string_view key, bool (*is)(GgufType),
                                   std::string_view expected) const {
  const GgufValue* value = Find(key);
  if (!value)
    throw Error("bad-file", "the model has no key \"{}\"", key)
        .At({files_[0]->path().string(), KeyText(key)})
        .Expected(std::string(expected));
  if (!is(value->element)) WrongType(key, expected);
  return *value;
}

const GgufValue& GgufFile::Single(std::string_view key, bool (*is)(GgufType),
                                  std::string_view expected) const {
  const GgufValue& value = Several(key, is, expected);
  if (value.type == GgufType::kArray) WrongType(key, expected);
  return value;
}

void GgufFile::WrongType(std::string_view key, std::string_view expected) const {
  const GgufValue& value = *Find(key);
  std::string found(Name(value.type));
  if (value.type == GgufType::kArray)
    found = fmt::format("array of {} of type {}", value.count, Name(value.element));
  throw Error("bad-file", "the value is of type {}", found)
      .At({files_[0]->path().string(), KeyText(key)})
      .Expected(std::string(expected));
}

int64_t GgufFile::Integer(const GgufValue& value) const {
  std::optional<int64_t> number = IntegerAt(value.type, ReadScalar(*files_[0], value).data());
  if (!number)
    throw Error("bad-file", "an integer exceeds 9223372036854775807")
        .At({files_[0]->path().string(), fmt::format("offset {}", value.offset)});
  return *number;
}

double GgufFile::Number(const GgufValue& value) const {
  std::array<std::byte, 8> raw = ReadScalar(*files_[0], value);
  if (IsFloat(value.type)) return FloatAt(value.type, raw.data());
  if (value.type == GgufType::kUint64) return static_cast<double>(ReadAs<uint64_t>(raw.data()));
  return static_cast<double>(*IntegerAt(value.type, raw.data()));
}

std::string GgufFile::Text(const GgufValue& string, uint64_t most) const {
  std::string text(std::min(string.bytes, most), '\0');
  files_[0]->Read(string.offset, std::as_writable_bytes(std::span(text)));
  return text;
}

std::vector<GgufValue> GgufFile::Elements(const GgufValue& array, uint64_t most) const {
  std::vector<GgufValue> elements;
  Cursor cursor(*files_[0], array.offset);
  for (uint64_t i = 0; i < std::min(array.count, most); ++i)
    elements.push_back(cursor.Value(array.element));
  return elements;
}

int64_t GgufFile::Int(std::string_view key) const {
  return Integer(Single(key, IsInteger, "an integer"));
}
double GgufFile::Float(std::string_view key) const {
  return Number(Single(key, IsFloat, "a float"));
}
bool GgufFile::Bool(std::string_view key) const {
  return Integer(Single(key, IsBool, "a bool")) != 0;
}
std::string GgufFile::String(std::string_view key) const {
  return Text(Single(key, IsString, "a string"));
}

std::vector<std::string> GgufFile::Strings(std::string_view key) const {
  const GgufValue& value = Several(key, IsString, "strings");
  if (value.type != GgufType::kArray) return {Text(value)};
  std::vector<std::string> strings;
  strings.reserve(value.count);
  Cursor cursor(*files_[0], value.offset);
  for (uint64_t i = 0; i < value.count; ++i)
    strings.push_back(Text(cursor.Value(GgufType::kString)));
  return strings;
}

// Reads consecutive numbers of one size: read(type, address) converts one.
template <class T, class Read>
std::vector<T> GgufFile::List(const GgufValue& value, Read read) const {
  std::vector<std::byte> raw(value.bytes);
  files_[0]->Read(value.offset, raw);
  std::vector<T> list;
  list.reserve(value.count);
  for (uint64_t i = 0; i < value.count; ++i)
    list.push_back(static_cast<T>(
        read(value.element, raw.data() + i * static_cast<uint64_t>(BytesOf(value.element)))));
  return list;
}

std::vector<int64_t> GgufFile::Ints(std::string_view key) const {
  const GgufValue& value = Several(key, IsInteger, "integers");
  return List<int64_t>(value, [&](GgufType type, const std::byte* from) {
    std::optional<int64_t> number = IntegerAt(type, from);
    if (!number) WrongType(key, "integers below 9223372036854775808");
    return *number;
  });
}
std::vector<double> GgufFile::Floats(std::string_view key) const {
  return List<double>(Several(key, IsFloat, "floats"), FloatAt);
}
std::vector<bool> GgufFile::Bools(std::string_view key) const {
  const GgufValue& value = Several(key, IsBool, "bools");
  return List<bool>(value, [](GgufType, const std::byte* from) { return *from != std::byte{0}; });
}

const GgufTensor* GgufFile::FindTensor(std::string_view name) const {
  auto found = names_.find(name);
  return found == names_.end() ? nullptr : &tensors_[found->second];
}

Tensor GgufFile::Constant(std::string_view name) const {
  const GgufTensor* tensor = FindTensor(name);
  if (!tensor)
    throw Error("bad-file", "the model has no tensor \"{}\"", name)
        .At({files_[0]->path().string(), ""});
  return Constant(*tensor);
}

GgufFile GgufFile::With(const std::map<std::string, Tensor>& constants) const {
  GgufFile file = *this;
  for (const auto& [name, constant] : constants) file.changed_.insert_or_assign(name, constant);
  return file;
}

Tensor GgufFile::Constant(const GgufTensor& tensor) const {
  if (const auto changed = changed_.find(tensor.name); changed != changed_.end())
    return changed->second;
  const std::shared_ptr<const MappedFile>& file = files_[tensor.part];
  if (tensor.type->plain != DType::kNone)
    return Tensor::FileSlice(file, tensor.offset, tensor.type->plain, tensor.dims)
        .From({{tensor.name}, true});
  Tensor bytes =
      Tensor::FileSlice(file, tensor.offset, DType::kUint8, {static_cast<int64_t>(tensor.bytes)});
  return FromBlocks(*tensor.type, bytes, tensor.dims);
}

}  // namespace mlc::gguf
