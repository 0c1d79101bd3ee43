// Expected values come from NumPy's take, take_along_axis and tril and from the operator
// specifications. ONNX's own tests run in test/conformance.
#include "backends/coreml/lower.h"
#include "lib/passes/pass.h"
#include "test/catch.h"
#include "test/frontends/onnx/run.h"

namespace mlc::test {
using namespace onnx;
namespace {

using Names = std::vector<std::string>;
using Floats = std::vector<double>;

// A model with one node, float input x and integer input i.
std::string Indexed(const std::string& node, const std::vector<Dimension>& x,
                    const std::vector<Dimension>& i, int opset = 17,
                    const std::vector<std::string>& constants = {}) {
  return Model({node}, {Info("x", kFloat, x), Info("i", kInt64, i)}, {Info("y")}, constants, opset);
}
Tensor Indices(const Dims& dims, const std::vector<int32_t>& values) {
  return Tensor::Of(dims, values);
}

TEST_CASE("onnx Gather: run-time indices count from the end") {
  std::string model = Indexed(Node("Gather", {"x", "i"}, {"y"}, {Int("axis", 1)}), {2, 3}, {2});
  CHECK(OperatorsOf(ImportBytes(model)) == Names{"gather"});
  CHECK(RunOnnx(model, {{"x", Count({2, 3})}, {"i", Indices({2}, {-1, 0})}}).Doubles() ==
        Floats{2, 0, 5, 3});
  std::string natural =
      Model({Node("ArgMax", {"x"}, {"i"}), Node("Gather", {"t", "i"}, {"y"})},
            {Info("x", kFloat, {2, 3})}, {Info("y")}, {Proto<float>("t", {2}, {7, 8})});
  CHECK(OperatorsOf(ImportBytes(natural)) == Names{"reduce_argmax", "gather"});
}

TEST_CASE("onnx Gather: constant indices in arithmetic progression become a slice") {
  auto gather = [](const Dims& dims, const Ints64& indices) {
    return Model({Node("Gather", {"x", "i"}, {"y"}, {Int("axis", 1)})},
                 {Info("x", kFloat, {2, "n"})}, {Info("y")}, {Proto<int64_t>("i", dims, indices)});
  };
  auto run = [&](const std::string& model) {
    return RunOnnx(model, {{"x", Count({2, 5})}}).Doubles();
  };
  CHECK(OperatorsOf(ImportBytes(gather({}, {-1}))) == Names{"slice_by_index"});
  CHECK(run(gather({}, {-1})) == Floats{4, 9});
  CHECK(run(gather({1}, {-1})) == Floats{4, 9});
  CHECK(run(gather({2}, {1, 3})) == Floats{1, 3, 6, 8});
  CHECK(run(gather({3}, {-1, 0, 1})) == Floats{4, 0, 1, 9, 5, 6});
  CHECK(run(gather({2}, {3, 1})) == Floats{3, 1, 8, 6});
}

TEST_CASE("onnx TfIdfVectorizer: a constant input") {
  std::string model =
      Model({Node("TfIdfVectorizer", {"i"}, {"c"},
                  {Text("mode", "TF"), Int("min_gram_length", 1), Int("max_gram_length", 1),
                   Int("max_skip_count", 0), IntList("ngram_counts", {0}),
                   IntList("ngram_indexes", {0, 1}), IntList("pool_int64s", {1, 2})}),
             Node("Add", {"c", "x"}, {"y"})},
            {Info("x", kFloat, {2})}, {Info("y")}, {Proto<int64_t>("i", {3}, {1, 1, 2})});
  CHECK(RunOnnx(model, {{"x", Count({2})}}).Doubles() == Floats{2, 2});
}

TEST_CASE("onnx ScatterElements: indices smaller than data of rank 5") {
  std::string scatter =
      Indexed(Node("ScatterElements", {"x", "i", "u"}, {"y"}, {Int("axis", 4)}), {1, 1, 2, 1, 3},
              {1, 1, 1, 1, 2}, 17, {Proto<float>("u", {1, 1, 1, 1, 2}, {8, 9})});
  CHECK(RunOnnx(scatter, {{"x", Count({1, 1, 2, 1, 3})}, {"i", Indices({1, 1, 1, 1, 2}, {-1, 1})}})
            .Doubles() == Floats{0, 9, 8, 3, 4, 5});
}

TEST_CASE("onnx GatherElements, ScatterElements: indices smaller than the data") {
  std::string gather =
      Indexed(Node("GatherElements", {"x", "i"}, {"y"}, {Int("axis", 1)}), {"n", 3}, {1, 2});
  CHECK(RunOnnx(gather, {{"x", Count({2, 3})}, {"i", Indices({1, 2}, {-1, 1})}}).Doubles() ==
        Floats{2, 1});
  std::string scatter = Indexed(Node("ScatterElements", {"x", "i", "u"}, {"y"}, {Int("axis", 1)}),
                                {2, 3}, {1, 2}, 17, {Proto<float>("u", {1, 2}, {8, 9})});
  CHECK(RunOnnx(scatter, {{"x", Count({2, 3})}, {"i", Indices({1, 2}, {-1, 1})}}).Doubles() ==
        Floats{0, 9, 8, 3, 4, 5});
}

TEST_CASE("onnx ScatterND: supported reductions by opset") {
  auto scatter = [](const std::string& reduction, int opset) {
    return Indexed(Node("ScatterND", {"x", "i", "u"}, {"y"}, {Text("reduction", reduction)}), {4},
                   {2, 1}, opset, {Proto<float>("u", {2}, {10, 1})});
  };
  auto run = [&](const std::string& reduction) {
    return RunOnnx(scatter(reduction, 18), {{"x", Count({4})}, {"i", Indices({2, 1}, {-1, 2})}})
        .Doubles();
  };
  CHECK(run("none") == Floats{0, 1, 1, 10});
  CHECK(run("add") == Floats{0, 1, 3, 13});
  CHECK(run("mul") == Floats{0, 1, 2, 30});
  CHECK(run("min") == Floats{0, 1, 1, 3});
  CHECK(ErrorId(scatter("min", 16)) == "unsupported-attribute");
  CHECK(ErrorId(scatter("sub", 18)) == "unsupported-attribute");
}

TEST_CASE("onnx OneHot: negative indices since opset 11, and values computed at run time") {
  auto hot = [](int opset) {
    return Model({Node("OneHot", {"i", "d", "v"}, {"y"})},
                 {Info("i", kInt64, {2}), Info("v", kFloat, {2})}, {Info("y")},
                 {Proto<int64_t>("d", {}, {3})}, opset);
  };
  std::map<std::string, Tensor> inputs = {{"i", Indices({2}, {-1, 0})},
                                          {"v", Tensor::Vector<float>({5, 6})}};
  CHECK(RunOnnx(hot(11), inputs).Doubles() == Floats{5, 5, 6, 6, 5, 5});
  CHECK(RunOnnx(hot(9), inputs).Doubles() == Floats{5, 5, 5, 6, 5, 5});
}

TEST_CASE("onnx TopK: K as an attribute before opset 10, as a constant and computed at run time") {
  std::string first = Model({Node("TopK", {"x"}, {"y", "places"}, {Int("k", 2)})},
                            {Info("x", kFloat, {4})}, {Info("y")}, {}, 9);
  CHECK(RunOnnx(first, {{"x", Count({4})}}).Doubles() == Floats{3, 2});
  std::string least = Model({Node("TopK", {"x", "k"}, {"v", "y"}, {Int("largest", 0)})},
                            {Info("x", kFloat, {4})}, {Info("y")}, {Proto<int64_t>("k", {1}, {2})});
  CHECK(RunOnnx(least, {{"x", Tensor::Vector<float>({3, 1, 2, 1})}}).Ints() == Ints64{1, 3});
  std::string open = Model({Node("TopK", {"x", "k"}, {"y", "places"})},
                           {Info("x", kFloat, {4}), Info("k", kInt64, {1})}, {Info("y")});
  CHECK(RunOnnx(open, {{"x", Tensor::Vector<float>({3, 1, 2, 1})}, {"k", Indices({1}, {3})}})
            .Doubles() == Floats{3, 2, 1});
}

TEST_CASE("onnx ArgMax: select_last_index returns the last of equal elements") {
  std::string model =
      Model({Node("ArgMax", {"x"}, {"y"}, {Int("select_last_index", 1), Int("keepdims", 0)})},
            {Info("x", kFloat, {"n"})}, {Info("y")});
  CHECK(RunOnnx(model, {{"x", Tensor::Vector<float>({1, 4, 4, 2})}}).Ints() == Ints64{2});
}

TEST_CASE("onnx Trilu: positive and negative diagonals, symbolic dimensions") {
  auto trilu = [](int64_t upper, int64_t k, const std::vector<Dimension>& x) {
    return Model({Node("Trilu", {"x", "k"}, {"y"}, {Int("upper", upper)})}, {Info("x", kFloat, x)},
                 {Info("y")}, {Proto<int64_t>("k", {}, {k})});
  };
  Tensor ones = Tensor::Full(DType::kFp32, {2, 3}, 1);
  for (const std::vector<Dimension>& x : {std::vector<Dimension>{2, 3}, {"n", "m"}}) {
    auto run = [&](int64_t upper, int64_t k) {
      return RunOnnx(trilu(upper, k, x), {{"x", ones}}).Doubles();
    };
    CHECK(run(1, 0) == Floats{1, 1, 1, 0, 1, 1});
    CHECK(run(1, 1) == Floats{0, 1, 1, 0, 0, 1});
    CHECK(run(1, -1) == Floats{1, 1, 1, 1, 1, 1});
    CHECK(run(0, 0) == Floats{1, 0, 0, 1, 1, 0});
    CHECK(run(0, 1) == Floats{1, 1, 0, 1, 1, 1});
    CHECK(run(0, -1) == Floats{0, 0, 0, 1, 0, 0});
  }
}

TEST_CASE("onnx Compress, NonZero, Unique: data-dependent sizes") {
  std::string compress = Model({Node("Compress", {"x", "c"}, {"y"})},
                               {Info("x", kFloat, {2, 2}), Info("c", kBool, {3})}, {Info("y")});
  CHECK(RunOnnx(compress, {{"x", Count({2, 2})}, {"c", Indices({3}, {0, 1, 1})}}).Doubles() ==
        Floats{1, 2});
  std::string places =
      Model({Node("NonZero", {"x"}, {"y"})}, {Info("x", kFloat, {2, 2})}, {Info("y")});
  CHECK(RunOnnx(places, {{"x", Count({2, 2})}}).Ints() == Ints64{0, 1, 1, 1, 0, 1});
  std::string distinct =
      Model({Node("Unique", {"x"}, {"y"})}, {Info("x", kFloat, {4})}, {Info("y")});
  CHECK(RunOnnx(distinct, {{"x", Tensor::Vector<float>({3, 1, 3, 1})}}).Doubles() == Floats{1, 3});
  std::string unique =
      Model({Node("Unique", {"c"}, {"u", "first", "inverse", "n"}), Node("Mul", {"n", "x"}, {"y"})},
            {Info("x", kInt64, {1})}, {Info("y")}, {Proto<float>("c", {4}, {2, 1, 2, 1})});
  CHECK(RunOnnx(unique, {{"x", Indices({1}, {1})}}).Ints() == Ints64{2, 2});
}

TEST_CASE("onnx NonZero: the inferred shape allows an empty result") {
  std::string model = Model(
      {Node("NonZero", {"x"}, {"p"}), Node("Size", {"p"}, {"n"}),
       Node("Equal", {"n", "zero"}, {"none"}), Node("Where", {"none", "a", "b"}, {"y"})},
      {Info("x", kFloat, {2})}, {Info("y")},
      {Proto<int64_t>("zero", {}, {0}), Proto<float>("a", {1}, {7}), Proto<float>("b", {1}, {8})});
  CHECK(RunOnnx(model, {{"x", Tensor::Vector<float>({0, 0})}}).Doubles() == Floats{7});
  CHECK(RunOnnx(model, {{"x", Tensor::Vector<float>({0, 1})}}).Doubles() == Floats{8});
}

// Counts boxes with a sufficient score. Expected values are those of torchvision.ops.nms.
TEST_CASE("onnx NonMaxSuppression: a data-dependent number of boxes, including 0") {
  std::string boxes = Proto<float>(
      "boxes", {6, 4},
      {0, 0, 10, 10, 1, 1, 11, 11, 0, 0, 9, 10, 20, 20, 30, 30, 21, 20, 31, 31, 50, 50, 60, 60});
  std::string model =
      Model({Node("Greater", {"x", "least"}, {"high"}), Node("NonZero", {"high"}, {"places"}),
             Node("Reshape", {"places", "vector"}, {"place"}),
             Node("Gather", {"boxes", "place"}, {"b"}), Node("Unsqueeze", {"b", "front"}, {"b3"}),
             Node("Gather", {"x", "place"}, {"s"}), Node("Unsqueeze", {"s", "two"}, {"s3"}),
             Node("NonMaxSuppression", {"b3", "s3", "most", "overlap"}, {"y"})},
            {Info("x", kFloat, {6}), Info("least", kFloat, {1})}, {Info("y")},
            {boxes, Proto<int64_t>("vector", {1}, {-1}), Proto<int64_t>("front", {1}, {0}),
             Proto<int64_t>("two", {2}, {0, 1}), Proto<int64_t>("most", {1}, {INT64_MAX}),
             Proto<float>("overlap", {1}, {0.5f})});
  Tensor scores = Tensor::Vector<float>({0.9f, 0.75f, 0.6f, 0.95f, 0.5f, 0.3f});
  auto run = [&](float least) {
    return RunOnnx(model, {{"x", scores}, {"least", Tensor::Vector<float>({least})}});
  };
  CHECK(run(0.55f).Ints() == Ints64{0, 0, 3, 0, 0, 0});
  CHECK(run(2).dims() == Dims{0, 3});
  for (mlc::Opset target : {mlc::Opset::kIos16, mlc::Opset::kIos18}) {
    Program program = ImportBytes(model);
    Diagnostics diagnostics;
    passes::PassContext context{diagnostics, passes::PassContext::Precision::kFp32, target};
    passes::kNewerForms.run(program, context);
    CHECK(coreml::TargetErrors(program, target).empty());
  }
}

TEST_CASE(
    "onnx Dropout: identity at inference; the mask has the type of the data before opset 10") {
  std::string model =
      Model({Node("Dropout", {"x"}, {"z", "y"})}, {Info("x", kFloat, {2})}, {Info("y")}, {}, 7);
  CHECK(ImportBytes(model).main()->outputs[0].source_dtype == DType::kFp32);
  std::string newer =
      Model({Node("Dropout", {"x"}, {"z", "y"})}, {Info("x", kFloat, {2})}, {Info("y")}, {}, 13);
  CHECK(ImportBytes(newer).main()->outputs[0].source_dtype == DType::kBool);
  auto training = [](float ratio) {
    return Model({Node("Dropout", {"x", "r", "t"}, {"y"})}, {Info("x", kFloat, {1000})},
                 {Info("y")},
                 {Proto("t", kBool, {}, Raw<uint8_t>({1})), Proto<float>("r", {}, {ratio})}, 13);
  };
  CHECK(ErrorId(training(1)) == "bad-operand");
  std::map<double, int> count;
  for (double y : RunOnnx(training(0.75), {{"x", Tensor::Full(DType::kFp32, {1000}, 2)}}).Doubles())
    ++count[y];
  CHECK(count.size() == 2);  // 2 / (1 - 0.75), or 0
  CHECK(std::abs(count[0] - 750) < 5 * 14);
  CHECK(count[8] == 1000 - count[0]);
}

}  // namespace
}  // namespace mlc::test
