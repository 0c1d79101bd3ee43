#include "test/catch.h"
#include "test/lib/ops/evaluate.h"

using namespace mlc;
using namespace mlc::test;

namespace {

const Type kOpen = Type::List(Type::Tensor(DType::kFp32, {2}), Dim::Symbol("n"));
const Type kThree = Type::List(Type::Tensor(DType::kFp32, {2}), 3);

// Evaluates an operator with lists represented as tensors of rows.
Tensor Computed(std::string_view op, const std::vector<In>& in) {
  const OpDef& def = Ops().At(op);
  EvalContext context(def, ArgsOf(def, in), {Type::Tensor(DType::kFp32)});
  def.eval(context);
  return context.results.at(0);
}

}  // namespace

// Expected values follow coremltools' operator reference, calculated by hand: a list is "similar to
// an auto-resizing array".
TEST_CASE("list_write, list_scatter: a list grows when written") {
  Tensor list = F32({2, 2}, {1, 2, 3, 4});
  auto write = [&](int32_t index) {
    return Computed("list_write",
                    {{"ls", list}, {"index", I32({}, {index})}, {"value", F32({2}, {8, 9})}});
  };
  CHECK(write(1).Doubles() == std::vector<double>{1, 2, 8, 9});
  CHECK(write(3).dims() == Dims{4, 2});
  CHECK(write(3).Doubles() == std::vector<double>{1, 2, 3, 4, 0, 0, 8, 9});
  CHECK_THROWS_WITH(write(-1), ContainsSubstring("index -1"));
  CHECK_THROWS_WITH(write(INT32_MAX), ContainsSubstring("resource-limit"));
  Tensor scattered =
      Computed("list_scatter",
               {{"ls", list}, {"indices", I32({2}, {2, 0})}, {"value", F32({2, 2}, {5, 6, 7, 8})}});
  CHECK(scattered.Doubles() == std::vector<double>{7, 8, 3, 4, 5, 6});
}

TEST_CASE("list_read, list_gather, list_length: read written elements") {
  Tensor list = F32({3, 2}, {1, 2, 3, 4, 5, 6});
  Tensor row = Computed("list_read", {{"ls", list}, {"index", I32({}, {1})}});
  CHECK(row.dims() == Dims{2});
  CHECK(row.Doubles() == std::vector<double>{3, 4});
  CHECK_THROWS_WITH(Computed("list_read", {{"ls", list}, {"index", I32({}, {3})}}),
                    ContainsSubstring("index 3 is out of range for a list of length 3"));
  Tensor rows = Computed("list_gather", {{"ls", list}, {"indices", I32({3}, {2, 0, 2})}});
  CHECK(rows.Doubles() == std::vector<double>{5, 6, 1, 2, 5, 6});
  CHECK(Computed("list_length", {{"ls", list}}).Int(0) == 3);
}

TEST_CASE("make_list: elements are zero; named sizes are set by the first write") {
  Tensor list = Computed(
      "make_list",
      {{"init_length", I32({}, {2})}, {"elem_shape", I32({}, {2})}, {"elem_shape", I32({}, {1})}});
  CHECK(list.dims() == Dims{2, 2, 1});
  CHECK(list.Doubles() == std::vector<double>{0, 0, 0, 0});
  Tensor open =
      Computed("make_list", {{"init_length", I32({}, {2})}, {"elem_shape", Tensor::String("n")}});
  Tensor written = Computed(
      "list_write", {{"ls", open}, {"index", I32({}, {1})}, {"value", F32({3}, {1, 2, 3})}});
  CHECK(written.dims() == Dims{2, 3});
  CHECK_THROWS_WITH(
      Computed("list_write",
               {{"ls", written}, {"index", I32({}, {0})}, {"value", F32({2}, {1, 2})}}),
      ContainsSubstring("other elements"));
}

TEST_CASE("lists: types") {
  const std::vector<In> fixed = {{"init_length", I32({}, {3})},
                                 {"dynamic_length", Tensor::Scalar(false)},
                                 {"elem_shape", I32({}, {2})}};
  CHECK(Infer("make_list", fixed).results[0] == kThree);
  CHECK(InferContext::HasPlaceholder(
      Infer("make_list", {{"init_length", I32({}, {3})}}).results[0].length));
  CHECK(Infer("list_length", {{"ls", kThree}}).dims[0] == std::vector<Dim>{3});
  CHECK(!Infer("list_length", {{"ls", kOpen}}).dims[0]);
  CHECK(Infer("list_gather", {{"ls", kOpen}, {"indices", I32({4}, {0, 1, 2, 3})}}).results[0] ==
        Type::Tensor(DType::kFp32, {4, 2}));
  CHECK_THROWS_WITH(
      Infer("list_write", {{"ls", kOpen}, {"index", I32({}, {0})}, {"value", F32({3}, {1, 2, 3})}}),
      ContainsSubstring("the list elements are fp32 [2]"));
  CHECK_THROWS_WITH(
      Infer("list_scatter",
            {{"ls", kOpen}, {"indices", I32({1}, {0})}, {"value", F32({2, 2}, {1, 2, 3, 4})}}),
      ContainsSubstring("1 indices do not match 2 elements"));
  CHECK_THROWS_WITH(Infer("list_length", {{"ls", F32({1}, {0})}}),
                    ContainsSubstring("expected a list"));
  CHECK_THROWS_WITH(Infer("make_list", {{"init_length", Tensor::String("fp32")}}),
                    ContainsSubstring("\"init_length\" is a string, expected a number"));
}
