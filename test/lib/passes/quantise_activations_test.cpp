#include "lib/passes/quantise_activations.h"

#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "test/catch.h"

namespace mlc::passes {
namespace {

// A convolution, a pooling, a sum and a concatenation with the layer's results, and an output.
constexpr std::string_view kProgram = R"(
func main<ios17>(tensor<fp32, [1, 2, 4, 4]> x) {
  w = const()[val = [[[[1.0]], [[2.0]]], [[[3.0]], [[4.0]]]]];
  a = conv(x = x, weight = w);
  r = relu(x = a);
  b = conv(x = r, weight = w);
  p = max_pool(x = b, kernel_sizes = [1, 1], pad_type = "valid");
  s = add(x = p, y = b);
  c = concat(values = (r, s), axis = 1);
  m = exp(x = c);
  y = conv(x = m, weight = const tensor<fp32, [1, 4, 1, 1]>([[[[1.0]], [[1.0]], [[1.0]], [[1.0]]]]));
} -> (y);
)";

struct Quantised {
  Program program;
  compress::Compression compression;
  std::set<const Value*> weights;
};

const Value* Named(const Program& program, std::string_view name) {
  const Value* found = nullptr;
  ForEachOperation(*program.functions[0], [&](Operation* op) {
    for (const auto& result : op->results)
      if (result->name == name) found = result.get();
  });
  return found;
}

// Quantises the program; values are between those of `ranges`, or 0 and 1.
Quantised Quantise(const std::map<std::string, std::pair<float, float>>& ranges,
                   const std::function<double(const Program&)>& peak = nullptr,
                   int most_evaluations = 100, bool evaluates_observed_kind = true) {
  Quantised made{ParseText(kProgram, "t.mil", Ops())};
  made.compression.evaluates_observed_kind = evaluates_observed_kind;
  made.weights.insert(Named(made.program, "w"));
  made.compression.observe = [&](const Program&, const std::set<const Value*>& values) {
    std::map<const Value*, compress::Histogram> histograms;
    for (const Value* value : values) {
      const auto given = ranges.find(value->name);
      const auto [low, high] = given == ranges.end() ? std::pair(0.F, 1.F) : given->second;
      std::vector<float> all;
      for (int i = 0; i <= 100; ++i)
        all.push_back(low + (high - low) * static_cast<float>(i) / 100);
      histograms[value].Add(all);
    }
    return histograms;
  };
  if (peak) {
    made.compression.evaluate = [peak](const Program& program) {
      return compress::Loss{.peak = peak(program)};
    };
    made.compression.most_evaluations = most_evaluations;
  }
  Diagnostics diagnostics;
  PassContext context{.diagnostics = diagnostics, .target = Opset::kIos17};
  context.compression = &made.compression;
  CHECK(QuantiseActivations(made.program, made.weights, made.compression, context));
  Verify(made.program);
  return made;
}

const compress::ActivationReport* Find(const Quantised& made, std::string_view name) {
  for (const compress::ActivationReport& one : made.compression.activations)
    if (one.name == name) return &one;
  return nullptr;
}

// Whether an operation that uses the value uses it in 8 bits.
bool Is8Bits(const Program& program, std::string_view value) {
  const Value* found = Named(program, value);
  for (const Use& use : found->users.All())
    if (use.operation && use.operation->is("quantize"))
      return (*use.operation->result()->users.begin())->result()->has_uses();
  return false;
}

TEST_CASE("w8a8: layers, and poolings, sums and concatenations of their results") {
  const Quantised made = Quantise({});
  std::vector<std::string> names;
  for (const compress::ActivationReport& one : made.compression.activations)
    names.push_back(one.name);
  // Not the result of conv before its relu, nor what another layer, which is not named, uses.
  CHECK(names == std::vector<std::string>{"x", "r", "b", "p", "s"});
  CHECK(made.compression.activations_left.empty());
}

TEST_CASE("w8a8: one range for a pooling and its input, and for what is concatenated") {
  const Quantised made = Quantise({{"b", {0, 2}}, {"p", {0, 4}}, {"r", {0, 8}}, {"s", {0, 16}}});
  CHECK(Find(made, "b")->scale == Find(made, "p")->scale);
  CHECK(Find(made, "b")->scale == Approx(4 / 255.).epsilon(0.05));
  CHECK(Find(made, "x")->scale == Approx(1 / 255.).epsilon(0.05));
}

TEST_CASE("w8a8: a zero point where values are far from symmetric, and else none") {
  const Quantised made = Quantise({{"x", {-0.3F, 1}}, {"b", {-1, 1}}});
  CHECK(Find(made, "x")->dtype == DType::kUint8);
  CHECK(Find(made, "x")->zero_point > 0);
  CHECK(Find(made, "b")->dtype == DType::kInt8);
  CHECK(Find(made, "b")->zero_point == 0);
  CHECK(Find(made, "r")->dtype == DType::kUint8);
  CHECK(Find(made, "r")->zero_point == 0);
}

TEST_CASE("w8a8: programs are compared on inputs of the kind that was observed, and on no others") {
  for (const bool same_kind : {true, false}) {
    int count = 0;
    Quantise(
        {}, [&](const Program&) { return ++count, 0.01; }, 100, same_kind);
    CHECK((count > 0) == same_kind);
  }
}

TEST_CASE("w8a8: values that lose too much in 8 bits stay as they are") {
  // The loss is that of two values.
  auto peak = [](double of_r, double of_p) {
    return [=](const Program& program) {
      return 0.01 + of_r * Is8Bits(program, "r") + of_p * Is8Bits(program, "p");
    };
  };
  const Quantised made = Quantise({}, peak(0.2, 0));
  CHECK(made.compression.activations_left == std::vector<std::string>{"r"});
  CHECK(made.compression.loss_in_8_bits == Approx(0.21));
  CHECK(!Find(made, "r"));
  CHECK(Find(made, "p"));
  CHECK(!Is8Bits(made.program, "r"));

  // At most a quarter of the values, those that cost most.
  CHECK(Quantise({}, peak(0.2, 0.3)).compression.activations_left == std::vector<std::string>{"p"});
  // A tolerable loss, and one that no value causes.
  CHECK(Quantise({}, peak(0.02, 0)).compression.activations_left.empty());
  CHECK(Quantise({}, [](const Program&) { return 0.5; }).compression.activations_left.empty());

  // Three evaluations for five values reach the last one, s.
  auto last = [](const Program& program) { return 0.01 + 0.2 * Is8Bits(program, "s"); };
  CHECK(Quantise({}, last, 7).compression.activations_left == std::vector<std::string>{"s"});
  CHECK(Quantise({}, last, 4).compression.activations_left.empty());
}

}  // namespace
}  // namespace mlc::passes
