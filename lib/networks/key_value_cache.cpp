#include "lib/networks/key_value_cache.h"

#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"

namespace mlc::networks {

Value* WithPast(Builder& b, Value* state, int64_t layer, Value* past, Value* mask, Value* fresh) {
  Sizes begin(b), end(b);
  begin.Add({layer, 0, 0});
  begin.Add(past, 0);
  begin.Add(0);
  end.Add({layer + 1, 1, fresh->type.shape[1].constant()});
  end.AddDim(mask, 3);
  end.Add(fresh->type.shape[3].constant());
  Value* ends = end.Make();
  auto held = [&] { return b.Make("read_state", {{"input", state}}); };
  Value* update = Expanded(b, b.Cast(fresh, DType::kFp16), {0});
  Value* all = b.Make("slice_update",
                      {{"x", held()}, {"update", update}, {"begin", begin.Make()}, {"end", ends}});
  b.MakeAll("write_state", {{"input", state}, {"data", all}});
  Value* mine = b.Make("slice_by_index",
                       {{"x", held()},
                        {"begin", Ints({layer, 0, 0, 0, 0})},
                        {"end", ends},
                        {"begin_mask", Tensor::Vector<bool>({false, false, true, true, true})},
                        {"end_mask", Tensor::Vector<bool>({false, false, true, false, true})},
                        {"squeeze_mask", Tensor::Vector<bool>({true, true, false, false, false})}});
  return Expanded(b, b.Cast(mine, DType::kFp32), {1});
}

}  // namespace mlc::networks
