#include "lib/compress/requant.h"

#include <fmt/ranges.h>

#include "lib/compress/quantisers.h"
#include "lib/ir/import_options.h"

namespace mlc::compress {

namespace {

constexpr int64_t kLeastElements =
    2048;  // same limit as for encoded constants (encoded_constants.cpp)

Tensor Requantised(const Quantiser& quantiser, const Tensor& weights, const std::string& name,
                   Diagnostics& diagnostics) {
  if (weights.rank() < 2 || !IsFloat(weights.dtype())) return weights;
  if (weights.size() < kLeastElements) {
    diagnostics.Decide("requant", name,
                       fmt::format("not quantised: fewer than {} elements", kLeastElements));
    return weights;
  }
  Tensor made = quantiser.apply(weights);
  if (made.encoding())
    diagnostics.Decide("requant", name,
                       fmt::format("quantised to {}, {}: relative error {:.1e}", quantiser.name,
                                   quantiser.what, RelativeError(made, weights)));
  else if (weights.encoding())
    diagnostics.Decide("requant", name, "decoded");
  return made;
}

}  // namespace

std::function<Tensor(const Tensor&, const std::string&)> Requantising(const ImportOptions& options,
                                                                      Diagnostics& diagnostics) {
  if (options.requant.empty()) return {};
  const Quantiser* quantiser = FindQuantiser(options.requant);
  if (!quantiser) {
    std::vector<std::string_view> names;
    for (const Quantiser& row : Quantisers()) names.push_back(row.name);
    throw Error("usage", "option 'requant': unknown quantiser \"{}\"", options.requant)
        .Expected("{}", fmt::join(names, ", "));
  }
  if (options.target && *options.target < quantiser->since)
    throw Error("target-too-old", "option 'requant' {}: not supported on {}", quantiser->name,
                TargetName(*options.target))
        .Expected("{} or later", TargetName(quantiser->since));
  return [quantiser, &diagnostics](const Tensor& weights, const std::string& name) {
    return Requantised(*quantiser, weights, name, diagnostics);
  };
}

}  // namespace mlc::compress
