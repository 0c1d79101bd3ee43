#include "tools/driver/text_outputs.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "lib/support/json_text.h"
#include "lib/support/mapped_file.h"
#include "lib/support/regular_file.h"
#include "lib/support/utf8.h"
#include "tools/driver/supplied_tensors.h"

namespace fs = std::filesystem;

namespace mlc::driver {

namespace {

using Json = nlohmann::ordered_json;

// Returns null for a file that does not exist.
Json ReadJson(const fs::path& folder, const char* name) {
  std::error_code ignored;
  const fs::path path = folder / name;
  if (folder.empty() || !fs::is_regular_file(path, ignored)) return nullptr;
  const auto file = MappedFile::Open(path);
  const std::string_view text = WithoutBom(AsText(file->bytes()));
  RequireJson(text, "bad-file", path.string());
  return ParseJson(text);
}

std::string TextOf(const Json& object, const char* key) {
  const auto member = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && member != object.end() && member->is_string()
             ? member->get<std::string>()
             : "";
}

// How rows of tokens become the embedding of a text.
struct Pooling {
  bool first = false;        // that of the first token; otherwise the mean
  bool unit_length = false;  // divided by its length
  int64_t most = 0;          // the most tokens of a text; 0: not stated
};

// The modules are those of sentence-transformers (its models/Pooling.py and models/Normalize.py).
Pooling PoolingOf(const fs::path& model) {
  Pooling pooling;
  const fs::path folder = FolderWith(model, "modules.json");
  if (folder.empty()) return pooling;
  const Json sizes = ReadJson(folder, "sentence_bert_config.json");
  if (sizes.is_object() && sizes.contains("max_seq_length") &&
      sizes["max_seq_length"].is_number_unsigned())
    pooling.most = sizes["max_seq_length"].get<int64_t>();
  const auto refuse = [&](const std::string& what) {
    throw Error("unsupported-architecture", "--similarity: {} is not supported", what)
        .At({(folder / "modules.json").string(), ""})
        .Expected("Transformer, then Pooling of the first token or of the mean, then Normalize");
  };
  const Json modules = ReadJson(folder, "modules.json");
  if (!modules.is_array()) refuse("a file that is not a list of modules");
  for (const Json& module : modules) {
    const std::string type = TextOf(module, "type"), path = TextOf(module, "path");
    if (type.ends_with(".Normalize")) {
      pooling.unit_length = true;
    } else if (type.ends_with(".Pooling")) {
      const Json config = ReadJson(folder / fs::path(path).filename(), "config.json");
      std::vector<std::string> modes;
      if (config.is_object())
        for (const auto& [key, value] : config.items())
          if (key.starts_with("pooling_mode") && value == true) modes.push_back(key);
      pooling.first = modes == std::vector<std::string>{"pooling_mode_cls_token"};
      if (!pooling.first && modes != std::vector<std::string>{"pooling_mode_mean_tokens"})
        refuse(fmt::format("the pooling of {}/config.json", path));
    } else if (!type.ends_with(".Transformer")) {
      refuse(fmt::format("the module {}", type));
    }
  }
  return pooling;
}

// The output with the embedding: of the sentence [width], or of each token [tokens, width].
struct EmbeddingOutput {
  size_t index;
  bool of_tokens;
};
EmbeddingOutput EmbeddingOf(const Function& function) {
  constexpr std::string_view kSentence[] = {"sentence_embedding", "embeddings"},
                             kTokens[] = {"last_hidden_state", "token_embeddings",
                                          "last_hidden_state:0"};
  std::vector<std::string> names;
  for (const Port& port : function.outputs) names.push_back(verify::UserName(port));
  for (const bool of_tokens : {false, true})
    for (size_t i = 0; i < names.size(); ++i) {
      const bool named = of_tokens ? std::ranges::count(kTokens, names[i]) > 0
                                   : std::ranges::count(kSentence, names[i]) > 0;
      if (named && function.body.outputs()[i]->type.rank() == (of_tokens ? 3 : 2))
        return {i, of_tokens};
    }
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  throw Error("usage", "--similarity: the model has no embedding; its outputs: {}", list)
      .Expected(
          "an output sentence_embedding [batch, width] or last_hidden_state [batch, tokens, "
          "width]")
      .Help("use the base model, without the head of its task");
}

std::vector<double> Pooled(const Tensor& rows, const Pooling& pooling) {
  const int64_t count = pooling.first ? 1 : rows.dims()[0], width = rows.dims()[1];
  const std::vector<double> values = rows.Doubles();
  std::vector<double> sum(static_cast<size_t>(width), 0);
  for (int64_t i = 0; i < count * width; ++i)
    sum[static_cast<size_t>(i % width)] += values[static_cast<size_t>(i)] / double(count);
  return sum;
}

double Product(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

std::vector<LabelProbability> LabelsOf(const fs::path& model,
                                       const std::vector<RunOutput>& outputs) {
  const auto output = std::ranges::find(outputs, "logits", &RunOutput::name);
  if (output == outputs.end() || output->tensor.dims().size() != 1 || output->tensor.size() < 2)
    return {};
  const Json config = ReadJson(FolderWith(model, "config.json"), "config.json");
  if (!config.is_object() || !config.contains("id2label") || !config["id2label"].is_object())
    return {};
  const Json& names = config["id2label"];
  const std::vector<double> logits = output->tensor.Doubles();
  const bool several = TextOf(config, "problem_type") == "multi_label_classification";
  const double greatest = *std::ranges::max_element(logits);
  double sum = 0;
  for (double logit : logits) sum += std::exp(logit - greatest);
  std::vector<LabelProbability> labels;
  for (size_t i = 0; i < logits.size(); ++i) {
    const std::string name = TextOf(names, std::to_string(i).c_str());
    if (name.empty()) return {};
    labels.push_back(
        {name, several ? 1 / (1 + std::exp(-logits[i])) : std::exp(logits[i] - greatest) / sum});
  }
  std::ranges::stable_sort(labels, std::greater(), &LabelProbability::probability);
  return labels;
}

SimilarityResult Similarity(const fs::path& path, const RunOptions& options,
                            const std::array<std::string, 2>& texts, const fs::path& tokenizer,
                            Diagnostics& diagnostics) {
  Model model(path, options, diagnostics);
  const Function& function = model.function();
  const TextEncoder encoder(function, path, tokenizer, "--similarity");
  const EmbeddingOutput output = EmbeddingOf(function);
  const Pooling pooling = PoolingOf(path);
  SimilarityResult result{.executor = model.executor()};
  result.pooling = !output.of_tokens ? verify::UserName(function.outputs[output.index])
                   : pooling.first   ? "first token"
                                     : "mean of the tokens";
  if (output.of_tokens && pooling.unit_length) result.pooling += ", of length 1";
  const std::unique_ptr<runtime::GuardedModel> instance = model.Load();
  const driver::Predict predict = [&](const std::map<std::string, Tensor>& inputs) {
    return instance->Run(inputs).outputs;
  };
  std::array<std::vector<double>, 2> embeddings;
  for (size_t i = 0; i < 2; ++i) {
    result.texts[i] = encoder.Encode(texts[i], nullptr, pooling.most);
    const Tensor found = RunEncoder(predict, function, result.texts[i].tokens)[output.index];
    embeddings[i] = output.of_tokens ? Pooled(found, pooling) : found.Doubles();
    if (output.of_tokens && pooling.unit_length) {
      const double length = std::sqrt(Product(embeddings[i], embeddings[i]));
      for (double& value : embeddings[i]) value /= std::max(length, 1e-12);
    }
    result.embeddings[i] =
        Tensor::Vector(std::vector<float>(embeddings[i].begin(), embeddings[i].end()));
  }
  const auto& [a, b] = embeddings;
  const double lengths = std::sqrt(Product(a, a) * Product(b, b));
  result.cosine = lengths > 0 ? Product(a, b) / lengths : 0;
  return result;
}

}  // namespace mlc::driver
