#include "frontends/safetensors/adapter.h"

#include <fmt/ranges.h>

#include <cmath>
#include <optional>
#include <set>
#include <unordered_map>

#include "frontends/safetensors/decoder_rows.h"
#include "lib/support/edit_distance.h"
#include "lib/text/regex_pattern.h"

namespace mlc::safetensors {

namespace fs = std::filesystem;

namespace {

constexpr const char* kAdapterConfig = "adapter_config.json";
constexpr const char* kAdapterModel = "adapter_model.safetensors";
constexpr std::string_view kWeightSuffix = ".weight";
constexpr int64_t kUsualRank = 8, kUsualAlpha = 8;  // peft, tuners/lora/config.py

// Keys of adapters that change more than weights, or weights in another way.
constexpr const char* kRefused[] = {"layer_replication", "trainable_token_indices",
                                    "target_parameters", "alora_invocation_tokens",
                                    "arrow_config",      "kasa_config",
                                    "monteclora_config", "use_qalora",
                                    "use_bdlora"};

// The beginnings of names that transformers spells in two ways (conversion_mapping.py,
// _checkpoint_conversion_mapping).
struct Spelling {
  std::string_view one, other;
};
constexpr Spelling kSpellings[] = {
    {"language_model.model.", "model.language_model."},
    {"language_model.lm_head.", "lm_head."},
    {"model.", "model.language_model."},
};

bool IsSet(const Config& config, const char* key) {
  switch (config.kind(key)) {
    case Config::Kind::kNone:
      return false;
    case Config::Kind::kBool:
      return config.Bool(key);
    case Config::Kind::kObject:
      return !config.Object(key).keys().empty();
    case Config::Kind::kList:
      return config.Json(key) != "[]";
    default:
      return true;
  }
}

// The parts of a module in the file; null if they are missing.
struct Parts {
  const SafetensorsFile::Entry *down = nullptr, *up = nullptr, *table_down = nullptr,
                               *table_up = nullptr, *magnitude = nullptr, *bias = nullptr;
};
struct PartName {
  std::string_view name;
  const SafetensorsFile::Entry* Parts::*part;
};
constexpr PartName kParts[] = {
    {"lora_A", &Parts::down},
    {"lora_B", &Parts::up},
    {"lora_embedding_A", &Parts::table_down},
    {"lora_embedding_B", &Parts::table_up},
    {"lora_magnitude_vector", &Parts::magnitude},
};

// Finds the tensors of a folder by names of another spelling.
class NamesOf {
 public:
  explicit NamesOf(const Folder& folder) : folder_(folder) {
    for (const std::string& name : folder.names())
      for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
        auto [at, first] = endings_.try_emplace(std::string_view(name).substr(dot + 1), &name);
        if (!first) at->second = nullptr;  // ambiguous
      }
  }

  // Returns the name of a tensor in the folder, or an empty string.
  std::string Find(const std::string& name) const {
    std::vector<std::string> spelled = {name};
    for (const auto& [one, other] : kSpellings)
      for (auto [from, to] : {std::pair(one, other), std::pair(other, one)})
        if (name.starts_with(from)) spelled.push_back(std::string(to) + name.substr(from.size()));
    for (const std::string& each : spelled)
      if (folder_.has(each)) return each;
    for (const std::string& each : spelled)
      if (auto at = endings_.find(each); at != endings_.end() && at->second) return *at->second;
    // The folder may hold the base model alone, without the prefix of a class with a head.
    for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1))
      if (folder_.has(name.substr(dot + 1))) return name.substr(dot + 1);
    return "";
  }

 private:
  const Folder& folder_;
  std::unordered_map<std::string_view, const std::string*> endings_;
};

class AdapterReader {
 public:
  AdapterReader(const ImportOptions::Lora& lora, const Folder& folder, Diagnostics& diagnostics)
      : lora_(lora),
        folder_(folder),
        diagnostics_(diagnostics),
        names_(folder),
        config_(ReadConfig(lora.path)),
        file_(SafetensorsFile::Open(ModelIn(lora.path))) {}

  networks::Adapter Run() {
    CheckConfig();
    Sort();
    adapter_.files = {fs::path(config_.file()), file_.path()};
    ReadWhole();
    for (const auto& [module, parts] : modules_) ReadPairs(module, parts);
    ThrowProblems();
    KeepTiedHead();
    CheckTargets();
    return std::move(adapter_);
  }

 private:
  static Config ReadConfig(const fs::path& folder) {
    std::error_code ignored;
    if (!fs::is_directory(folder, ignored))
      throw Error("file-io", "option 'lora': \"{}\" {}", folder.string(),
                  fs::exists(folder, ignored) ? "is not a folder" : "does not exist")
          .Expected("a folder with {} and {}, for a Hugging Face folder", kAdapterConfig,
                    kAdapterModel);
    if (!fs::exists(folder / kAdapterConfig, ignored))
      throw Error("file-io", "option 'lora': the folder has no {}", kAdapterConfig)
          .At({folder.string(), ""})
          .Expected("a folder saved by PEFT, with {} and {}", kAdapterConfig, kAdapterModel);
    return Config::Read(folder / kAdapterConfig);
  }
  static fs::path ModelIn(const fs::path& folder) {
    std::error_code ignored;
    if (fs::exists(folder / "adapter_model.bin", ignored) &&
        !fs::exists(folder / kAdapterModel, ignored))
      throw Error("file-io", "the adapter has pickled tensors, in adapter_model.bin")
          .At({folder.string(), ""})
          .Expected(kAdapterModel)
          .Help("save it again with PEFT: model.save_pretrained(FOLDER)");
    return folder / kAdapterModel;
  }

  Location Key(const char* key) const { return {config_.file(), fmt::format("key \"{}\"", key)}; }

  void CheckConfig() {
    const std::string type = config_.Text("peft_type", "LORA");
    if (type != "LORA")
      throw Error("unsupported-architecture", "the adapter is of type {}", type)
          .At(Key("peft_type"))
          .Expected("LORA")
          .Help("merge it with PEFT: model.merge_and_unload()");
    for (const char* key : kRefused)
      if (IsSet(config_, key))
        throw Error("unsupported-architecture", "the adapter sets \"{}\" to {}", key,
                    config_.Json(key))
            .At(Key(key))
            .Expected("null")
            .Help("merge it with PEFT: model.merge_and_unload()");
    rank_ = config_.Int("r", kUsualRank);
    alpha_ = config_.Number("lora_alpha", kUsualAlpha);
    by_root_ = config_.Bool("use_rslora", false);
    transposed_ = config_.Bool("fan_in_fan_out", false);
    if (IsSet(config_, "rank_pattern")) {
      const Config ranks = config_.Object("rank_pattern");
      for (const std::string& key : ranks.keys()) ranks_.insert(ranks.Int(key));
    }
    if (IsSet(config_, "alpha_pattern")) {
      const Config alphas = config_.Object("alpha_pattern");
      for (const std::string& key : alphas.keys())
        alphas_.push_back({key, PatternOf(key, "alpha_pattern"), alphas.Number(key)});
    }
  }

  // A pattern of peft's get_pattern_key: a regular expression for the end of a path.
  text::Pattern PatternOf(const std::string& text, const char* key) const {
    try {
      return {R"(\A(?:.*\.)?(?:)" + text + R"()\z)", text::Syntax::kOniguruma};
    } catch (const Error& error) {
      throw Error("bad-file", "\"{}\" is not a regular expression: {}", text, error.text())
          .At(Key(key));
    }
  }
  bool Matches(const text::Pattern& pattern, const std::string& path) const {
    std::vector<text::TextRange> found;
    pattern.FindAll(path, found);
    return !found.empty();
  }

  double AlphaOf(const std::string& module) const {
    std::optional<double> alpha;
    std::string first;
    for (const Alpha& each : alphas_) {
      if (!Matches(each.pattern, module)) continue;
      if (alpha && *alpha != each.alpha)
        throw Error("bad-file", "\"{}\" and \"{}\" both match module \"{}\", with different values",
                    first, each.text, module)
            .At(Key("alpha_pattern"));
      alpha = each.alpha;
      first = each.text;
    }
    return alpha.value_or(alpha_);
  }

  // Sorts the tensors of the file into the parts of modules and whole tensors.
  void Sort() {
    for (const SafetensorsFile::Entry& entry : file_.entries()) {
      std::string name = entry.name;
      for (std::string_view prefix : {"base_model.model.", "base_model."})
        if (name.starts_with(prefix)) {
          name.erase(0, prefix.size());
          break;
        }
      const size_t at = name.find(".lora_");
      if (at == std::string::npos) {
        // PEFT's wrappers of modules, in older versions.
        for (std::string_view wrapper : {".modules_to_save", ".base_layer", ".original_module"})
          if (const size_t where = name.find(wrapper); where != std::string::npos)
            name.erase(where, wrapper.size());
        whole_.emplace(name, &entry);
        continue;
      }
      // lora_A.weight, lora_A.default.weight, lora_embedding_A
      const std::string_view part = std::string_view(name).substr(at + 1);
      const std::string_view kind = part.substr(0, part.find('.'));
      Parts& parts = modules_[name.substr(0, at)];
      bool known = false;
      for (const PartName& row : kParts) {
        if (row.name != kind) continue;
        known = true;
        (kind == "lora_B" && part.ends_with(".bias") ? parts.bias : parts.*row.part) = &entry;
      }
      if (!known)
        throw Error("unsupported-architecture",
                    "the adapter has a tensor of an unknown kind, \"{}\"", entry.name)
            .At({file_.path().string(), ""})
            .Expected(
                "lora_A, lora_B, lora_embedding_A, lora_embedding_B or "
                "lora_magnitude_vector");
    }
    if (modules_.empty() && whole_.empty())
      throw Error("bad-file", "the adapter has no tensors").At({file_.path().string(), ""});
  }

  // Returns the name of a tensor of the folder, and keeps those that it lacks.
  std::string Resolve(const std::string& name, const std::string& module) {
    std::string found = names_.Find(name);
    if (found.empty()) unknown_.insert(module);
    return found;
  }

  void ReadWhole() {
    for (const auto& [name, entry] : whole_) {
      std::string stored = names_.Find(name);
      if (stored.empty() && HeadName() && name.ends_with(*HeadName())) stored = *HeadName();
      if (stored.empty()) {
        unknown_.insert(name);
        continue;
      }
      const Dims wanted =
          (folder_.has(stored) ? folder_.tensor(stored) : folder_.tensor(TokensName())).dims();
      if (entry->dims != wanted)
        throw Error("bad-tensor", "\"{}\" is [{}], but the model has [{}]", entry->name,
                    fmt::join(entry->dims, ", "), fmt::join(wanted, ", "))
            .At({file_.path().string(), ""})
            .Help(
                "check that the adapter was trained on this model; if it has a larger "
                "vocabulary, merge it with PEFT: model.merge_and_unload()");
      adapter_.whole[stored] = file_.Get(*entry);
    }
  }

  void ReadPairs(const std::string& module, const Parts& parts) {
    const bool linear = parts.down || parts.up, table = parts.table_down || parts.table_up;
    const SafetensorsFile::Entry *down = linear ? parts.down : parts.table_down,
                                 *up = linear ? parts.up : parts.table_up;
    if (!down || !up || (linear && table)) {
      incomplete_.insert(module);
      return;
    }
    const std::string name = module + std::string(kWeightSuffix);
    std::string stored = names_.Find(name), base = stored;
    if (stored.empty() && HeadName() && name.ends_with(*HeadName())) {
      stored = *HeadName();
      base = TokensName();
    }
    if (stored.empty()) {
      unknown_.insert(module);
      return;
    }
    const Tensor weight = folder_.tensor(base);
    networks::LowRank pair{.weight = stored};
    const Tensor a = Matrix(file_.Get(*down)), b = Matrix(file_.Get(*up));
    const int64_t rank = a.rank() == 2 ? a.dims()[0] : 0;
    if (a.rank() != 2 || b.rank() != 2 || b.dims()[1] != rank || !IsRank(rank))
      throw Error("bad-tensor", "module \"{}\": {} is [{}] and {} is [{}]", module, down->name,
                  fmt::join(down->dims, ", "), up->name, fmt::join(up->dims, ", "))
          .At({file_.path().string(), ""})
          .Expected("[r, inputs] and [outputs, r], r {}",
                    ranks_.empty() ? fmt::format("{}", rank_)
                                   : fmt::format("{} or of rank_pattern", rank_));
    pair.outputs_are_columns = table || IsTransposed(weight.dims(), a, b);
    pair.down = pair.outputs_are_columns ? b.Transposed({1, 0}) : a;
    pair.up = pair.outputs_are_columns ? a.Transposed({1, 0}) : b;
    const double size = by_root_ ? std::sqrt(static_cast<double>(rank)) : static_cast<double>(rank);
    pair.scale = AlphaOf(module) / size * lora_.scale;
    if (parts.magnitude) {
      const Tensor magnitude = file_.Get(*parts.magnitude);
      pair.magnitude = magnitude.Reshaped({magnitude.size()});
    }
    networks::CheckLowRank(pair, weight.dims(),
                           fmt::format("module \"{}\" of the adapter", module));
    if (base != stored) adapter_.whole.try_emplace(stored, weight);
    if (parts.bias) AddBias(module, stored, file_.Get(*parts.bias), pair.scale);
    adapter_.pairs.push_back(std::move(pair));
  }

  // The kernels of convolutions are [r, inputs, ...] and [outputs, r, 1, ...].
  static Tensor Matrix(const Tensor& tensor) {
    if (tensor.rank() < 3 || tensor.size() == 0) return tensor;
    return tensor.Reshaped({tensor.dims()[0], tensor.size() / tensor.dims()[0]});
  }

  bool IsRank(int64_t rank) const { return rank >= 1 && (rank == rank_ || ranks_.contains(rank)); }

  // Returns whether a weight is stored as [inputs, outputs]. Its sizes say so unless they are equal:
  // PEFT corrects fan_in_fan_out where it contradicts the layer.
  bool IsTransposed(const Dims& dims, const Tensor& a, const Tensor& b) const {
    const int64_t inputs = a.dims()[1], outputs = b.dims()[0];
    if (dims.size() != 2) return false;
    if (inputs == outputs) return transposed_;
    return dims[0] == inputs && dims[1] == outputs;
  }

  void AddBias(const std::string& module, const std::string& weight, const Tensor& bias,
               double scale) {
    const std::string name = weight.substr(0, weight.size() - kWeightSuffix.size()) + ".bias";
    std::vector<double> sum = bias.Doubles();
    for (double& value : sum) value *= scale;
    if (folder_.has(name)) {
      const Tensor before = folder_.tensor(name);
      if (before.dims() != bias.dims())
        throw Error("bad-tensor", "module \"{}\": lora_B.bias is [{}], but \"{}\" is [{}]", module,
                    fmt::join(bias.dims(), ", "), name, fmt::join(before.dims(), ", "))
            .At({file_.path().string(), ""});
      const std::vector<double> base = before.Doubles();
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += base[i];
    }
    adapter_.whole[name] = Tensor::Of(bias.dims(), sum).Cast(DType::kFp32);
  }

  void ThrowProblems() {
    std::vector<Error> errors;
    const std::set<std::string> known(folder_.names().begin(), folder_.names().end());
    if (!unknown_.empty()) {
      Error error("bad-name", "the model lacks {} of the adapter's modules: {}", unknown_.size(),
                  Quoted({unknown_.begin(), unknown_.end()}));
      error.At({file_.path().string(), ""})
          .Note("similar names: " + Quoted(NearNames(known, *unknown_.begin())))
          .Help("check that the adapter was trained on this model");
      errors.push_back(std::move(error));
    }
    if (!incomplete_.empty())
      errors.push_back(Error("missing-tensor",
                             "modules of the adapter have only half of a pair: {}",
                             Quoted({incomplete_.begin(), incomplete_.end()}))
                           .At({file_.path().string(), ""})
                           .Expected("lora_A and lora_B, or lora_embedding_A and lora_embedding_B")
                           .Help("copy the whole folder of the adapter again"));
    if (errors.size() == 1) throw std::move(errors[0]);
    if (!errors.empty()) throw Errors(std::move(errors));
  }

  // Returns the names of a decoder's head and of its table of tokens, if the folder has a decoder.
  std::optional<std::string> HeadName() const { return DecoderName(networks::Role::kOutput); }
  std::string TokensName() const {
    return names_.Find(DecoderName(networks::Role::kTokens).value_or(""));
  }
  std::optional<std::string> DecoderName(networks::Role role) const {
    const std::string type = folder_.model_type();
    const HuggingFaceName* row = FindDecoderRow(type) ? FindHuggingFaceName(type, role) : nullptr;
    if (!row) return std::nullopt;
    return NameOf(*row, networks::Part::kWeight, 0);
  }

  // The head that shares the table of tokens keeps the elements that it had when the adapter was
  // trained: PEFT changes what looks tokens up, not what computes logits.
  void KeepTiedHead() {
    const std::optional<std::string> head = HeadName();
    if (!head) return;
    const std::string tokens = TokensName();
    if (tokens.empty() || adapter_.whole.contains(*head) || Changes(*head)) return;
    if (folder_.has(*head) && folder_.stored_name(*head) != tokens) return;
    if (adapter_.whole.contains(tokens) || Changes(tokens))
      adapter_.whole[*head] = folder_.tensor(tokens);
  }
  bool Changes(const std::string& weight) const {
    for (const networks::LowRank& pair : adapter_.pairs)
      if (pair.weight == weight) return true;
    return false;
  }

  // Warns of modules that the adapter should have changed, but did not.
  void CheckTargets() {
    if (config_.kind("target_modules") != Config::Kind::kList ||
        IsSet(config_, "layers_to_transform") || IsSet(config_, "exclude_modules"))
      return;
    std::set<std::string> changed, missing;
    for (const networks::LowRank& pair : adapter_.pairs) changed.insert(pair.weight);
    const std::vector<std::string> targets = config_.Texts("target_modules");
    for (const std::string& name : folder_.names()) {
      if (!name.ends_with(kWeightSuffix) || changed.contains(name) || adapter_.whole.contains(name))
        continue;
      const std::string_view module =
          std::string_view(name).substr(0, name.size() - kWeightSuffix.size());
      for (const std::string& target : targets)
        if (module == target || module.ends_with("." + target)) missing.emplace(module);
    }
    if (missing.empty()) return;
    diagnostics_.Warn(Error("missing-tensor",
                            "target_modules names {} modules for which the adapter has no pair: {}",
                            missing.size(), Quoted({missing.begin(), missing.end()}))
                          .At(Key("target_modules"))
                          .Help("check that the folder of the adapter is complete"));
  }

  const ImportOptions::Lora& lora_;
  const Folder& folder_;
  Diagnostics& diagnostics_;
  const NamesOf names_;
  const Config config_;
  const SafetensorsFile file_;
  int64_t rank_ = 0;
  double alpha_ = 0;
  bool by_root_ = false, transposed_ = false;
  std::set<int64_t> ranks_;
  struct Alpha {
    std::string text;
    text::Pattern pattern;
    double alpha;
  };
  std::vector<Alpha> alphas_;
  std::map<std::string, Parts> modules_;
  std::map<std::string, const SafetensorsFile::Entry*> whole_;
  std::set<std::string> unknown_, incomplete_;
  networks::Adapter adapter_;
};

}  // namespace

networks::Adapter ReadAdapter(const ImportOptions::Lora& lora, const Folder& folder,
                              Diagnostics& diagnostics) {
  return AdapterReader(lora, folder, diagnostics).Run();
}

Folder WithAdapters(Folder folder, const std::vector<ImportOptions::Lora>& loras,
                    Diagnostics& diagnostics, std::vector<fs::path>& read) {
  for (const ImportOptions::Lora& lora : loras) {
    const networks::Adapter adapter = ReadAdapter(lora, folder, diagnostics);
    read.insert(read.end(), adapter.files.begin(), adapter.files.end());
    folder = folder.With(networks::Merged(
        adapter, lora, [&](const std::string& name) { return folder.tensor(name); }, diagnostics));
  }
  return folder;
}

}  // namespace mlc::safetensors
