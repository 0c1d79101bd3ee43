#include "tools/driver/model.h"

#include <fstream>

#include "test/catch.h"
#include "test/expected_error.h"
#include "tools/driver/run.h"

namespace mlc::test {
using namespace driver;
namespace {

constexpr runtime::Units kReference = runtime::Units::kReference;

// A model of Core ML's formats: y = x + x; the function other squares.
std::shared_ptr<const TemporaryFolder> Doubling() {
  auto folder = std::make_shared<const TemporaryFolder>();
  std::ofstream(folder->path / "m.mil")
      << "func main<ios18>(tensor<fp32, [3]> x) { y = add(x = x, y = x); } -> (y);\n"
         "func other<ios18>(tensor<fp32, [3]> x) { y = mul(x = x, y = x); } -> (y);\n";
  return folder;
}

std::vector<double> Doubled(runtime::LoadedModel& model) {
  return model.Predict({{"x", Tensor::Vector<float>({1, 2, 3})}}, nullptr, nullptr)
      .at("y")
      .Doubles();
}

TEST_CASE("model: loaders and instances outlive it and its folder", "[runtime]") {
  Model::Loader loader, reference;
  std::unique_ptr<runtime::GuardedModel> instance, squares;
  std::filesystem::path path;
  {
    const std::shared_ptr<const TemporaryFolder> folder = Doubling();
    path = folder->path;
    Diagnostics diagnostics;
    ModelOptions options{.units = kReference};
    options.temporary = folder;
    Model model(path / "m.mil", options, diagnostics);
    CHECK_FALSE(model.is_source());
    CHECK(model.arithmetic() == engine::EngineOptions::Arithmetic::kFaithful);
    CHECK_FALSE(model.Compile());
    loader = model.LoaderOf(model.function());
    reference = model.ReferenceLoaderOf(model.function());
    instance = model.Load();
    squares = model.Load(*model.program()->functions[1]);
  }
  CHECK(Doubled(*loader()) == std::vector<double>{2, 4, 6});
  CHECK(Doubled(*reference()) == std::vector<double>{2, 4, 6});
  CHECK(Doubled(*instance) == std::vector<double>{2, 4, 6});
  CHECK(Doubled(*squares) == std::vector<double>{1, 4, 9});
  CHECK(std::filesystem::exists(path));
  loader = reference = {};
  instance.reset();
  squares.reset();
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("model: options that do not suit it are refused", "[runtime]") {
  const std::shared_ptr<const TemporaryFolder> folder = Doubling();
  const auto refusal = [&](const ModelOptions& options) {
    Diagnostics diagnostics;
    return RefusalId([&] { Model(folder->path / "m.mil", options, diagnostics); });
  };
  CHECK(refusal({.units = kReference}) == "");
  CHECK(refusal({.function = "other", .units = kReference}) == "");
  CHECK(refusal({.function = "third", .units = kReference}) == "bad-name");
  CHECK(refusal({.units = kReference, .bundles_only = true}) == "usage");
  ModelOptions hints{.units = kReference};
  hints.hints.reshapes = runtime::LoadOptions::Reshapes::kFrequent;
  CHECK(refusal(hints) == "usage");
  // The sizes of another model are ignored only if that is requested.
  ModelOptions sizes{.units = kReference};
  sizes.import.shapes["z"] = {4};
  CHECK(refusal(sizes) == "bad-name");
  sizes.may_lack_sizes = true;
  CHECK(refusal(sizes) == "");
}

TEST_CASE("run: options that contradict each other are refused before the model is read",
          "[runtime]") {
  const auto refusal = [](const RunOptions& options) {
    Diagnostics diagnostics;
    return RefusalId([&] { Run("absent.mil", options, diagnostics); });
  };
  RunOptions options;
  CHECK(refusal(options) == "file-io");
  options.step = true;
  CHECK(refusal(options) == "usage");
  options.step = false;
  options.tokens = {1};
  options.input_files = {"x=x.npy"};
  CHECK(refusal(options) == "usage");
}

TEST_CASE("run: one prediction on given inputs", "[runtime]") {
  const std::shared_ptr<const TemporaryFolder> folder = Doubling();
  Diagnostics diagnostics;
  RunOptions options;
  options.units = kReference;
  options.inputs["x"] = Tensor::Vector<float>({1, 2, 3});
  const RunResult result = Run(folder->path / "m.mil", options, diagnostics);
  REQUIRE(result.outputs.size() == 1);
  CHECK(result.outputs[0].name == "y");
  CHECK(result.outputs[0].tensor.Doubles() == std::vector<double>{2, 4, 6});
  CHECK(result.generated.empty());
}

}  // namespace
}  // namespace mlc::test
