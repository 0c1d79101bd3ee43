// test/backends/apple/models.h - small packages, compiled and loaded by the Core ML runtime over
// the stub.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "backends/apple/coreml_runtime.h"
#include "backends/coreml/write_package.h"
#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "test/backends/apple/stub/switches.h"
#include "test/backends/coreml/package_files.h"
#include "test/expected_error.h"

namespace mlc::test {

using Tensors = std::map<std::string, Tensor>;

// The switches of the stub for one test; at its end, no object of Core ML may be alive.
class Stub {
 public:
  explicit Stub(const std::string& words = "") { stub::Set(words); }
  ~Stub() {
    stub::Set("");
    CHECK(stub::Counted().arrays == 0);
    CHECK(stub::Counted().models == 0);
    CHECK(stub::Counted().states == 0);
    CHECK(stub::Counted().values == 0);
    CHECK(stub::Counted().buffers == 0);
    CHECK(stub::Counted().disturbed == 0);
  }
};

// One input of each type, with several dimensions.
inline constexpr char kTypes[] = R"(
  func main<ios17>(tensor<fp32, [2, 3, 5]> x, tensor<fp16, [3]> h, tensor<int32, [4]> i) {
    y = add(x = x, y = 1.0);
    g = mul(x = h, y = 2.0);
    j = add(x = i, y = 7);
  } -> (y, g, j);)";

class Compiled {
 public:
  // `edit` modifies the program before it is written.
  explicit Compiled(const std::string& text, const std::function<void(Program&)>& edit = {})
      : runtime(apple::MakeCoreMlRuntime()) {
    Program program = ParseText(text, "test", Ops());
    if (edit) edit(program);
    Diagnostics diagnostics;
    coreml::WritePackage(program, package(), {.target = Opset::kIos18}, diagnostics);
  }
  std::filesystem::path package() const { return folder / "model.mlpackage"; }
  std::filesystem::path bundle() const { return folder / "model.mlmodelc"; }
  std::unique_ptr<runtime::LoadedModel> Load(const runtime::LoadOptions& options = {}) {
    if (!std::filesystem::exists(bundle())) runtime->Compile(package(), bundle());
    return runtime->Load(bundle(), options);
  }

  ScratchFolder folder;
  std::unique_ptr<runtime::Runtime> runtime;
};

inline Tensor Count(DType dtype, const Dims& dims) {
  std::vector<float> values;
  for (int64_t i = 0; i < ElementCount(dims); ++i) values.push_back(static_cast<float>(i));
  return Tensor::Of(dims, values).Cast(dtype).InMemory();
}
inline Tensors TypesInputs() {
  return {{"x", Count(DType::kFp32, {2, 3, 5})},
          {"h", Count(DType::kFp16, {3})},
          {"i", Count(DType::kInt32, {4})}};
}
inline void CheckTypes(const Tensors& outputs) {
  for (int64_t i = 0; i < 30; ++i) CHECK(outputs.at("y").Doubles()[i] == i + 1);
  CHECK(outputs.at("y").dims() == Dims{2, 3, 5});
  CHECK(outputs.at("g").dtype() == DType::kFp16);
  CHECK(outputs.at("g").Doubles() == std::vector<double>{0, 2, 4});
  CHECK(outputs.at("j").Ints() == std::vector<int64_t>{7, 8, 9, 10});
}

}  // namespace mlc::test
