#include "lib/passes/equalise_channels.h"

#include <random>

#include "lib/engine/engine.h"
#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "lib/passes/pass.h"
#include "test/catch.h"

namespace mlc::passes {
namespace {

std::vector<float> Normal(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}

// A program whose constants are drawn. The channels that v, b and gamma make have sizes from 1 / 32 to
// 1, and what w and u multiply them by has sizes from 32 to 1, so that both become alike.
struct Case {
  explicit Case(std::string_view text) : program(ParseText(text, "t.mil", Ops())) {
    unsigned seed = 0;
    ForEachOperation(*program.functions[0], [&](Operation* op) {
      if (!op->def->is_const() || op->val.dtype() != DType::kFp32 || op->val.rank() == 0) return;
      std::vector<float> values = Normal(op->val.size(), ++seed);
      const std::string& name = op->result()->name;
      const Dims& dims = op->val.dims();
      const int64_t row = op->val.size() / dims[0], kernel = dims.size() > 1 ? row / dims[1] : 1;
      for (int64_t i = 0; i < std::ssize(values); ++i) {
        if (name == "w" || name == "u")
          values[i] *= static_cast<float>(1 << i % row / kernel % 6);
        else
          values[i] /= static_cast<float>(1 << i / row % 6);
      }
      op->val = Tensor::Of(dims, values);
    });
    collected = CollectCandidates(program);
    for (const auto& candidate : collected)
      if (candidate->subject.weight) {
        candidate->scheme = compress::ParseScheme("pal3");
        candidates.push_back(candidate.get());
      }
  }

  // Measures each weight on drawn inputs.
  void Measure() {
    for (Candidate* candidate : candidates) {
      const Tensor& tensor = candidate->tensor;
      const Tensor groups = candidate->values[0]->users.front()->is("conv")
                                ? candidate->values[0]->users.front()->constant_or_default("groups")
                                : Tensor();
      const int64_t sets = groups ? groups.Ints()[0] : 1,
                    columns = tensor.size() / tensor.dims()[0];
      compress::InputSums sums(sets, columns, true);
      for (int64_t set = 0; set < sets; ++set) {
        sums.Add(set, Normal(64 * columns, static_cast<unsigned>(set)), 1);
      }
      candidate->inputs = sums.Means();
    }
  }

  // Returns the outputs before and after, and how many weights were changed.
  int Run(std::vector<double>& before, std::vector<double>& after) {
    before = Outputs();
    EqualiseChannels(candidates,
                     [](Candidate& candidate, const compress::Scheme& scheme, int threads) {
                       compress::Request request{.scheme = scheme,
                                                 .axes = *candidate.axes,
                                                 .half = false,
                                                 .inputs = &candidate.inputs,
                                                 .threads = threads};
                       return compress::Quantise(candidate.tensor, request);
                     });
    Verify(program);
    after = Outputs();
    int changed = 0;
    for (const Candidate* candidate : candidates) {
      changed += candidate->report.equalised;
      CHECK(candidate->tensor.Doubles() == candidate->values[0]->constant().Doubles());
    }
    return changed;
  }

  std::vector<double> Outputs() const {
    const Function& main = *program.functions[0];
    std::map<std::string, Tensor> inputs;
    for (const auto& input : main.body.inputs) {
      Dims dims;
      for (const Dim& dim : input->type.shape) dims.push_back(dim.constant());
      inputs[input->name] = Tensor::Of(dims, Normal(ElementCount(dims), 99));
    }
    std::vector<double> all;
    for (const auto& [name, output] :
         engine::Execute(program, inputs,
                         {.arithmetic = engine::EngineOptions::Arithmetic::kExact,
                         .threads = 1,
                         .kernels = engine::EngineOptions::Kernels::kReproducible})) {
      const std::vector<double> values = output.Doubles();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  Program program;
  std::vector<std::unique_ptr<Candidate>> collected;
  std::vector<Candidate*> candidates;
};

constexpr std::string_view kConvolutions = R"(
func main<ios17>(tensor<fp32, [1, 4, 6, 6]> x) {
  v = const()[val = tensor<fp32, [12, 4, 3, 3]>(fill(0))];
  b = const()[val = tensor<fp32, [12]>(fill(0))];
  w = const()[val = tensor<fp32, [8, 6, 3, 3]>(fill(0))];
  a = conv(x = x, weight = v, bias = b);
  r = leaky_relu(x = a, alpha = const fp32(0.1));
  p = max_pool(x = r, kernel_sizes = [2, 2], strides = [1, 1], pad_type = "valid");
  y = conv(x = p, weight = w, groups = const int32(2));
} -> (y);
)";

constexpr std::string_view kNorm = R"(
func main<ios17>(tensor<fp32, [3, 16]> x) {
  gamma = const()[val = tensor<fp32, [16]>(fill(0))];
  beta = const()[val = tensor<fp32, [16]>(fill(0))];
  w = const()[val = tensor<fp32, [8, 16]>(fill(0))];
  u = const()[val = tensor<fp32, [6, 16]>(fill(0))];
  n = layer_norm(x = x, axes = [1], gamma = gamma, beta = beta);
  y = linear(x = n, weight = w);
  z = linear(x = n, weight = u);
  o = concat(values = (y, z), axis = const int32(1));
} -> (o);
)";

// The mean of [x, -x] is 0, so that its normalisation is that of the root mean square.
constexpr std::string_view kRootMeanSquare = R"(
func main<ios17>(tensor<fp32, [3, 16]> x) {
  gamma = const()[val = tensor<fp32, [32]>(fill(0))];
  w = const()[val = tensor<fp32, [8, 16]>(fill(0))];
  m = mul(x = x, y = const fp32(-1));
  c = concat(values = (x, m), axis = const int32(1));
  n = layer_norm(x = c, axes = [1], gamma = gamma);
  h = slice_by_index(x = n, begin = [0, 0], end = [3, 16]);
  y = linear(x = h, weight = w);
} -> (y);
)";

constexpr std::string_view kGate = R"(
func main<ios17>(tensor<fp32, [3, 16]> x) {
  v = const()[val = tensor<fp32, [12, 16]>(fill(0))];
  b = const()[val = tensor<fp32, [12]>(fill(0))];
  w = const()[val = tensor<fp32, [8, 12]>(fill(0))];
  s = sigmoid(x = const tensor<fp32, [3, 12]>(fill(0.5)));
  up = linear(x = x, weight = v, bias = b);
  g = mul(x = s, y = up);
  y = linear(x = g, weight = w);
} -> (y);
)";

// Returns the text with a part replaced.
std::string With(std::string_view text, std::string_view part, std::string_view by) {
  std::string changed(text);
  const size_t at = changed.find(part);
  REQUIRE(at != std::string::npos);
  return changed.replace(at, part.size(), by);
}

}  // namespace

TEST_CASE("equalise: layers and normalisations before layers; outputs do not change") {
  constexpr std::string_view kActivation = "leaky_relu(x = a, alpha = const fp32(0.1))";
  const std::pair<std::string, int> cases[] = {
      {std::string(kConvolutions), 2},
      {std::string(kNorm), 2},
      {std::string(kRootMeanSquare), 1},
      {std::string(kGate), 2},
      // Every operator with the trait.
      {With(kConvolutions, kActivation, "relu(x = a)"), 2},
      {With(kConvolutions, kActivation,
            "prelu(x = a, alpha = const tensor<fp32, [12]>(fill(0.25)))"),
       2},
      {With(kConvolutions, "max_pool", "avg_pool"), 2},
  };
  for (const auto& [text, weights] : cases) {
    Case made(text);
    made.Measure();
    std::vector<double> before, after;
    INFO(text);
    CHECK(made.Run(before, after) == weights);
    CHECK(before == after);  // factors are powers of two
  }
}

TEST_CASE("equalise: must not fire") {
  const std::string cases[] = {
      // relu6 is not homogeneous.
      With(kConvolutions, "leaky_relu(x = a, alpha = const fp32(0.1))", "relu6(x = a)"),
      // Another operation uses y, or the value before it.
      With(kConvolutions, "-> (y)", "-> (y, p)"),
      With(kConvolutions, "-> (y)", "-> (y, a)"),
      // A sum has channels of two origins.
      With(kGate, "mul(x = s", "add(x = s"),
      // The weight and the bias are used twice.
      With(kNorm, "weight = u", "weight = w"),
      With(kGate, "s = sigmoid(x = const tensor<fp32, [3, 12]>(fill(0.5)))",
           "s = add(x = b, y = const tensor<fp32, [3, 12]>(fill(0.5)))"),
  };
  for (const std::string& text : cases) {
    INFO(text);
    Case made(text);
    made.Measure();
    std::vector<double> before, after;
    CHECK(made.Run(before, after) == 0);
    CHECK(before == after);
  }
}

TEST_CASE("equalise: nothing without measured inputs") {
  Case made(kConvolutions);
  std::vector<double> before, after;
  CHECK(made.Run(before, after) == 0);
}

TEST_CASE("equalise: nothing if activations are in 8 bits") {
  Case made(kConvolutions);
  made.Measure();
  for (Candidate* candidate : made.candidates) candidate->scheme = compress::ParseScheme("w8a8");
  std::vector<double> before, after;
  CHECK(made.Run(before, after) == 0);
}

TEST_CASE("equalise: statistics that know the weights as they were are measured once, and used") {
  for (const int measures : {1, 4}) {
    Case made(kConvolutions);
    made.Measure();
    // As from a file of statistics, if there is one call: nothing is known of changed weights.
    std::map<std::string, std::vector<double>> originals;
    for (const Candidate* candidate : made.candidates)
      originals[candidate->report.name] = candidate->tensor.Doubles();
    compress::Compression compression{.rules = compress::ParseRules("v=pal3;w=pal3")};
    compression.most_measures = measures;
    int unknown = 0;
    compression.measure = [&](const Program&, const std::set<const Value*>& weights) {
      std::map<const Value*, compress::InputSums> sums;
      for (const Value* weight : weights) {
        if (measures == 1 && weight->constant().Doubles() != originals.at(weight->name)) {
          ++unknown;
          continue;
        }
        const Tensor& tensor = weight->constant();
        const int64_t sets = weight->name == "w" ? 2 : 1,
                      columns = tensor.size() / tensor.dims()[0];
        compress::InputSums& sum = sums[weight] = compress::InputSums(sets, columns, true);
        for (int64_t set = 0; set < sets; ++set)
          sum.Add(set, Normal(64 * columns, static_cast<unsigned>(set)), 1);
      }
      return sums;
    };
    Diagnostics diagnostics;
    PassContext context{.diagnostics = diagnostics, .target = Opset::kIos18};
    context.compression = &compression;
    RunPasses(made.program, {&kCompress}, context);
    INFO(measures << " measures");
    CHECK(unknown == 0);
    int equalised = 0;
    for (const compress::WeightReport& weight : compression.weights) {
      if (!weight.weight) continue;
      equalised += weight.equalised;
      CHECK(weight.output_energy > 0);
    }
    CHECK(equalised == 2);
  }
}

}  // namespace mlc::passes
