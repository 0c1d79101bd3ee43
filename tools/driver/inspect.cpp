#include "tools/driver/inspect.h"

#include <algorithm>

#include "lib/analysis/fp16_share.h"
#include "lib/coreml/mlmodelc_layout.h"
#include "lib/ir/text.h"
#include "lib/passes/pass.h"

namespace mlc::driver {

InspectResult Inspect(const std::filesystem::path& model, const InspectOptions& options,
                      Diagnostics& diagnostics) {
  const Frontend& frontend = FrontendOf(model);
  auto program = std::make_shared<Program>(Import(model, options.import, diagnostics));
  InspectResult result{&frontend, program, program->main()->opset, {}, {}, 0, 0, {}, {}, 0};
  if (options.text)
    result.text = frontend.IsSource()
                      ? PrintText(*program, {.inline_limit = 4, .max_elements = 32}) + "\n"
                      : coreml::BundleText(*program, ModelFolder(model), options.versions.compiler,
                                           options.versions.mil);
  for (const auto& function : program->functions)
    result.needed = std::max(result.needed, function->opset);
  result.weights = analysis::WeightsOf(*program);
  for (const analysis::Weight& weight : result.weights) {
    result.weight_elements += weight.elements();
    result.weight_bytes += weight.bytes;
    for (const Tensor& part : weight.parts)
      result.weight_bytes_by_dtype[std::string(Name(part.dtype()))] += part.byte_size();
  }
  result.operators = passes::Histogram(*program);
  result.fp16_share = analysis::Fp16ShareOf(*program).share();
  return result;
}

std::map<std::string, int64_t> OperatorsOf(Function& function) {
  std::map<std::string, int64_t> counts;
  ForEachOperation(function, [&](Operation* op) {
    if (!op->def->is_const()) ++counts[std::string(op->def->name)];
  });
  return counts;
}

std::vector<std::pair<std::string, std::string>> Texts(const Interface& interface) {
  std::vector<std::pair<std::string, std::string>> texts = {
      {"author", interface.author},
      {"license", interface.license},
      {"description", interface.short_description},
      {"version", interface.version}};
  std::erase_if(texts, [](const auto& text) { return text.second.empty(); });
  return texts;
}

double BitsOf(uint64_t bytes, int64_t elements) {
  return elements == 0 ? 0 : 8 * static_cast<double>(bytes) / static_cast<double>(elements);
}

}  // namespace mlc::driver
