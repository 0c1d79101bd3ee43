#include "lib/gradients/gradients.h"

#include "lib/engine/engine.h"
#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "test/catch.h"

using namespace mlc;
using namespace mlc::gradients;

namespace {

Tensor Numbers(const Dims& dims, int seed) {
  std::vector<float> numbers(static_cast<size_t>(ElementCount(dims)));
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<float>((static_cast<int>(i) * 37 + seed * 17 + 5) % 29 - 14) / 11.0F;
  return Tensor::Of(dims, numbers);
}

const Value* ConstantNamed(Program& program, std::string_view name) {
  const Value* found = nullptr;
  ForEachOperation(*program.main(), [&](Operation* op) {
    if (op->def->is_const() && op->result()->name == name) found = op->result();
  });
  REQUIRE(found);
  return found;
}

// The gradient of each element of the weights is the slope of the loss that the same program
// computes, by central differences.
void CheckSlopes(const std::string& body, const std::map<std::string, Tensor>& inputs,
                 const std::vector<std::string>& weights, bool logits = false) {
  INFO(body);
  Program program = ParseText(body, "test.mil", Ops());
  Diagnostics diagnostics;
  Request request{.function = *program.main(), .outputs = {"y"}};
  if (logits) request.logits = {"y"};
  for (const auto& [name, tensor] : inputs) request.input_dims[name] = tensor.dims();
  for (const std::string& name : weights) request.weights.push_back(ConstantNamed(program, name));
  const Differentiated made = Differentiate(request, diagnostics);
  Verify(made.program);
  std::map<std::string, Tensor> given = inputs;
  const Value* y = program.main()->body.outputs()[0];
  const auto& reference = made.references.at("y");
  Dims dims;
  for (const auto& input : made.program.functions[0]->body.inputs)
    if (input->name == reference.reference) dims = StaticDims(input->type.shape);
  REQUIRE(y->name == "y");
  given[reference.reference] = Numbers(dims, 3);
  if (!reference.importance.empty()) given[reference.importance] = Tensor::Scalar<float>(0.7F);
  for (size_t i = 0; i < weights.size(); ++i)
    given[made.weights[i]] = request.weights[i]->constant();
  const engine::Engine engine(*made.program.functions[0]);
  auto loss = [&] { return engine.Run(given).at(made.loss).Doubles()[0]; };
  const auto results = engine.Run(given);
  for (size_t i = 0; i < weights.size(); ++i) {
    const Tensor weight = request.weights[i]->constant();
    const std::vector<double> slopes = results.at(made.gradients[i]).Doubles();
    REQUIRE(results.at(made.gradients[i]).dims() == weight.dims());
    std::vector<double> at = weight.Doubles();
    double greatest = 0;
    for (const double slope : slopes) greatest = std::max(greatest, std::fabs(slope));
    CHECK(greatest > 0);
    for (size_t k = 0; k < at.size(); ++k) {
      constexpr double kStep = 1.0 / 64;
      auto moved = [&](double by) {
        std::vector<float> numbers(at.begin(), at.end());
        numbers[k] += static_cast<float>(by);
        given[made.weights[i]] = Tensor::Of(weight.dims(), numbers);
        return loss();
      };
      // Differences of two steps, of which the errors of third order cancel.
      const double far = (moved(kStep) - moved(-kStep)) / (2 * kStep),
                   near = (moved(kStep / 2) - moved(-kStep / 2)) / kStep;
      INFO(weights[i] << "[" << k << "]");
      CHECK((4 * near - far) / 3 == Approx(slopes[k]).margin(3e-3 * greatest));
    }
    given[made.weights[i]] = weight;
  }
}

std::string Weight(const std::string& name, const std::string& dims) {
  Dims sizes;
  for (size_t at = 0; at < dims.size(); at += 3) sizes.push_back(dims[at] - '0');
  const std::vector<double> numbers =
      Numbers(sizes, static_cast<int>(name.size() + dims.size())).Doubles();
  std::string text = "  " + name + " = const()[val = tensor<fp32, [" + dims + "]>(";
  size_t next = 0;
  auto write = [&](auto self, size_t d) -> void {
    if (d == sizes.size()) {
      text += fmt::format("{:.6f}", numbers[next++]);
      return;
    }
    text += "[";
    for (int64_t i = 0; i < sizes[d]; ++i) {
      if (i > 0) text += ", ";
      self(self, d + 1);
    }
    text += "]";
  };
  write(write, 0);
  return text + ")];\n";
}

}  // namespace

TEST_CASE("gradients are the slopes of the loss") {
  const std::map<std::string, Tensor> x = {{"x", Numbers({2, 3, 4}, 1)}};
  const std::string head = "func main<ios18>(tensor<fp32, [2, 3, 4]> x) {\n", tail = "} -> (y);";
  auto check = [&](const std::string& weights, const std::string& body,
                   const std::vector<std::string>& names, bool logits = false) {
    CheckSlopes(head + weights + body + tail, x, names, logits);
  };
  const std::string w = Weight("w", "5, 4"), v = Weight("v", "4"), s = Weight("ss", "3, 1");
  check(w, "  y = linear(x = x, weight = w);\n", {"w"});
  check(w + v, "  a = mul(x = x, y = v); y = linear(x = a, weight = w);\n", {"v", "w"});
  check(w, "  y = linear(x = x, weight = w);\n", {"w"}, true);
  check(w, "  y = matmul(x = w, y = x, transpose_y = true);\n", {"w"});
  check(Weight("w", "4, 5"), "  y = matmul(x = x, y = w);\n", {"w"});
  check(Weight("w", "4, 5"),
        "  t = transpose(x = x, perm = [0, 2, 1]); y = matmul(x = t, y = w, transpose_x = true);\n",
        {"w"});
  check(Weight("w", "3, 5"), "  y = matmul(x = w, y = x, transpose_x = true);\n", {"w"});
  check(v + s, "  a = add(x = x, y = v); b = sub(x = a, y = ss); y = mul(x = b, y = x);\n",
        {"v", "ss"});
  check(v, "  a = square(x = v); b = add(x = a, y = 1.0); y = real_div(x = x, y = b);\n", {"v"});
  for (const char* op : {"sigmoid", "silu", "tanh", "exp", "square"})
    check(v, fmt::format("  a = mul(x = x, y = v); y = {}(x = a);\n", op), {"v"});
  for (const char* op : {"sqrt", "rsqrt"})
    check(
        v,
        fmt::format(
            "  a = mul(x = x, y = v); b = square(x = a); c = add(x = b, y = 0.5); y = {}(x = c);\n",
            op),
        {"v"});
  check(v,
        "  a = add(x = v, y = x); b = add(x = a, y = 0.031); c = relu(x = b); y = mul(x = c, y = "
        "x);\n",
        {"v"});
  check(v, "  a = mul(x = x, y = v); y = softmax(x = a, axis = 1);\n", {"v"});
  check(v, "  a = mul(x = x, y = v); y = reduce_mean(x = a, axes = [0, -1], keep_dims = false);\n",
        {"v"});
  check(v,
        "  a = mul(x = x, y = v); y = layer_norm(x = a, axes = [-1], gamma = [0.5, 2.0, -1.0, 1.5],"
        " beta = [1.0, 0.0, 2.0, 0.5], epsilon = 0.01);\n",
        {"v"});
  check(v, "  a = mul(x = x, y = v); y = layer_norm(x = a, axes = [1, 2]);\n", {"v"});
  check(v,
        "  a = mul(x = x, y = v); b = square(x = a); y = reduce_sum(x = b, axes = [1], keep_dims = "
        "true);\n",
        {"v"});
  check(v,
        "  a = mul(x = x, y = v); c, d = split(x = a, axis = 2, num_splits = 2); e = mul(x = c, y "
        "= 3.0);"
        " y = concat(values = (e, d, c), axis = 1);\n",
        {"v"});
  check(v,
        "  a = mul(x = x, y = v); c, d = split(x = a, axis = -1, split_sizes = [1, 3]); y = "
        "square(x = d);\n",
        {"v"});
  check(v,
        "  a = mul(x = x, y = v); y = slice_by_index(x = a, begin = [0, 1, -3], end = [1, 0, 4], "
        "end_mask = [false, true, false],"
        " squeeze_mask = [true, false, false]);\n",
        {"v"});
  check(v,
        "  a = mul(x = x, y = v); u = slice_by_index(x = a, begin = [0, 0, 0], end = [2, 1, 4]);"
        " y = slice_update(x = a, update = u, begin = [0, 2, 0], end = [2, 3, 4]);\n",
        {"v"});
  check(v,
        "  c = greater(x = x, y = 0.1); a = mul(x = x, y = v); b = square(x = a); y = select(cond "
        "= c, a = a, b = b);\n",
        {"v"});
  check(v,
        "  a = mul(x = x, y = v); e = expand_dims(x = a, axes = [1]); r = reshape(x = e, shape = "
        "[6, 1, 4]);"
        " q = squeeze(x = r, axes = [1]); y = mul(x = q, y = q);\n",
        {"v"});
}

TEST_CASE("gradients of tables, states and sizes that the inputs have") {
  const std::string table = Weight("table", "6, 3");
  const std::map<std::string, Tensor> ids = {{"ids", Tensor::Of<int32_t>({1, 4}, {2, 0, 5, 2})}};
  // A tied table: rows are looked up, and multiplied by.
  CheckSlopes("[symbols = {n in 1..8}]\nfunc main<ios18>(tensor<int32, [1, n]> ids) {\n" + table +
                  "  g = gather(x = table, indices = ids, axis = 0); h = silu(x = g);"
                  " y = linear(x = h, weight = table);\n} -> (y);",
              ids, {"table"}, true);
  // What is written to a state is read later; before, it is zero.
  CheckSlopes("func main<ios18>(tensor<fp16, [1, 3]> x, state<tensor<fp16, [2, 3]>> s) {\n" +
                  Weight("v", "3") +
                  "  v16 = cast(x = v, dtype = \"fp16\"); a = mul(x = x, y = v16); r = "
                  "read_state(input = s);"
                  " u = slice_update(x = r, update = a, begin = [1, 0], end = [2, 3]); "
                  "write_state(input = s, data = u);"
                  " t = read_state(input = s); b = square(x = t); y = cast(x = b, dtype = "
                  "\"fp32\");\n} -> (y);",
              {{"x", Numbers({1, 3}, 2)}}, {"v"});
}

TEST_CASE("operators without a derivative are named") {
  Program program = ParseText(
      "func main<ios18>(tensor<fp32, [2]> x) {\n  v = const()[val = tensor<fp32, [2]>([1.0, 2.0])];"
      "  a = mul(x = x, y = v); b = cumsum(x = a); y = erf(x = b);\n} -> (y);",
      "test.mil", Ops());
  Diagnostics diagnostics;
  const Request request{
      .function = *program.main(), .weights = {ConstantNamed(program, "v")}, .outputs = {"y"}};
  CHECK_THROWS_WITH(Differentiate(request, diagnostics), ContainsSubstring("cumsum, erf"));
  // Uses of an operator that its derivative does not cover.
  for (const auto& [use, op] : std::map<std::string, std::string>{
           {"y = slice_by_index(x = a, begin = [0], end = [4], stride = [2]);", "slice_by_index"},
           {"y = gather(x = a, indices = [0, 1], axis = -1);", "gather"},
           {"b = concat(values = (a, a), axis = 0, interleave = true); y = tanh(x = b);",
            "concat"}}) {
    Program other = ParseText(
        "func main<ios18>(tensor<fp32, [4]> x) {\n  v = const()[val = tensor<fp32, [4]>([1.0, 2.0, "
        "3.0, 4.0])];"
        "  a = mul(x = x, y = v); " +
            use + "\n} -> (y);",
        "test.mil", Ops());
    CHECK_THROWS_WITH(
        Differentiate(
            {.function = *other.main(), .weights = {ConstantNamed(other, "v")}, .outputs = {"y"}},
            diagnostics),
        ContainsSubstring("no derivative of " + op));
  }
}
