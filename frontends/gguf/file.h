// frontends/gguf/file.h - reads GGUF files: metadata by key, tensors by name.
//
// The format is that of ggml's docs/gguf.md: versions 2 and 3, little-endian, in one file or in
// parts NAME-00001-of-00003.gguf. Files are mapped, and read in parts where address space is
// limited; nothing is copied until it is requested. Every count, size and offset is checked when
// the file is opened. Errors: "bad-file" with the place and what was found, "resource-limit" for
// unreasonable sizes, "external-data" for a missing part.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/gguf/blocks.h"
#include "lib/ir/tensor.h"
#include "lib/support/mapped_file.h"

namespace mlc {

// The values are those in files.
enum class GgufType : uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64,
};
std::string_view Name(GgufType type);  // "uint8", "float32", "string", "array", ...

// The location of a metadata value, which GgufFile reads.
struct GgufValue {
  GgufType type = GgufType::kUint8;
  GgufType element = GgufType::kUint8;  // of an array; of an array of arrays kArray
  uint64_t count = 1;                   // elements of an array
  uint64_t offset = 0, bytes = 0;       // in the first part, after type and length
};

struct GgufEntry {
  std::string key;
  GgufValue value;
};

struct GgufTensor {
  std::string name;
  Dims dims;  // row-major, outermost first: ggml's ne reversed; up to four, none for a scalar
  const BlockType* type = nullptr;
  int part = 0;                    // of the files
  uint64_t offset = 0, bytes = 0;  // in that file
  int64_t elements() const { return ElementCount(dims); }
};

class GgufFile {
 public:
  // Any part of a split model opens the whole.
  static GgufFile Open(const std::filesystem::path& path);
  static GgufFile Open(std::shared_ptr<const MappedFile> file);

  uint32_t version() const { return version_; }
  // All parts, in their order.
  const std::vector<std::shared_ptr<const MappedFile>>& files() const { return files_; }

  // In the order of the (first) file.
  const std::vector<GgufEntry>& metadata() const { return metadata_; }
  bool Has(std::string_view key) const { return Find(key) != nullptr; }
  const GgufValue* Find(std::string_view key) const;  // null: no such key

  // The value of a key. Error "bad-file" where it has another type, with the key, the type found
  // and the type expected, or where it is missing, unless `otherwise` is given. Int reads every
  // integer type, Float both float types.
  int64_t Int(std::string_view key) const;
  double Float(std::string_view key) const;
  bool Bool(std::string_view key) const;
  std::string String(std::string_view key) const;  // unchecked bytes, mostly UTF-8
  int64_t Int(std::string_view key, int64_t otherwise) const;
  double Float(std::string_view key, double otherwise) const;
  bool Bool(std::string_view key, bool otherwise) const;
  std::string String(std::string_view key, std::string_view otherwise) const;
  // Copies of arrays; a single value is an array of one.
  std::vector<int64_t> Ints(std::string_view key) const;
  std::vector<double> Floats(std::string_view key) const;
  std::vector<bool> Bools(std::string_view key) const;
  std::vector<std::string> Strings(std::string_view key) const;

  // For listing a file: at most `most` elements of an array, each a value; at most `most` bytes of
  // a string; the number (or boolean) of a value.
  std::vector<GgufValue> Elements(const GgufValue& array, uint64_t most) const;
  std::string Text(const GgufValue& string, uint64_t most = UINT64_MAX) const;
  double Number(const GgufValue& value) const;
  int64_t Integer(const GgufValue& value) const;  // Error "bad-file" above the range of int64

  // In the order of the files.
  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  const GgufTensor* FindTensor(std::string_view name) const;  // null: no such tensor
  // The constant, lazy and mapped: F32, F16, BF16, I8 ... in their own type, blocks in fp32 with
  // the encoding of the file (blocks.h). Error "bad-file" where there is no tensor of this name.
  Tensor Constant(std::string_view name) const;
  Tensor Constant(const GgufTensor& tensor) const;

 private:
  struct Header;
  static Header ReadHeader(std::shared_ptr<const MappedFile> file);
  void Take(Header header);
  const GgufValue& Need(std::string_view key, std::string_view expected) const;
  [[noreturn]] void WrongType(std::string_view key, std::string_view expected) const;
  template <class T, class Read>
  std::vector<T> List(std::string_view key, Read read) const;

  uint32_t version_ = 0;
  std::vector<std::shared_ptr<const MappedFile>> files_;
  std::vector<GgufEntry> metadata_;
  std::map<std::string, size_t, std::less<>> keys_, names_;
  std::vector<GgufTensor> tensors_;
};

}  // namespace mlc
