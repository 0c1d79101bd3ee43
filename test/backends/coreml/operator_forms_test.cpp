// Every operator in each of its forms survives a round trip: written for the target of the form and
// read back, the operation is the same; written again, the bytes are.
#include <set>

#include "backends/coreml/lower.h"
#include "backends/coreml/write_package.h"
#include "frontends/coreml/coreml.h"
#include "lib/coreml/form_encoding.h"
#include "lib/engine/engine.h"
#include "lib/ir/builder.h"
#include "lib/ir/random_tensor.h"
#include "lib/ir/text.h"
#include "lib/ops/form_params.h"
#include "lib/ops/row.h"
#include "lib/passes/pass.h"
#include "test/backends/coreml/operator_samples.h"
#include "test/backends/coreml/package_files.h"
#include "test/catch.h"
#include "test/expected_error.h"

namespace mlc::test {
using namespace coreml;
namespace {

std::vector<const Operation*> OperationsOf(const Program& program, std::string_view op) {
  std::vector<const Operation*> found;
  ForEachOperation(*program.main(), [&](Operation* each) {
    if (each->is(op)) found.push_back(each);
  });
  return found;
}

std::string TextOf(const Tensor& tensor) {
  std::string text = fmt::format("{} {} ", Name(tensor.dtype()), ToString(ToShape(tensor.dims())));
  if (tensor.dtype() == DType::kString)
    for (const std::string& value : tensor.strings()) text += value + " ";
  else
    for (double value : tensor.Doubles()) text += fmt::format("{} ", value);
  return text;
}

std::string TextOf(const Operands& operands) {
  std::string text;
  for (const Operand& operand : operands)
    text += operand.constant() ? TextOf(operand.constant()) : operand.value->name + " ";
  return text;
}

// Checks the arguments of `back`, which was read back from the package. Both operations have equal
// arguments; `back` lacks an argument only if its form lacks the parameter, and one that `op` lacks
// has the default in `back`.
void CheckSame(const Operation& op, const Operation& back) {
  REQUIRE(op.args().size() <= back.def->canonical().params.size());
  OpContext given(*op.def, op.args(), &op);
  for (const Param& param : op.def->canonical().params) {
    const Operands &mine = op.arg(param.name), &other = back.arg(param.name);
    INFO(op.def->name << "." << param.name);
    if (!mine.empty() && !other.empty()) {
      CHECK(TextOf(mine) == TextOf(other));
    } else if (!mine.empty()) {
      CHECK(!HasParam(*op.def, *back.form, param.name));
    } else if (!other.empty()) {
      Tensor standard = given.value(param.name);
      REQUIRE(standard);
      if (standard.dtype() == DType::kString)
        CHECK(standard.strings() == other[0].constant().strings());
      else
        CHECK(standard.Cast(other[0].constant().dtype()).Doubles() ==
              other[0].constant().Doubles());
    }
  }
  REQUIRE(op.results.size() <= back.results.size());
  for (size_t i = 0; i < op.results.size(); ++i) {
    CHECK(op.results[i]->name == back.results[i]->name);
    CHECK(Matches(op.results[i]->type, back.results[i]->type, {}) ==
          IsStatic(op.results[i]->type.shape));
  }
  if (op.is("const")) CHECK(TextOf(op.val) == TextOf(back.val));
}

Program Read(const std::filesystem::path& path) {
  Diagnostics diagnostics;
  return ImportCoreml(path, diagnostics);
}

void CheckRoundTrip(const Program& program, const OperatorSample& sample, Opset target) {
  ScratchFolder folder;
  Diagnostics diagnostics;
  WritePackage(program, folder / "a.mlpackage", {.target = target}, diagnostics);
  Program back = Read(folder / "a.mlpackage");
  Verify(back);
  auto operations = OperationsOf(program, sample.op), read = OperationsOf(back, sample.op);
  REQUIRE(!operations.empty());
  std::map<std::string, const Operation*> by_name;
  auto name_of = [](const Operation* op) {
    return op->results.empty() ? op->name : op->result()->name;
  };
  for (const Operation* op : read) by_name[name_of(op)] = op;
  for (const Operation* op : operations) {
    std::string name = name_of(op);
    // Constants of constexpr operations are embedded in those.
    if (op->is("const") && name != "c") continue;
    REQUIRE(by_name.contains(name));
    CHECK(by_name[name]->form == op->def->FormFor(target));
    CheckSame(*op, *by_name[name]);
  }
  WritePackage(back, folder / "b.mlpackage", {.target = target}, diagnostics);
  CHECK(FilesOf(folder / "a.mlpackage") == FilesOf(folder / "b.mlpackage"));
}

// For a target that lost the form, other operations must compute the same.
void CheckNewerForm(const Program& program, Opset target) {
  ScratchFolder folder;
  Diagnostics diagnostics;
  Program newer = Clone(program);
  passes::PassContext context{diagnostics, passes::PassContext::Precision::kFp32, target};
  CHECK_THROWS(WritePackage(newer, folder / "a.mlpackage", {.target = target}, diagnostics));
  CHECK(passes::kNewerForms.run(newer, context));
  std::string text = PrintText(newer);
  CHECK(!passes::kNewerForms.run(newer, context));
  CHECK(PrintText(newer) == text);
  WritePackage(newer, folder / "a.mlpackage", {.target = target}, diagnostics);
  Program back = Read(folder / "a.mlpackage");
  Verify(back);
  std::map<std::string, Tensor> inputs;
  uint64_t stream = 0;
  for (const auto& input : program.main()->body.inputs)
    inputs[input->name] =
        RandomTensor(input->type.dtype, StaticDims(input->type.shape), 1, stream++);
  if (inputs.contains("b"))  // overlapping boxes (x, y, width, height)
    inputs["b"] = Tensor::Of<float>(
        {1, 6, 4}, {0, 0, 4, 4, 1, 0, 4, 4, 9, 9, 2, 2, 0, 1, 4, 3, 9, 9, 3, 2, 5, 5, 1, 1});
  if (inputs.contains("r"))  // corners; the first of 5 numbers is the image
    inputs["r"] = inputs["r"].dims()[2] == 4
                      ? Tensor::Of<float>({2, 1, 4, 1, 1}, {0, 1, 2, 3, 1, 1, 3, 2})
                      : Tensor::Of<float>({2, 1, 5, 1, 1}, {1, 0, 1, 2, 3, 0, 1, 1, 3, 2});
  std::map<std::string, Tensor> before = engine::Execute(program, inputs),
                                after = engine::Execute(back, inputs);
  for (const auto& [name, expected] : before) {
    INFO(name);
    CHECK(after.at(name).dims() == expected.dims());
    CHECK(after.at(name).Doubles() == expected.Doubles());
  }
}

}  // namespace

TEST_CASE("every operator survives a round trip in every form") {
  std::map<std::string_view, std::set<const Form*>> written;
  for (const OperatorSample& sample : OperatorSamples()) {
    INFO(sample.text);
    const OpDef* def = Ops().Find(sample.op);
    REQUIRE(def);
    Program program(&Ops());
    try {
      program = ParseText(sample.text, sample.op, Ops());
      Verify(program);
    } catch (const std::exception& error) {
      FAIL_CHECK(error.what());
      continue;
    }
    for (const Form& form : def->forms) {
      INFO(TargetName(form.since));
      if (form.since >= sample.since && form.since <= sample.until) {
        CHECK_NOTHROW(CheckRoundTrip(program, sample, form.since));
        written[def->name].insert(&form);
        continue;
      }
      if (form.since > sample.until) {
        CHECK_NOTHROW(CheckNewerForm(program, form.since));
        continue;
      }
      ScratchFolder folder;
      Diagnostics diagnostics;
      std::vector<Error> errors = Refusals([&] {
        WritePackage(program, folder / "a.mlpackage", {.target = form.since}, diagnostics);
      });
      CHECK(!errors.empty());
      bool named = false;
      for (const Error& error : errors) {
        named |= std::string(error.what()).find(sample.op) != std::string::npos;
        if (form.since < sample.since) CHECK(error.id() == "target-too-old");
      }
      CHECK(named);
    }
  }
  for (const OpDef& def : Ops().all())
    for (const Form& form : def.forms) {
      if (def.name == "classify") continue;  // its label and dictionary are not tensors
      INFO(def.name << " has no case for its form of " << TargetName(form.since));
      CHECK(written[def.name].contains(&form));
    }
}

}  // namespace mlc::test
