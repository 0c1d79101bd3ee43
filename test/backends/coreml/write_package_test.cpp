#include "backends/coreml/write_package.h"

#include "backends/coreml/lower.h"
#include "frontends/coreml/coreml.h"
#include "lib/coreml/package_layout.h"
#include "lib/ir/builder.h"
#include "lib/ir/encoding.h"
#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "test/backends/coreml/package_files.h"
#include "test/backends/coreml/sample_programs.h"
#include "test/catch.h"

using namespace mlc;
using namespace mlc::coreml;
using mlc::test::FilesOf;
using mlc::test::Flexible;
using mlc::test::OddOutputs;
using mlc::test::ScratchFolder;
using mlc::test::SmallNetwork;
using mlc::test::TopK;

namespace {

PackageResult Write(const Program& program, const std::filesystem::path& path,
                    PackageOptions options) {
  Diagnostics diagnostics;
  return WritePackage(program, path, options, diagnostics);
}
// Writes for the lowest target.
PackageResult Write(const Program& program, const std::filesystem::path& path) {
  Diagnostics diagnostics;
  Opset target = LowestTarget(program, {}, passes::PassContext::Precision::kFp32, diagnostics);
  return WritePackage(program, path, {.target = target}, diagnostics);
}
Program Read(const std::filesystem::path& path) {
  Diagnostics diagnostics;
  return ImportCoreml(path, diagnostics);
}

}  // namespace

TEST_CASE("a package survives a round trip byte for byte") {
  ScratchFolder folder;
  Write(SmallNetwork(), folder / "a.mlpackage");
  Program back = Read(folder / "a.mlpackage");
  Verify(back);
  Write(back, folder / "b.mlpackage");
  CHECK(FilesOf(folder / "a.mlpackage") == FilesOf(folder / "b.mlpackage"));
  CHECK(PrintText(back) == PrintText(Read(folder / "b.mlpackage")));
}

TEST_CASE("defaults are emitted explicitly, in the element type of the operation") {
  ScratchFolder folder;
  Write(SmallNetwork(DType::kFp16), folder / "a.mlpackage");
  Program back = Read(folder / "a.mlpackage");
  int seen = 0;
  ForEachOperation(*back.main(), [&](Operation* op) {
    if (op->is("conv")) {
      ++seen;
      for (const char* param : {"strides", "pad_type", "pad", "dilations", "groups"})
        CHECK(op->has(param));
      CHECK(op->value("pad_type")->name == "conv_pad_type_0");
      CHECK(op->constant("strides").Ints() == std::vector<int64_t>{1, 1});
    }
    if (op->is("linear")) {
      ++seen;
      CHECK(op->constant("bias").dtype() == DType::kFp16);
    }
  });
  CHECK(seen == 2);
}

TEST_CASE("the bytes of a package do not depend on the number of threads") {
  ScratchFolder folder;
  Program program(&Ops());
  Function* main = program.Add("main");
  Value* x = main->AddInput("x", Type::Tensor(DType::kFp32, ToShape({1, 1024})));
  Diagnostics diagnostics;
  Builder b(main->body, diagnostics);
  for (int layer = 0; layer < 4; ++layer) {
    std::vector<float> weight(1024 * 1024);
    for (size_t i = 0; i < weight.size(); ++i)
      weight[i] = static_cast<float>((i * 31 + (layer % 3) * 7) % 1001);
    x = b.Make("linear", {{"x", x}, {"weight", Tensor::Of<float>({1024, 1024}, weight)}});
  }
  main->body.SetOutputs({x});
  PackageResult one = Write(program, folder / "one.mlpackage", {.threads = 1});
  PackageResult two = Write(program, folder / "two.mlpackage", {.threads = 2});
  PackageResult many = Write(program, folder / "many.mlpackage", {.threads = 7});
  CHECK(one.content_hash == PackageHash(folder / "one.mlpackage"));
  CHECK(one.content_hash == two.content_hash);
  CHECK(one.content_hash == many.content_hash);
  CHECK(FilesOf(folder / "one.mlpackage") == FilesOf(folder / "two.mlpackage"));
  CHECK(FilesOf(folder / "one.mlpackage") == FilesOf(folder / "many.mlpackage"));
  // The first and the last weight are equal and share a record, as do the four zero biases.
  CHECK(one.weight_bytes == 64 + 3 * (64 + 4 * 1024 * 1024) + (64 + 4 * 1024));
}

TEST_CASE("constants that differ only in the middle are not deduplicated") {
  ScratchFolder folder;
  Program program(&Ops());
  Function* main = program.Add("main");
  Value* x = main->AddInput("x", Type::Tensor(DType::kFp32, ToShape({1 << 20})));
  Diagnostics diagnostics;
  Builder b(main->body, diagnostics);
  std::vector<float> values(1 << 20, 1.0f);
  Value* first = b.Make("add", {{"x", x}, {"y", Tensor::Vector(values)}});
  values[300000] = 2;
  Value* second = b.Make("add", {{"x", x}, {"y", Tensor::Vector(values)}});
  main->body.SetOutputs({first, second});
  Write(program, folder / "a.mlpackage", {.threads = 2});
  Program back = Read(folder / "a.mlpackage");
  std::vector<float> found;
  ForEachOperation(*back.main(), [&](Operation* op) {
    if (op->is("add")) found.push_back(op->constant("y").data<float>()[300000]);
  });
  CHECK(found == std::vector<float>{1, 2});
}

TEST_CASE("constants of types that MIL lacks are narrowed exactly") {
  ScratchFolder folder;
  Program program(&Ops());
  Function* main = program.Add("main");
  Value* x = main->AddInput("x", Type::Tensor(DType::kInt32, ToShape({2})));
  Diagnostics diagnostics;
  Builder b(main->body, diagnostics);
  main->body.SetOutputs(
      {b.Make("add", {{"x", x}, {"y", b.Const(Tensor::Vector<int64_t>({7, INT64_MAX}))}})});
  Write(program, folder / "a.mlpackage");
  Program back = Read(folder / "a.mlpackage");
  Tensor y;
  ForEachOperation(*back.main(), [&](Operation* op) {
    if (op->is("add")) y = op->constant("y");
  });
  REQUIRE(y);
  CHECK(y.dtype() == DType::kInt32);
  CHECK(y.Ints() == std::vector<int64_t>{7, INT32_MAX});
}

TEST_CASE("outputs that Core ML does not support get an identity") {
  ScratchFolder folder;
  Program program = OddOutputs();
  Write(program, folder / "a.mlpackage");
  Program back = Read(folder / "a.mlpackage");
  std::vector<std::string> names, operators;
  for (const Value* output : back.main()->body.outputs()) {
    names.push_back(output->name);
    operators.emplace_back(output->def->def->name);
  }
  CHECK(names == std::vector<std::string>{"same", "y", "again", "c"});
  CHECK(operators == std::vector<std::string>{"identity", "relu", "identity", "identity"});
}

TEST_CASE("the interface of a program survives a round trip") {
  ScratchFolder folder;
  Program program = SmallNetwork();
  Function* main = program.main();
  Port input;
  input.name = "x";
  input.source_name = "input.1";
  input.source_dtype = DType::kFp64;
  input.source_shape = {Dim::Symbol("n"), Dim(3), Dim(8), Dim(8)};
  main->inputs = {input};
  program.interface.author = "A";
  program.interface.license = "L";
  program.interface.short_description = "D";
  program.interface.version = "1.2";
  program.interface.metadata = {{"a", "1"}, {"z", ""}};
  Write(program, folder / "a.mlpackage");
  Program back = Read(folder / "a.mlpackage");
  CHECK(back.interface.author == "A");
  CHECK(back.interface.license == "L");
  CHECK(back.interface.short_description == "D");
  CHECK(back.interface.version == "1.2");
  CHECK(back.interface.metadata == program.interface.metadata);
  REQUIRE(back.main()->inputs.size() == 1);
  CHECK(back.main()->inputs[0].source_name == "input.1");
  CHECK(back.main()->inputs[0].source_dtype == DType::kFp64);
  CHECK(ToString(back.main()->inputs[0].source_shape) == "[n, 3, 8, 8]");
  Write(back, folder / "b.mlpackage");
  CHECK(FilesOf(folder / "a.mlpackage") == FilesOf(folder / "b.mlpackage"));
}

TEST_CASE("flexible inputs keep their symbols and bounds") {
  ScratchFolder folder;
  Program program = Flexible();
  Write(program, folder / "a.mlpackage");
  Program back = Read(folder / "a.mlpackage");
  CHECK(back.main()->body.inputs[0]->type.shape == back.main()->body.inputs[1]->type.shape);
  CHECK(ToString(back.main()->body.outputs()[0]->type.shape) == "[n, 4]");
  CHECK(back.main()->symbols.at("n").low == 2);
  CHECK(back.main()->symbols.at("n").high == 16);
  CHECK(back.main()->inputs[0].default_shape == Dims{2, 4});
}

TEST_CASE("listed sizes become enumerated shapes") {
  ScratchFolder folder;
  Program program = Flexible({2, 4, 9});
  Write(program, folder / "a.mlpackage");
  Program back = Read(folder / "a.mlpackage");
  CHECK(back.main()->inputs[0].enumerated_shapes == std::vector<Dims>{{2, 4}, {4, 4}, {9, 4}});
  CHECK(back.main()->symbols.at("n").enumerated == std::vector<int64_t>{2, 4, 9});
}

TEST_CASE("topk is written in the form of the target and survives a round trip") {
  bool indices = GENERATE(true, false);
  Opset target = GENERATE(Opset::kIos15, Opset::kIos16, Opset::kIos17, Opset::kIos18);
  ScratchFolder folder;
  Program program = TopK(indices);
  Write(program, folder / "a.mlpackage", {.target = target});
  Program back = Read(folder / "a.mlpackage");
  Verify(back);
  CHECK(back.main()->opset == target);
  CHECK(back.main()->body.outputs().size() == (indices ? 2 : 1));
  ForEachOperation(*back.main(), [&](Operation* op) {
    if (!op->is("topk")) return;
    // Before iOS16 there are always two results.
    CHECK(op->results.size() == (indices || target == Opset::kIos15 ? 2 : 1));
    CHECK(op->has("return_indices") == (target >= Opset::kIos16));
    CHECK(op->has("output_indices_dtype") == (indices && target >= Opset::kIos17));
  });
  Write(back, folder / "b.mlpackage", {.target = target});
  CHECK(FilesOf(folder / "a.mlpackage") == FilesOf(folder / "b.mlpackage"));
}

TEST_CASE("an explicit target that is too old is rejected with the name of the operation") {
  ScratchFolder folder;
  Program program(&Ops());
  Function* main = program.Add("main");
  Value* x = main->AddInput("x", Type::Tensor(DType::kFp32, ToShape({4})));
  Diagnostics diagnostics;
  Builder b(main->body, diagnostics);
  b.SetName("narrow");
  Value* narrow = b.Make("cast", {{"x", x}, {"dtype", "int8"}});
  b.SetName("wide");
  main->body.SetOutputs({b.Make("cast", {{"x", narrow}, {"dtype", "fp32"}})});
  try {
    WritePackage(program, folder / "a.mlpackage", {.target = Opset::kIos16}, diagnostics);
    FAIL("written");
  } catch (const Errors& errors) {
    REQUIRE(errors.errors().size() == 2);
    CHECK(errors.errors()[0].id() == "target-too-old");
    CHECK_THAT(errors.errors()[0].what(),
               ContainsSubstring("requires iOS17, but the target is iOS16"));
    CHECK_THAT(errors.errors()[0].what(), ContainsSubstring("narrow"));
  }
  CHECK(!std::filesystem::exists(folder / "a.mlpackage"));

  CHECK(LowestTarget(program, {}, passes::PassContext::Precision::kFp32, diagnostics) ==
        Opset::kIos17);
  REQUIRE(diagnostics.notes().size() == 1);
  CHECK(diagnostics.notes()[0] ==
        "target raised to iOS17: cast: a result of type int8 requires iOS17, but the target is "
        "iOS16");
  REQUIRE(diagnostics.decisions().size() == 1);
  CHECK(Write(program, folder / "a.mlpackage").target == Opset::kIos17);
}

TEST_CASE("operations that no target supports do not raise the target") {
  ScratchFolder folder;
  Program program(&Ops());
  Function* main = program.Add("main");
  Value* x = main->AddInput("x", Type::Tensor(DType::kFp32, ToShape({2, 2, 2, 2, 2, 2})));
  Diagnostics diagnostics;
  Builder b(main->body, diagnostics);
  main->body.SetOutputs({b.Make("relu", {{"x", x}})});
  CHECK(LowestTarget(program, {}, passes::PassContext::Precision::kFp32, diagnostics) ==
        Opset::kIos16);
  CHECK(diagnostics.notes().empty());
  CHECK_THROWS_AS(Write(program, folder / "a.mlpackage"), Errors);
}

TEST_CASE("a block-quantised constant raises the target if it is stored in blocks") {
  auto precision =
      GENERATE(passes::PassContext::Precision::kFp32, passes::PassContext::Precision::kFp16);
  struct {
    DType data;
    int64_t rows, blocks;
    double scale;
    Opset target;
  } cases[] = {
      {DType::kInt8, 64, 4, 0.5, Opset::kIos18},   // blocks
      {DType::kInt8, 64, 1, 0.5, Opset::kIos16},   // a scale for each row
      {DType::kUint4, 64, 1, 0.5, Opset::kIos18},  // four bits
      {DType::kInt8, 2, 4, 0.5, Opset::kIos16},    // too small to be stored in encoded form
      {DType::kInt8, 64, 4, 1e-6,                  // scales outside the range of fp16
       precision == passes::PassContext::Precision::kFp32 ? Opset::kIos18 : Opset::kIos16}};
  for (const auto& c : cases) {
    INFO(Name(c.data) << " " << c.rows << " rows of " << c.blocks << " blocks");
    Program program(&Ops());
    Function* main = program.Add("main");
    Value* x = main->AddInput("x", Type::Tensor(DType::kFp32, ToShape({1, 64})));
    Diagnostics diagnostics;
    Builder b(main->body, diagnostics);
    b.SetName("w");
    Value* w = b.Const(
        Tensor::Encoded({.data = Tensor::Full(c.data, {c.rows, 64}, 3),
                         .scale = Tensor::Full(DType::kFp32, {c.rows, c.blocks}, c.scale)}));
    main->body.SetOutputs({b.Make("matmul", {{"x", x}, {"y", w}, {"transpose_y", true}})});
    CHECK(LowestTarget(program, {}, precision, diagnostics) == Opset::kIos16);
    CHECK(LowestTarget(program, passes::DefaultPipeline(), precision, diagnostics) == c.target);
    CHECK(diagnostics.notes().size() == (c.target == Opset::kIos18 ? 1 : 0));
    // The pass produces the form that the target was raised for.
    passes::PassContext context{diagnostics, precision, c.target};
    passes::RunPasses(program, passes::DefaultPipeline(), context);
    CHECK(passes::Histogram(program).contains("constexpr_blockwise_shift_scale") ==
          (c.target == Opset::kIos18));
  }
}

TEST_CASE("the operators of a package are counted as written") {
  ScratchFolder folder;
  Program program = OddOutputs();
  PackageResult result = Write(program, folder / "a.mlpackage");
  CHECK(result.operators == std::map<std::string, int64_t>{{"identity", 3}, {"relu", 1}});
  CHECK(result.operators == passes::Histogram(Read(folder / "a.mlpackage")));
}

TEST_CASE("names of emitted defaults do not collide with existing names") {
  ScratchFolder folder;
  Program program(&Ops());
  Function* main = program.Add("main");
  Value* x = main->AddInput("y_axis_0", Type::Tensor(DType::kFp32, ToShape({4})));
  Diagnostics diagnostics;
  Builder b(main->body, diagnostics);
  b.SetName("y");
  main->body.SetOutputs({b.Make("softmax", {{"x", x}})});
  Write(program, folder / "a.mlpackage");
  Program back = Read(folder / "a.mlpackage");
  CHECK(back.main()->body.outputs()[0]->def->value("axis")->name == "y_axis_0_2");
}

TEST_CASE("more than five dimensions are rejected") {
  ScratchFolder folder;
  Program program(&Ops());
  Function* main = program.Add("main");
  Value* x = main->AddInput("x", Type::Tensor(DType::kFp32, ToShape({64})));
  Diagnostics diagnostics;
  Builder b(main->body, diagnostics);
  Value* y = b.Make("reshape", {{"x", x}, {"shape", Ints({2, 2, 2, 2, 2, 2})}});
  main->body.SetOutputs({b.Make("reshape", {{"x", y}, {"shape", Ints({64})}})});
  try {
    Write(program, folder / "a.mlpackage");
    FAIL("written");
  } catch (const Error& error) {
    CHECK_THAT(error.what(),
               ContainsSubstring("rank-limit") && ContainsSubstring("[2, 2, 2, 2, 2, 2]"));
  }
}
