// frontends/gguf/file.h - reads GGUF files: metadata by key, tensors by name.
//
// The format is that of ggml's docs/gguf.md: versions 2 and 3, little-endian, in one file or in
// parts NAME-00001-of-00003.gguf. Files are mapped, or read piecewise where address space is
// limited; data are copied only on request. Every count, size and offset is checked when the file
// is opened. Errors: "bad-file" with the place and what was found, "resource-limit" for
// unreasonable sizes, "external-data" for a missing part.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/gguf/ggml_quants.h"
#include "lib/ir/tensor.h"
#include "lib/support/mapped_file.h"

namespace mlc::gguf {

// The numbers are those of the file format.
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

// The location of a metadata value; GgufFile reads the value itself.
struct GgufValue {
  GgufType type = GgufType::kUint8;
  GgufType element = GgufType::kUint8;  // element type of an array; kArray for an array of arrays
  uint64_t count = 1;                   // number of elements of an array
  uint64_t offset = 0, bytes = 0;       // position in the first part, after type and length
};

struct GgufEntry {
  std::string key;
  GgufValue value;
};

struct GgufTensor {
  std::string name;
  Dims dims;  // row-major, outermost first: ggml's ne reversed; up to four, none for a scalar
  const BlockType* type = nullptr;
  int part = 0;                    // index of the file
  uint64_t offset = 0, bytes = 0;  // position in that file
  int64_t elements() const { return ElementCount(dims); }
};

class GgufFile {
 public:
  // Opens a model; for a split model, `path` may be any of its parts.
  static GgufFile Open(const std::filesystem::path& path);
  static GgufFile Open(std::shared_ptr<const MappedFile> file);

  uint32_t version() const { return version_; }
  // Returns all parts in order.
  const std::vector<std::shared_ptr<const MappedFile>>& files() const { return files_; }

  // Returns the metadata in the order of the (first) file.
  const std::vector<GgufEntry>& metadata() const { return metadata_; }
  bool Has(std::string_view key) const { return Find(key) != nullptr; }
  const GgufValue* Find(std::string_view key) const;  // null if there is no such key

  // Return the value of a key. Error "bad-file", with the key and the types found and expected, if
  // the value has another type, or if the key is missing and there is no `otherwise`. Int reads
  // every integer type, Float both float types.
  int64_t Int(std::string_view key) const;
  double Float(std::string_view key) const;
  bool Bool(std::string_view key) const;
  std::string String(std::string_view key) const;  // unchecked bytes, usually UTF-8
  int64_t Int(std::string_view key, int64_t otherwise) const {
    return Has(key) ? Int(key) : otherwise;
  }
  double Float(std::string_view key, double otherwise) const {
    return Has(key) ? Float(key) : otherwise;
  }
  bool Bool(std::string_view key, bool otherwise) const { return Has(key) ? Bool(key) : otherwise; }
  std::string String(std::string_view key, std::string_view otherwise) const {
    return Has(key) ? String(key) : std::string(otherwise);
  }
  // Return copies of arrays; a single value is returned as an array of one.
  std::vector<int64_t> Ints(std::string_view key) const;
  std::vector<double> Floats(std::string_view key) const;
  std::vector<bool> Bools(std::string_view key) const;
  std::vector<std::string> Strings(std::string_view key) const;

  // Accessors for listing a file. Elements returns at most `most` elements of an array as values;
  // the others return at most `most` bytes of a string, and the number or boolean of a value.
  std::vector<GgufValue> Elements(const GgufValue& array, uint64_t most) const;
  std::string Text(const GgufValue& string, uint64_t most = UINT64_MAX) const;
  double Number(const GgufValue& value) const;
  int64_t Integer(const GgufValue& value) const;  // Error "bad-file" above the range of int64

  // Returns the tensors in the order of the files.
  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  const GgufTensor* FindTensor(std::string_view name) const;  // null if there is no such tensor
  // Returns a lazy, mapped constant: F32, F16, BF16, I8 ... in their own type, blocks in fp32 with
  // the encoding of the file (ggml_quants.h). Error "bad-file" if there is no tensor of this name.
  Tensor Constant(std::string_view name) const;
  Tensor Constant(const GgufTensor& tensor) const;
  // Returns a copy with these constants, by name, in the place of those of the file.
  GgufFile With(const std::map<std::string, Tensor>& constants) const;

 private:
  struct Header;
  static Header ReadHeader(std::shared_ptr<const MappedFile> file);
  void Take(Header header);
  // Return the value of a key, with the type, or with elements of the type, that `is` accepts.
  const GgufValue& Single(std::string_view key, bool (*is)(GgufType),
                          std::string_view expected) const;
  const GgufValue& Several(std::string_view key, bool (*is)(GgufType),
                           std::string_view expected) const;
  [[noreturn]] void WrongType(std::string_view key, std::string_view expected) const;
  template <class T, class Read>
  std::vector<T> List(const GgufValue& value, Read read) const;

  uint32_t version_ = 0;
  std::vector<std::shared_ptr<const MappedFile>> files_;
  std::vector<GgufEntry> metadata_;
  std::map<std::string, size_t, std::less<>> keys_, names_;
  std::vector<GgufTensor> tensors_;
  std::map<std::string, Tensor> changed_;  // of With
};

}  // namespace mlc::gguf
