// Compiling, loading and arrays, and the failures of Core ML.
#include <atomic>
#include <thread>

#include "backends/apple/strided.h"
#include "test/backends/apple/models.h"

namespace mlc::test {
using namespace apple;
namespace {

TEST_CASE("arrays of all types are converted, with any strides") {
  for (const char* words :
       {"", "pad-outputs", "offset-outputs", "pad-arrays", "mutable-strides", "moved-bytes",
        "pad-outputs,offset-outputs,pad-arrays,mutable-strides,moved-bytes"}) {
    CAPTURE(words);
    Stub stub(words);
    Compiled model(kTypes);
    auto loaded = model.Load();
    for (int run = 0; run < 3; ++run) {
      runtime::PredictTimings timings;
      CheckTypes(loaded->Predict(TypesInputs(), nullptr, &timings));
      CHECK(timings.predict_ms > 0);
    }
  }
}

TEST_CASE("strided copies: extent, gaps, dimensions of size 1 and 0") {
  CHECK(Extent({2, 3}, {8, 2}) == 13);
  CHECK(Extent({2, 0}, {8, 2}) == 0);
  CHECK(Extent({}, {}) == 1);
  CHECK(RefusalId([] { Extent({2}, {-1}); }) == "schema-mismatch");
  CHECK(RefusalId([] { Extent({2}, {1, 1}); }) == "schema-mismatch");
  CHECK(RefusalId([] { Extent({1ll << 40, 2}, {1ll << 40, 1}); }) == "schema-mismatch");
  const std::string from = "ab.cd.ef.";
  std::string to = "........";
  CopyStrided({3, 1, 2}, 1, reinterpret_cast<const std::byte*>(from.data()), {3, 77, 1},
              reinterpret_cast<std::byte*>(to.data()), {2, 99, 1});
  CHECK(to == "abcdef..");
}

TEST_CASE("input arrays are reused, and no more are created than are in use concurrently") {
  Stub stub;
  Compiled model(kTypes);
  auto loaded = model.Load();
  const ArrayStatistics before = CoreMlArrays();
  for (int run = 0; run < 5; ++run) loaded->Predict(TypesInputs(), nullptr, nullptr);
  const ArrayStatistics after = CoreMlArrays();
  CHECK(after.made - before.made == 3);
  CHECK(after.reused - before.reused == 12);
  CHECK(after.idle == 3);
  CHECK(after.idle_bytes == 120 + 6 + 16);
  loaded.reset();
  CHECK(CoreMlArrays().idle == 0);
  CHECK(CoreMlArrays().idle_bytes == 0);
}

TEST_CASE("open sizes: described as flexible, with a bounded pool of arrays") {
  Stub stub("pad-outputs");
  Compiled model(
      R"(func main<ios17>(tensor<fp32, [n, 2]> x) { y = add(x = x, y = 1.0); } -> (y);)");
  auto loaded = model.Load();
  CHECK(loaded->schema().inputs[0].dims == Dims{-1, 2});
  for (int64_t n = 1; n < 80; ++n)
    CHECK(loaded->Predict({{"x", Count(DType::kFp32, {n, 2})}}, nullptr, nullptr)
              .at("y")
              .Doubles()
              .back() == 2 * n);
  CHECK(CoreMlArrays().idle <= 33);
  CHECK(RefusalId([&] {
          loaded->Predict({{"x", Count(DType::kFp32, {2, 3})}}, nullptr, nullptr);
        }) == "bad-input");
}

TEST_CASE("inputs that do not match the schema are rejected, with the expected type") {
  Stub stub;
  Compiled model(kTypes);
  auto loaded = model.Load();
  auto refusal = [&](const std::string& name, const Tensor& tensor) {
    Tensors inputs = TypesInputs();
    if (tensor)
      inputs[name] = tensor;
    else
      inputs.erase(name);
    std::vector<Error> errors = Refusals([&] { loaded->Predict(inputs, nullptr, nullptr); });
    return errors.empty() ? "" : errors[0].id() + ": " + errors[0].text();
  };
  CHECK(refusal("x", Count(DType::kFp32, {2, 3, 4})) ==
        "bad-input: input \"x\" has type fp32 [2, 3, 4]");
  CHECK(refusal("h", Count(DType::kFp32, {3})) == "bad-input: input \"h\" has type fp32 [3]");
  CHECK(refusal("z", Count(DType::kFp32, {3})) == "bad-input: the model has no input \"z\"");
  CHECK(refusal("i", {}) == "bad-input: input \"i\" is missing");
}

TEST_CASE("outputs that do not match their description are rejected") {
  for (const char* words : {"missing-output", "wrong-shape", "wrong-type", "wrong-kind"}) {
    CAPTURE(words);
    Stub stub(words);
    Compiled model(kTypes);
    auto loaded = model.Load();
    CHECK(RefusalId([&] { loaded->Predict(TypesInputs(), nullptr, nullptr); }) ==
          "schema-mismatch");
  }
}

TEST_CASE("handlers on other threads; the compiled model is deleted when they return") {
  for (const char* words :
       {"handler-thread", "delete-compiled", "handler-thread,delete-compiled"}) {
    CAPTURE(words);
    Stub stub(words);
    Compiled model(kTypes);
    for (int run = 0; run < 5; ++run) {
      std::filesystem::remove_all(model.bundle());
      auto loaded = model.Load();
      CheckTypes(loaded->Predict(TypesInputs(), nullptr, nullptr));
      std::string why;
      CHECK(loaded->Placements(&why).size() > 2);
      CHECK(why == "");
    }
  }
}

TEST_CASE(
    "what Core ML throws, and what it reports, is an error in its own words; the next prediction "
    "is right") {
  Stub stub("throw-at=2,error-at=3,throw-cpp-at=5");
  Compiled model(kTypes);
  auto loaded = model.Load();
  std::vector<std::string> words;
  for (int run = 1; run <= 6; ++run) {
    std::vector<Error> errors =
        Refusals([&] { CheckTypes(loaded->Predict(TypesInputs(), nullptr, nullptr)); });
    words.push_back(errors.empty() ? "" : errors[0].id() + ": " + errors[0].text());
  }
  CHECK(words ==
        std::vector<std::string>{
            "", "runtime-failed: Core ML, predicting, threw StubException: prediction 2",
            "runtime-failed: Core ML, predicting: com.apple.CoreML 3: prediction 3 failed; "
            "underlying error: NSPOSIXErrorDomain 5: the deeper cause",
            "", "runtime-failed: Core ML, predicting: C++ in prediction", ""});
}

TEST_CASE("failures and exceptions while compiling and loading") {
  const std::pair<const char*, const char*> cases[] = {
      {"compile-fails", "Core ML, compiling: com.apple.CoreML 3: the compiler failed"},
      {"compile-throws", "Core ML, compiling, threw StubException: compiling"},
      {"compile-fails,handler-thread",
       "Core ML, compiling: com.apple.CoreML 3: the compiler failed"},
      {"load-fails", "Core ML, loading: com.apple.CoreML 3: the model is damaged"},
      {"load-throws", "Core ML, loading, threw StubException: loading"}};
  for (const auto& [words, text] : cases) {
    CAPTURE(words);
    Stub stub(words);
    Compiled model(kTypes);
    std::vector<Error> errors = Refusals([&] { model.Load(); });
    REQUIRE(errors.size() == 1);
    CHECK(errors[0].id() == "runtime-failed");
    CHECK_THAT(errors[0].text(), ContainsSubstring(text));
  }
  Stub stub;
  Compiled model(kTypes);
  std::filesystem::create_directories(model.bundle());
  CHECK(RefusalId([&] { model.runtime->Compile(model.package(), model.bundle()); }) == "file-io");
  CHECK(RefusalId([&] { model.runtime->Load(model.package(), {}); }) == "runtime-failed");
}

TEST_CASE("running out of memory for an array") {
  Stub stub("no-memory");
  Compiled model(kTypes);
  auto loaded = model.Load();
  CHECK(RefusalId([&] { loaded->Predict(TypesInputs(), nullptr, nullptr); }) == "resource-limit");
}

TEST_CASE(
    "a prediction that hangs keeps what it uses: others go on beside it, and it may end late") {
  Stub stub("hang-at=2,pad-outputs");
  Compiled model(kTypes);
  std::shared_ptr<runtime::LoadedModel> hung = model.Load();
  CheckTypes(hung->Predict(TypesInputs(), nullptr, nullptr));
  std::atomic<bool> right{false};
  std::thread late([hung, &right] {
    Tensors outputs = hung->Predict(TypesInputs(), nullptr, nullptr);
    right = outputs.at("y").Doubles()[29] == 30;
  });
  while (stub::Counted().hanging == 0) std::this_thread::yield();
  auto other = model.Load();
  for (int run = 0; run < 3; ++run) CheckTypes(other->Predict(TypesInputs(), nullptr, nullptr));
  // A waiting prediction writes its inputs to other arrays: the stub detects inputs that change.
  auto taken = [] { return CoreMlArrays().made + CoreMlArrays().reused; };
  const int64_t before = taken();
  std::thread behind([hung] {
    Tensors inputs = TypesInputs();
    inputs["x"] = Tensor::Full(DType::kFp32, {2, 3, 5}, 9).InMemory();
    hung->Predict(inputs, nullptr, nullptr);
  });
  while (taken() < before + 3) std::this_thread::yield();
  hung.reset();  // the threads hold the last reference
  other.reset();
  stub::Release();
  late.join();
  behind.join();
  CHECK(right);
}

TEST_CASE("concurrent predictions on one instance") {
  Stub stub;
  Compiled model(kTypes);
  auto loaded = model.Load();
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int run = 0; run < 10; ++run)
        if (loaded->Predict(TypesInputs(), nullptr, nullptr).at("y").Doubles()[29] == 30) ++right;
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 40);
}

}  // namespace
}  // namespace mlc::test
