#include "lib/verify/layer_comparison.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "lib/passes/safe_masks.h"
#include "lib/support/error.h"
#include "lib/support/json_text.h"

namespace mlc::verify {

namespace {

Dims WithoutOnes(Dims dims) {
  std::erase(dims, 1);
  return dims;
}

// Returns whether `value` equals `reference` with its dimensions permuted.
bool IsReordered(const Tensor& value, const Tensor& reference, const Budget& budget) {
  std::vector<int> order(reference.rank());
  std::iota(order.begin(), order.end(), 0);
  while (std::next_permutation(order.begin(), order.end())) {
    bool fits = true;
    for (size_t d = 0; d < order.size(); ++d)
      fits = fits && reference.dims()[order[d]] == reference.dims()[d];
    if (fits && Compare(value, reference.Transposed(order), budget).Within(budget)) return true;
  }
  return false;
}

// Adds the operations of the block, and of its nested blocks, whose results only feed a softmax.
void AddMasked(const Block& block, std::unordered_set<const Operation*>& masked) {
  masked.merge(passes::EndInSoftmax(block));
  for (Operation* op : block.operations())
    for (const auto& nested : op->blocks) AddMasked(*nested, masked);
}

// Zeroes the elements that are masked out on both sides, because softmax maps them to 0 anyway.
void TakeOutMasked(Tensor& value, Tensor& reference) {
  std::vector<double> values = value.Doubles(), references = reference.Doubles();
  bool any = false;
  for (size_t i = 0; i < values.size(); ++i)
    if (passes::MasksBoth(references[i], values[i])) {
      values[i] = references[i] = 0;
      any = true;
    }
  if (!any) return;
  value = Tensor::Of(value.dims(), values).Cast(value.dtype());
  reference = Tensor::Of(reference.dims(), references).Cast(reference.dtype());
}

bool IsWorse(const Layer& a, const Layer& b) {
  if (a.compared.within != b.compared.within) return !a.compared.within;
  return a.compared.comparison.max_error > b.compared.comparison.max_error;
}

std::string Text(const Layer& layer) {
  return fmt::format("{} \"{}\": {}", layer.op, layer.compared.name,
                     Describe(layer.compared.comparison));
}

}  // namespace

Layers CompareLayers(const Function& source, const std::vector<StepInputs>& source_steps,
                     engine::EngineOptions source_options, const Function& package,
                     const std::vector<StepInputs>& package_steps,
                     engine::EngineOptions package_options, const Budget& budget) {
  MLC_CHECK(source_steps.size() == package_steps.size(), "{} and {} steps", source_steps.size(),
            package_steps.size());
  // The values of one step; a value in a loop has one tensor for each iteration.
  std::unordered_map<std::string, std::vector<Tensor>> reference;
  std::unordered_map<std::string, size_t> seen;
  std::vector<Layer> layers;
  std::unordered_map<std::string, size_t> places;
  std::unordered_set<std::string> others;
  std::unordered_set<const Operation*> masked;
  AddMasked(package.body, masked);
  int64_t step = 0;
  source_options.observe = [&](const Operation& op, std::span<const Tensor> results) {
    for (size_t i = 0; i < results.size(); ++i)
      reference[op.result(static_cast<int>(i))->name].push_back(results[i]);
  };
  package_options.observe = [&](const Operation& op, std::span<const Tensor> results) {
    for (size_t i = 0; i < results.size(); ++i) {
      const std::string& name = op.result(static_cast<int>(i))->name;
      auto it = reference.find(name);
      if (it == reference.end() || others.contains(name)) continue;
      size_t iteration = seen[name]++;
      if (iteration >= it->second.size()) continue;
      Tensor twin = it->second[iteration];
      bool same = WithoutOnes(twin.dims()) == WithoutOnes(results[i].dims()) &&
                  IsFloat(twin.dtype()) == IsFloat(results[i].dtype()) &&
                  twin.dtype() != DType::kString;
      if (same) {
        Tensor value = results[i].Reshaped(twin.dims());
        if (IsFloat(twin.dtype()) && masked.contains(&op)) TakeOutMasked(value, twin);
        Layer layer{std::string(op.def->name),
                    {.function = package.name,
                     .name = name,
                     .step = step,
                     .comparison = Compare(value, twin, budget),
                     .budget = budget}};
        const Comparison& c = layer.compared.comparison;
        layer.compared.tells = c.Tells(budget);
        layer.compared.within = c.Within(budget) || !c.discriminating;
        same = layer.compared.within || !IsReordered(value, twin, budget);
        if (same) {
          auto [place, is_new] = places.emplace(name, layers.size());
          if (is_new)
            layers.push_back(std::move(layer));
          else if (IsWorse(layer, layers[place->second]))
            layers[place->second] = std::move(layer);
        }
      }
      if (!same) others.insert(name);
    }
  };
  engine::Engine source_engine(source, source_options), package_engine(package, package_options);
  engine::States source_states, package_states;
  for (; step < static_cast<int64_t>(source_steps.size()); ++step) {
    reference.clear();
    seen.clear();
    source_engine.Run(source_steps[step], source_states);
    package_engine.Run(package_steps[step], package_states);
  }
  // A value that is permuted in one step is permuted in all of them.
  std::erase_if(layers, [&](const Layer& layer) { return others.contains(layer.compared.name); });
  return {std::move(layers), static_cast<int64_t>(others.size())};
}

std::string LayersText(const Layers& all, size_t most) {
  std::string text = fmt::format("layers: {} values exist in both programs", all.layers.size());
  if (all.others)
    text += fmt::format("; {} more share a name, but have different dimensions or another order",
                        all.others);
  text += "\n";
  auto first =
      std::ranges::find_if(all.layers, [](const Layer& layer) { return !layer.compared.within; });
  if (first != all.layers.end())
    text += fmt::format("first value outside the budget: {}\n", Text(*first));
  else if (!all.layers.empty())
    text += "all values are within the budget\n";
  std::vector<const Layer*> worst;
  for (const Layer& layer : all.layers) worst.push_back(&layer);
  std::ranges::stable_sort(worst, [](const Layer* a, const Layer* b) { return IsWorse(*a, *b); });
  worst.resize(std::min(worst.size(), most));
  if (!worst.empty()) text += fmt::format("worst {} values:\n", worst.size());
  for (const Layer* layer : worst)
    text += fmt::format("{:<4} {}\n", layer->compared.within ? "ok" : "FAIL", Text(*layer));
  return text;
}

std::string LayersJson(const Layers& all) {
  using Json = nlohmann::ordered_json;
  std::vector<Compared> compared;
  for (const Layer& layer : all.layers) compared.push_back(layer.compared);
  Json list = ParseJson(ReportJson(compared));
  for (size_t i = 0; i < list.size(); ++i) {
    list[i].erase("kind");
    list[i]["operator"] = all.layers[i].op;
  }
  return JsonText(list);
}

}  // namespace mlc::verify
