// Tests the pass compress on each layout of weights: what the engine computes from the lowered
// constants is what the quantiser chose, on each target that has the operations.
#include <cmath>
#include <random>

#include "lib/compress/compression.h"
#include "lib/engine/engine.h"
#include "lib/ir/builder.h"
#include "lib/ir/encoding.h"
#include "lib/ops/row.h"
#include "lib/passes/pass.h"
#include "test/catch.h"
#include "test/expected_error.h"

namespace mlc::test {
using namespace passes;
namespace {

using compress::Compression;

Tensor Drawn(const Dims& dims, DType dtype, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 0.02F);
  std::vector<float> values(static_cast<size_t>(ElementCount(dims)));
  for (float& value : values) value = normal(random);
  return Tensor::Of(dims, values).Cast(dtype).InMemory();
}

// An operation with weights of these shapes, made from an input x.
struct Layout {
  const char* name;
  Dims input;
  std::vector<Dims> weights;
  Value* (*make)(Builder&, Value* x, const std::vector<Value*>& w, DType dtype);
};

Tensor Zeros(const Dims& dims, DType dtype) { return Tensor::Full(dtype, dims, 0); }

const Layout kLayouts[] = {
    {"conv",
     {1, 16, 5, 5},
     {{24, 16, 3, 3}},
     [](Builder& b, Value* x, const std::vector<Value*>& w, DType) {
       return b.Make("conv", {{"x", x}, {"weight", w[0]}});
     }},
    {"grouped conv",
     {1, 32, 5, 5},
     {{48, 8, 3, 3}},
     [](Builder& b, Value* x, const std::vector<Value*>& w, DType) {
       return b.Make("conv", {{"x", x}, {"weight", w[0]}, {"groups", 4}});
     }},
    {"depthwise conv",
     {1, 256, 4, 4},
     {{256, 1, 3, 3}},
     [](Builder& b, Value* x, const std::vector<Value*>& w, DType) {
       return b.Make("conv", {{"x", x}, {"weight", w[0]}, {"groups", 256}});
     }},
    {"conv_transpose",
     {1, 16, 5, 5},
     {{16, 24, 3, 3}},
     [](Builder& b, Value* x, const std::vector<Value*>& w, DType) {
       return b.Make("conv_transpose", {{"x", x}, {"weight", w[0]}});
     }},
    {"linear",
     {2, 96},
     {{40, 96}},
     [](Builder& b, Value* x, const std::vector<Value*>& w, DType) {
       return b.Make("linear", {{"x", x}, {"weight", w[0]}});
     }},
    {"linear of odd sizes",
     {2, 61},
     {{43, 61}},
     [](Builder& b, Value* x, const std::vector<Value*>& w, DType) {
       return b.Make("linear", {{"x", x}, {"weight", w[0]}});
     }},
    {"matmul, right",
     {2, 96},
     {{96, 40}},
     [](Builder& b, Value* x, const std::vector<Value*>& w, DType) {
       return b.Make("matmul", {{"x", x}, {"y", w[0]}});
     }},
    {"matmul, right, transposed",
     {2, 96},
     {{40, 96}},
     [](Builder& b, Value* x, const std::vector<Value*>& w, DType) {
       return b.Make("matmul", {{"x", x}, {"y", w[0]}, {"transpose_y", true}});
     }},
    {"matmul, left",
     {96, 2},
     {{40, 96}},
     [](Builder& b, Value* x, const std::vector<Value*>& w, DType) {
       return b.Make("matmul", {{"x", w[0]}, {"y", x}});
     }},
    {"matmul, left, transposed",
     {96, 2},
     {{96, 40}},
     [](Builder& b, Value* x, const std::vector<Value*>& w, DType) {
       return b.Make("matmul", {{"x", w[0]}, {"y", x}, {"transpose_x", true}});
     }},
    {"matmul of a batch",
     {3, 2, 32},
     {{3, 32, 24}},
     [](Builder& b, Value* x, const std::vector<Value*>& w, DType) {
       return b.Make("matmul", {{"x", x}, {"y", w[0]}});
     }},
    {"gather",
     {1},
     {{64, 48}},
     [](Builder& b, Value* x, const std::vector<Value*>& w, DType) {
       Value* row = b.Make("cast", {{"x", x}, {"dtype", "int32"}});
       return b.Make("gather", {{"x", w[0]}, {"indices", row}});
     }},
    {"lstm",
     {3, 2, 24},
     {{96, 24}, {96, 24}},
     [](Builder& b, Value* x, const std::vector<Value*>& w, DType dtype) {
       const Tensor state = Zeros({2, 24}, dtype);
       return b.Make("lstm", {{"x", x},
                              {"initial_h", state},
                              {"initial_c", state},
                              {"weight_ih", w[0]},
                              {"weight_hh", w[1]}});
     }},
    {"gru",
     {3, 2, 32},
     {{72, 32}, {72, 24}},
     [](Builder& b, Value* x, const std::vector<Value*>& w, DType dtype) {
       return b.Make("gru", {{"x", x},
                             {"initial_h", Zeros({2, 24}, dtype)},
                             {"weight_ih", w[0]},
                             {"weight_hh", w[1]}});
     }},
    {"rnn",
     {3, 2, 48},
     {{48, 48}, {48, 48}},
     [](Builder& b, Value* x, const std::vector<Value*>& w, DType dtype) {
       return b.Make("rnn", {{"x", x},
                             {"initial_h", Zeros({2, 48}, dtype)},
                             {"weight_ih", w[0]},
                             {"weight_hh", w[1]}});
     }},
};

// The operation, and w + 0 for each weight w as further outputs, from which tests read its values.
Program ProgramOf(const Layout& layout, DType dtype) {
  Program program(&Ops());
  Function* main = program.Add("main");
  Diagnostics diagnostics;
  Builder b(main->body, diagnostics);
  auto input = [&](const std::string& name, const Dims& dims) {
    Value* x = main->AddInput(name, Type::Tensor(dtype, ToShape(dims)));
    main->inputs.push_back({.name = x->name});
    return x;
  };
  Value* x = input("x", layout.input);
  std::vector<Value*> weights, outputs;
  for (size_t i = 0; i < layout.weights.size(); ++i)
    weights.push_back(
        b.Const(Drawn(layout.weights[i], dtype, static_cast<unsigned>(i)), fmt::format("w{}", i)));
  outputs.push_back(layout.make(b, x, weights, dtype));
  for (size_t i = 0; i < weights.size(); ++i) {
    Value* zeros = input(fmt::format("zero{}", i), layout.weights[i]);
    outputs.push_back(b.Make("add", {{"x", zeros}, {"y", weights[i]}}));
  }
  for (Value* output : outputs) main->outputs.push_back({.name = output->name});
  main->body.SetOutputs(outputs);
  return program;
}

std::vector<Tensor> ConstantsOf(const Program& program, std::string_view prefix) {
  std::vector<Tensor> constants;
  ForEachOperation(*program.main(), [&](Operation* op) {
    if (op->def->is_const() && op->result()->name.starts_with(prefix)) constants.push_back(op->val);
  });
  return constants;
}

bool Compress(Program& program, Compression& compression, Opset target,
              PassContext::Precision precision = PassContext::Precision::kFp32) {
  Diagnostics diagnostics;
  PassContext context{.diagnostics = diagnostics,
                      .precision = precision,
                      .target = target,
                      .compression = &compression};
  const bool changed = kCompress.run(program, context);
  Verify(program);
  return changed;
}

bool Lower(Program& program, Compression& compression, Opset target) {
  Diagnostics diagnostics;
  PassContext context{.diagnostics = diagnostics,
                      .precision = PassContext::Precision::kFp32,
                      .target = target,
                      .compression = &compression};
  const bool changed = kEncodedConstants.run(program, context);
  Verify(program);
  return changed;
}

int64_t CountConstexpr(const Program& program) {
  int64_t count = 0;
  ForEachOperation(*program.main(), [&](Operation* op) { count += op->def->is_constexpr(); });
  return count;
}

std::map<std::string, Tensor> Executed(const Program& program) {
  std::map<std::string, Tensor> inputs;
  for (const auto& input : program.main()->body.inputs)
    inputs[input->name] =
        Tensor::Full(input->type.dtype, StaticDims(input->type.shape), input->name == "x" ? 1 : 0);
  return engine::Execute(program, inputs,
                         {.arithmetic = engine::EngineOptions::Arithmetic::kFaithful});
}

constexpr const char* kSchemes[] = {"int8",
                                    "int8:asym",
                                    "int8:block=tensor",
                                    "int8:block=16",
                                    "int4",
                                    "int4:block=row",
                                    "int4:asym",
                                    "pal1",
                                    "pal2",
                                    "pal3",
                                    "pal4",
                                    "pal6",
                                    "pal8",
                                    "pal4:group=8",
                                    "pal4:group=8,axis=in",
                                    "pal3:vec=2",
                                    "pal2:group=8,vec=4",
                                    "pal4:scale=row",
                                    "pal4:lut=int8",
                                    "pal4:group=8,lut=int8",
                                    "sparse:0.75",
                                    "sparse:2:4",
                                    "sparse:0.5+int8",
                                    "sparse:0.5+int4",
                                    "sparse:0.5+pal4",
                                    "sparse:0.5+pal4:group=8"};

TEST_CASE("compress: the engine computes what the quantiser chose") {
  const auto dtype = GENERATE(DType::kFp32, DType::kFp16);
  for (const Layout& layout : kLayouts)
    for (const char* scheme : kSchemes)
      for (const Opset target : {Opset::kIos16, Opset::kIos18, Opset::kIos26}) {
        Compression compression{.rules = compress::ParseRules(scheme)};
        // gru and lstm have fp16 forms since iOS17 only, which is of no concern here.
        if (compress::Since(compression.rules) > target) continue;
        INFO(layout.name << ": " << scheme << " in " << Name(dtype) << " for "
                         << TargetName(target));
        Program program = ProgramOf(layout, dtype);
        const bool changed = Compress(program, compression, target);
        std::vector<Tensor> chosen;
        int64_t encoded = 0;
        for (const Tensor& constant : ConstantsOf(program, "w")) {
          encoded += constant.encoding() ? 1 : 0;
          chosen.push_back(Dense(constant));
        }
        CHECK(changed == (encoded > 0));
        // A table per group may take more than it saves in weights as small as these.
        for (const compress::WeightReport& weight : compression.weights)
          if (weight.name.starts_with("w"))
            CHECK((weight.compressed || weight.reason.find("would take") != std::string::npos ||
                   weight.reason.find("fewer than 2048") != std::string::npos));
        CHECK(Lower(program, compression, target) == (encoded > 0));
        CHECK((CountConstexpr(program) >= encoded));
        const std::map<std::string, Tensor> results = Executed(program);
        const auto& outputs = program.main()->body.outputs();
        for (size_t i = 0; i < chosen.size(); ++i) {
          // 0 + -0 is 0.
          std::vector<double> expected = chosen[i].Doubles();
          for (double& x : expected) x += 0;
          CHECK(results.at(outputs[i + 1]->name).Doubles() == expected);
        }
      }
}

TEST_CASE("compress: the rows of tables and channels have their own scales") {
  struct Case {
    size_t layout;
    Dims scales;
  };
  for (const auto& [layout, scales] : {Case{0, {24, 1, 1, 1}},
                                       {3, {1, 24, 1, 1}},
                                       {4, {40, 1}},
                                       {6, {1, 40}},
                                       {7, {40, 1}},
                                       {8, {40, 1}},
                                       {9, {1, 40}},
                                       {10, {3, 1, 24}},
                                       {11, {64, 1}},
                                       {12, {96, 1}}}) {
    Program program = ProgramOf(kLayouts[layout], DType::kFp32);
    Compression compression{.rules = compress::ParseRules("int8")};
    REQUIRE(Compress(program, compression, Opset::kIos18));
    INFO(kLayouts[layout].name);
    CHECK(ConstantsOf(program, "w")[0].encoding()->scale.dims() == scales);
  }
}

TEST_CASE("compress: what is no weight stays as it is") {
  Program program(&Ops());
  Function* main = program.Add("main");
  Diagnostics diagnostics;
  Builder b(main->body, diagnostics);
  Value* x = main->AddInput("x", Type::Tensor(DType::kFp32, ToShape({64, 64})));
  main->inputs.push_back({.name = "x"});
  main->outputs.push_back({.name = "y"});
  Value* table = b.Const(Drawn({64, 64}, DType::kFp32), "table");
  Value* small = b.Const(Drawn({8, 64}, DType::kFp32), "small");
  const std::vector<double> finite = Drawn({64, 64}, DType::kFp32).Doubles();
  std::vector<float> values(finite.begin(), finite.end());
  values[5] = INFINITY;
  Value* odd = b.Const(Tensor::Of<float>({64, 64}, values), "odd");
  Value* added = b.Make("add", {{"x", x}, {"y", table}});
  Value* first = b.Make("linear", {{"x", added}, {"weight", odd}});
  b.SetName("y");
  main->body.SetOutputs({b.Make("linear", {{"x", first}, {"weight", small}})});
  Compression compression{.rules = compress::ParseRules("int8")};
  CHECK(!Compress(program, compression, Opset::kIos18));
  std::map<std::string, std::string> reasons;
  for (const auto& weight : compression.weights) reasons[weight.name] = weight.reason;
  CHECK(reasons["table"] == "it is not a weight of add");
  CHECK(reasons["small"] == "it has fewer than 2048 elements");
  CHECK(reasons["odd"] == "it contains NaN or infinity");

  // Rules may name them.
  Compression named{.rules = compress::ParseRules("table=int8;small=pal2")};
  CHECK(Compress(program, named, Opset::kIos18));
  CHECK(Lower(program, named, Opset::kIos18));
  CHECK(CountConstexpr(program) == 2);
}

TEST_CASE("compress: auto compresses in an alternative, too, and keeps what loses least") {
  // What evaluate says of the schemes that were chosen and of the alternative to them, after inputs were
  // measured; everything before, and the result, loses 1.
  struct Run {
    Compression compression;
    std::vector<std::string> used;
    int calls = 0;
  };
  auto run = [](int calls, double chosen, double alternative) {
    Program program = ProgramOf(kLayouts[0], DType::kFp32);
    Run made{.compression = {.rules = compress::ParseRules("auto:bits=4")}};
    made.compression.most_evaluations = 100;
    made.compression.evaluate = [&](const Program&) {
      const int left = calls - ++made.calls;
      return compress::Loss{.noise_of_scores = left == 2 ? chosen : left == 1 ? alternative : 1};
    };
    made.compression.measure = [](const Program&, const std::set<const Value*>& weights) {
      std::map<const Value*, compress::InputSums> sums;
      for (const Value* weight : weights) {
        const Tensor x = Drawn({200, 16 * 9}, DType::kFp32, 7);
        compress::InputSums& sum = sums[weight] = compress::InputSums(1, 16 * 9, true);
        const Pin<float> vectors = x.data<float>();
        sum.Add(0, vectors, 1);
      }
      return sums;
    };
    Compress(program, made.compression, Opset::kIos18);
    made.compression.ReleaseFunctions();
    for (const auto& weight : made.compression.weights) made.used.push_back(weight.used);
    return made;
  };
  auto chosen_point = [](const Run& run) {
    std::string scheme = "?";
    int count = 0;
    for (const auto& point : run.compression.curve)
      if (point.chosen) scheme = point.scheme, ++count;
    CHECK(count == 1);
    return scheme;
  };
  const int calls = run(0, 1, 1).calls;
  const Run kept = run(calls, 1, 2), other = run(calls, 2, 1);
  CHECK(kept.calls == calls);
  CHECK(chosen_point(kept) != chosen_point(other));
  CHECK(other.used != kept.used);
}

TEST_CASE("compress: with activations in 8 bits, the weights of small inputs count") {
  // Most inputs are small, so that errors of their weights are nearly free, but not as small as those
  // of rounding.
  auto snr = [](std::string_view rules) {
    Program program = ProgramOf(kLayouts[0], DType::kFp32);
    Compression compression{.rules = compress::ParseRules(rules)};
    compression.measure = [](const Program&, const std::set<const Value*>& weights) {
      constexpr int64_t kCount = 200, kColumns = 16 * 9;
      const Tensor drawn = Drawn({kCount, kColumns}, DType::kFp32, 7);
      const Pin<float> numbers = drawn.data<float>();
      std::vector<float> vectors(numbers.begin(), numbers.end());
      for (size_t i = 0; i < vectors.size(); ++i)
        if (i % 8 != 0) vectors[i] *= 1e-3F;
      std::map<const Value*, compress::InputSums> sums;
      for (const Value* weight : weights) {
        compress::InputSums& sum = sums[weight] = compress::InputSums(1, kColumns, true);
        sum.Add(0, vectors, 1);
      }
      return sums;
    };
    Compress(program, compression, Opset::kIos18);
    return compression.weights[0].snr();
  };
  CHECK(snr("w8a8") > snr("int8") + 5);
}

TEST_CASE("compress: the last rule applies; a rule without a match is an error") {
  auto schemes = [](std::string_view rules) {
    Program program = ProgramOf(kLayouts[12], DType::kFp32);
    Compression compression{.rules = compress::ParseRules(rules)};
    Compress(program, compression, Opset::kIos18);
    std::string used;
    for (const auto& weight : compression.weights) used += weight.used + " ";
    return used;
  };
  CHECK(schemes("int8;w0=none") == "none int8 ");
  CHECK(schemes("int8:block=tensor;w1=pal4") == "int8:block=tensor pal4 ");
  CHECK(schemes("pal4;lstm=pal2;last=none") == "pal2 none ");
  const std::string text = Refusal([&] { schemes("int8;w3=none"); });
  CHECK(text.find("\"w3\" selects no weight") != std::string::npos);
  CHECK(text.find("\"w0\"") != std::string::npos);
  CHECK(RefusalId([&] { schemes("int8;conv=none"); }) == "bad-name");
}

TEST_CASE("compress: a target without the operations is an error that names one with them") {
  Program program = ProgramOf(kLayouts[4], DType::kFp32);
  Compression compression{.rules = compress::ParseRules("int4")};
  const std::string text = Refusal([&] { Compress(program, compression, Opset::kIos17); });
  CHECK(text.find("not supported on iOS17") != std::string::npos);
  CHECK(text.find("iOS18 or later") != std::string::npos);
}

TEST_CASE("compress: tied weights of several functions are compressed once") {
  Program program(&Ops());
  const Tensor shared = Drawn({64, 64}, DType::kFp32);
  Diagnostics diagnostics;
  for (const char* name : {"main", "other"}) {
    Function* function = program.Add(name);
    Builder b(function->body, diagnostics);
    Value* x = function->AddInput("x", Type::Tensor(DType::kFp32, ToShape({2, 64})));
    function->inputs.push_back({.name = "x"});
    function->outputs.push_back({.name = "y"});
    Value* w = b.Const(shared, "w");
    Value* row = b.Make("reduce_argmax", {{"x", x}, {"axis", 1}});
    Value* rows = b.Make("gather", {{"x", w}, {"indices", row}});
    Value* sum = b.Make("add", {{"x", x}, {"y", rows}});
    b.SetName("y");
    function->body.SetOutputs({b.Make("linear", {{"x", sum}, {"weight", w}})});
  }
  Compression compression{.rules = compress::ParseRules("pal4")};
  CHECK(Compress(program, compression, Opset::kIos18));
  CHECK(compression.weights.size() == 1);
  std::vector<Tensor> constants;
  for (const auto& function : program.functions)
    ForEachOperation(*function, [&](Operation* op) {
      if (op->def->is_const() && op->val.encoding()) constants.push_back(op->val);
    });
  REQUIRE(constants.size() == 2);
  CHECK(constants[0].encoding() == constants[1].encoding());
}

TEST_CASE("compress: compressed weights are decoded first; decompression gives plain ones") {
  Program program = ProgramOf(kLayouts[4], DType::kFp16);
  Compression first{.rules = compress::ParseRules("int8")};
  Compress(program, first, Opset::kIos18);
  Lower(program, first, Opset::kIos18);
  const Program before = Clone(program);
  Compression again{.rules = compress::ParseRules("pal4")};
  CHECK(Compress(program, again, Opset::kIos18));
  REQUIRE(again.weights.size() == 1);
  CHECK(again.weights[0].reason.find("compressed before") != std::string::npos);
  CHECK(again.weights[0].bytes_before == 40 * 96 + 40 * 2 + 40);
  Lower(program, again, Opset::kIos18);
  CHECK(CountConstexpr(program) == 1);

  Program plain = Clone(before);
  Compression none{.decompress = true};
  CHECK(Compress(plain, none, Opset::kIos18));
  CHECK(CountConstexpr(plain) == 0);
  const std::string& output = plain.main()->body.outputs()[1]->name;
  CHECK(Executed(plain).at(output).SameBytes(Executed(before).at(output)));
}

}  // namespace
}  // namespace mlc::test
