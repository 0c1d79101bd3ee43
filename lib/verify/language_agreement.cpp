#include "lib/verify/language_agreement.h"

#include <algorithm>
#include <cmath>

namespace mlc::verify {

namespace {

// log(sum(exp(x)))
double LogSum(const std::vector<double>& x) {
  double most = *std::ranges::max_element(x), sum = 0;
  for (double each : x) sum += std::exp(each - most);
  return most + std::log(sum);
}

double Divergence(const std::vector<double>& value, const std::vector<double>& reference) {
  double from = LogSum(reference), to = LogSum(value), sum = 0;
  for (size_t i = 0; i < value.size(); ++i) {
    double likely = reference[i] - from;
    sum += std::exp(likely) * (likely - (value[i] - to));
  }
  return sum;
}

}  // namespace

LanguageFigures CompareLogits(const Tensor& value, const Tensor& reference) {
  LanguageFigures figures;
  figures.tokens = reference.dims()[0];
  std::vector<LanguageFigures::Other> others;
  double squares = 0;
  for (int64_t position = 0; position < figures.tokens; ++position) {
    std::vector<double> own = value.Rows(position, position + 1).Doubles(),
                        given = reference.Rows(position, position + 1).Doubles();
    for (size_t i = 0; i < own.size(); ++i) squares += (own[i] - given[i]) * (own[i] - given[i]);
    double divergence = Divergence(own, given);
    figures.mean_divergence += divergence / static_cast<double>(figures.tokens);
    figures.max_divergence = std::max(figures.max_divergence, divergence);
    auto most = [](const std::vector<double>& x) {
      return std::ranges::max_element(x) - x.begin();
    };
    int64_t token = most(own), expected = most(given);
    if (token == expected)
      ++figures.equal;
    else
      others.push_back({position, token, expected, given[expected] - given[token]});
  }
  figures.error = std::sqrt(squares / static_cast<double>(reference.size()));
  for (const LanguageFigures::Other& other : others)
    (std::isfinite(figures.error) && other.gap < kErrors * figures.error ? figures.close
                                                                         : figures.wrong)
        .push_back(other);
  return figures;
}

}  // namespace mlc::verify
