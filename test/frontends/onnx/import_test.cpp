#include "frontends/onnx/onnx.h"
#include "lib/ir/text.h"
#include "test/catch.h"
#include "test/expected_error.h"
#include "test/frontends/onnx/wire.h"

namespace mlc::test {
using namespace onnx;
namespace {

Program Import(const std::string& bytes, const ImportOptions& options = {}) {
  Diagnostics diagnostics;
  Program program = ImportOnnx(AsBytes(bytes), options, diagnostics);
  Verify(program);
  return program;
}
// All errors of an import, rendered.
std::string ErrorsOf(const std::string& bytes, const ImportOptions& options = {}) {
  return Refusal([&] { Import(bytes, options); });
}
std::vector<std::string> Operators(const Program& program) {
  std::vector<std::string> names;
  for (const auto& op : program.main()->body.operations())
    if (!op->is("const")) names.emplace_back(op->def->name);
  return names;
}
using Names = std::vector<std::string>;
using Kind = int;
constexpr Kind kFloat = 1, kUint8 = 2, kInt64 = 7, kString = 8, kBool = 9, kHalf = 10, kDouble = 11;

std::string Unary(const std::string& op, int type = kFloat,
                  const std::vector<Dimension>& dims = {2, 3}) {
  return Model({Node(op, {"x"}, {"y"})}, {Info("x", type, dims)}, {Info("y")});
}

TEST_CASE("onnx: an operation takes the name of the node's output") {
  Program program = Import(Unary("Relu"));
  CHECK(Operators(program) == Names{"relu"});
  const Function& main = *program.main();
  CHECK(main.inputs.at(0).source_name == "x");
  CHECK(main.body.outputs().at(0)->name == "y");
  CHECK(main.body.outputs()[0]->type.ToString() == "fp32 [2, 3]");
}

TEST_CASE("onnx: names become MIL identifiers, and intermediate values are renamed on conflicts") {
  Program program = Import(Model({Node("HardSwish", {"in.0"}, {"out/1"})},
                                 {Info("in.0", kFloat, {2})}, {Info("out/1")}));
  const Function& main = *program.main();
  CHECK(main.inputs.at(0).name == "in_0");
  CHECK(main.outputs.at(0).name == "out_1");
  CHECK(main.outputs[0].source_name == "out/1");
  CHECK(main.body.outputs()[0]->def->is("mul"));
}

TEST_CASE("onnx: types of inputs and outputs") {
  struct Case {
    Kind type;
    DType source, border;
  };
  for (const Case& each :
       {Case{kFloat, DType::kFp32, DType::kFp32}, Case{kHalf, DType::kFp16, DType::kFp16},
        Case{kDouble, DType::kFp64, DType::kFp32}, Case{16, DType::kBf16, DType::kFp32},
        Case{kInt64, DType::kInt64, DType::kInt32}, Case{kUint8, DType::kUint8, DType::kInt32},
        Case{kBool, DType::kBool, DType::kInt32}}) {
    Program program = Import(Unary("Identity", each.type));
    const Function& main = *program.main();
    CAPTURE(Name(each.source));
    for (const Port& port : {main.inputs.at(0), main.outputs.at(0)})
      CHECK(port.source_dtype == each.source);
    CHECK(main.body.inputs[0]->type.dtype == each.border);
    CHECK(main.body.outputs()[0]->type.dtype == each.border);
  }
  CHECK(Operators(Import(Unary("Not", kBool))) == Names{"not_equal", "logical_not", "cast"});
  CHECK_THAT(ErrorsOf(Unary("Identity", kString)),
             ContainsSubstring("error[unsupported-dtype]: input \"x\""));
}

TEST_CASE("onnx: scalar inputs and outputs become vectors of one element") {
  Program program = Import(Unary("Relu", kFloat, {}));
  CHECK(Operators(program) == Names{"squeeze", "relu", "expand_dims"});
  const Function& main = *program.main();
  CHECK(main.inputs[0].source_shape.empty());
  CHECK(main.outputs[0].source_shape.empty());
  CHECK(ToString(main.body.outputs()[0]->type.shape) == "[1]");
  CHECK(main.outputs[0].name == "y");
}

TEST_CASE("onnx: every output is a separate operation") {
  std::vector<std::string> infos = {Info("x"), Info("w"), Info("y"), Info("z")};
  Program program = Import(Model({Node("Relu", {"x"}, {"y"}), Node("Identity", {"y"}, {"z"})},
                                 {Info("x", kFloat, {2})}, infos, {Proto<int64_t>("w", {1}, {7})}));
  CHECK(Operators(program) == Names{"relu", "identity", "identity", "identity"});
  const Function& main = *program.main();
  CHECK(main.outputs.at(0).name != main.inputs.at(0).name);
  CHECK(main.outputs.at(1).source_dtype == DType::kInt64);
  CHECK(main.body.outputs()[1]->type.dtype == DType::kInt32);
  CHECK(main.outputs.at(3).name == "z");
}

TEST_CASE("onnx: output names that collide as MIL identifiers, and a duplicate output") {
  Program program = Import(Model({Node("Relu", {"x"}, {"a.b"}), Node("Identity", {"a.b"}, {"a_b"})},
                                 {Info("x", kFloat, {2})}, {Info("a.b"), Info("a_b")}));
  CHECK(program.main()->outputs.at(0).name == "a_b");
  CHECK(program.main()->outputs.at(1).name == "a_b_2");
  CHECK_THAT(ErrorsOf(Model({Node("Relu", {"x"}, {"y"})}, {Info("x", kFloat, {2})},
                            {Info("y"), Info("y")})),
             ContainsSubstring("error[bad-graph]: duplicate output name \"y\""));
}

TEST_CASE("onnx: an input with an initializer is a constant") {
  Program program = Import(Model({Node("Add", {"x", "w"}, {"y"})},
                                 {Info("x", kFloat, {2}), Info("w", kFloat, {2})}, {Info("y")},
                                 {Proto<float>("w", {2}, {1, 2})}));
  CHECK(program.main()->inputs.size() == 1);
}

TEST_CASE("onnx: constants are folded in their ONNX type") {
  int64_t big = int64_t{1} << 40;
  std::string model = Model(
      {Node("Div", {"a", "b"}, {"q"}), Node("Add", {"x", "q"}, {"y"})}, {Info("x", kInt64, {1})},
      {Info("y")}, {Proto<int64_t>("a", {1}, {big * 3}), Proto<int64_t>("b", {1}, {-big})});
  Program program = Import(model);
  CHECK(Operators(program) == Names{"add"});
  CHECK(program.main()->body.outputs()[0]->def->constant("y").Ints() == std::vector<int64_t>{-3});
}

TEST_CASE("onnx: a constant out of the range of int32 is refused") {
  std::string model = Model({Node("Add", {"x", "w"}, {"y"})}, {Info("x", kInt64, {1})}, {Info("y")},
                            {Proto<int64_t>("w", {1}, {int64_t{1} << 40})});
  CHECK_THAT(ErrorsOf(model), ContainsSubstring("error[constant-range]: Add"));
}

TEST_CASE("onnx: arithmetic on narrow integers wraps, on uint32 and uint64 it is refused") {
  auto add = [](Kind type) {
    return Model({Node("Add", {"a", "b"}, {"y"})}, {Info("a", type, {2}), Info("b", type, {2})},
                 {Info("y")});
  };
  CHECK(Operators(Import(add(kUint8))) == Names{"add", "mod"});
  CHECK(Operators(Import(add(3))) == Names{"add", "add", "mod", "sub"});
  CHECK(Operators(Import(add(kInt64))) == Names{"add"});
  CHECK_THAT(ErrorsOf(add(12)),
             ContainsSubstring("error[unsupported-dtype]: Add: arithmetic on uint32"));
}

TEST_CASE("onnx: named dimensions keep their symbols, unnamed ones get new symbols") {
  std::string model = Unary("Relu", kFloat, {"n", "", "n", 4});
  Program program = Import(model);
  Shape shape = program.main()->body.inputs[0]->type.shape;
  CHECK(ToString(shape) == "[n, x_dim1, n, 4]");
  CHECK(program.main()->symbols.at("n").low == 1);
  CHECK(program.main()->symbols.at("n").high == 4096);
  ImportOptions fixed{.dims = {{"n", {5, 5, {}}}}};
  CHECK(ToString(Import(model, fixed).main()->body.inputs[0]->type.shape) == "[5, x_dim1, 5, 4]");
  ImportOptions range{.dims = {{"n", {2, 8, {2, 4, 8}}}}};
  CHECK(Import(model, range).main()->symbols.at("n").enumerated.size() == 3);
  ImportOptions shapes{.shapes = {{"x", {1, 2, 3, 4}}}};
  CHECK(ToString(Import(model, shapes).main()->body.inputs[0]->type.shape) == "[1, 2, 3, 4]");
}

TEST_CASE("onnx: --shape fixes a named dimension of all inputs") {
  std::string model =
      Model({Node("Add", {"a", "b"}, {"y"})},
            {Info("a", kFloat, {"n", 3}), Info("b", kFloat, {"n", 3})}, {Info("y")});
  ImportOptions options{.shapes = {{"a", {7, 3}}}};
  CHECK(ToString(Import(model, options).main()->body.inputs[1]->type.shape) == "[7, 3]");
}

TEST_CASE("onnx: options with unknown names are refused") {
  CHECK_THAT(ErrorsOf(Unary("Relu"), {.shapes = {{"z", {1}}}}),
             ContainsSubstring("error[bad-name]: option 'shape' z"));
  CHECK_THAT(ErrorsOf(Unary("Relu"), {.shapes = {{"z", {1}}}}),
             ContainsSubstring("expected: \"x\""));
  CHECK_THAT(ErrorsOf(Unary("Relu"), {.shapes = {{"x", {1}}}}),
             ContainsSubstring("error[input-shape]"));
  CHECK_THAT(ErrorsOf(Unary("Relu"), {.dims = {{"n", {}}}}),
             ContainsSubstring("error[bad-name]: option 'dim' n"));
  CHECK_THAT(ErrorsOf(Unary("Relu"), {.constants = {{"n", Tensor::Scalar(1.0f)}}}),
             ContainsSubstring("option 'const' n"));
  CHECK_THAT(ErrorsOf(Unary("Relu"), {.outputs = {"n"}}), ContainsSubstring("option 'outputs' n"));
  CHECK_THAT(ErrorsOf(Unary("Relu"), {.replacements = {{"Elu", "alpha", "1"}}}),
             ContainsSubstring("option 'replace' Elu.alpha"));
}

TEST_CASE("onnx: --const binds an input, and needs-constant names the inputs to bind") {
  std::string model = Model({Node("ReduceSum", {"x", "axes"}, {"y"})},
                            {Info("x", kFloat, {2, 3}), Info("axes", kInt64, {1})}, {Info("y")});
  CHECK(ErrorsOf(model) ==
        "error[needs-constant]: ReduceSum: input \"axes\" (\"axes\") is computed at run time, but "
        "Core "
        "ML requires a constant\n"
        "  at node of output \"y\", opset 17\n"
        "  help: pass option 'const' axes=FILE");
  Program program = Import(model, {.constants = {{"axes", Tensor::Vector<int32_t>({1})}}});
  CHECK(Operators(program) == Names{"reduce_sum"});
  CHECK(program.main()->inputs.size() == 1);
  CHECK_THAT(ErrorsOf(model, {.constants = {{"axes", Tensor::Vector<int32_t>({1, 0})}}}),
             ContainsSubstring("bad-constant"));
}

TEST_CASE(
    "onnx: needs-constant names the operands of all nodes and the inputs they are computed from") {
  std::string model = Model(
      {Node("Add", {"p", "q"}, {"axes"}), Node("Slice", {"x", "s", "s", "axes", "steps"}, {"a"}),
       Node("ReduceSum", {"a", "r"}, {"y"})},
      {Info("x", kFloat, {2, 3}), Info("s", kInt64, {1}), Info("p", kInt64, {1}),
       Info("q", kInt64, {1}), Info("steps", kInt64, {1}), Info("r", kInt64, {1})},
      {Info("y")});
  CHECK(
      ErrorsOf(model) ==
      "error[needs-constant]: Slice: inputs \"axes\" (\"axes\"), \"steps\" (\"steps\") are "
      "computed at run time, but Core ML requires constants\n"
      "  at node of output \"a\", opset 17\n"
      "  \"axes\" is computed from the model's inputs \"p\", \"q\"\n"
      "  help: pass option 'const' p=FILE option 'const' q=FILE option 'const' steps=FILE\n"
      "error[needs-constant]: ReduceSum: input \"axes\" (\"r\") is computed at run time, but Core "
      "ML requires a constant\n"
      "  at node of output \"y\", opset 17\n"
      "  help: pass option 'const' r=FILE");
}

TEST_CASE("onnx: --outputs selects a subgraph and drops unused inputs") {
  std::string model = Model({Node("Relu", {"x"}, {"a"}), Node("NoSuch", {"a", "z"}, {"y"})},
                            {Info("x", kFloat, {2}), Info("z", kBool, {})}, {Info("y")});
  Program program = Import(model, {.outputs = {"a"}});
  CHECK(Operators(program) == Names{"relu"});
  CHECK(program.main()->inputs.size() == 1);
  CHECK(program.main()->body.inputs.size() == 1);
}

TEST_CASE("onnx: --replace overrides or adds an attribute") {
  std::string model = Model({Node("Elu", {"x"}, {"y"}, {Float("alpha", 0.5f)})},
                            {Info("x", kFloat, {2})}, {Info("y")});
  Program program = Import(model, {.replacements = {{"Elu", "alpha", "2"}}});
  CHECK(program.main()->body.outputs()[0]->def->constant("alpha").Double(0) == 2);
}

TEST_CASE("onnx: all invalid nodes are reported, but not the nodes that depend on them") {
  std::string model = Model(
      {Node("NoSuch", {"x"}, {"a"}, {}, "", "first"), Node("Relu", {"a"}, {"b"}),
       Node("Elu", {"x"}, {"c"}, {Int("beta", 1)}, "", "second"), Node("Add", {"b", "c"}, {"y"})},
      {Info("x", kFloat, {2})}, {Info("y")});
  CHECK(
      ErrorsOf(model) ==
      "error[unsupported-operator]: NoSuch: operator not supported\n"
      "  at node \"first\" (output \"a\"), opset 17\n"
      "  help: `mlc ops option 'frontend' onnx` lists the supported operators\n"
      "error[unsupported-attribute]: Elu: attribute \"beta\" is not supported\n"
      "  at node \"second\" (output \"c\"), opset 17\n"
      "  help: option 'replace' Elu.beta=VALUE compiles with a different value, which changes the "
      "results");
}

TEST_CASE("onnx: malformed graphs are refused") {
  auto error = [](const std::vector<std::string>& nodes, const std::string& id) {
    return ErrorsOf(Model(nodes, {Info("x", kFloat, {2})}, {Info("y")}))
        .starts_with("error[" + id + "]");
  };
  CHECK(error({Node("Relu", {"z"}, {"y"})}, "bad-graph"));  // z is undefined
  CHECK(error({}, "bad-graph"));                            // y is undefined
  CHECK(error({Node("Relu", {"x"}, {"x"}), Node("Relu", {"x"}, {"y"})},
              "bad-graph"));  // x is produced twice
  CHECK(error({Node("Relu", {"x"}, {"y"}), Node("Elu", {"x"}, {"y"})},
              "bad-graph"));                                    // y is produced twice
  CHECK(error({Node("Add", {"x", "y"}, {"y"})}, "bad-graph"));  // a cycle
  CHECK(error({Node("Relu", {}, {"y"})}, "bad-graph"));         // a missing input
  CHECK(error({Node("Add", {"x", ""}, {"y"})}, "bad-graph"));
  CHECK(error({Node("Sigmoid", {"x", "x"}, {"y"})}, "bad-graph"));  // too many inputs
  CHECK(error({Node("Softmax", {"x"}, {"y"}, {Int("axis", 7)})}, "bad-attribute"));
  CHECK(error({Node("Softmax", {"x"}, {"y"}, {Text("axis", "1")})}, "bad-attribute"));
  CHECK(ErrorsOf(Model({}, {}, {})).starts_with("error[bad-graph]"));
  CHECK(ErrorsOf(Unary("Relu", kFloat, {-5})).starts_with("error[input-shape]"));
  CHECK(ErrorsOf(Model({Node("Add", {"x", "b"}, {"y"})}, {Info("x", kFloat, {2})}, {Info("y")},
                       {Proto<int64_t>("b", {2}, {1, 2})}))
            .starts_with("error[bad-operand]"));
}

TEST_CASE("onnx: the selected branch of an If with a constant condition is inlined") {
  std::string then_graph = Graph({Node("Relu", {"x"}, {"r"})}, {}, {Info("r")});
  std::string else_graph = Graph({Node("NoSuch", {"x"}, {"s"})}, {}, {Info("s")});
  std::string model = Model(
      {Node(
          "If", {"c"}, {"y"},
          {GraphAttribute("then_branch", then_graph), GraphAttribute("else_branch", else_graph)})},
      {Info("x", kFloat, {2})}, {Info("y")}, {Proto("c", kBool, {}, std::string(1, 1))});
  CHECK(Operators(Import(model)) == Names{"relu"});
}

TEST_CASE("onnx: function bodies are inlined with the call's attributes") {
  std::string body = Bytes(7, Node("Elu", {"a"}, {"e"}, {Reference("alpha", "slope", 1)})) +
                     Bytes(7, Node("Relu", {"e"}, {"b"}));
  std::string function = Bytes(1, "F") + Bytes(10, "my") + Bytes(4, "a") + Bytes(5, "b") +
                         Bytes(6, "slope") + body + Bytes(9, Number(2, 17));
  std::string more = Bytes(25, function) + Opset(1, "my");
  std::string model = Model({Node("F", {"x"}, {"y"}, {Float("slope", 0.25f)}, "my")},
                            {Info("x", kFloat, {2})}, {Info("y")}, {}, 17, more);
  Program program = Import(model);
  CHECK(Operators(program) == Names{"elu", "relu"});
  CHECK(program.main()->body.outputs()[0]->def->value("x")->def->constant("alpha").Double(0) ==
        0.25);
}

TEST_CASE("onnx: recursive functions and functions that expand without bound are refused") {
  auto function = [](const std::string& name, const std::string& body) {
    return Bytes(25, Bytes(1, name) + Bytes(10, "my") + Bytes(4, "a") + Bytes(5, "b") + body +
                         Bytes(9, Number(2, 17)) + Bytes(9, Bytes(1, "my") + Number(2, 1)));
  };
  auto call = [](const std::string& name, const std::string& in, const std::string& out) {
    return Bytes(7, Node(name, {in}, {out}, {}, "my"));
  };
  std::string more = function("F0", call("F0", "a", "b")) + Opset(1, "my");
  auto model = [&](const std::string& name) {
    return Model({Node(name, {"x"}, {"y"}, {}, "my")}, {Info("x", kFloat, {2})}, {Info("y")}, {},
                 17, more);
  };
  CHECK_THAT(ErrorsOf(model("F0")), ContainsSubstring("error[resource-limit]"));
  for (int i = 1; i < 40; ++i) {
    std::string inner = fmt::format("F{}", i + 1);
    more += function(fmt::format("F{}", i), call(inner, "a", "t") + call(inner, "t", "b"));
  }
  more += function("F40", Bytes(7, Node("Relu", {"a"}, {"b"})));
  CHECK_THAT(ErrorsOf(model("F1")), ContainsSubstring("error[resource-limit]"));
}

TEST_CASE("onnx: inputs without a shape and empty inputs") {
  std::string unknown = Model({Node("Relu", {"x"}, {"y"})},
                              {Bytes(1, "x") + Bytes(2, Bytes(1, Number(1, kFloat)))}, {Info("y")});
  CHECK_THAT(ErrorsOf(unknown), ContainsSubstring("help: pass option 'shape' x=DIMS"));
  CHECK(ToString(Import(unknown, {.shapes = {{"x", {2, 2}}}}).main()->body.inputs[0]->type.shape) ==
        "[2, 2]");
  std::string empty = Model({Node("ReduceSum", {"x", "axes"}, {"y"})},
                            {Info("x", kFloat, {2, 3}), Info("axes", kInt64, {0})}, {Info("y")});
  CHECK(Import(empty).main()->inputs.size() == 1);
}

TEST_CASE("onnx: nodes of old opsets without inputs are refused") {
  for (const char* op : {"Clip", "Dropout"})
    CHECK_THAT(ErrorsOf(Model({Node(op, {}, {"y"}, {Float("max", 6)})}, {}, {Info("y")}, {}, 6)),
               ContainsSubstring("input 0 is missing"));
}

TEST_CASE("onnx: broadcasting by attributes before opset 7") {
  std::string model =
      Model({Node("Add", {"x", "w"}, {"y"}, {Int("broadcast", 1), Int("axis", 1)})},
            {Info("x", kFloat, {2, 3, 4})}, {Info("y")}, {Proto<float>("w", {3}, {1, 2, 3})}, 6);
  Program program = Import(model);
  CHECK(ToString(program.main()->body.outputs()[0]->def->value("y")->type.shape) == "[3, 1]");
}

}  // namespace
}  // namespace mlc::test
