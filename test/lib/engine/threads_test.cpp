// Tests engines that run on several threads at the same time, and encoded weights.
#include <atomic>
#include <thread>

#include "lib/engine/engine.h"
#include "lib/ir/builder.h"
#include "lib/ir/random_tensor.h"
#include "lib/ops/row.h"
#include "lib/verify/compare.h"
#include "test/catch.h"
#include "test/lib/ir/encodings.h"

namespace mlc::test {
using namespace engine;
namespace {

constexpr int64_t kWidth = 96, kRows = 8;

// y = conv(linear(x)) and the sum of all y so far, with int8 and fp32 weights, or with fp32 only.
struct Accumulating {
  Diagnostics diagnostics;
  Program program{&Ops()};
  Function* main = program.Add("main");
  Value* y = nullptr;

  explicit Accumulating(bool expanded = false) {
    FixedDraw draw;
    Tensor matrix = Tensor::Encoded({.dtype = DType::kFp32,
                                     .data = draw.Integers(DType::kInt8, {kWidth, kWidth}),
                                     .scale = draw.Scales({kWidth, 1})});
    if (expanded) {
      Pin<float> values = matrix.data<float>();
      matrix = Tensor::Of<float>({kWidth, kWidth}, {values.begin(), values.end()});
    }
    Type type = Type::Tensor(DType::kFp32, {Dim(kRows), Dim(kWidth)});
    Value* state = main->AddInput("sum", Type::State(type));
    Value* x = main->AddInput("x", type);
    Builder b{main->body, diagnostics};
    Value* wide = b.Make("linear", {{"x", x}, {"weight", matrix}});
    Value* image =
        b.Make("reshape", {{"x", wide}, {"shape", Tensor::Vector<int32_t>({1, kRows, kWidth})}});
    Value* filtered = b.Make("conv", {{"x", image},
                                      {"weight", draw.Floats({kRows, kRows, 3})},
                                      {"pad_type", Tensor::String("same")}});
    Value* flat =
        b.Make("reshape", {{"x", filtered}, {"shape", Tensor::Vector<int32_t>({kRows, kWidth})}});
    Value* before = b.Make("read_state", {{"input", state}});
    y = b.Make("add", {{"x", flat}, {"y", before}});
    b.MakeAll("write_state", {{"input", state}, {"data", y}});
    main->body.SetOutputs({y});
  }

  // Returns the last output and the state of several consecutive runs.
  std::pair<Tensor, Tensor> Run(const Engine& engine, int64_t seed) const {
    States states;
    std::map<std::string, Tensor> outputs;
    for (int64_t i = 0; i < 10; ++i)
      outputs = engine.Run({{"x", RandomTensor(DType::kFp32, {kRows, kWidth}, seed, i)}}, states);
    return {outputs.at(y->name), states.at("sum")};
  }
};

TEST_CASE("several threads can run engines of one program, and one engine with several states") {
  Accumulating f;
  EngineOptions options{.threads = 2, .weights = std::make_shared<PreparedWeights>()};
  Engine first(*f.main, options), second(*f.main, options);
  std::vector<std::pair<Tensor, Tensor>> expected, results(6);
  for (size_t i = 0; i < results.size(); ++i)
    expected.push_back(f.Run(Engine(*f.main, {.threads = 2}), static_cast<int64_t>(i)));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < results.size(); ++i)
    threads.emplace_back(
        [&, i] { results[i] = f.Run(i % 3 ? first : second, static_cast<int64_t>(i)); });
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < results.size(); ++i) {
    CHECK(results[i].first.SameBytes(expected[i].first));
    CHECK(results[i].second.SameBytes(expected[i].second));
  }
}

TEST_CASE("encoded weights give the same results as expanded ones") {
  Accumulating held, expanded(true);
  for (auto kernels : {EngineOptions::Kernels::kFast, EngineOptions::Kernels::kReproducible}) {
    Tensor result = held.Run(Engine(*held.main, {.kernels = kernels}), 1).first,
           expected = expanded.Run(Engine(*expanded.main, {.kernels = kernels}), 1).first;
    CHECK(verify::Compare(result, expected).Within({2e-6, 2e-6}));
    if (kernels == EngineOptions::Kernels::kReproducible) CHECK(result.SameBytes(expected));
  }
}

}  // namespace
}  // namespace mlc::test
