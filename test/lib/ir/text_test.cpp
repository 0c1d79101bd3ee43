#include "lib/ir/text.h"

#include "test/catch.h"
#include "test/expected_error.h"
#include "test/lib/ir/text_ops.h"

namespace mlc::test {
namespace {

Program Parse(std::string_view text) { return ParseText(text, "test.mil", SmallOps()); }

std::string ForPeople(const Program& program, int64_t max_elements = 0) {
  TextOptions options;
  options.inline_limit = 8;
  options.max_elements = max_elements;
  return PrintText(program, options);
}

// Expects that the readable form of the text round trips unchanged.
void Unchanged(std::string_view text) {
  Program program = Parse(text);
  Verify(program);
  CHECK(ForPeople(program) == text);
}

// Expects that text in Apple's format, in its own dialect, round trips unchanged.
void UnchangedApple(std::string_view text) {
  Program program = Parse(text);
  Verify(program);
  TextOptions options;
  options.dialect = DialectOf(text);
  CHECK(PrintText(program, options) == text);
}

std::string Message(std::string_view text) {
  return Refusal([&] { Parse(text); });
}

}  // namespace

// The layout of Apple's compiler, according to its public model.mil files.
TEST_CASE("text: a dimension may start with a negated symbol") {
  // Sums are printed in symbol order; the first symbol here is negative.
  Program program =
      ParseText("func main<ios17>(tensor<fp32, [z - a, 2 - 3*z]> x) { y = relu(x = x); } -> (y);",
                "test.mil", SmallOps());
  TextOptions people{.inline_limit = 8};
  std::string printed = PrintText(program, people);
  CHECK_THAT(printed, ContainsSubstring("[-a + z, "));
  CHECK(PrintText(ParseText(printed, "again.mil", SmallOps()), people) == printed);
}

TEST_CASE("text: Apple's format, program(1.0)") {
  UnchangedApple(R"(program(1.0)
[buildInfo = dict<tensor<string, []>, tensor<string, []>>({{"coremlc-version", "3404.23.1"}, {"coremltools-version", "8.3.0"}})]
{
    func main<ios16>(tensor<fp16, [1, 4]> a, tensor<fp16, [1, 4]> b) {
            tensor<int32, []> axis = const()[name = tensor<string, []>("op_axis"), val = tensor<int32, []>(-1)];
            tensor<bool, []> inter = const()[name = tensor<string, []>("inter"), val = tensor<bool, []>(false)];
            tensor<fp16, [1, 8]> c = concat(axis = axis, interleave = inter, values = (a, b))[name = tensor<string, []>("c")];
            tensor<fp16, [1, 1]> v, tensor<int32, [1, 1]> i = topk(x = c)[name = tensor<string, []>("top")];
        } -> (v, i);
})");
}

TEST_CASE("text: Apple's format, program(1.3), several functions") {
  UnchangedApple(R"(program(1.3)
[buildInfo = dict<string, string>({{"coremlc-version", "3600.25.1"}})]
{
    func first<ios18>(tensor<fp32, [?]> input) [FlexibleShapeInformation = tuple<tuple<string, dict<string, tensor<int32, [?]>>>, tuple<string, dict<string, list<tensor<int32, [2]>, ?>>>>((("DefaultShapes", {{"input", [4]}}), ("RangeDims", {{"input", [[0, 4]]}})))] {
            tensor<fp32, [?]> output = relu(x = input);
        } -> (output);
    func second<ios17>(tensor<int32, [1]> x) {
            int32 one = const()[val = int32(1)];
            tensor<int32, [1]> y = add(x = x, y = one)[name = string("y")];
            tensor<int32, [1]> z = add(x = y, y = tensor<int32, [1]>([-7]))[name = string("z")];
        } -> (z);
})");
}

TEST_CASE("text: flexible shapes become ports and symbols") {
  Program program = Parse(R"(func main<ios16>(tensor<fp16, [1, ?]> x) [FlexibleShapeInformation =
    tuple<tuple<string, dict<string, tensor<int32, [?]>>>, tuple<string, dict<string, dict<string, tensor<int32, [?]>>>>>
    ((("DefaultShapes", {{"x", [1, 8]}}), ("EnumeratedShapes", {{"00000000", {{"x", [1, 8]}}}, {"00000001", {{"x", [1, 4]}}}})))]
    { y = relu(x = x); } -> (y);)");
  const Function& main = *program.main();
  CHECK(main.inputs[0].default_shape == Dims{1, 8});
  CHECK(main.inputs[0].enumerated_shapes == std::vector<Dims>{{1, 8}, {1, 4}});
  CHECK(main.outputs[0].name == "y");
  const Symbol& symbol = program.main()->symbols.at(*main.body.inputs[0]->type.shape[1].symbol());
  CHECK(symbol.enumerated == std::vector<int64_t>{4, 8});
  CHECK(main.body.outputs()[0]->type == main.body.inputs[0]->type);
  TextOptions options;
  CHECK_THAT(
      PrintText(program, options),
      ContainsSubstring(
          R"(("EnumeratedShapes", {{"00000000", {{"x", [1, 8]}}}, {"00000001", {{"x", [1, 4]}}}}))"));
}

// Values are C99 hexadecimal; expected texts are from printf("%a"), and for fp16 subnormals from
// Apple's files.
TEST_CASE("text: hexadecimal floats") {
  UnchangedApple(R"(program(1.3)
{
    func main<ios18>() {
            tensor<fp16, [6]> h = const()[val = tensor<fp16, [6]>([0x1p-24, 0x1.5p-17, 0x1.388p+13, -0x0p+0, -inf, 0x1.dfp-5])];
            tensor<fp32, [5]> f = const()[val = tensor<fp32, [5]>([0x1.99999ap-4, 0x1p-149, nan, inf, 0x1.fffffep+127])];
            fp64 d = const()[val = fp64(0x1.999999999999ap-4)];
            bf16 b = const()[val = bf16(0x1.8p+0)];
        } -> (h, f, d, b);
})");
}

TEST_CASE("text: integers, strings and nested brackets") {
  UnchangedApple(R"(program(1.3)
{
    func main<ios18>() {
            tensor<int32, [2, 1, 2]> a = const()[val = tensor<int32, [2, 1, 2]>([[[1, -2]], [[3, 4]]])];
            tensor<int4, [3]> b = const()[val = tensor<int4, [3]>([-8, 7, -1])];
            tensor<uint3, [3]> c = const()[val = tensor<uint3, [3]>([1, 7, 4])];
            uint64 d = const()[val = uint64(18446744073709551615)];
            int64 e = const()[val = int64(-9223372036854775808)];
            tensor<string, [2]> f = const()[val = tensor<string, [2]>(["a\"b\\c\n", "ä"])];
            tensor<bool, [0]> g = const()[val = tensor<bool, [0]>([])];
            tensor<fp32, [2, 0]> h = const()[val = tensor<fp32, [2, 0]>([[], []])];
        } -> (a, b, c, d, e, f, g, h);
})");
}

TEST_CASE("text: blob references") {
  constexpr std::string_view kText = R"(program(1.3)
{
    func main<ios17>() {
            tensor<fp16, [300]> w = const()[val = tensor<fp16, [300]>(BLOBFILE(path = string("@model_path/weights/weight.bin"), offset = uint64(64)))];
            tensor<fp32, [4]> c = constexpr_affine_dequantize()[axis = int32(0), name = string("c"), quantized_data = tensor<int8, [4]>(BLOBFILE(path = string("@model_path/weights/weight.bin"), offset = uint64(128))), scale = fp32(0x1p-1), zero_point = int8(-1)];
        } -> (w, c);
})";
  std::vector<uint64_t> offsets;
  ReadBlobFn read = [&](const std::string& path, uint64_t offset, DType dtype, const Dims& dims) {
    CHECK(path == "@model_path/weights/weight.bin");
    offsets.push_back(offset);
    return Tensor::Full(dtype, dims, static_cast<double>(offset));
  };
  Program program = ParseText(kText, "test.mil", SmallOps(), read);
  CHECK(offsets == std::vector<uint64_t>{64, 128});
  TextOptions options;
  options.dialect = TextOptions::Dialect::k1_3;
  options.blob = [](const Tensor& tensor) -> std::optional<TextOptions::Blob> {
    if (tensor.rank() == 0 || tensor.dtype() == DType::kString) return std::nullopt;
    return TextOptions::Blob{"@model_path/weights/weight.bin", tensor.size() == 300 ? 64u : 128u};
  };
  CHECK(PrintText(program, options) == kText);

  Program without = Parse(kText);
  try {
    without.main()->body.outputs()[0]->constant().Double(0);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.id() == "bad-file");
    CHECK(error.location().ToString() == "@model_path/weights/weight.bin, offset 64");
  }
  options.blob = [](const Tensor& tensor) -> std::optional<TextOptions::Blob> {
    if (tensor.absent_file().empty()) return std::nullopt;
    return TextOptions::Blob{tensor.absent_file(), tensor.file_view().offset};
  };
  CHECK(PrintText(without, options) == kText);
}

TEST_CASE("text: constexpr operands are attributes up to iOS17, literals since iOS18") {
  UnchangedApple(R"(program(1.3)
{
    func old<ios17>() {
            tensor<fp16, [4]> y = constexpr_lut_to_dense()[indices = tensor<uint8, [1]>([27]), lut = tensor<fp16, [4]>([0x0p+0, 0x1p+0, 0x1p+1, 0x1.8p+1]), name = string("y"), shape = tensor<uint32, [1]>([4])];
        } -> (y);
    func new<ios18>() {
            tensor<fp16, [4]> y = constexpr_lut_to_dense(indices = tensor<uint1, [4]>([0, 1, 1, 0]), lut = tensor<fp16, [1, 2, 1]>([[[0x0p+0], [0x1p+0]]]))[name = string("y")];
        } -> (y);
})");
}

TEST_CASE("text: states, lists and calls without results") {
  UnchangedApple(R"(program(1.3)
{
    func main<ios18>(state<tensor<fp16, [1, 32]>> s, tensor<fp16, [1, 32]> x) {
            tensor<fp16, [1, 32]> r = read_state(input = s)[name = string("r")];
            tensor<fp16, [1, 32]> y = add(x = r, y = x)[name = string("y")];
            write_state(data = y, input = s)[name = string("w")];
            string a, dict<string, fp32> p = classify(classes = list<string, 2>(["cat", "dog"]), probabilities = y);
        } -> (y, a, p);
})");
  Program program =
      Parse("func main<ios18>(state<tensor<fp16, [4]>> s, fp16 x) { y = relu(x = x); } -> (y);");
  CHECK(program.main()->states.size() == 1);
  CHECK(program.main()->inputs.size() == 1);
}

TEST_CASE("text: nested blocks") {
  Unchanged(R"(func main<ios17>(tensor<fp32, [4]> x, bool p) {
  tensor<fp32, [4]> y = cond(pred = p)
    () {
      tensor<fp32, [4]> a = relu(x = x);
    } -> (a)
    () {
      tensor<fp32, [4]> b = add(x = x, y = 1.0);
    } -> (b);
  tensor<fp32, [4]> z = while_loop(loop_vars = y)
    (tensor<fp32, [4]> v) {
      bool go = cast(dtype = "bool", x = v);
    } -> (go)
    (tensor<fp32, [4]> u) {
      tensor<fp32, [4]> next = add(x = u, y = y);
    } -> (next);
} -> (z);
)");
  CHECK_THAT(Message("func main<ios17>(bool p, fp32 x) { fp32 y = cond(pred = p) () { a = relu(x = "
                     "x); } -> (a)"
                     " () { b = relu(x = a); } -> (b); } -> (y);"),
             ContainsSubstring("`a` is not defined here"));
}

TEST_CASE("text: sibling blocks may share names") {
  Unchanged(R"(func main<ios17>(tensor<fp32, [4]> x, bool p) {
  tensor<fp32, [4]> y = cond(pred = p)
    () {
      tensor<fp32, [4]> a = relu(x = x);
    } -> (a)
    () {
      tensor<fp32, [4]> a = add(x = x, y = 1.0);
    } -> (a);
  tensor<fp32, [4]> a = relu(x = y);
} -> (a);
)");
  CHECK_THAT(
      Message("func main<ios17>(bool p, fp32 x) { a = relu(x = x); fp32 y = cond(pred = p) ()"
              " { a = relu(x = x); } -> (a) () { b = relu(x = x); } -> (b); } -> (y);"),
      ContainsSubstring("`a` is defined twice"));
}

TEST_CASE("text: iOS17 functions in program(1.3) round trip") {
  // The layout of a public bundle of Apple's compiler 3600.25.1 with functions of an older opset.
  UnchangedApple(R"(program(1.3)
{
    func main<ios17>(tensor<fp32, [4]> x) {
            tensor<fp32, [4]> y = add(x = x, y = fp32(0x1p-1));
        } -> (y);
})");
  Program program = Parse("program(1.3) { func main<ios17>(fp32 x) { y = relu(x = x); } -> (y); }");
  CHECK_THAT(PrintText(program, {}), ContainsSubstring("program(1.3)"));
}

TEST_CASE("text: small constants are written inline") {
  Unchanged(R"(func main<ios17>(tensor<fp16, [2, 3]> x) {
  tensor<fp16, [2, 3]> a = add(x = x, y = 0.1);
  tensor<fp16, [2, 3]> b = softmax(axis = -1, x = a);
  tensor<fp16, [2, 3]> c = add(x = b, y = fp16(0.5));
  int32 shared = const()[val = 1];
  tensor<fp16, [2, 3]> d = softmax(axis = shared, x = c);
  tensor<fp16, [2, 3]> e = softmax(axis = shared, x = d);
  tensor<fp16, [6]> f = concat(axis = 0, values = ([0.0, 1.0], const tensor<fp16, [2]>([2.0, -inf]), e));
  tensor<fp16, [3, 3]> g = const()[val = fill(-1.5)];
  fp16 h = add(x = const fp16(2.0), y = 2.0);
} -> (f, g, h);
)");
}

TEST_CASE("text: literals stay literals, inline constants become operations") {
  Program program = Parse(
      "func main<ios17>(fp16 x) { a = add(x = x, y = 0.5); b = add(x = a, y = fp16(0.5)); } -> "
      "(b);");
  const Operation* b = program.main()->body.outputs()[0]->def;
  CHECK(b->arg("y")[0].constant().Double(0) == 0.5);
  const Operation* a = b->value("x")->def;
  CHECK(a->value("y")->name == "a_y");
  CHECK(a->constant("y").dtype() == DType::kFp16);
  CHECK(a->location->ToString() == "test.mil, line 1");
}

TEST_CASE("text: a named value takes precedence over an unnamed constant") {
  Unchanged(R"(func main<ios17>(fp32 x) {
  fp32 a = add(x = x, y = 0.5);
  fp32 a_y = add(x = a, y = 1.0);
} -> (a_y);
)");
}

TEST_CASE("text: decimal floats round trip exactly") {
  for (double value : {0.1, 1.0 / 3, 65504.0, 6e-8, 1e-45, 3.4028234e38, 16777217.0})
    for (DType dtype : {DType::kFp16, DType::kBf16, DType::kFp32, DType::kFp64}) {
      Tensor constant = Tensor::Scalar<double>(value).Cast(dtype);
      Program program = Parse(fmt::format(
          "func main<ios17>() {{ {} c = const()[val = {}]; }} -> (c);", Name(dtype), "1.0"));
      const_cast<Operation*>(program.main()->body.outputs()[0]->def)->val = constant;
      Program again = Parse(ForPeople(program));
      INFO(Name(dtype) << " " << value);
      CHECK(again.main()->body.outputs()[0]->constant().SameBytes(constant));
    }
}

TEST_CASE("text: symbols") {
  Unchanged(R"([symbols = {k in 3..17, n in 1|2|4, w in 1..64}]
func main<ios17>(tensor<fp32, [n, h, w]> x, tensor<fp32, [k, floordiv(w, 2)]> y) {
  tensor<fp32, [n, h, w]> a = relu(x = x);
  tensor<fp32, [w*max(h - 1, 2)]> b = cast(dtype = "fp32", x = a);
} -> (a, b);
)");
  Program program = Parse("func main<ios17>(tensor<fp32, [h, ?]> x) { y = relu(x = x); } -> (y);");
  CHECK(program.main()->symbols.at("h").high == 4096);
  CHECK(program.main()->symbols.size() == 2);
}

TEST_CASE("text: each function has its own symbols") {
  std::string text = R"([symbols = {x in 1..4}]
func main<ios17>(tensor<fp32, [x]> a) {
  tensor<fp32, [x]> b = relu(x = a);
} -> (b);
func plain<ios17>(tensor<fp32, [x]> a) {
  tensor<fp32, [x]> b = relu(x = a);
} -> (b);
[symbols = {x in 8|16}]
func other<ios17>(tensor<fp32, [x]> a) {
  tensor<fp32, [x]> b = relu(x = a);
} -> (b);
)";
  Unchanged(text);
  Program program = Parse(text);
  Verify(program);
  auto x = [&](int function) { return program.functions[function]->symbols.at("x"); };
  CHECK((x(0).low == 1 && x(0).high == 4));
  CHECK((x(1).low == 1 && x(1).high == 4096));
  CHECK((x(2).low == 8 && x(2).high == 16));
  Program copy = Clone(program);
  CHECK(copy.functions[2]->symbols.at("x").enumerated == std::vector<int64_t>{8, 16});
}

TEST_CASE("text: a symbol is at least 1") {
  auto with = [](std::string_view symbols) {
    return Message(
        fmt::format("[symbols = {{{}}}] func main<ios17>(tensor<fp32, [n]> x) "
                    "{{ y = relu(x = x); }} -> (y);",
                    symbols));
  };
  for (std::string_view symbols : {"n in 0..4", "n in 0|4", "n in -3..4"})
    CHECK_THAT(with(symbols), ContainsSubstring("a size that may be 0 is written as s - 1"));
  CHECK_THAT(with("n in 4..3"), ContainsSubstring("the range is empty"));
  CHECK_THAT(with("n in 1..4, n in 2..4"), ContainsSubstring("duplicate `n`"));
  // An input whose description allows it to be empty.
  Program program = Parse(R"(func main<ios16>(tensor<fp16, [?]> x) [FlexibleShapeInformation =
    tuple<tuple<string, dict<string, list<tensor<int32, [2]>, ?>>>>((("RangeDims", {{"x", [[0, 7]]}})))]
    { y = relu(x = x); } -> (y);)");
  Verify(program);
  const Type& type = program.main()->body.inputs[0]->type;
  std::optional<std::pair<std::string, int64_t>> open = type.shape[0].symbol_and_offset();
  REQUIRE(open);
  CHECK(open->second == -1);
  CHECK(program.main()->symbols.at(open->first).high == 8);
}

TEST_CASE("text: omitted result types are inferred") {
  Program program = Parse(R"(func main<ios17>(tensor<fp32, [1, h]> x) {
    a = add(x = x, y = [1, 2, 3]);
    tensor<int32, [?, 2]> b = non_zero(x = x);
    tensor<int32, [count, 2]> c = non_zero(x = x);
  } -> (a, b, c);)");
  Verify(program);
  const std::vector<Value*>& outputs = program.main()->body.outputs();
  CHECK(outputs[0]->type == Type::Tensor(DType::kFp32, {1, 3}));
  CHECK(program.main()->symbols.contains(*(outputs[1]->type.shape[0] + 1).symbol()));  // may be 0
  CHECK(outputs[2]->type.shape[0] == Dim::Symbol("count"));
  CHECK_THAT(Message("func main<ios17>(fp32 x) { tensor<fp32, [2]> y = relu(x = x); } -> (y);"),
             ContainsSubstring("the stated type of y is fp32 [2], but relu returns fp32 []"));
  CHECK_THAT(
      Message(
          "func main<ios17>(tensor<fp32, [n]> x) { tensor<fp32, [2]> y = relu(x = x); } -> (y);"),
      ContainsSubstring("the stated type of y is fp32 [2], but relu returns fp32 [n]"));
  CHECK_THAT(Message("func main<ios17>(fp32 x) { y = cast(x = x, dtype = \"fp16\"); } -> (y);"),
             ContainsSubstring("cast has no type inference: write its result type"));
  CHECK_THAT(
      Message("func main<ios17>(tensor<fp32, [2]> x) {\n y = add(x = x, y = [1, 2, 3]); } -> (y);"),
      ContainsSubstring("at test.mil, line 2"));
}

TEST_CASE("text: the opset selects the form") {
  Program program =
      Parse(R"(func main<ios15>(fp32 x) { fp32 v, int32 i = topk(x = x, k = 1); } -> (v, i);
    func new<ios17>(fp32 x) { fp32 v, int32 i = topk(x = x, k = 1); } -> (v, i);)");
  CHECK(program.functions[0]->body.outputs()[0]->def->form->since == Opset::kIos15);
  CHECK(program.functions[1]->body.outputs()[0]->def->form->since == Opset::kIos16);
}

TEST_CASE("text: large constants are elided in the readable form") {
  Program program = Parse(
      "func main<ios17>() { tensor<int32, [2, 5]> c = const()[val = [[0, 1, 2, 3, 4], [5, 6, 7, 8, "
      "9]]]; } -> (c);");
  CHECK_THAT(ForPeople(program, 3), ContainsSubstring("val = [[0, 1, 2, ...], ...]]"));
  CHECK_THAT(Message(ForPeople(program, 3)), ContainsSubstring("bad-text"));
}

TEST_CASE("text: errors show the source line") {
  CHECK(Message("func main<ios17>(fp32 x) {\n  fp32 y = relu(x = z);\n} -> (y);") ==
        "error[bad-text]: `z` is not defined here\n"
        "  at test.mil, line 2:21\n"
        "  |   fp32 y = relu(x = z);\n"
        "  |                     ^\n"
        "  expected: an earlier result, an input or a constant");
  CHECK(Message("func main<ios17>(fp32 x) { y = rleu(x = x); } -> (y);") ==
        "error[unsupported-operator]: unknown operator rleu\n  at test.mil, line 1:32\n  "
        "help: see `mlc ops` for the list of operators");
}

TEST_CASE("text: error messages") {
  struct Case {
    std::string_view statement, message;
  };
  const Case cases[] = {
      {"y = relu(x x);", "expected: `=` (e.g. fp32 z = add(x = x, y = y);)"},
      {"y = relu(z = x);", "relu has no parameter `z`"},
      {"y = relu(x = x, x = x);", "duplicate `x`"},
      {"y = relu();", "relu lacks `x`"},
      {"y = softmax(x = x, axis = x);", "`axis` of softmax must be a constant"},
      {"y = relu(x = (x, x));", "`x` takes one operand, not 2"},
      {"x = relu(x = x);", "`x` is defined twice"},
      {"state = relu(x = x);", "`state` cannot be a name"},
      {"y, z = relu(x = x);", "relu has 1 results, but 2 are named"},
      {"flot y = relu(x = x);", "unknown type `flot`"},
      {"tensor<fp32, [-1]> y = relu(x = x);", "a dimension is negative"},
      {"tensor<fp32, [h*h*h*h*h*h*h*h*h*h*h*h*h*h*h*h*h]> y = relu(x = x);", "too many terms"},
      {"y = const()[val = int8(128)];", "`128` is not a valid int8"},
      {"y = const()[val = uint8(-1)];", "`-1` is not a valid uint8"},
      {"y = const()[val = fp32(1.0.0)];", "`1.0.0` is not a valid fp32"},
      {"y = const()[val = tensor<fp32, [2]>([1])];", "1 elements, but dimension 0 has size 2"},
      {"y = const()[val = [[1, 2], [3]]];", "1 elements, but dimension 1 has size 2"},
      {"y = const()[val = [[1, 2], 3]];", "the rows of a constant differ in nesting depth"},
      {"y = const()[val = [1, [2]]];", "the rows of a constant differ in nesting depth"},
      {"fp16 y = const()[val = fp32(1)];", "the value of y is fp32 [], but its type is fp16 []"},
      {"y = const();", "a const must have one result, a val and no arguments"},
      {"y = const()[val = string(\"\\q\")];", "is not a valid string"},
      {"y = const()[val = string(\"open)];", "unterminated string"},
      {"tensor<fp32, [1048577]> y = const()[val = fill(1)];",
       "fill() is limited to 1048576 numbers"},
      {"y = relu(x = x)[name = int32(1)];", "a name must be a single string"},
      {"y = add(x = x, y = dict<string, int32>({}));", "unexpected tuple, dict or list"},
      {"y = add(x = $);", "invalid character in MIL text"},
  };
  for (const Case& each : cases) {
    INFO(each.statement);
    CHECK_THAT(Message(fmt::format("func main<ios17>(fp32 x) {{ {} }} -> (x);", each.statement)),
               ContainsSubstring(std::string(each.message)));
  }
  CHECK_THAT(Message("program(2.0) { }"), ContainsSubstring("unknown version 2.0 of MIL text"));
  CHECK_THAT(Message("func main<ios9>() {} -> ();"), ContainsSubstring("unknown opset `ios9`"));
  CHECK_THAT(Message(R"(func main<ios16>(tensor<fp16, [?]> x) [FlexibleShapeInformation =
    tuple<tuple<string, dict<string, list<tensor<int32, [2]>, ?>>>>((("RangeDims", {{"x", [[2, 1]]}})))]
    { y = relu(x = x); } -> (y);)"),
             ContainsSubstring("empty range of sizes"));
  CHECK_THAT(Message(""), ContainsSubstring("unexpected the end of the text"));
}

TEST_CASE("text: a value may be named const, which builders do without a name") {
  const Program program = Parse(
      "func main<ios17>(fp32 x) { fp32 const = const()[val = fp32(1.0)]; y = add(x = const, y = "
      "x); "
      "z = add(x = y, y = const); } -> (z);");
  const std::string printed = PrintText(program);
  CHECK(PrintText(Parse(printed)) == printed);
}

TEST_CASE("text: IsMilText") {
  for (std::string_view text : {"program(1.0)", "// note\nfunc main", " [symbols = {}]"})
    CHECK(IsMilText(text));
  for (std::string_view text : {"", "PK", "\x08\x07", "\"open", "{"}) CHECK_FALSE(IsMilText(text));
  CHECK(DialectOf("// note\nprogram(1.0)\n{") == TextOptions::Dialect::k1_0);
  CHECK(DialectOf("func main") == TextOptions::Dialect::kAuto);
  CHECK(DialectOf("$") == TextOptions::Dialect::kAuto);
}

TEST_CASE("text: nesting depth and size are limited") {
  auto nested = [](std::string_view open, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += open;
    return text;
  };
  CHECK_THAT(Message("func main<ios17>(" + nested("list<", 100000)),
             ContainsSubstring("nested too deeply"));
  CHECK_THAT(Message("func main<ios17>() { y = const()[val = " + nested("[", 100000)),
             ContainsSubstring("nested too deeply"));
  CHECK_THAT(Message("func main<ios17>(tensor<fp32, [" + nested("(", 100000)),
             ContainsSubstring("bad-text"));
  CHECK_THAT(Message("func main<ios17>(bool p, fp32 x) {" +
                     nested("fp32 y = cond(pred = p) () {", 100000)),
             ContainsSubstring("nested too deeply"));
  CHECK_THAT(Message("func main<ios17>() { tensor<fp32, [9223372036854775807, 4]> y = const()[val "
                     "= BLOBFILE(path = "
                     "string(\"w\"), offset = uint64(64))]; } -> (y);"),
             ContainsSubstring("resource-limit"));
}

TEST_CASE("text: every truncation is an error") {
  constexpr std::string_view kText = R"([symbols = {n in 1..8}]
func main<ios17>(tensor<fp32, [n, 4]> x, bool p) {
  tensor<fp32, [n, 4]> a = add(x = x, y = 0x1.8p+0);
  tensor<int8, [2]> w = const()[val = [-1, 2]];
  tensor<fp32, [n, 4]> y = cond(pred = p)
    () {
      tensor<fp32, [n, 4]> b = relu(x = a)[name = string("b")];
    } -> (b);
} -> (y, w);)";
  Parse(kText);
  for (size_t size = 0; size < kText.size(); ++size) {
    INFO(size);
    CHECK_THROWS_AS(Parse(kText.substr(0, size)), Error);
  }
  for (size_t i = 0; i < kText.size(); ++i)
    for (char c : {'\0', '(', '}', ',', '9', 'x', '\xff'}) {
      std::string damaged(kText);
      damaged[i] = c;
      try {
        ForPeople(Parse(damaged));
      } catch (const Error&) {
      }
    }
}

}  // namespace mlc::test
