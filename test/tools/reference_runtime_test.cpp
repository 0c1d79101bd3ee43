#include "tools/driver/reference_runtime.h"

#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "test/catch.h"
#include "test/expected_error.h"

namespace mlc::test {
using namespace driver;
namespace {

// A model with state s: s += x, y = s.
std::unique_ptr<runtime::LoadedModel> Adder() {
  auto program = std::make_shared<Program>(ParseText(
      "func main<ios18>(tensor<fp16, [2]> x, state<tensor<fp16, [2]>> s) {\n"
      "a = read_state(input = s); b = add(x = a, y = x); write_state(input = s, data = b);"
      "y = read_state(input = s);\n} -> (y);",
      "t.mil", Ops()));
  Verify(*program);
  return MakeReferenceModel(program, *program->main(), {}, {});
}

Tensor Halves(float a, float b) { return Tensor::Vector<float>({a, b}).Cast(DType::kFp16); }

std::vector<double> Step(runtime::LoadedModel& model, runtime::ModelState* state) {
  return model.Predict({{"x", Halves(1, 2)}}, state, nullptr).at("y").Doubles();
}

TEST_CASE("reference runtime: a state of another model is refused", "[runtime]") {
  struct Foreign : runtime::ModelState {
    std::map<std::string, Tensor> Read() const override { return {}; }
    void Write(const std::map<std::string, Tensor>&) override {}
  } foreign;
  const std::unique_ptr<runtime::LoadedModel> model = Adder(), other = Adder();
  const std::unique_ptr<runtime::ModelState> own = model->NewState(), others = other->NewState();
  for (runtime::ModelState* state : {static_cast<runtime::ModelState*>(&foreign), others.get()})
    CHECK(RefusalId([&] { Step(*model, state); }) == "bad-input");
  CHECK(Step(*model, own.get()) == std::vector<double>{1, 2});
  CHECK(Step(*model, own.get()) == std::vector<double>{2, 4});
  CHECK(Step(*model, nullptr) == std::vector<double>{1, 2});
}

TEST_CASE("reference runtime: states of exact arithmetic can be written and copied", "[runtime]") {
  auto program = std::make_shared<Program>(ParseText(
      "func main<ios18>(tensor<fp16, [2]> x, state<tensor<fp16, [2]>> s) {\n"
      "a = read_state(input = s); b = add(x = a, y = x); write_state(input = s, data = b);"
      "y = read_state(input = s);\n} -> (y);",
      "t.mil", Ops()));
  const std::unique_ptr<runtime::LoadedModel> model = MakeReferenceModel(
      program, *program->main(), {.arithmetic = engine::EngineOptions::Arithmetic::kExact}, {});
  const std::unique_ptr<runtime::ModelState> state = model->NewState(), copy = model->NewState();
  state->Write({{"s", Halves(5, 6)}});
  CHECK(Step(*model, state.get()) == std::vector<double>{6, 8});
  copy->Write(state->Read());
  CHECK(Step(*model, copy.get()) == std::vector<double>{7, 10});
}

TEST_CASE("reference runtime: a state outlives its model and accepts only its own type",
          "[runtime]") {
  std::unique_ptr<runtime::LoadedModel> model = Adder();
  const std::unique_ptr<runtime::ModelState> state = model->NewState();
  Step(*model, state.get());
  model.reset();
  CHECK(state->Read().at("s").Doubles() == std::vector<double>{1, 2});
  CHECK(RefusalId([&] { state->Write({{"t", Halves(5, 6)}}); }) == "bad-input");
  CHECK(RefusalId([&] { state->Write({{"s", Tensor::Vector<float>({5, 6})}}); }) == "bad-input");
  CHECK(RefusalId([&] {
          state->Write({{"s", Tensor::Vector<float>({5}).Cast(DType::kFp16)}});
        }) == "bad-input");
  state->Write({{"s", Halves(5, 6)}});
  CHECK(state->Read().at("s").Doubles() == std::vector<double>{5, 6});
}

}  // namespace
}  // namespace mlc::test
