#include "lib/verify/compare.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "lib/support/error.h"

namespace mlc {

Budget ParseBudget(std::string_view name) {
  if (name == "fp32") return {1e-3, 1e-4};
  if (name == "fp16") return {1e-2, 1e-3};
  if (name == "int8") return {5e-2, 5e-3};
  std::ifstream file{std::string(name)};
  if (!file)
    throw Error("bad-name", fmt::format("budget \"{}\" is no known budget and no file", name))
        .Expected("fp32, fp16, int8 or a JSON file with max_error and rmse");
  try {
    nlohmann::json json = nlohmann::json::parse(file);
    return {json.at("max_error").get<double>(), json.at("rmse").get<double>()};
  } catch (const nlohmann::json::exception& e) {
    throw Error("bad-file", fmt::format("budget file: {}", e.what())).At({std::string(name), ""});
  }
}

Comparison Compare(const Tensor& value, const Tensor& reference) {
  Comparison result;
  if (value.size() != reference.size() ||
      (value.dims() != reference.dims() && reference.rank() + value.rank() > 1)) {
    result.mismatch = fmt::format("shape [{}] where the reference has [{}]",
                                  fmt::join(value.dims(), ", "), fmt::join(reference.dims(), ", "));
    result.max_error = result.rmse = std::numeric_limits<double>::infinity();
    result.equal_fraction = 0;
    return result;
  }
  int64_t n = reference.size();
  if (n == 0) return result;
  if (value.dtype() == DType::kString || reference.dtype() == DType::kString) {
    result.exact = true;
    if (value.dtype() != reference.dtype() || value.strings() != reference.strings())
      result.mismatch = "other texts";
    if (!result.mismatch.empty()) result.max_error = result.rmse = INFINITY;
    result.equal_fraction = result.mismatch.empty() ? 1 : 0;
    return result;
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double low = kInfinity, high = -kInfinity, max_abs = 0, max_difference = 0, sum_squares = 0;
  int64_t equal = 0;
  bool distinct = false;
  result.exact = !IsFloat(reference.dtype());
  double first = reference.Double(0);
  for (int64_t i = 0; i < n; ++i) {
    double r = reference.Double(i), v = value.Double(i);
    bool same = result.exact ? reference.Int(i) == value.Int(i)
                             : (r == v || (std::isnan(r) && std::isnan(v)));
    equal += same;
    distinct = distinct || !(r == first || (std::isnan(r) && std::isnan(first)));
    if (std::isfinite(r)) {
      low = std::min(low, r);
      high = std::max(high, r);
      max_abs = std::max(max_abs, std::fabs(r));
    }
    double difference = same                                   ? 0
                        : std::isfinite(r) && std::isfinite(v) ? std::fabs(v - r)
                                                               : kInfinity;
    sum_squares += difference * difference;
    if (difference > max_difference || result.worst_index < 0) {
      max_difference = std::max(difference, max_difference);
      result.worst_index = i;
      result.worst_value = v;
      result.worst_reference = r;
    }
  }
  double scale = std::max({high >= low ? high - low : 0.0, max_abs, 1e-6});
  result.max_error = max_difference / scale;
  result.rmse = std::sqrt(sum_squares / static_cast<double>(n)) / scale;
  result.equal_fraction = static_cast<double>(equal) / static_cast<double>(n);
  result.discriminating = n == 1 || distinct;
  return result;
}

std::string Describe(const Comparison& c) {
  if (!c.mismatch.empty()) return c.mismatch;
  if (c.exact) return fmt::format("{:.2f} % equal", c.equal_fraction * 100);
  return fmt::format("max error {:.2e}, RMSE {:.2e}", c.max_error, c.rmse);
}

bool Comparison::Within(const Budget& budget) const {
  if (!mismatch.empty()) return false;
  if (exact) return equal_fraction == 1;
  return max_error <= budget.max_error && rmse <= budget.rmse;
}

}  // namespace mlc
