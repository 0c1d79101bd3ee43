#include "frontends/onnx/onnx_file.h"

#include <filesystem>
#include <fstream>

#include "lib/support/temporary_folder.h"
#include "test/catch.h"
#include "test/expected_error.h"
#include "test/frontends/onnx/run.h"

namespace mlc::test {
namespace {

namespace fs = std::filesystem;
using onnx::OnnxFile;

void Put(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string Contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// x [2, 3] -> MatMul w [3, 4] -> h -> Relu -> r -> Add b -> y. h has no declared type.
std::string Chain() {
  return Model({Node("MatMul", {"x", "w"}, {"h"}), Node("Relu", {"h"}, {"r"}),
                Node("Add", {"r", "b"}, {"y"})},
               {Info("x", kFloat, {2, 3})}, {Info("y", kFloat, {2, 4})},
               {Proto("w", {3, 4}, std::vector<float>(12, 0.5f)),
                Proto("b", {4}, std::vector<float>{1, 2, 3, 4})});
}

OnnxFile Read(const TemporaryFolder& folder, const std::string& bytes) {
  Put(folder.path / "model.onnx", bytes);
  return OnnxFile::Read(folder.path / "model.onnx");
}

OnnxFile PartOf(const OnnxFile& model, const ModelPart& part) {
  CheckPart(model.Graph(), part);
  return model.Part(part);
}

}  // namespace

TEST_CASE("onnx file: a part has inferred types, needed weights and the values of the whole") {
  TemporaryFolder folder;
  const OnnxFile part = PartOf(Read(folder, Chain()), {.inputs = {"h"}, .outputs = {"y"}});
  CHECK(part.node_count() == 2);
  part.Write(folder.path / "part.onnx");
  Diagnostics diagnostics;
  Program program = onnx::ImportOnnx(folder.path / "part.onnx", {}, diagnostics);
  CHECK(program.main()->body.inputs[0]->type == Type::Tensor(DType::kFp32, {2, 4}));
  CHECK(Contents(folder.path / "part.onnx").find("MatMul") == std::string::npos);
  const Tensor h = Tensor::Of<float>({2, 4}, {-1, 0, 1, 2, 3, 4, -5, 6});
  const Tensor y = engine::Execute(program, {{"h", h}}).at("y");
  CHECK(y.Doubles() == std::vector<double>{1, 2, 4, 6, 4, 6, 3, 10});  // by hand
}

TEST_CASE("onnx file: the first part ends at a value in the middle") {
  TemporaryFolder folder;
  const ModelGraph graph =
      PartOf(Read(folder, Chain()), {.inputs = {"x"}, .outputs = {"r"}}).Graph();
  CHECK(graph.outputs == std::vector<std::string>{"r"});
  CHECK(graph.constants == std::set<std::string>{"w"});
}

TEST_CASE("onnx file: a value without a known type cannot become an input") {
  TemporaryFolder folder;
  const OnnxFile model =
      Read(folder, Model({Node("Odd", {"x"}, {"h"}, {}, "custom"), Node("Relu", {"h"}, {"y"})},
                         {Info("x", kFloat, {2})}, {Info("y", kFloat, {2})}));
  const std::string text = Refusal([&] { PartOf(model, {.inputs = {"h"}, .outputs = {"y"}}); });
  CHECK(text.find("type of value \"h\" is unknown") != std::string::npos);
}

TEST_CASE("onnx file: subgraphs keep what they read from outside") {
  TemporaryFolder folder;
  const std::string branch = Graph({Node("Neg", {"r"}, {"n"})}, {}, {Info("n", kFloat, {2})});
  const std::string other = Graph({Node("Abs", {"x"}, {"a"})}, {}, {Info("a", kFloat, {2})});
  const OnnxFile model =
      Read(folder, Model({Node("Relu", {"x"}, {"r"}), Node("If", {"c"}, {"y"},
                                                           {GraphAttribute("then_branch", branch),
                                                            GraphAttribute("else_branch", other)})},
                         {Info("x", kFloat, {2}), Info("c", kBool, {})}, {Info("y", kFloat, {2})}));
  const ModelGraph graph = model.Graph();
  CHECK(graph.nested == std::set<std::string>{"a", "n"});
  CHECK(PartOf(model, {.inputs = {"x", "c"}, .outputs = {"y"}}).node_count() == 4);
  CHECK(PartOf(model, {.inputs = {"x", "c", "r"}, .outputs = {"y"}}).node_count() == 3);
  CHECK(Refusal([&] {
          PartOf(model, {.inputs = {"x", "c"}, .outputs = {"n"}});
        }).find("inside a nested block") != std::string::npos);
  // Without the Relu, the subgraph reads x.
  const std::optional<ModelPart> part = PartWithout(graph, {0}, true);
  REQUIRE(part);
  const OnnxFile bypassed = model.Part(*part);
  CHECK(bypassed.node_count() == 3);
  CHECK(bypassed.Graph().inputs == std::vector<std::string>{"x", "c"});
}

TEST_CASE("onnx file: large weights go to a file of their own, and come back") {
  TemporaryFolder folder;
  const OnnxFile model =
      Read(folder, Model({Node("MatMul", {"x", "w"}, {"y"})}, {Info("x", kFloat, {1, 100})},
                         {Info("y", kFloat, {1, 10})},
                         {Proto("w", {100, 10}, std::vector<float>(1000, 0.25f))}));
  model.Write(folder.path / "out.onnx", 1000);
  CHECK(fs::file_size(folder.path / "out.onnx.data") == 4000);
  CHECK(fs::file_size(folder.path / "out.onnx") < 1000);
  const OnnxFile external = OnnxFile::Read(folder.path / "out.onnx");
  external.Write(folder.path / "again.onnx");
  CHECK(!fs::exists(folder.path / "again.onnx.data"));
  external.Write(folder.path / "copy.onnx", 1000);
  CHECK(Contents(folder.path / "copy.onnx.data") == Contents(folder.path / "out.onnx.data"));
  for (const char* name : {"again.onnx", "copy.onnx"}) {
    Diagnostics diagnostics;
    Program program = onnx::ImportOnnx(folder.path / name, {}, diagnostics);
    const Tensor x = Tensor::Full(DType::kFp32, {1, 100}, 1);
    CHECK(engine::Execute(program, {{"x", x}}).at("y").Double(3) == 25);
  }
}

TEST_CASE("onnx file: constants, attributes and sizes are simplified") {
  TemporaryFolder folder;
  const OnnxFile model = Read(folder, Chain());
  CHECK(model.PlacesToSimplify(Simplification::kUniform) == 1);  // w is uniform
  const OnnxFile uniform = model.Simplified(Simplification::kUniform, {0});
  CHECK(uniform.PlacesToSimplify(Simplification::kUniform) == 0);
  CHECK(uniform.PlacesToSimplify(Simplification::kZero) == 1);  // b is 1
  CHECK(model.Simplified(Simplification::kZero, {0, 1}).PlacesToSimplify(Simplification::kOne) ==
        0);
  const OnnxFile shrunk = model.Simplified(Simplification::kSizes, {0, 1});
  shrunk.Write(folder.path / "small.onnx");
  Diagnostics diagnostics;
  Program program = onnx::ImportOnnx(folder.path / "small.onnx", {}, diagnostics);
  CHECK(program.main()->body.inputs[0]->type.shape == Shape{1, 1});
  CHECK(program.main()->body.outputs()[0]->type.shape == Shape{1, 4});
}

TEST_CASE("onnx file: damaged files are errors") {
  TemporaryFolder folder;
  CHECK(RefusalId([&] { Read(folder, "not a model"); }) == "bad-file");
  CHECK(RefusalId([&] { Read(folder, Number(1, 8)); }) == "bad-file");
}

}  // namespace mlc::test
