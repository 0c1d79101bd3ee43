#include "lib/coreml/mlmodelc_layout.h"

#include <algorithm>

#include "lib/coreml/package_layout.h"
#include "lib/coreml/weight_blob.h"
#include "lib/ir/text.h"
#include "lib/support/byte_window.h"

namespace mlc::coreml {

namespace {

struct KindRow {
  uint32_t field;
  std::string_view name;
};
constexpr KindRow kKinds[] = {
    {200, "pipeline"},
    {201, "pipeline"},
    {202, "pipeline"},
    {300, "linear regressor"},
    {301, "support vector regressor"},
    {302, "tree ensemble"},
    {303, "neural network"},
    {304, "probit regressor"},
    {400, "linear classifier"},
    {401, "support vector classifier"},
    {402, "tree ensemble"},
    {403, "neural network"},
    {404, "nearest-neighbour classifier"},
    {500, "neural network"},
    {501, "recommender"},
    {kMlProgram, "ML Program"},
    {555, "custom model"},
    {556, "linked model"},
    {560, "confidence thresholding"},
    {600, "one-hot encoder"},
    {601, "imputer"},
    {602, "feature vectorizer"},
    {603, "dictionary vectorizer"},
    {604, "scaler"},
    {606, "categorical mapping"},
    {607, "normalizer"},
    {609, "array feature extractor"},
    {610, "non-maximum suppression"},
    {900, "identity"},
    {2000, "text classifier"},
    {2001, "word tagger"},
    {2002, "vision feature print"},
    {2003, "sound analysis preprocessing"},
    {2004, "gazetteer"},
    {2005, "word embedding"},
    {2006, "audio feature print"},
    {3000, "serialised model"},
};

constexpr std::string_view kGeneric = "generic";
constexpr size_t kReserved = 24, kFunctionPadding = 12;

template <class T>
void Put(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
}

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  bool done() const { return at_ == bytes_.size(); }
  size_t at() const { return at_; }

  std::string_view Take(uint64_t size, std::string_view what) {
    if (size > bytes_.size() - at_)
      Fail(fmt::format("{} needs {} bytes, {} are left", what, size, bytes_.size() - at_));
    std::string_view taken(reinterpret_cast<const char*>(bytes_.data()) + at_, size);
    at_ += size;
    return taken;
  }
  template <class T>
  T Number(std::string_view what) {
    std::string_view raw = Take(sizeof(T), what);
    T value = 0;
    for (size_t i = 0; i < sizeof(T); ++i)
      value |= static_cast<T>(static_cast<unsigned char>(raw[i])) << (8 * i);
    return value;
  }
  void Zeros(size_t count) {
    size_t start = at_;
    if (Take(count, "reserved space").find_first_not_of('\0') == std::string_view::npos) return;
    at_ = start;
    Fail("reserved bytes are not zero");
  }
  [[noreturn]] void Fail(std::string text) const {
    throw Error("bad-file", std::move(text)).At({"", fmt::format("offset {}", at_)});
  }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
};

}  // namespace

std::string_view ModelKindName(uint32_t field) {
  for (const KindRow& row : kKinds)
    if (row.field == field) return row.name;
  return "";
}

// Scans the outermost fields, reading only their headers.
uint32_t ModelKind(ByteWindow& model) {
  uint64_t at = 0;
  auto varint = [&](uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && at < model.size(); shift += 7) {
      auto byte = static_cast<uint64_t>(model[at++]);
      value |= (byte & 0x7F) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  };
  uint32_t kind = 0;
  for (int fields = 0; at < model.size(); ++fields) {
    uint64_t tag, size;
    constexpr int kMostFields = 64;  // a Model has at most four
    if (fields == kMostFields || !varint(tag)) return 0;
    uint64_t field = tag >> 3;
    if ((tag & 7) == 0) {
      if (!varint(size)) return 0;
    } else if ((tag & 7) == 2) {
      if (!varint(size) || size > model.size() - at) return 0;
      at += size;
    } else {
      return 0;
    }
    if (field < 1 << 16 && !ModelKindName(static_cast<uint32_t>(field)).empty())
      kind = static_cast<uint32_t>(field);
  }
  return kind;
}

std::string BundleText(const Program& program, const std::filesystem::path& model_folder,
                       std::string_view compiler_version, std::string_view mil_version) {
  TextOptions options;
  auto state = [&](std::string_view key, std::string_view version, std::string_view fallback) {
    bool has = std::any_of(program.build_info.begin(), program.build_info.end(),
                           [&](const auto& entry) { return entry.first == key; });
    if (version.empty() && has) return;
    options.build_info.emplace_back(key, version.empty() ? fallback : version);
  };
  state(kCompilerVersionKey, compiler_version, kCompilerVersion);
  state(kMilVersionKey, mil_version, kMilVersion);
  options.blob = [&](const Tensor& tensor) -> std::optional<TextOptions::Blob> {
    Tensor::FileView view = tensor.file_view();
    if (!tensor.absent_file().empty()) return TextOptions::Blob{tensor.absent_file(), view.offset};
    if (!view.file) return std::nullopt;
    std::filesystem::path place = view.file->path().lexically_relative(model_folder);
    if (place.empty() || *place.begin() == "..") return std::nullopt;
    return TextOptions::Blob{fmt::format("{}{}", kModelPath, place.generic_string()),
                             view.offset - kBlobMetadataBytes};
  };
  return PrintText(program, options);
}

std::array<uint64_t, 3> BundleVersion(int specification_version) {
  if (specification_version < 8) return {5, 0, 0};
  return {specification_version == 8 ? 8u : 9u, 0, 0};
}

std::string WriteBundleData(const BundleData& data) {
  std::string out;
  Put<uint32_t>(out, data.kind);
  for (uint64_t word : data.version) Put<uint64_t>(out, word);
  Put<uint64_t>(out, kGeneric.size());
  out += kGeneric;
  Put<uint64_t>(out, data.specification_version);
  out.append(kReserved, '\0');
  Put<uint64_t>(out, data.description.size());
  out += data.description;
  for (uint64_t i = 0; i < data.functions; ++i) {
    Put<uint32_t>(out, data.kind);
    out.append(kFunctionPadding, '\0');
  }
  return out;
}

BundleData ReadBundleData(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  BundleData data;
  data.kind = reader.Number<uint32_t>("the kind of model");
  if (data.kind != kMlProgram) {
    std::string_view name = ModelKindName(data.kind);
    if (name.empty()) reader.Fail(fmt::format("unknown model kind {}", data.kind));
    throw Error("unsupported-field", "the bundle is a {}, not an ML Program", name)
        .Help("compile the source model as an ML Program");
  }
  for (uint64_t& word : data.version) word = reader.Number<uint64_t>("the bundle's version");
  uint64_t length = reader.Number<uint64_t>("the length of a name");
  if (std::string_view name = reader.Take(length, "a name"); name != kGeneric)
    reader.Fail(fmt::format("unknown bundle kind \"{}\"", name.substr(0, 40)));
  data.specification_version = reader.Number<uint64_t>("the specification version");
  reader.Zeros(kReserved);
  length = reader.Number<uint64_t>("the length of the description");
  data.description = reader.Take(length, "the description");
  for (data.functions = 0; !reader.done(); ++data.functions) {
    if (uint32_t kind = reader.Number<uint32_t>("a function"); kind != data.kind)
      reader.Fail(fmt::format("unexpected function kind {}", kind));
    reader.Zeros(kFunctionPadding);
  }
  if (data.functions == 0) reader.Fail("the model has no functions");
  return data;
}

}  // namespace mlc::coreml
