#include "lib/engine/engine.h"

#include <dlfcn.h>

#include <cstdlib>
#include <thread>

#include "lib/ir/builder.h"
#include "lib/ir/random_tensor.h"
#include "lib/ops/row.h"
#include "lib/verify/compare.h"
#include "test/catch.h"

namespace mlc::engine {
namespace {

using Arithmetic = EngineOptions::Arithmetic;

Tensor F32(Dims dims, const std::vector<float>& values) {
  return Tensor::Of(std::move(dims), values);
}
Tensor F16(Dims dims, const std::vector<double>& values) {
  return Tensor::Of(std::move(dims), values).Cast(DType::kFp16);
}

// A program with one input `x` and one output.
struct Fixture {
  Diagnostics diagnostics;
  Program program{&Ops()};
  Function* main = program.Add("main");
  Value* x = nullptr;
  Builder b{main->body, diagnostics};
  explicit Fixture(Type type) { x = main->AddInput("x", std::move(type)); }
  Tensor Run(Tensor input, const EngineOptions& options = {}) {
    return Execute(program, {{"x", std::move(input)}}, options).at(main->body.outputs()[0]->name);
  }
};

TEST_CASE("operations run in order and accept literals") {
  Fixture f(Type::Tensor(DType::kFp32, {2, 3}));
  Value* y = f.b.Make("mul", {{"x", f.x}, {"y", 2.0}});
  f.main->body.SetOutputs({f.b.Make("relu", {{"x", f.b.Make("add", {{"x", y}, {"y", -4.0}})}})});
  // Calculated by hand.
  CHECK(f.Run(F32({2, 3}, {0, 1, 2, 3, 4, 5})).Doubles() == std::vector<double>{0, 0, 0, 2, 4, 6});
  EngineOptions plain;
  plain.kernels = EngineOptions::Kernels::kEval;
  CHECK(f.Run(F32({2, 3}, {0, 1, 2, 3, 4, 5}), plain).Doubles() ==
        std::vector<double>{0, 0, 0, 2, 4, 6});
}

// Convolutions return channels-last images; other operations, observers and callers see them in
// row-major order.
TEST_CASE("image layouts are not visible outside a run") {
  Fixture f(Type::Tensor(DType::kFp32, {1, 3, 40, 50}));
  auto weight = [](Dims dims) { return RandomTensor(DType::kFp32, std::move(dims), 0, 1); };
  Value* y =
      f.b.Make("conv", {{"x", f.x}, {"weight", weight({17, 3, 3, 3})}, {"pad_type", "same"}});
  Value* z = f.b.Make("relu", {{"x", y}});
  Value* both = f.b.Make("concat", {{"values", std::vector<Value*>{y, z}}, {"axis", 1}});
  Value* moved = f.b.Make("reshape", {{"x", both}, {"shape", mlc::Ints({2, 17, 2000})}});
  Value* sum = f.b.Make("conv", {{"x", both}, {"weight", weight({8, 34, 1, 1})}});
  f.main->body.SetOutputs({z, moved, sum});
  std::map<std::string, Tensor> inputs{{"x", RandomTensor(DType::kFp32, {1, 3, 40, 50}, 0, 0)}};
  auto expected = Execute(f.program, inputs, {.kernels = EngineOptions::Kernels::kEval});
  std::map<const Operation*, Tensor> seen;
  EngineOptions watched{.observe = [&](const Operation& op, std::span<const Tensor> results) {
    CHECK_FALSE(results[0].is_lazy());
    seen[&op] = results[0];
  }};
  for (const EngineOptions& options : {EngineOptions(), watched})
    for (const auto& [name, output] : Execute(f.program, inputs, options)) {
      CHECK_FALSE(output.is_lazy());
      CHECK(verify::Compare(output, expected.at(name)).max_error < 1e-5);
    }
  CHECK(seen.size() == 5);
}

// Between fp32 kernels, fp16 results are stored as fp32. This does not change a byte for any user.
TEST_CASE("fp16 results are rounded in any storage type") {
  using Follow = std::function<std::vector<Value*>(Builder&, Value * x)>;
  auto weight = [](Dims dims) { return RandomTensor(DType::kFp16, std::move(dims), 0, 1); };
  auto conv = [&](Builder& b, Value* x) {
    return b.Make("conv", {{"x", x}, {"weight", weight({16, 16, 3, 3})}, {"pad_type", "same"}});
  };
  auto mean = [](Builder& b, Value* x, std::vector<int32_t> axes) {
    return b.Make("reduce_mean", {{"x", x}, {"axes", Tensor::Vector(axes)}, {"keep_dims", true}});
  };
  const Follow follows[] = {
      [&](Builder& b, Value* x) {
        return std::vector<Value*>{b.Make("mul", {{"x", x}, {"y", mean(b, x, {2, 3})}})};
      },
      // An operation without a kernel.
      [&](Builder& b, Value* x) {
        return std::vector<Value*>{mean(b, x, {1, 3})};
      },
      [&](Builder& b, Value* x) {
        return std::vector<Value*>{b.Make("softmax", {{"x", x}, {"axis", 1}})};
      },
      [&](Builder& b, Value* x) {
        return std::vector<Value*>{
            b.Make("concat", {{"values", std::vector<Value*>{x, conv(b, x)}}, {"axis", 1}})};
      },
      [&](Builder& b, Value* x) {
        return std::vector<Value*>{b.Make(
            "max_pool",
            {{"x", x}, {"kernel_sizes", Tensor::Vector<int32_t>({2, 2})}, {"pad_type", "valid"}})};
      },
      [&](Builder& b, Value* x) {
        Value* y = conv(b, x);
        return std::vector<Value*>{y, b.Make("exp", {{"x", y}}),
                                   b.Make("cast", {{"x", y}, {"dtype", "fp32"}})};
      },
  };
  for (int64_t size : {5, 75})
    for (size_t i = 0; i < std::size(follows); ++i) {
      INFO(size << " " << i);
      const Dims dims{1, 16, size, size};
      Fixture f(Type::Tensor(DType::kFp16, ToShape(dims)));
      f.main->body.SetOutputs(follows[i](f.b, f.b.Make("tanh", {{"x", conv(f.b, f.x)}})));
      const std::map<std::string, Tensor> inputs{{"x", RandomTensor(DType::kFp16, dims, 0, 0)}};
      for (int threads : {1, 2, 5}) {
        EngineOptions fast{.threads = threads}, watched = fast;
        watched.observe = [](const Operation&, std::span<const Tensor>) {};
        const auto one_by_one = Execute(f.program, inputs, watched);
        for (const auto& [name, tensor] : Execute(f.program, inputs, fast)) {
          CHECK(tensor.dtype() == one_by_one.at(name).dtype());
          CHECK(tensor.SameBytes(one_by_one.at(name)));
        }
      }
    }
}

// Each chain of operations that one kernel computes gives the same bytes as its operations one by
// one, below and above the size for several threads.
TEST_CASE("chains are bit-identical to their operations") {
  using Follow = std::function<Value*(Builder&, Value * x, Value * own)>;
  auto make = [](Builder& b, const char* op, Value* x) { return b.Make(op, {{"x", x}}); };
  auto two = [](Builder& b, const char* op, Value* x, Builder::Arg y) {
    return b.Make(op, {{"x", x}, std::move(y)});
  };
  const Follow follows[] = {
      [&](Builder& b, Value* x, Value*) { return make(b, "relu", x); },
      [&](Builder& b, Value* x, Value*) { return make(b, "gelu", x); },
      [&](Builder& b, Value* x, Value* own) {
        return make(b, "relu", two(b, "add", x, {"y", own}));
      },
      [&](Builder& b, Value* x, Value* own) {
        return two(b, "sub", own, {"y", x});
      },
      [&](Builder& b, Value* x, Value*) {
        return two(b, "mul", x, {"y", x});
      },
      [&](Builder& b, Value* x, Value*) {
        Value* gate = b.Make("sigmoid_hard", {{"x", x}, {"alpha", 0.16}, {"beta", 0.5}});
        return two(b, "mul", gate, {"y", x});
      },
      [&](Builder& b, Value* x, Value* own) {
        Value* gate = make(b, "relu6", two(b, "add", x, {"y", 3.0}));
        return two(b, "real_div", two(b, "mul", x, {"y", gate}), {"y", own});
      },
      // Longer than the maximum length of a chain.
      [&](Builder& b, Value* x, Value*) {
        for (int i = 0; i < 9; ++i) x = two(b, i % 2 ? "add" : "mul", x, {"y", 0.7});
        return x;
      },
      // A result with other users ends a chain.
      [&](Builder& b, Value* x, Value*) {
        Value* y = make(b, "square", make(b, "tanh", x));
        return two(b, "add", y, {"y", b.Make("softmax", {{"x", y}, {"axis", -1}})});
      },
      [&](Builder& b, Value* x, Value*) {
        return b.Make("cast", {{"x", make(b, "abs", x)}, {"dtype", "fp32"}});
      },
  };
  for (DType dtype : {DType::kFp32, DType::kFp16})
    for (const char* producer : {"conv", "linear", "matmul"})
      for (int64_t size : {11, 75})
        for (size_t i = 0; i < std::size(follows); ++i) {
          bool conv = std::string_view(producer) == "conv";
          Dims in = conv ? Dims{1, 3, size, size} : Dims{2, size, 19},
               out = conv ? Dims{1, 17, size, size} : Dims{2, size, conv ? 17 : 500};
          Fixture f(Type::Tensor(dtype, ToShape(in)));
          Value* own = f.main->AddInput("own", Type::Tensor(dtype, ToShape(out)));
          auto weight = [&](Dims dims) { return RandomTensor(dtype, std::move(dims), 0, 1); };
          Value* x =
              conv ? f.b.Make("conv",
                              {{"x", f.x}, {"weight", weight({17, 3, 3, 3})}, {"pad_type", "same"}})
              : std::string_view(producer) == "linear"
                  ? f.b.Make("linear", {{"x", f.x}, {"weight", weight({500, 19})}})
                  : f.b.Make("matmul", {{"x", f.x}, {"y", weight({19, 500})}});
          f.main->body.SetOutputs({follows[i](f.b, x, own)});
          std::map<std::string, Tensor> inputs{{"x", RandomTensor(dtype, in, 0, 0)},
                                               {"own", RandomTensor(dtype, out, 0, 2)}};
          INFO(producer << " " << size << " " << i);
          for (int threads : {1, 2, 5})
            for (Arithmetic arithmetic : {Arithmetic::kFaithful, Arithmetic::kExact}) {
              EngineOptions fast{.arithmetic = arithmetic, .threads = threads}, watched = fast;
              watched.observe = [](const Operation&, std::span<const Tensor>) {};
              Engine engine(*f.main, fast);
              Tensor one_by_one = Execute(f.program, inputs, watched).begin()->second;
              for (int run = 0; run < 2; ++run)
                CHECK(engine.Run(inputs).begin()->second.SameBytes(one_by_one));
            }
        }
}

TEST_CASE("reproducible kernels are bit-identical to eval with any number of threads") {
  Fixture f(Type::Tensor(DType::kFp16, {1, 8, Dim::Symbol("h") + 3, 40}));
  f.main->symbols["h"] = {1, 50};
  Value* y = f.b.Make("conv", {{"x", f.x},
                               {"weight", RandomTensor(DType::kFp16, {16, 8, 3, 3}, 0, 1)},
                               {"pad_type", "same"}});
  y = f.b.Make("softmax", {{"x", y}, {"axis", -1}});
  f.main->body.SetOutputs(
      {f.b.Make("matmul", {{"x", y}, {"y", RandomTensor(DType::kFp16, {40, 60}, 0, 2)}})});
  using enum EngineOptions::Kernels;
  EngineOptions one{.threads = 1, .kernels = kReproducible}, five = one;
  five.threads = 5;
  Engine reproducible(*f.main, one), on_threads(*f.main, five), plain(*f.main, {.kernels = kEval});
  for (int64_t h : {53, 4}) {
    std::map<std::string, Tensor> inputs{{"x", RandomTensor(DType::kFp16, {1, 8, h, 40}, 0, 0)}};
    Tensor result = reproducible.Run(inputs).begin()->second;
    CHECK(result.SameBytes(on_threads.Run(inputs).begin()->second));
    CHECK(result.SameBytes(plain.Run(inputs).begin()->second));
  }
}

TEST_CASE("faithful arithmetic rounds and overflows in fp16, exact arithmetic does not") {
  Fixture f(Type::Tensor(DType::kFp16, {2}));
  Value* y = f.b.Make("mul", {{"x", f.x}, {"y", 512.0}});
  f.main->body.SetOutputs({f.b.Make("mul", {{"x", y}, {"y", 1.0 / 512}})});
  // 2049 rounds to 2048 as an fp16 input; 200 * 512 exceeds 65504.
  Tensor faithful = f.Run(F16({2}, {1, 200}));
  CHECK(faithful.dtype() == DType::kFp16);
  CHECK(faithful.Doubles() == std::vector<double>{1, INFINITY});
  EngineOptions options;
  options.arithmetic = Arithmetic::kExact;
  Tensor exact = f.Run(F32({2}, {1, 200}), options);
  CHECK(exact.dtype() == DType::kFp32);
  CHECK(exact.Doubles() == std::vector<double>{1, 200});
  CHECK(f.Run(F16({2}, {1, 200}), options).Doubles() == std::vector<double>{1, 200});
}

TEST_CASE("exact arithmetic ignores casts to fp16 whose result an operation uses") {
  Fixture f(Type::Tensor(DType::kFp32, {1}));
  Value* y = f.b.Make("relu", {{"x", f.b.Cast(f.x, DType::kFp16)}});
  f.main->body.SetOutputs({f.b.Cast(y, DType::kFp32)});
  EngineOptions options;
  options.arithmetic = Arithmetic::kExact;
  CHECK(f.Run(F32({1}, {1e5f}), options).Double(0) == 1e5);
  CHECK(f.Run(F32({1}, {1e5f})).Double(0) == INFINITY);
}

TEST_CASE("exact arithmetic rounds in a cast to fp16 and back") {
  Fixture f(Type::Tensor(DType::kFp32, {2}));
  f.main->body.SetOutputs({f.b.Cast(f.b.Cast(f.x, DType::kFp16), DType::kFp32)});
  EngineOptions options;
  options.arithmetic = Arithmetic::kExact;
  CHECK(f.Run(F32({2}, {1e5f, 2049}), options).Doubles() == std::vector<double>{INFINITY, 2048});
}

TEST_CASE("an engine runs with several sizes of a symbol") {
  Dim n = Dim::Symbol("n");
  Fixture f(Type::Tensor(DType::kFp32, {n, 2}));
  f.main->symbols["n"] = {1, 8, {}};
  Value* y = f.b.Make("linear", {{"x", f.x}, {"weight", F32({3, 2}, {1, 0, 0, 1, 1, 1})}});
  Value* flat = f.b.Make("reshape", {{"x", y}, {"shape", Ints({-1})}});
  f.main->body.SetOutputs({flat});
  Engine engine(*f.main);
  CHECK(engine.Run({{"x", F32({1, 2}, {1, 2})}}).at(flat->name).Doubles() ==
        std::vector<double>{1, 2, 3});
  CHECK(engine.Run({{"x", F32({2, 2}, {1, 2, 3, 4})}}).at(flat->name).Doubles() ==
        std::vector<double>{1, 2, 3, 3, 4, 7});
  CHECK(engine.Run({{"x", F32({1, 2}, {5, 6})}}).at(flat->name).Doubles() ==
        std::vector<double>{5, 6, 11});
  CHECK_THROWS_WITH(engine.Run({{"x", Tensor::Full(DType::kFp32, {9, 2}, 0)}}),
                    ContainsSubstring("n from 1 to 8"));
}

TEST_CASE("an input may be empty") {
  Dim n = Dim::Symbol("n");
  Fixture f(Type::Tensor(DType::kFp32, {n - 1, n}));
  f.main->symbols["n"] = {1, 4, {1, 2, 4}};
  f.main->body.SetOutputs({f.b.Make("relu", {{"x", f.x}})});
  CHECK(f.Run(F32({0, 1}, {})).size() == 0);
  CHECK(f.Run(F32({1, 2}, {-1, 2})).Doubles() == std::vector<double>{0, 2});
  CHECK_THROWS_WITH(f.Run(Tensor::Full(DType::kFp32, {2, 3}, 0)),
                    ContainsSubstring("one of 0, 1, 3"));
  CHECK_THROWS_WITH(f.Run(Tensor::Full(DType::kFp32, {4, 5}, 0)),
                    ContainsSubstring("n - 1 from 0 to 3"));
  CHECK_THROWS_WITH(f.Run(Tensor::Full(DType::kFp32, {1, 3}, 0)), ContainsSubstring("n = 2"));
}

TEST_CASE("inputs are checked") {
  Fixture f(Type::Tensor(DType::kFp32, {2, 3}));
  f.main->body.SetOutputs({f.b.Make("relu", {{"x", f.x}})});
  auto fails = [&](const std::map<std::string, Tensor>& inputs, const std::string& text) {
    CHECK_THROWS_WITH(Execute(f.program, inputs),
                      ContainsSubstring("bad-input") && ContainsSubstring(text));
  };
  fails({}, "input \"x\" is missing");
  fails({{"x", F32({2, 2}, {1, 2, 3, 4})}}, "dimension 1 is 2");
  fails({{"x", F32({2}, {1, 2})}}, "expected: fp32 [2, 3]");
  fails({{"x", Tensor::Full(DType::kInt32, {2, 3}, 0)}}, "int32 [2, 3]");
  fails({{"x", Tensor::Full(DType::kFp32, {2, 3}, 0)}, {"z", F32({1}, {0})}},
        "unknown input \"z\"");
}

TEST_CASE("observers see and replace results and stop a run; timeout") {
  Fixture f(Type::Tensor(DType::kFp32, {2}));
  Value* y = f.b.Make("relu", {{"x", f.x}});
  f.main->body.SetOutputs({f.b.Make("abs", {{"x", y}})});
  std::vector<std::string> seen;
  EngineOptions options;
  options.observe = [&](const Operation& op, std::span<const Tensor> results) {
    seen.push_back(std::string(op.def->name) + " " + std::to_string(results[0].Int(1)));
  };
  f.Run(F32({2}, {-1, 7}), options);
  CHECK(seen == std::vector<std::string>{"relu 7", "abs 7"});
  options.observe = [&](const Operation& op, std::span<Tensor> results) {
    if (op.is("relu")) results[0] = F32({2}, {-2, -3});
  };
  CHECK(f.Run(F32({2}, {-1, 7}), options).Doubles() == std::vector<double>{2, 3});
  options.timeout = std::chrono::milliseconds(1);
  options.observe = [](const Operation&, std::span<const Tensor>) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  };
  CHECK_THROWS_WITH(f.Run(F32({2}, {0, 0}), options), ContainsSubstring("timeout"));
}

TEST_CASE("errors name the operation") {
  Fixture f(Type::Tensor(DType::kInt32, {1}));
  // The shape is computed at run time; an excessive one must not be allocated.
  f.main->body.SetOutputs({f.b.Make("fill", {{"shape", f.x}, {"value", 1.0}})});
  CHECK(f.Run(Tensor::Vector<int32_t>({3})).Doubles() == std::vector<double>{1, 1, 1});
  CHECK_THROWS_WITH(f.Run(Tensor::Vector<int32_t>({-1})), ContainsSubstring("fill"));
}

TEST_CASE("a run preserves the caller's number of OpenMP threads") {
  auto set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  auto get = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
  if (!set || !get) {
    WARN("oneDNN has other threads than OpenMP's");
    return;
  }
  int before = get();
  set(5);
  Fixture f(Type::Tensor(DType::kFp32, {64, 64}));
  Value* y = f.b.Make("matmul", {{"x", f.x}, {"y", F32({64, 64}, std::vector<float>(4096, 1))}});
  f.main->body.SetOutputs({y});
  f.Run(F32({64, 64}, std::vector<float>(4096, 1)));
  CHECK(get() == 5);
  set(before);
}

TEST_CASE("the engine uses MLC_THREADS") {
  const char* before = getenv("MLC_THREADS");
  std::string saved = before ? before : "";
  Fixture f(Type::Tensor(DType::kFp32, {2}));
  f.main->body.SetOutputs({f.b.Make("relu", {{"x", f.x}})});
  setenv("MLC_THREADS", "many", 1);
  CHECK_THROWS_WITH(f.Run(F32({2}, {1, 2})), ContainsSubstring("MLC_THREADS"));
  unsetenv("MLC_THREADS");
  if (before) setenv("MLC_THREADS", saved.c_str(), 1);
}

}  // namespace
}  // namespace mlc::engine
