#include "frontends/safetensors/folder.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>

#include "lib/ir/encoding.h"
#include "lib/support/edit_distance.h"

namespace mlc::safetensors {

namespace fs = std::filesystem;

namespace {

constexpr const char* kConfig = "config.json";
constexpr const char* kModel = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr std::string_view kWeight = ".weight";
constexpr int64_t kFp8Block = 128;
constexpr std::string_view kExpression = "re:";            // compressed-tensors' prefix
constexpr std::string_view kOperators = "\\*+?()[]{}|^$";  // operators that Begins does not support

std::string Listed(const Dims& dims) { return fmt::format("[{}]", fmt::join(dims, ", ")); }

// Returns the weights file of a folder that has neither the usual file nor an index.
fs::path OnlyFile(const fs::path& folder) {
  std::set<fs::path> files;
  bool pickled = false;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() == ".safetensors") files.insert(it->path());
    pickled |= it->path().extension() == ".bin";
  }
  if (error) throw Error("file-io", error.message()).At({folder.string(), ""});
  if (files.size() == 1) return *files.begin();
  if (files.size() > 1)
    throw Error(
        "file-io",
        "the folder has {} .safetensors files, but no {}, which names the file of each tensor",
        files.size(), kIndex)
        .At({folder.string(), ""})
        .Help("copy the index as well, or pass one of the files");
  Error none("file-io", "this folder has no weights");
  none.At({folder.string(), ""}).Expected("{} or {}", kModel, kIndex);
  if (pickled)
    none.Help(
        "pickled weights are not supported; save them again with transformers: "
        "model.save_pretrained(FOLDER, safe_serialization=True)");
  throw none;
}

// Unpacks 5-bit elements, for which there is no DType, into one byte each.
Tensor FiveBits(const Tensor& bytes, Dims dims) {
  return Tensor::Lazy(DType::kUint8, std::move(dims),
                      [bytes](int64_t first, int64_t count, std::byte* out) {
                        int64_t begin = first * 5 / 8, end = ((first + count) * 5 + 7) / 8;
                        std::vector<std::byte> packed(static_cast<size_t>(end - begin) + 1);
                        bytes.Read(begin, end - begin, packed.data());
                        for (int64_t i = 0; i < count; ++i) {
                          int64_t bit = (first + i) * 5 - begin * 8;
                          unsigned two = std::to_integer<unsigned>(packed[bit / 8]) |
                                         std::to_integer<unsigned>(packed[bit / 8 + 1]) << 8;
                          out[i] = static_cast<std::byte>(two >> bit % 8 & 31);
                        }
                      });
}

DType Unsigned(int64_t bits) {
  return bits == 2   ? DType::kUint2
         : bits == 3 ? DType::kUint3
         : bits == 4 ? DType::kUint4
         : bits == 6 ? DType::kUint6
                     : DType::kUint8;
}

// Expands the scales of blocks that may be cut at the end of an axis to blocks of equal size: the
// largest size that divides both. The result is lazy.
Tensor OfEvenBlocks(const Tensor& scale, const Dims& dims, const Dims& block) {
  Dims cells = dims, step = block, counts = dims;
  for (size_t d = 0; d < dims.size(); ++d) {
    step[d] = std::gcd(dims[d], block[d]);
    cells[d] = dims[d] / step[d];
    counts[d] = (dims[d] + block[d] - 1) / block[d];
  }
  if (cells == counts) return scale.Reshaped(std::move(cells));
  auto values = std::make_shared<const std::vector<double>>(scale.Doubles());
  Dims strides = StridesOf(cells), from = StridesOf(counts);
  return Tensor::Lazy(DType::kFp32, cells, [=](int64_t first, int64_t count, std::byte* out) {
    for (int64_t i = 0; i < count; ++i) {
      int64_t cell = 0;
      for (size_t d = 0; d < cells.size(); ++d)
        cell += (first + i) / strides[d] % cells[d] * step[d] / block[d] * from[d];
      auto value = static_cast<float>((*values)[static_cast<size_t>(cell)]);
      std::memcpy(out + i * sizeof value, &value, sizeof value);
    }
  });
}

// Returns whether a regular expression matches the beginning of a name, as in Python's re.match. It
// supports characters, escaped or not, `.`, `.*`, `^` at the start and `$` at the end; other
// expressions match nothing.
bool Begins(std::string_view name, std::string_view expression) {
  if (expression.starts_with('^')) expression.remove_prefix(1);
  // The rest of the expression after the last `.*`, and the position in the name to try next.
  // Earlier `.*` never need to match more.
  std::optional<std::string_view> after;
  std::string_view from;
  while (!expression.empty()) {
    if (expression.starts_with(".*")) {
      expression.remove_prefix(2);
      after = expression;
      from = name;
      continue;
    }
    const bool end = expression == "$", escaped = expression[0] == '\\' && expression.size() > 1;
    const char wanted = expression[escaped ? 1 : 0];
    if (end && name.empty()) return true;
    if (!end && !escaped && kOperators.find(wanted) != std::string_view::npos) return false;
    if (!end && !name.empty() && (name[0] == wanted || (wanted == '.' && !escaped))) {
      expression.remove_prefix(escaped ? 2 : 1);
      name.remove_prefix(1);
    } else if (after && !from.empty()) {
      from.remove_prefix(1);
      name = from;
      expression = *after;
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace

Folder Folder::Open(const fs::path& path) {
  Folder folder;
  folder.path_ = path;
  std::error_code nowhere;
  const bool whole = fs::is_directory(path, nowhere);
  const fs::path in = whole ? path : path.parent_path();
  if (fs::exists(in / kConfig, nowhere)) {
    folder.config_ = Config::Read(in / kConfig);
    folder.read_.push_back(in / kConfig);
  }
  if (!whole)
    folder.AddFile(path);
  else if (fs::exists(path / kModel, nowhere))
    folder.AddFile(path / kModel);
  else if (fs::exists(path / kIndex, nowhere))
    folder.AddIndex(path / kIndex);
  else
    folder.AddFile(OnlyFile(path));

  // MLX writes its settings under both names; other tools write only the second, with a method.
  for (const char* key : {"quantization", "quantization_config"})
    if (folder.config_.kind(key) == Config::Kind::kObject && folder.mlx_.keys().empty())
      if (Config how = folder.config_.Object(key); how.has("bits") && !how.has("quant_method"))
        folder.mlx_ = how;
  folder.scaled_ = folder.config_.kind("quantization_config") == Config::Kind::kObject;
  std::set<const Stored*> parts;
  for (const auto& [name, stored] : folder.stored_) {
    Weight weight = folder.PartsOf(name);
    folder.scaled_ |= weight.form == Weight::Form::kFp8;
    parts.insert({weight.scale, weight.bias});
  }
  for (const auto& [name, stored] : folder.stored_)
    if (!parts.contains(&stored) && stored.entry->name == name) folder.names_.push_back(name);
  return folder;
}

Folder Folder::Without(const std::vector<std::string>& names) const {
  Folder folder = *this;
  for (const std::string& name : names) {
    folder.stored_.erase(name);
    folder.changed_.erase(name);
    std::erase(folder.names_, name);
  }
  return folder;
}

Folder Folder::With(const std::map<std::string, Tensor>& tensors) const {
  Folder folder = *this;
  for (const auto& [name, tensor] : tensors) {
    folder.changed_.insert_or_assign(name, tensor);
    folder.adapted_.insert(name);
    const auto place = std::ranges::lower_bound(folder.names_, name);
    if (place == folder.names_.end() || *place != name) folder.names_.insert(place, name);
  }
  return folder;
}

Folder Folder::Part(const Config& config, const std::map<std::string, Tensor>& tensors) const {
  Folder folder;
  folder.path_ = path_;
  folder.config_ = config;
  folder.changed_ = tensors;
  for (const auto& [name, tensor] : tensors) folder.names_.push_back(name);
  return folder;
}

void Folder::AddFile(const fs::path& file) {
  files_.push_back(SafetensorsFile::Open(file));
  for (const SafetensorsFile::Entry& entry : files_.back().entries())
    stored_[entry.name] = {files_.size() - 1, &entry};
  AddAliases(files_.size() - 1);
}

void Folder::AddAliases(size_t file) {
  for (const auto& [alias, name] : files_[file].metadata())
    if (const SafetensorsFile::Entry* entry = files_[file].Find(name))
      stored_.try_emplace(alias, Stored{file, entry});
}

void Folder::AddIndex(const fs::path& index) {
  read_.push_back(index);
  const Config json = Config::Read(index);
  const std::map<std::string, std::string> places = json.TextMap("weight_map");
  std::map<std::string, size_t> shards;
  const Location map{index.string(), "key \"weight_map\""};
  for (const auto& [name, shard] : places) {
    if (shard.empty() || shard == "." || shard == ".." || fs::path(shard).filename() != shard ||
        shard.find('\0') != std::string::npos)
      throw Error("bad-file", "the shard \"{}\" is not a file name", shard)
          .At(map)
          .Expected("a file in the same folder");
    shards[shard] = 0;
  }
  for (auto& [shard, number] : shards) {
    number = files_.size();
    try {
      files_.push_back(SafetensorsFile::Open(index.parent_path() / shard));
    } catch (Error& error) {
      if (!error.has_location()) error.At(map).Help("copy the whole folder of the model again");
      throw;
    }
  }
  for (const auto& [name, shard] : places) {
    const size_t number = shards[shard];
    const SafetensorsFile::Entry* entry = files_[number].Find(name);
    if (!entry)
      throw Error("bad-file", "tensor \"{}\" is missing, but {} says that it is here", name, kIndex)
          .At({files_[number].path().string(), ""})
          .Help("copy the whole folder of the model again");
    stored_[name] = {number, entry};
  }
  for (size_t file = 0; file < files_.size(); ++file) AddAliases(file);
}

std::string Folder::architecture() const {
  if (!config_.has("architectures")) return "";
  std::vector<std::string> all = config_.Texts("architectures");
  return all.empty() ? "" : all.front();
}

std::vector<fs::path> Folder::paths() const {
  std::vector<fs::path> paths = read_;
  for (const SafetensorsFile& file : files_) paths.push_back(file.path());
  return paths;
}

const Folder::Stored* Folder::Find(const std::string& name) const {
  auto stored = stored_.find(name);
  return stored == stored_.end() ? nullptr : &stored->second;
}

const Folder::Stored& Folder::Get(const std::string& name) const {
  if (const Stored* stored = Find(name)) return *stored;
  Error none("bad-file", "tensor \"{}\" is missing", name);
  none.At({path_.string(), ""});
  if (!names_.empty())
    none.Note("similar names: " + Quoted(NearNames({names_.begin(), names_.end()}, name)));
  if (config_.kind("quantization_config") == Config::Kind::kObject)
    if (Config how = config_.Object("quantization_config"); how.has("quant_method"))
      none.Help("the weights are quantised by {}; use the original model",
                how.Text("quant_method"));
  throw none;
}

Error Folder::Refusal(const Stored& stored, std::string_view id, std::string text) const {
  return Error(id, std::move(text))
      .At({files_[stored.file].path().string(), fmt::format("tensor \"{}\"", stored.entry->name)});
}

Folder::Weight Folder::PartsOf(const std::string& asked) const {
  Weight weight;
  weight.data = &Get(asked);
  const std::string& name = weight.data->entry->name;
  weight.dims = weight.data->entry->dims;
  const std::string& dtype = weight.data->entry->dtype;
  if (dtype == "U32" && name.ends_with(kWeight) && mlx_.has("bits")) {
    const std::string module = name.substr(0, name.size() - kWeight.size());
    weight.scale = Find(module + ".scales");
    if (!weight.scale) return weight;
    weight.bias = Find(module + ".biases");
    weight.form = Weight::Form::kMlx;
  } else if (IsFloat(SafetensorsDType(dtype)) && dtype.starts_with("F8")) {
    weight.scale = Find(name + "_scale_inv");
    if (!weight.scale) weight.scale = Find(name + "_scale");
    if (weight.scale) weight.form = Weight::Form::kFp8;
  }
  return weight;
}

Folder::Weight Folder::Resolve(const std::string& name) const {
  Weight weight = PartsOf(name);
  if (weight.form == Weight::Form::kMlx) ResolveMlx(weight);
  if (weight.form == Weight::Form::kFp8) ResolveFp8(weight);
  const SafetensorsFile::Entry& data = *weight.data->entry;
  if (!weight.scale && scaled_ && data.dtype.starts_with("F8") && !IsExcluded(data.name))
    throw Refusal(*weight.data, "bad-constant",
                  fmt::format("{} elements have no scale", data.dtype))
        .Expected("a tensor \"{0}_scale_inv\" or \"{0}_scale\"", data.name)
        .Help("copy the whole folder of the model again, or use the original model");
  return weight;
}

bool Folder::IsExcluded(const std::string& name) const {
  if (config_.kind("quantization_config") != Config::Kind::kObject) return false;
  const Config how = config_.Object("quantization_config");
  const std::string_view module = std::string_view(name).substr(0, name.rfind('.'));
  auto any = [&](const char* key, auto&& fits) {
    if (how.kind(key) != Config::Kind::kList) return false;
    const std::vector<std::string> entries = how.Texts(key);
    return std::ranges::any_of(entries, fits);
  };
  return any("modules_to_not_convert",
             [&](std::string_view entry) {
               return Begins(module, entry) || module.ends_with(entry);
             }) ||
         any("ignore", [&](std::string_view entry) {
           return entry.starts_with(kExpression) ? Begins(module, entry.substr(kExpression.size()))
                                                 : module == entry;
         });
}

void Folder::ResolveMlx(Weight& weight) const {
  const std::string& name = weight.data->entry->name;
  const std::string module = name.substr(0, name.size() - kWeight.size());
  // Settings of a module override the global settings.
  Config how = mlx_.kind(module) == Config::Kind::kObject ? mlx_.Object(module) : mlx_;
  auto of = [&](const char* key) { return how.has(key) ? how.Int(key) : mlx_.Int(key); };
  const int64_t bits = of("bits"), group = of("group_size");
  const std::string mode = how.Text("mode", mlx_.Text("mode", "affine"));
  const Stored& data = *weight.data;
  if (mode != "affine" || !weight.bias)
    throw Refusal(data, "unsupported-dtype",
                  fmt::format("unsupported MLX quantisation: mode \"{}\", {} biases", mode,
                              weight.bias ? "with" : "without"))
        .Expected("mode \"affine\", with biases")
        .Help("convert the model with mlx_lm.convert in affine mode, or use the original model");
  if (bits < 2 || bits > 8 || bits == 7 || group < 1)
    throw Refusal(data, "unsupported-dtype",
                  fmt::format("unsupported MLX quantisation: {} bits in groups of {}", bits, group))
        .Expected("2, 3, 4, 5, 6 or 8 bits");
  const Dims &packed = data.entry->dims, &scales = weight.scale->entry->dims;
  Dims grid = packed;
  bool fits = !packed.empty() && scales.size() == packed.size() &&
              std::ranges::find(packed, 0) == packed.end();
  int64_t columns = 0, row_bits = 0;
  if (fits) {
    fits = !__builtin_mul_overflow(scales.back(), group, &columns) &&
           !__builtin_mul_overflow(columns, bits, &row_bits) && row_bits % 32 == 0 &&
           row_bits / 32 == packed.back();
    grid.back() = scales.back();
  }
  if (!fits || scales != grid || weight.bias->entry->dims != grid)
    throw Refusal(
        data, "bad-constant",
        fmt::format("words {}, scales {} and biases {} do not match {} bits in groups of {}",
                    Listed(packed), Listed(scales), Listed(weight.bias->entry->dims), bits, group))
        .Expected("columns x bits / 32 words, columns / group scales and biases in a row");
  weight.bits = bits;
  weight.dims.back() = columns;
  weight.block.assign(packed.size(), 1);
  weight.block.back() = group;
}

void Folder::ResolveFp8(Weight& weight) const {
  const Dims &dims = weight.dims, &scale = weight.scale->entry->dims;
  if (std::ranges::find(dims, 0) != dims.end()) {
    weight.form = Weight::Form::kPlain;
    return;
  }
  Dims sizes;
  if (config_.kind("quantization_config") == Config::Kind::kObject)
    if (Config how = config_.Object("quantization_config"); how.has("weight_block_size"))
      sizes = how.Ints("weight_block_size");
  if (sizes.empty()) sizes = {kFp8Block, kFp8Block};
  auto covered_by = [&](const Dims& block) {
    for (size_t d = 0; d < dims.size(); ++d)
      if (block[d] < 1 || scale[d] != (dims[d] - 1) / block[d] + 1) return false;
    return true;
  };
  // There is one scale, or one per row (with or without a last dimension), or one per block of the
  // last dimensions.
  weight.block = dims;
  if (std::ranges::all_of(scale, [](int64_t size) { return size == 1; })) return;
  std::fill(weight.block.begin(), weight.block.end() - std::min<size_t>(1, dims.size()), 1);
  Dims rows(dims.begin(), dims.end() - std::min<size_t>(1, dims.size()));
  if (scale == rows) return;
  rows.push_back(1);
  if (scale == rows) return;
  if (scale.size() == dims.size() && dims.size() >= sizes.size()) {
    std::ranges::fill(weight.block, 1);
    std::ranges::copy(sizes, weight.block.end() - static_cast<int64_t>(sizes.size()));
    if (covered_by(weight.block)) return;
  }
  throw Refusal(*weight.data, "bad-constant",
                fmt::format("scales of shape {} do not match a tensor of shape {}", Listed(scale),
                            Listed(dims)))
      .Expected("one scale, one per row, or one per block of [{}]", fmt::join(sizes, ", "));
}

Tensor Folder::tensor(const std::string& name) const {
  if (const auto changed = changed_.find(name); changed != changed_.end()) return changed->second;
  Weight weight = Resolve(name);
  if (weight.form == Weight::Form::kPlain) return Raw(*weight.data);
  Encoding encoding;
  encoding.scale = Raw(*weight.scale);
  if (weight.bias) encoding.bias = Raw(*weight.bias);
  for (const Stored* part : {weight.scale, weight.bias})
    if (part && !IsFloat(SafetensorsDType(part->entry->dtype)))
      throw Refusal(*part, "unsupported-dtype",
                    fmt::format("unsupported type {} of scales or biases", part->entry->dtype))
          .Expected("F16, BF16 or F32");
  if (weight.form == Weight::Form::kFp8) {
    encoding.data = Raw(*weight.data);
    encoding.scale = OfEvenBlocks(encoding.scale, weight.dims, weight.block);
    return Tensor::Encoded(std::move(encoding));
  }
  const SafetensorsFile& file = files_[weight.data->file];
  const SafetensorsFile::Entry& entry = *weight.data->entry;
  encoding.data =
      weight.bits == 5
          ? FiveBits(file.Get(entry, DType::kUint8, {static_cast<int64_t>(entry.bytes)}),
                     weight.dims)
          : file.Get(entry, Unsigned(weight.bits), weight.dims);
  return Tensor::Encoded(std::move(encoding));
}

Folder::Item Folder::item(const std::string& name) const {
  if (const auto changed = changed_.find(name); changed != changed_.end()) {
    const Tensor& tensor = changed->second;
    return {name, std::string(Name(tensor.dtype())), tensor.dims(), tensor.byte_size(), ""};
  }
  Weight weight = PartsOf(name);
  Item item{name, weight.data->entry->dtype, weight.dims, 0, ""};
  for (const Stored* part : {weight.data, weight.scale, weight.bias})
    if (part) item.bytes += part->entry->bytes;
  try {
    tensor(name);
    weight = Resolve(name);
  } catch (const Error& error) {
    item.problem = error.text();
    return item;
  }
  item.dims = weight.dims;
  if (weight.form == Weight::Form::kMlx)
    item.type = fmt::format("{} bits in groups of {}", weight.bits, weight.block.back());
  if (weight.form == Weight::Form::kFp8 && weight.block == weight.dims)
    item.type += " with a scale";
  else if (weight.form == Weight::Form::kFp8)
    item.type += fmt::format(" in blocks of {}", fmt::join(weight.block, " x "));
  return item;
}

}  // namespace mlc::safetensors
