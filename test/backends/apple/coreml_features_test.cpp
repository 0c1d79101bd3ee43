// Schema, states, functions, units, hints, images, classes and the compute plan, including features
// that a system may lack.
#include <fstream>
#include <thread>

#include "backends/coreml/classifier.h"
#include "test/backends/apple/models.h"

namespace mlc::test {
using namespace apple;
namespace {

// Adds its input to its state and returns the sum.
constexpr char kSums[] = R"(
  func main<ios18>(state<tensor<fp16, [2, 3]>> sum, tensor<fp16, [2, 3]> x) {
    before = read_state(input = sum);
    y = add(x = before, y = x);
    write_state(input = sum, data = y);
  } -> (y);)";
const Tensor kOnes = Tensor::Full(DType::kFp16, {2, 3}, 1).InMemory();

double Step(runtime::LoadedModel& model, runtime::ModelState* state) {
  return model.Predict({{"x", kOnes}}, state, nullptr).at("y").Doubles()[5];
}

std::string TextOf(const std::function<void()>& work) {
  std::vector<Error> errors = Refusals(work);
  return errors.empty() ? "" : errors[0].id() + ": " + errors[0].text();
}

TEST_CASE("the schema has the order, types and sizes of the package") {
  Stub stub;
  Compiled model(kTypes);
  auto loaded = model.Load();
  const runtime::Schema& schema = loaded->schema();
  REQUIRE(schema.inputs.size() == 3);
  CHECK(schema.inputs[0].name == "x");
  CHECK(schema.inputs[1].name == "h");
  CHECK(schema.inputs[1].dtype == DType::kFp16);
  CHECK(schema.inputs[2].name == "i");
  CHECK(schema.inputs[2].dtype == DType::kInt32);
  CHECK(schema.outputs[0].name == "y");
  CHECK(schema.outputs[0].dims == Dims{2, 3, 5});
  CHECK(schema.outputs[1].name == "g");
  CHECK(schema.states.empty());
  CHECK(loaded->NewState() == nullptr);
  // Without a valid list, features are sorted by name.
  for (const char* text : {"[]", "{", R"([{"inputSchema": 7, "functions": [3]}])"}) {
    std::ofstream(model.bundle() / "metadata.json") << text;
    auto again = model.Load();
    CHECK(again->schema().inputs[0].name == "h");
  }
}

TEST_CASE("states: initially zero, independent, readable and writable with any strides") {
  for (const char* words : {"", "pad-arrays,mutable-strides,moved-bytes"}) {
    CAPTURE(words);
    Stub stub(words);
    Compiled model(kSums);
    auto loaded = model.Load();
    REQUIRE(loaded->schema().states.size() == 1);
    CHECK(loaded->schema().states[0].dims == Dims{2, 3});
    auto a = loaded->NewState(), b = loaded->NewState();
    CHECK(Step(*loaded, a.get()) == 1);
    CHECK(Step(*loaded, a.get()) == 2);
    CHECK(Step(*loaded, b.get()) == 1);
    CHECK(Step(*loaded, nullptr) == 1);
    CHECK(a->Read().at("sum").Doubles() == std::vector<double>(6, 2));
    a->Write(
        {{"sum", Tensor::Of({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6}).Cast(DType::kFp16)}});
    CHECK(loaded->Predict({{"x", kOnes}}, a.get(), nullptr).at("y").Doubles() ==
          std::vector<double>{2, 3, 4, 5, 6, 7});
    CHECK(TextOf([&] {
            a->Write({{"other", kOnes}});
          }) == "bad-input: the model has no state \"other\"");
    CHECK(RefusalId([&] {
            a->Write({{"sum", Tensor::Full(DType::kFp32, {2, 3}, 1)}});
          }) == "bad-input");
    auto other = model.Load();
    CHECK(RefusalId([&] { Step(*other, a.get()); }) == "bad-input");
  }
}

TEST_CASE("a state in use by a hanging prediction is rejected") {
  Stub stub("hang-at=1");
  Compiled model(kSums);
  auto loaded = model.Load();
  auto state = loaded->NewState();
  std::thread hung([&] { Step(*loaded, state.get()); });
  while (stub::Counted().hanging == 0) std::this_thread::yield();
  CHECK(RefusalId([&] { Step(*loaded, state.get()); }) == "bad-input");
  CHECK(RefusalId([&] { state->Read(); }) == "bad-input");
  stub::Release();
  hung.join();
  CHECK(Step(*loaded, state.get()) == 2);
}

constexpr char kFunctions[] = R"(
  func main<ios18>(tensor<fp32, [2]> x) { y = add(x = x, y = 1.0); } -> (y);
  func twice<ios18>(tensor<fp32, [2]> x) { y = mul(x = x, y = 2.0); } -> (y);)";

TEST_CASE("functions: default, requested and unknown function") {
  for (const char* words : {"", "handler-thread"}) {
    Stub stub(words);
    Compiled model(kFunctions);
    const Tensors inputs = {{"x", Count(DType::kFp32, {2})}};
    CHECK(model.Load()->Predict(inputs, nullptr, nullptr).at("y").Doubles() ==
          std::vector<double>{1, 2});
    CHECK(model.Load({.function = "twice"})->Predict(inputs, nullptr, nullptr).at("y").Doubles() ==
          std::vector<double>{0, 2});
    std::vector<Error> errors = Refusals([&] { model.Load({.function = "thrice"}); });
    REQUIRE(errors.size() == 1);
    CHECK(errors[0].id() == "bad-name");
    CHECK_THAT(errors[0].notes()[0], ContainsSubstring("twice"));
    auto plan = model.Load({.function = "twice"})->Placements(nullptr);
    REQUIRE(plan.size() == 1);
    CHECK(plan[0].op == "mul");
  }
  Stub stub("missing-function");
  Compiled model(kFunctions);
  CHECK(RefusalId([&] { model.Load({.function = "twice"}); }) == "bad-name");
}

TEST_CASE("errors for missing features name the required and the present system") {
  using Reshapes = runtime::LoadOptions::Reshapes;
  using Specialization = runtime::LoadOptions::Specialization;
  struct Case {
    const char* words;
    runtime::LoadOptions options;
    const char* text;
  };
  const Case cases[] = {
      {"macos=14.7",
       {.function = "twice"},
       "needs-system: choice of a function: macOS 15 is required; this machine runs macOS 14.7"},
      {"macos=14.7", {.function = "main"}, ""},
      {"macos=14.3",
       {.reshapes = Reshapes::kFrequent},
       "needs-system: hint about reshapes or specialization: macOS 14.4 is required; this machine "
       "runs macOS 14.3"},
      {"macos=14.4", {.reshapes = Reshapes::kFrequent}, ""},
      {"macos=14.4",
       {.specialization = Specialization::kFastPrediction},
       "needs-system: hint about specialization: macOS 15 is required; this machine runs macOS "
       "14.4"},
      {"macos=15.0", {.specialization = Specialization::kFastPrediction}, ""},
      {"macos=13.0", {}, ""},
      {"macos=13.0", {.units = runtime::Units::kAne}, ""},  // the devices are not reported
      {"macos=12.6",
       {.units = runtime::Units::kAne},
       "needs-system: units ane: macOS 13 is required; this machine runs macOS 12.6"},
      {"no-ane",
       {.units = runtime::Units::kAne},
       "needs-system: units ane: this machine has no Neural Engine"},
      {"no-gpu",
       {.units = runtime::Units::kGpu},
       "needs-system: units gpu: this machine has no GPU that Core ML can use"},
      {"no-ane,no-gpu", {.units = runtime::Units::kAll}, ""},
  };
  for (const Case& each : cases) {
    CAPTURE(each.words);
    Stub stub("macos=26.0");
    Compiled model(kFunctions);
    model.Load();
    stub::Set(each.words);
    CHECK(TextOf([&] { model.Load(each.options); }) == each.text);
  }
}

TEST_CASE("older systems run models without states; the compute plan gives a reason") {
  for (const char* words : {"macos=13.0", "macos=14.0", "macos=14.4", "macos=15.0"}) {
    CAPTURE(words);
    Stub stub(words);
    Compiled model(kTypes);
    auto loaded = model.Load();
    CheckTypes(loaded->Predict(TypesInputs(), nullptr, nullptr));
    CHECK(loaded->NewState() == nullptr);
    std::string why;
    loaded->Placements(&why);
    const bool planned = std::string(words) > "macos=14.3";
    CHECK(why ==
          (planned ? ""
                   : std::string("compute plan: macOS 14.4 is required; this machine runs macOS ") +
                         (words + 6)));
  }
  Stub stub("macos=14.7");
  Compiled model(kSums);
  CHECK(RefusalId([&] { model.Load(); }) == "runtime-failed");
}

TEST_CASE("capabilities of the machine, and features it lacks") {
  Stub stub;
  auto runtime = MakeCoreMlRuntime();
  runtime::Capabilities found = runtime->capabilities();
  CHECK(found.runtime == "Core ML");
  CHECK(found.os == "macOS 26.0");
  CHECK(found.os_build == "00A000");
  CHECK(found.chip == "Stub M0");
  CHECK(found.devices ==
        std::vector{runtime::Device::kCpu, runtime::Device::kGpu, runtime::Device::kAne});
  CHECK(found.missing.empty());
  CHECK_FALSE(runtime->loads_packages());
  stub::Set("macos=13.0");
  found = runtime->capabilities();
  CHECK(found.devices.empty());
  REQUIRE(found.missing.size() == 6);
  CHECK(found.missing[3].feature == "states");
  CHECK(found.missing[3].why == "requires macOS 15; this machine runs macOS 13.0");
  stub::Set("no-ane");
  found = runtime->capabilities();
  CHECK(found.devices == std::vector{runtime::Device::kCpu, runtime::Device::kGpu});
  REQUIRE(found.missing.size() == 1);
  CHECK(found.missing[0].feature == "units ane");
}

TEST_CASE(
    "the compute plan: our names, devices and costs, which may be unknown, nested blocks too") {
  constexpr char kNested[] = R"(
    func main<ios17>(tensor<fp32, [2]> x, tensor<fp32, [1]> s) {
      f = squeeze(x = s);
      p = greater(x = f, y = 0.0);
      y = cond(pred = p)
        () { a = relu(x = x); } -> (a)
        () { b = exp(x = x); } -> (b);
      z = add(x = y, y = 1.0);
    } -> (z);)";
  Stub stub("cpu-op=exp");
  Compiled model(kNested);
  std::string why;
  auto loaded = model.Load();
  auto plan = loaded->Placements(&why);
  CHECK(why == "");
  std::vector<std::string> operators;
  for (const runtime::OperationPlacement& each : plan) operators.push_back(each.op);
  CHECK(operators == std::vector<std::string>{"squeeze", "greater", "cond", "relu", "exp", "add"});
  REQUIRE(plan.size() == 6);
  CHECK(plan[3].name == "a");
  CHECK(plan[5].name == "z");
  CHECK(plan[3].preferred == runtime::Device::kAne);
  CHECK(plan[3].supported ==
        std::vector{runtime::Device::kCpu, runtime::Device::kGpu, runtime::Device::kAne});
  CHECK(plan[3].cost == Approx(1.0 / 6));
  CHECK(plan[4].preferred == runtime::Device::kCpu);
  CHECK(plan[4].supported == std::vector{runtime::Device::kCpu});
  CHECK(model.Load({.units = runtime::Units::kGpu})->Placements(nullptr)[3].preferred ==
        runtime::Device::kGpu);
  stub::Set("nil-devices");
  plan = loaded->Placements(&why);
  REQUIRE(plan.size() == 6);
  CHECK(plan[3].preferred == runtime::Device::kUnknown);
  CHECK(plan[3].supported.empty());
  CHECK(plan[3].cost == Approx(1.0 / 6));
  stub::Set("nil-cost,handler-thread");
  plan = loaded->Placements(&why);
  REQUIRE(plan.size() == 6);
  CHECK_FALSE(plan[3].cost);
  CHECK(plan[3].preferred == runtime::Device::kAne);
  // Operations without a device and a cost are reported as not computed.
  stub::Set("folded-op=relu,nan-cost");
  plan = loaded->Placements(&why);
  REQUIRE(plan.size() == 5);
  CHECK(plan[3].op == "exp");
  CHECK_FALSE(plan[3].cost);
  stub::Set("no-plan,handler-thread");
  CHECK(loaded->Placements(&why).empty());
  CHECK(why ==
        "Core ML cannot create a compute plan: com.apple.CoreML 3: no plan; underlying error: "
        "NSPOSIXErrorDomain "
        "5: the "
        "deeper cause");
}

TEST_CASE("images: channel order of the model, rounding, clamping, padded rows") {
  for (Port::Feature feature :
       {Port::Feature::kImageRgb, Port::Feature::kImageBgr, Port::Feature::kImageGray}) {
    const int64_t channels = feature == Port::Feature::kImageGray ? 1 : 3;
    Stub stub;
    Compiled model(
        fmt::format(
            "func main<ios17>(tensor<fp32, [1, {0}, 2, 5]> picture) {{ y = mul(x = picture, y = "
            "2.0); }} -> (y);",
            channels),
        [&](Program& program) { program.main()->inputs[0].feature = feature; });
    auto loaded = model.Load();
    REQUIRE(loaded->schema().inputs[0].kind == runtime::Feature::Kind::kImage);
    CHECK(loaded->schema().inputs[0].dtype == DType::kUint8);
    CHECK(loaded->schema().inputs[0].dims == Dims{1, channels, 2, 5});
    const Tensor pixels = Count(DType::kUint8, {1, channels, 2, 5});
    std::vector<double> doubled = pixels.Doubles();
    for (double& value : doubled) value *= 2;
    CHECK(loaded->Predict({{"picture", pixels}}, nullptr, nullptr).at("y").Doubles() == doubled);
    std::vector<float> odd(10 * channels, 300);
    odd[0] = -4, odd[1] = 6.6f, odd[2] = NAN;
    doubled.assign(10 * channels, 510);
    doubled[0] = 0, doubled[1] = 14, doubled[2] = 0;
    CHECK(loaded->Predict({{"picture", Tensor::Of(pixels.dims(), odd)}}, nullptr, nullptr)
              .at("y")
              .Doubles() == doubled);
    CHECK(RefusalId([&] {
            loaded->Predict({{"picture", Count(DType::kUint8, {2, 5})}}, nullptr, nullptr);
          }) == "bad-input");
  }
}

TEST_CASE("images: fp16 gray is not rounded") {
  Stub stub;
  Compiled model(
      "func main<ios17>(tensor<fp16, [1, 1, 2, 5]> picture) { y = mul(x = picture, y = fp16(2.0)); "
      "} "
      "-> (y);",
      [&](Program& program) {
        program.main()->inputs[0].feature = program.main()->outputs[0].feature =
            Port::Feature::kImageGray;
      });
  auto loaded = model.Load();
  REQUIRE(loaded->schema().inputs[0].kind == runtime::Feature::Kind::kImage);
  CHECK(loaded->schema().inputs[0].dtype == DType::kFp16);
  const Tensor pixels =
      Tensor::Of({1, 1, 2, 5}, std::vector<float>{0.25, -3, 1e4, 4, 5, 6, 7.5, 8, 9, 10})
          .Cast(DType::kFp16);
  const Tensor found = loaded->Predict({{"picture", pixels}}, nullptr, nullptr).at("y");
  CHECK(found.dtype() == DType::kFp16);
  CHECK(found.Doubles() == std::vector<double>{0.5, -6, 2e4, 8, 10, 12, 15, 16, 18, 20});
}

TEST_CASE("classifier outputs: label, and probabilities in label order") {
  Stub stub;
  Diagnostics diagnostics;
  Compiled model(
      R"(func main<ios17>(tensor<fp32, [1, 3]> x) { y = softmax(axis = -1, x = x); } -> (y);)",
      [&](Program& program) {
        coreml::MakeClassifier(program, {"zebra", "ant", "cow"}, diagnostics);
      });
  auto loaded = model.Load();
  Tensors outputs =
      loaded->Predict({{"x", Tensor::Of({1, 3}, std::vector<float>{0, 5, 2})}}, nullptr, nullptr);
  REQUIRE(outputs.size() == 2);
  for (const auto& [name, tensor] : outputs)
    if (tensor.dtype() == DType::kString)
      CHECK(tensor.strings()[0] == "ant");
    else
      CHECK(
          (tensor.Doubles()[1] > tensor.Doubles()[2] && tensor.Doubles()[2] > tensor.Doubles()[0]));
}

}  // namespace
}  // namespace mlc::test
