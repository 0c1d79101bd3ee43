#include "lib/ir/program.h"

#include "lib/ir/builder.h"
#include "lib/ir/text.h"
#include "test/catch.h"
#include "test/lib/ir/text_ops.h"

namespace mlc::test {
namespace {

constexpr std::string_view kText = R"(func main<ios17>(tensor<fp32, [4]> x) {
  tensor<fp32, [4]> a = relu(x = x);
  tensor<fp32, [4]> b = relu(x = a);
  tensor<fp32, [4]> c = add(x = a, y = a);
} -> (b, c);)";

Program Parsed() { return ParseText(kText, "test.mil", SmallOps()); }

Value* Find(Program& program, std::string_view name) {
  Value* found = nullptr;
  ForEachOperation(*program.main(), [&](Operation* op) {
    for (const auto& result : op->results)
      if (result->name == name) found = result.get();
  });
  return found;
}

}  // namespace

TEST_CASE("program: users are counted once per operand") {
  Program program = Parsed();
  Value *a = Find(program, "a"), *b = Find(program, "b");
  CHECK(a->users.size() == 3);
  CHECK(!a->is_output());
  Find(program, "c")->def->SetArg("y", {b});
  CHECK(a->users.size() == 2);
  CHECK(b->users.size() == 1);
  CHECK(b->outputs.size() == 1);
  Verify(program);
}

TEST_CASE("program: uses are ordered and have positions") {
  Program program{&SmallOps()};
  Function& main = *program.Add("main");
  Diagnostics diagnostics;
  Builder b(main.body, diagnostics);
  Value *x = main.AddInput("x", Type::Tensor(DType::kFp32, {4})),
        *y = main.AddInput("y", Type::Tensor(DType::kFp32, {4}));
  constexpr size_t kCount = 100;
  std::vector<Operation*> operations;
  for (size_t i = 0; i < kCount; ++i)
    operations.push_back(b.Make("add", {{"x", x}, {"y", x}})->def);
  for (size_t i = 0; i < kCount; ++i) {
    if (i % 4 == 0) continue;
    // Removes operands in an order other than that of insertion.
    Operation* op = operations[i * 37 % kCount];
    for (const Use& use : x->users.All())
      if (use.operation == op) op->SetOperand(use, y);
  }
  std::vector<Operation*> left, found(x->users.begin(), x->users.end());
  for (Operation* op : operations)
    if (op->value("x") == x) left.insert(left.end(), 2, op);
  CHECK(left.size() == kCount / 2);
  CHECK(found == left);
  CHECK(y->users.size() == 2 * kCount - left.size());
  for (const Use& use : y->users.All())
    CHECK(use.operation->args()[use.parameter][use.index].value == y);
  ReplaceAllUses(x, y);
  CHECK(x->users.empty());
  CHECK(!x->has_uses());
  CHECK(y->users.size() == 2 * kCount);
}

TEST_CASE("program: replacing an output transfers its name") {
  Program program = Parsed();
  Function& main = *program.main();
  Value *a = Find(program, "a"), *b = Find(program, "b");
  ReplaceAllUses(b, a);
  CHECK(main.body.outputs()[0] == a);
  CHECK(a->name == "b");
  main.body.Erase(b->def);
  Verify(program);
  // An output that replaces another output keeps its own name.
  Value* c = Find(program, "c");
  ReplaceAllUses(c, a);
  CHECK(main.body.outputs() == std::vector<Value*>{a, a});
}

TEST_CASE("program: operations in use cannot be erased") {
  Program program = Parsed();
  CHECK_THROWS_AS(program.main()->body.Erase(Find(program, "a")->def), InternalError);
}

TEST_CASE("program: operation order") {
  Program program = Parsed();
  Block& body = program.main()->body;
  Operation *a = Find(program, "a")->def, *b = Find(program, "b")->def,
            *c = Find(program, "c")->def;
  CHECK(body.Precedes(a, c));
  body.MoveBefore(c, b);
  CHECK(body.Precedes(c, b));
  CHECK(body.Next(a) == c);
  CHECK(body.Next(b) == nullptr);
  Verify(program);
}

TEST_CASE("program: names are legal and unique") {
  // DESIGN.md states the rules for names; type keywords are reserved in MIL text.
  CHECK(LegalName("conv1/weight:0") == "conv1_weight_0");
  CHECK(LegalName("3x") == "_3x");
  CHECK(LegalName("fp32") == "fp32_");
  CHECK(LegalName("") != "");
  Program program(&SmallOps());
  Function* main = program.Add("main");
  CHECK(main->UniqueName("a") == "a");
  CHECK(main->UniqueName("a") == "a_2");
  CHECK(main->UniqueName("a") == "a_3");
  CHECK(main->UniqueName("a_2") == "a_2_2");
}

TEST_CASE("program: released names are reusable, suffixes continue, names stay unique") {
  Program program(&SmallOps());
  Function* function = program.Add("main");
  for (int i = 0; i < 1000; ++i) CHECK(function->Claim(fmt::format("n{}", i)));
  for (int i = 0; i < 1000; ++i) CHECK(!function->Claim(fmt::format("n{}", i)));
  CHECK(function->UniqueName("n7") == "n7_2");
  function->ReleaseName("n7");
  function->ReleaseName("nobody");
  CHECK(function->UniqueName("n7") == "n7");
  CHECK(function->UniqueName("n7") == "n7_3");
  CHECK(function->Claim("nobody"));
  function->ClaimShared("n8");
  CHECK(function->IsShared("n8"));
  function->ReleaseName("n8");
  CHECK(!function->IsShared("n8"));
  CHECK(!function->Claim("n8"));
  for (std::string_view name : {"", "1", "@a", "a b", "int32", "\xC3\xA9"}) {
    CHECK(!IsLegalName(name));
    CHECK(IsLegalName(LegalName(name)));
  }
}

TEST_CASE("program: a name shared by sibling blocks becomes unique when operations leave them") {
  Program program = ParseText(R"(
func main<ios17>(tensor<fp32, [4]> x, bool p) {
  tensor<fp32, [4]> y = cond(pred = p) () { a = relu(x = x); } -> (a) () { a = add(x = x, y = 1.0); } -> (a);
} -> (y);)",
                              "test.mil", SmallOps());
  Operation* cond = Find(program, "y")->def;
  Block& first = *cond->blocks[0];
  Operation* relu = first.operations().front();
  program.main()->body.MoveBefore(relu, cond);
  Verify(program);
  CHECK(relu->result()->name == "a_2");
  CHECK(cond->blocks[1]->outputs()[0]->name == "a");
  // The name is free once its last value is gone.
  first.SetOutputs({});
  cond->blocks[1]->Clear();
  CHECK(program.main()->UniqueName("a") == "a");
}

TEST_CASE("program: a clone shares only constants") {
  Program program = Parsed();
  Diagnostics diagnostics;
  Builder builder(program.main()->body, diagnostics, Find(program, "a")->def);
  Value* k = builder.Const(Tensor::Full(DType::kFp32, {4}, 2), "k");
  Find(program, "c")->def->SetArg("y", {k});
  Program copy = Clone(program);
  CHECK(PrintText(copy, {}) == PrintText(program, {}));
  Pin<std::byte> pinned = k->constant().bytes(), copied = Find(copy, "k")->constant().bytes();
  CHECK(copied.data() == pinned.data());
  Find(copy, "b")->def->SetArg("x", {copy.main()->body.inputs[0].get()});
  CHECK(PrintText(copy, {}) != PrintText(program, {}));
  Verify(copy);
  Verify(program);
}

}  // namespace mlc::test
