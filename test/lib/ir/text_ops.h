// test/lib/ir/text_ops.h - a small operator table, which keeps the tests of text and verifier
// independent of the rows of lib/ops.
#pragma once

#include "lib/ops/eval.h"
#include "lib/ops/row.h"

namespace mlc::test {

inline const OpSet& SmallOps() {
  static const OpSet set = [] {
    auto def = [](std::string_view name, std::vector<FormRow> forms, InferFn infer = nullptr) {
      OpDef row;
      row.name = name;
      for (const FormRow& form : forms) row.forms.push_back(ParseForm(form));
      row.infer = infer;
      return row;
    };
    std::vector<OpDef> rows;
    rows.push_back(def("const", {{kIos15, ""}}));
    rows.back().constant = ConstantKind::kDense;
    rows.push_back(def("relu", {{kIos15, "x:T | T=fp16/fp32"}}, InferSameAsX));
    rows.push_back(def("add", {{kIos15, "x:T y:T | T=fp16/fp32/int32"}}, [](InferContext& c) {
      c.Result(c.dtype("x"), BroadcastShapes(c, c.shape("x"), c.shape("y")));
    }));
    rows.push_back(def("cast", {{kIos15, "x:T dtype:string! | T=fp16/fp32/int32/bool"}}));
    rows.push_back(def("softmax", {{kIos15, "x:T axis:int32!=-1 | T=fp16/fp32"}}, InferSameAsX));
    rows.push_back(def("non_zero", {{kIos15, "x:T | T=fp16/fp32"}}, [](InferContext& c) {
      c.Result(DType::kInt32, {c.Fresh("count"), Dim(c.rank("x"))});
    }));
    rows.push_back(
        def("concat", {{kIos15, "values:fp16/fp32/int32... axis:int32! interleave:bool!=false"}}));
    rows.push_back(def("classify", {{kIos15, "probabilities:fp32 classes:list!"}}));
    rows.push_back(
        def("topk",
            {{kIos15, "x:T k:int32!=1 axis:int32!=-1 | T=fp16/fp32"},
             {kIos16, "x:T k:int32!=1 axis:int32!=-1 return_indices:bool!=true | T=fp16/fp32"}}));
    rows.push_back(def("cond", {{kIos15, "pred:bool"}}));
    rows.back().effect = Effect::kBranch;
    rows.push_back(def("while_loop", {{kIos15, "loop_vars:fp16/fp32/int32..."}}));
    rows.back().effect = Effect::kLoop;
    rows.push_back(def("read_state", {{kIos18, "input:state"}}));
    rows.back().effect = Effect::kReadsState;
    rows.push_back(def("write_state", {{kIos18, "input:state data:fp16"}}));
    rows.back().effect = Effect::kWritesState;
    rows.push_back(
        def("constexpr_affine_dequantize",
            {{kIos16,
              "quantized_data:S! zero_point:S! scale:D! axis:int32! | S=uint8/int8 D=fp16/fp32"}}));
    rows.back().constant = ConstantKind::kEncoded;
    rows.push_back(def("constexpr_lut_to_dense",
                       {{kIos16, "indices:uint8! lut:T! shape:uint32! | T=fp16/fp32"},
                        {kIos18,
                         "indices:I! lut:T! vector_axis:int32!? shape:uint32!? | "
                         "I=uint1/uint2/uint4/uint8 T=fp16/fp32"}}));
    rows.back().constant = ConstantKind::kEncoded;
    return OpSet(std::move(rows));
  }();
  return set;
}

}  // namespace mlc::test
