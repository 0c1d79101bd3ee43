#include "lib/ir/block_transaction.h"

#include "lib/ops/row.h"
#include "test/catch.h"

namespace mlc::test {
namespace {

struct Net {
  Program program{&Ops()};
  Function* main = program.Add("main");
  Value* x = main->AddInput("x", Type::Tensor(DType::kFp32, {4}));
  Diagnostics diagnostics;
  Builder b{main->body, diagnostics};

  // Creates an operation whose result has a new symbolic size, and a diagnostic for it.
  Value* Make(Builder& builder) {
    Value* y = builder.Make("non_zero", {{"x", x}});
    builder.diagnostics().Decide("decomposition", y->name, "for a test");
    builder.diagnostics().Note("made");
    return y;
  }
};

}  // namespace

TEST_CASE("draft: a dropped draft leaves no traces") {
  Net net;
  {
    BlockTransaction draft(net.b);
    draft.Input(Type::Tensor(DType::kBool), "p");
    draft.Finish({net.Make(draft.builder())});
    CHECK(net.main->symbols.size() == 1);
    CHECK(net.x->users.size() == 1);
    BlockTransaction nested(draft.builder());
    net.Make(nested.builder());
    nested.Splice();
    CHECK(net.main->symbols.size() == 2);
  }
  CHECK(net.main->body.operations().empty());
  CHECK(net.main->symbols.empty());
  CHECK(net.x->users.empty());
  CHECK(net.diagnostics.decisions().empty());
  CHECK(net.diagnostics.notes().empty());
  for (const char* name : {"p", "non_zero"}) CHECK(net.main->Claim(name));
}

TEST_CASE("draft: a spliced draft is kept although another is dropped") {
  Net net;
  BlockTransaction kept(net.b);
  net.Make(kept.builder());
  {
    BlockTransaction other(net.b);
    net.Make(other.builder());
    net.Make(kept.builder());
  }
  kept.Splice();
  CHECK(net.main->body.operations().size() == 2);
  CHECK(net.main->symbols.size() == 2);
  CHECK(net.diagnostics.decisions().size() == 2);
  CHECK(net.x->users.size() == 2);
}

TEST_CASE("draft: taken blocks without an owner are discarded completely") {
  Net net;
  Value* pred = net.main->AddInput("pred", Type::Tensor(DType::kBool));
  auto branches = [&](bool both) {
    std::vector<std::unique_ptr<Block>> blocks;
    for (bool second : {false, true}) {
      BlockTransaction branch(net.b);
      Value* y = net.Make(branch.builder());
      branch.Finish(second && !both ? std::vector<Value*>() : std::vector<Value*>{y});
      blocks.push_back(branch.Take());
    }
    return blocks;
  };
  // Only one branch returns a result.
  CHECK_THROWS_AS(net.b.MakeNested("cond", {{"pred", pred}}, branches(false)), Error);
  CHECK(net.main->body.operations().empty());
  CHECK(net.main->symbols.empty());
  CHECK(net.x->users.empty());

  Value* y = net.b.MakeNested("cond", {{"pred", pred}}, branches(true)).at(0);
  CHECK(net.main->symbols.size() == 3);  // of both branches, and of either
  net.main->body.SetOutputs({y});
  net.main->inputs = {{.name = "x"}, {.name = "pred"}};
  net.main->outputs = {{.name = y->name}};
  Verify(net.program);
}

TEST_CASE("draft: narrowed bounds are restored") {
  Net net;
  net.main->symbols["n"] = {1, 100, {}};
  auto high = [&] { return net.main->symbols.at("n").high; };
  auto narrow = [](BlockTransaction& draft, int64_t to) {
    draft.builder().block().Narrow("n", {1, to, {}});
  };
  {
    BlockTransaction draft(net.b);
    narrow(draft, 50);
    BlockTransaction nested(draft.builder());
    narrow(nested, 40);
    CHECK(high() == 40);
    nested.Splice();
  }
  CHECK(high() == 100);
  // The drafts may be dropped in any order.
  auto first = std::make_unique<BlockTransaction>(net.b),
       second = std::make_unique<BlockTransaction>(net.b);
  narrow(*first, 50);
  narrow(*second, 40);
  first.reset();
  CHECK(high() == 40);
  second.reset();
  CHECK(high() == 100);
  // A kept narrowing persists; the bounds that another draft found before it are discarded with
  // that draft.
  first = std::make_unique<BlockTransaction>(net.b);
  narrow(*first, 50);
  {
    BlockTransaction kept(net.b);
    narrow(kept, 30);
    kept.Splice();
  }
  first.reset();
  CHECK(high() == 30);
  net.main->body.Narrow("n", {1, 20, {}});
  CHECK(high() == 20);
}

TEST_CASE("draft: operands of nested operations are legalised") {
  Net net;
  std::vector<std::unique_ptr<Block>> blocks;
  for (bool second : {false, true}) {
    BlockTransaction branch(net.b);
    branch.Finish({branch.builder().Make(second ? "relu" : "abs", {{"x", net.x}})});
    blocks.push_back(branch.Take());
  }
  Value* y = net.b.MakeNested("cond", {{"pred", true}}, std::move(blocks)).at(0);
  CHECK(y->def->value("pred")->def->is("const"));
}

}  // namespace mlc::test
