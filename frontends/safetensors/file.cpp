#include "frontends/safetensors/file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "lib/support/byte_window.h"
#include "lib/support/error.h"
#include "lib/support/regular_file.h"

namespace mlc::safetensors {

namespace fs = std::filesystem;

namespace {

using Json = nlohmann::json;
using Entry = SafetensorsFile::Entry;

// The number of bits per element, and our type. Source: safetensors/src/tensor.rs, enum Dtype.
struct DTypeRow {
  std::string_view name;
  int bits;
  DType dtype;  // kNone if mlc has no such type
};
constexpr DTypeRow kDTypes[] = {
    {"BOOL", 8, DType::kBool},         {"U8", 8, DType::kUint8},
    {"I8", 8, DType::kInt8},           {"F8_E5M2", 8, DType::kFp8E5M2},
    {"F8_E4M3", 8, DType::kFp8E4M3FN}, {"I16", 16, DType::kInt16},
    {"U16", 16, DType::kUint16},       {"F16", 16, DType::kFp16},
    {"BF16", 16, DType::kBf16},        {"I32", 32, DType::kInt32},
    {"U32", 32, DType::kUint32},       {"F32", 32, DType::kFp32},
    {"F64", 64, DType::kFp64},         {"I64", 64, DType::kInt64},
    {"U64", 64, DType::kUint64},       {"C64", 64, DType::kNone},
    {"F8_E8M0", 8, DType::kNone},      {"F8_E4M3FNUZ", 8, DType::kNone},
    {"F8_E5M2FNUZ", 8, DType::kNone},  {"F6_E2M3", 6, DType::kNone},
    {"F6_E3M2", 6, DType::kNone},      {"F4", 4, DType::kNone},
};

const DTypeRow* RowOf(std::string_view name) {
  auto row = std::ranges::find(kDTypes, name, &DTypeRow::name);
  return row == std::end(kDTypes) ? nullptr : row;
}

constexpr uint64_t kLengthBytes = 8;
// safetensors/src/tensor.rs allows 100'000'000. Our limit suffices for 100,000 tensors in one file;
// the largest published models have about this number in all their shards together, with a few
// thousand per shard.
constexpr uint64_t kMostHeader = uint64_t{16} << 20;
constexpr size_t kMostMetadata = 1 << 16;
constexpr size_t kMostDims = 64, kLongestName = 4096;
constexpr std::string_view kMetadata = "__metadata__";

constexpr std::string_view kAgain = "download or export the file again";

// Converts the parser events of the header's JSON to entries; their offsets are still relative to
// the data.
class Header : public nlohmann::json_sax<Json> {
 public:
  explicit Header(const fs::path& path) : path_(path) {}
  std::vector<Entry> entries;
  std::map<std::string, std::string> metadata;

  bool start_object(size_t) override {
    if (at_ == At::kStart)
      at_ = At::kNames;
    else if (at_ == At::kNames && name_ == kMetadata)
      at_ = At::kMetadata;
    else if (at_ == At::kNames)
      at_ = At::kTensor, entry_ = {.name = name_}, seen_ = {};
    else
      Unexpected("an object");
    return true;
  }
  bool end_object() override {
    if (at_ == At::kTensor) {
      for (size_t field = 0; field < kFields.size(); ++field)
        if (!seen_[field]) throw Bad(fmt::format("\"{}\" is missing", kFields[field]));
      entries.push_back(std::move(entry_));
    }
    at_ = at_ == At::kNames ? At::kEnd : At::kNames;
    return true;
  }
  bool key(std::string& name) override {
    if (name.size() > kLongestName)
      throw Error("bad-file", "a name has {} bytes", name.size())
          .At({path_.string(), ""})
          .Expected("at most {} bytes", kLongestName);
    if (at_ == At::kTensor) {
      field_ = std::ranges::find(kFields, name) - kFields.begin();
      if (field_ == kFields.size())
        throw Bad(fmt::format("unknown member \"{}\"", name))
            .Expected("{}", fmt::join(kFields, ", "));
      if (std::exchange(seen_[field_], true))
        throw Bad(fmt::format("duplicate member \"{}\"", name));
      return true;
    }
    name_ = name;
    if (at_ == At::kMetadata ? metadata.contains(name)
                             : name == kMetadata && std::exchange(had_metadata_, true))
      throw Error("bad-file", "duplicate member \"{}\"", name)
          .At({path_.string(), ""})
          .Help(std::string(kAgain));
    return true;
  }
  bool string(std::string& text) override {
    if (at_ == At::kMetadata && metadata.size() == kMostMetadata)
      throw Error("resource-limit", "__metadata__ has more than {} entries", kMostMetadata)
          .At({path_.string(), ""})
          .Help("save the model without it");
    if (at_ == At::kMetadata)
      metadata[name_] = text;
    else if (at_ == At::kTensor && field_ == 0)
      entry_.dtype = text.substr(0, kLongestName);
    else
      Unexpected("a string");
    return true;
  }
  bool start_array(size_t) override {
    if (at_ != At::kTensor || field_ == 0) Unexpected("a list");
    at_ = At::kList, list_.clear();
    return true;
  }
  bool number_unsigned(uint64_t value) override {
    if (at_ != At::kList || value > uint64_t{INT64_MAX}) Unexpected(std::to_string(value));
    if (list_.size() == (field_ == 1 ? kMostDims : 2))
      throw Bad(fmt::format("\"{}\" has more than {} numbers", kFields[field_], list_.size()));
    list_.push_back(static_cast<int64_t>(value));
    return true;
  }
  bool end_array() override {
    at_ = At::kTensor;
    if (field_ == 1) {
      entry_.dims = list_;
      return true;
    }
    if (list_.size() != 2 || list_[1] < list_[0])
      throw Bad(fmt::format("\"data_offsets\" is [{}]", fmt::join(list_, ", ")))
          .Expected("[begin, end], with begin <= end");
    entry_.offset = static_cast<uint64_t>(list_[0]);
    entry_.bytes = static_cast<uint64_t>(list_[1] - list_[0]);
    return true;
  }
  bool null() override { Unexpected("null"); }
  bool boolean(bool value) override { Unexpected(value ? "true" : "false"); }
  bool number_integer(int64_t value) override { Unexpected(std::to_string(value)); }
  bool number_float(double, const std::string& text) override { Unexpected(text.substr(0, 40)); }
  bool binary(Json::binary_t&) override { Unexpected("bytes"); }
  bool parse_error(size_t position, const std::string&, const Json::exception&) override {
    throw Error("bad-file", "the header is not valid JSON")
        .At({path_.string(),
             fmt::format("offset {}", kLengthBytes + (position ? position - 1 : 0))})
        .Help(std::string(kAgain));
  }

 private:
  enum class At { kStart, kNames, kMetadata, kTensor, kList, kEnd };
  static constexpr std::array<std::string_view, 3> kFields = {"dtype", "shape", "data_offsets"};

  Error Bad(std::string text) const {
    return Error("bad-file", std::move(text))
        .At({path_.string(), name_.empty() ? "header" : fmt::format("tensor \"{}\"", name_)})
        .Help(std::string(kAgain));
  }
  [[noreturn]] void Unexpected(const std::string& found) const {
    switch (at_) {
      case At::kTensor:
      case At::kList:
        throw Bad(fmt::format("\"{}\" is or contains {}", kFields[field_], found))
            .Expected(field_ == 0 ? "a string" : "a list of non-negative integers");
      case At::kNames:
        throw Bad(fmt::format("the tensor's description is {}", found))
            .Expected("{\"dtype\": ..., \"shape\": [...], \"data_offsets\": [begin, end]}");
      case At::kMetadata:
        throw Error("bad-file", "\"{}\" of __metadata__ is {}", name_, found)
            .At({path_.string(), ""})
            .Expected("a string");
      default:
        throw Error("bad-file", "the header is {}", found)
            .At({path_.string(), fmt::format("offset {}", kLengthBytes)})
            .Expected("an object");
    }
  }

  const fs::path& path_;
  At at_ = At::kStart;
  std::string name_;
  size_t field_ = 0;
  Entry entry_;
  std::array<bool, 3> seen_ = {};
  Dims list_;
  bool had_metadata_ = false;
};

// Throws unless the entry's size in bytes matches its elements.
void CheckSize(const Entry& entry, const Location& at) {
  const DTypeRow* row = RowOf(entry.dtype);
  unsigned __int128 bits = row ? static_cast<unsigned>(row->bits) : 1;
  for (int64_t size : entry.dims) {
    bits *= static_cast<uint64_t>(size);
    if (bits > uint64_t{INT64_MAX})
      throw Error("bad-file", "the shape is [{}]", fmt::join(entry.dims, ", "))
          .At(at)
          .Expected("elements of less than 2^63 bits in total");
  }
  if (row && (bits % 8 || bits / 8 != entry.bytes))
    throw Error("bad-file", "{} [{}] is stored in {} bytes", entry.dtype,
                fmt::join(entry.dims, ", "), entry.bytes)
        .At(at)
        .Expected("{} bits per element", row->bits);
}

// Checks that entries, sorted by offset, lie within the data and cover it.
void CheckPlaces(const std::vector<Entry>& entries, uint64_t data, const fs::path& path) {
  auto bad = [&](const Entry& entry, std::string text) {
    return Error("bad-file", std::move(text))
        .At({path.string(), fmt::format("tensor \"{}\"", entry.name)})
        .Help(std::string(kAgain));
  };
  uint64_t end = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    const Entry& entry = entries[i];
    if (entry.offset > data || entry.bytes > data - entry.offset)
      throw bad(entry,
                fmt::format("its data are bytes {} to {}, but the file has only {} bytes of data",
                            entry.offset, entry.offset + entry.bytes, data))
          .Note("the file is truncated or was modified");
    if (entry.offset < end)
      throw bad(entry, fmt::format("byte {} of the data also belongs to tensor \"{}\"",
                                   entry.offset, entries[i - 1].name));
    if (entry.offset > end)
      throw bad(entry,
                fmt::format("bytes {} to {} of the data, before this tensor, belong to no tensor",
                            end, entry.offset));
    end = entry.offset + entry.bytes;
  }
  if (end < data)
    throw Error("bad-file", "{} bytes after the last tensor belong to no tensor", data - end)
        .At({path.string(), ""})
        .Help(std::string(kAgain));
}

uint64_t LengthIn(std::span<const std::byte> head) {
  static_assert(std::endian::native == std::endian::little);
  uint64_t length;
  std::memcpy(&length, head.data(), sizeof length);
  return length;
}

}  // namespace

bool LooksLikeSafetensors(std::span<const std::byte> head) {
  // Text contains no zero bytes, so its first bytes would be a length above this limit.
  constexpr uint64_t kLongest = uint64_t{1} << 40;
  return head.size() > kLengthBytes && head[kLengthBytes] == std::byte{'{'} &&
         LengthIn(head) < kLongest;
}

DType SafetensorsDType(const std::string& name) {
  const DTypeRow* row = RowOf(name);
  return row ? row->dtype : DType::kNone;
}

SafetensorsFile SafetensorsFile::Open(const fs::path& path) {
  std::shared_ptr<const MappedFile> file = MappedFile::Open(path);
  ByteWindow bytes(*file);
  auto bad = [&](std::string text, uint64_t offset) {
    return Error("bad-file", std::move(text))
        .At({path.string(), fmt::format("offset {}", offset)})
        .Help(std::string(kAgain));
  };
  if (bytes.size() < kLengthBytes)
    throw bad(
        fmt::format("the file has {} bytes, too few for the length of the header", bytes.size()),
        0);
  constexpr std::string_view kPointer = "version https://git-lfs";
  if (AsText(bytes.Head(kPointer.size())) == kPointer)
    throw Error("bad-file", "this is a Git LFS pointer, not the file itself")
        .At({path.string(), ""})
        .Help("run `git lfs pull`, or download the file");
  const uint64_t length = LengthIn(bytes.At(0, kLengthBytes));
  if (length > kMostHeader)
    throw bad(fmt::format("the header has {} bytes", length), 0)
        .Expected("at most {} bytes", kMostHeader);
  if (length > bytes.size() - kLengthBytes)
    throw bad(fmt::format("the file is truncated: the header has {} bytes, but only {} are left",
                          length, bytes.size() - kLengthBytes),
              0);
  std::string_view text = AsText(bytes.At(kLengthBytes, static_cast<size_t>(length)));
  if (!text.starts_with('{')) throw bad("the header does not begin with {", kLengthBytes);
  // The parser would treat a zero byte as the end of the text.
  if (size_t zero = text.find('\0'); zero != std::string_view::npos)
    throw bad("the header contains a zero byte", kLengthBytes + zero);

  Header header(path);
  Json::sax_parse(text.data(), text.data() + text.size(), &header);
  std::vector<Entry>& entries = header.entries;
  for (const Entry& entry : entries)
    CheckSize(entry, {path.string(), fmt::format("tensor \"{}\"", entry.name)});
  std::ranges::sort(entries, [](const Entry& a, const Entry& b) {
    return std::tie(a.offset, a.bytes) < std::tie(b.offset, b.bytes);
  });
  const uint64_t data = kLengthBytes + length;
  CheckPlaces(entries, bytes.size() - data, path);
  for (Entry& entry : entries) entry.offset += data;
  std::ranges::sort(entries, {}, &Entry::name);
  for (size_t i = 1; i < entries.size(); ++i)
    if (entries[i].name == entries[i - 1].name)
      throw Error("bad-file", "duplicate tensor \"{}\"", entries[i].name)
          .At({path.string(), ""})
          .Help(std::string(kAgain));

  SafetensorsFile opened;
  opened.file_ = std::move(file);
  opened.entries_ = std::make_shared<const std::vector<Entry>>(std::move(entries));
  opened.metadata_ =
      std::make_shared<const std::map<std::string, std::string>>(std::move(header.metadata));
  return opened;
}

const Entry* SafetensorsFile::Find(const std::string& name) const {
  auto entry = std::ranges::lower_bound(*entries_, name, {}, &Entry::name);
  return entry != entries_->end() && entry->name == name ? &*entry : nullptr;
}

Tensor SafetensorsFile::Get(const Entry& entry) const {
  DType dtype = SafetensorsDType(entry.dtype);
  if (dtype == DType::kNone)
    throw Error("unsupported-dtype", "unsupported element type {}", entry.dtype)
        .At({path().string(), fmt::format("tensor \"{}\"", entry.name)})
        .Expected("BOOL, U8 to U64, I8 to I64, F8_E4M3, F8_E5M2, F16, BF16, F32 or F64")
        .Help("save the model in one of these types");
  // Our bool elements are 0 or 1.
  if (dtype == DType::kBool) return Get(entry, DType::kUint8, entry.dims).Cast(DType::kBool);
  return Get(entry, dtype, entry.dims);
}

Tensor SafetensorsFile::Get(const Entry& entry, DType dtype, Dims dims) const {
  MLC_CHECK(ByteCount(dtype, ElementCount(dims)) == entry.bytes, "{} [{}] in {} bytes of \"{}\"",
            Name(dtype), fmt::join(dims, ", "), entry.bytes, entry.name);
  return Tensor::FileSlice(file_, entry.offset, dtype, std::move(dims)).From({{entry.name}, true});
}

}  // namespace mlc::safetensors
