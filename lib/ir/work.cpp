#include "lib/ir/work.h"

#include <algorithm>

namespace mlc {

double WorkPerElement(const OpContext& context) {
  auto elements = [&](std::string_view param, int i, size_t from) {
    double product = 1;
    const Shape& shape = context.shape(param, i);
    for (size_t d = from; d < shape.size(); ++d)
      product *= static_cast<double>(shape[d].is_constant() ? shape[d].constant() : 1);
    return product;
  };
  std::string_view op = context.def().name;
  if (op == "matmul") {
    // The summed dimension: y's last when y is transposed, else the one before.
    const Shape& y = context.shape("y");
    size_t back = context.Bool("transpose_y") || y.size() < 2 ? 1 : 2;
    return y.empty() ? 1
                     : static_cast<double>(
                           y[y.size() - back].is_constant() ? y[y.size() - back].constant() : 1);
  }
  if (op == "linear" || op == "conv" || op == "conv_transpose") return elements("weight", 0, 1);
  if (op == "lstm" || op == "gru" || op == "rnn") {  // each step, even where only the last counts
    const Dim& steps = context.shape("x")[0];
    return static_cast<double>(steps.is_constant() ? steps.constant() : 1) * 4 *
           (elements("weight_ih", 0, 1) + elements("weight_hh", 0, 1));
  }
  if (op == "einsum")
    return std::max(elements("values", 0, 0), elements("values", context.count("values") - 1, 0));
  return 1;
}

}  // namespace mlc
