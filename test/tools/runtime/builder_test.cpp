// The builder: programs that it builds from the operators of test data, its errors, and the
// lifetime of what it lends.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "lib/support/atomic_install.h"
#include "lib/support/temporary_folder.h"
#include "lib/verify/program_diff.h"
#include "test/backends/coreml/operator_samples.h"
#include "test/expected_error.h"
#include "test/tools/runtime/handles.h"
#include "tools/driver/import.h"
#include "tools/driver/run_passes.h"
#include "tools/runtime/tensor.h"

namespace mlc::test {
namespace {

namespace fs = std::filesystem;

// Builds a program again, operation by operation, through the C interface.
class Rebuilding {
 public:
  explicit Rebuilding(const Program& source) : building_("{\"target\": \"iOS18\"}") {
    const Function& main = *source.main();
    AddInputs(main.body, building_.body, true);
    Add(main.body, building_.body);
    for (const Value* output : main.body.outputs())
      building_.Output(output->name.c_str(), values_.at(output));
  }
  mlc_program* program() { return building_.program.get(); }

 private:
  void AddInputs(const Block& from, mlc_block* to, bool body) {
    for (const auto& input : from.inputs) {
      const bool state = input->type.kind == Type::Kind::kState;
      const Type& type = state ? input->type.elements[0] : input->type;
      const Dims dims = StaticDims(type.shape);
      mlc_value value = -1;
      Expect(state && body ? mlc_block_state : mlc_block_input, to, input->name.c_str(),
             abi::NumberOf(type.dtype), static_cast<int32_t>(dims.size()), dims.data(), &value);
      values_[input.get()] = value;
    }
  }

  void Add(const Block& from, mlc_block* to) {
    for (const Operation* op : from.operations()) {
      if (!op->val)
        AddOperation(*op, to);
      else if (op->val.dtype() != DType::kString)
        values_[op->result()] = Constant(op->val, op->result()->name.c_str(), to);
    }
  }

  static mlc_value Constant(const Tensor& tensor, const char* name, mlc_block* to) {
    const Pin<std::byte> bytes = tensor.bytes();
    const mlc_tensor view = TensorOf(const_cast<std::byte*>(bytes.data()),
                                     abi::NumberOf(tensor.dtype()), tensor.dims());
    mlc_value value = -1;
    Expect(mlc_block_constant, to, name, &view, &value);
    return value;
  }

  void AddOperation(const Operation& op, mlc_block* to) {
    mlc_op* made = nullptr;
    const char* name = op.results.size() == 1 ? op.result()->name.c_str() : nullptr;
    Expect(mlc_op_new, to, std::string(op.def->name).c_str(), name, &made);
    REQUIRE(made);
    const OpHandle freed(made);
    const std::vector<Param>& params = op.def->canonical().params;
    for (size_t i = 0; i < params.size(); ++i) {
      const std::string param(params[i].name);
      std::vector<mlc_value> values;
      for (const Operand& operand : op.args()[i]) {
        const Tensor& constant = operand.constant();
        if (constant && constant.dtype() == DType::kString)
          Expect(mlc_op_string, made, param.c_str(), constant.strings()[0].c_str());
        else
          values.push_back(operand.value ? values_.at(operand.value)
                                         : Constant(constant, nullptr, to));
      }
      if (!values.empty())
        Expect(mlc_op_args, made, param.c_str(), static_cast<int32_t>(values.size()),
               static_cast<const mlc_value*>(values.data()));
    }
    for (size_t i = 0; i < op.blocks.size(); ++i) {
      mlc_block* block = nullptr;
      Expect(mlc_op_block, made, static_cast<int32_t>(i), &block);
      AddInputs(*op.blocks[i], block, false);
      Add(*op.blocks[i], block);
      for (const Value* output : op.blocks[i]->outputs())
        Expect(mlc_block_output, block, static_cast<const char*>(nullptr), values_.at(output));
    }
    std::vector<mlc_value> results(op.results.size());
    int32_t count = -1;
    Expect(mlc_op_finish, made, static_cast<int32_t>(results.size()), results.data(), &count);
    CHECK(count == static_cast<int32_t>(results.size()));
    for (size_t i = 0; i < results.size(); ++i)
      values_[op.result(static_cast<int>(i))] = results[i];
  }

  Building building_;
  std::map<const Value*, mlc_value> values_;
};

std::string BytesOf(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::map<std::string, std::string> FilesOf(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      files[fs::relative(entry.path(), folder).string()] = BytesOf(entry.path());
  return files;
}

}  // namespace

TEST_CASE("c interface: every operator built by name is written like its text by mlc opt") {
  std::map<std::string_view, int> built;
  for (const OperatorSample& sample : OperatorSamples()) {
    INFO(sample.text);
    // Text has the inputs in order of their names.
    const std::string ordered = PrintText(ParseText(sample.text, "sample.mil", Ops()));
    const Program source = ParseText(ordered, "sample.mil", Ops());
    Rebuilding again(source);
    const TemporaryFolder folder;
    char* text = nullptr;
    Expect(mlc_program_text, again.program(), &text);
    WriteFile(folder.path / "p.mil", Taken(text));
    Diagnostics diagnostics;
    const Program read = driver::Import(folder.path / "p.mil", {}, diagnostics);
    CHECK(verify::Diff(source, read).same());
    const std::string ours = (folder.path / "ours.mlpackage").string();
    const std::string failed =
        ErrorText(mlc_program_write, static_cast<mlc_context*>(nullptr), again.program(),
                  ours.c_str(), static_cast<const char*>(nullptr), static_cast<char**>(nullptr));
    driver::OptimizeOptions options;
    options.passes.emplace();
    options.output = folder.path / "theirs.mlpackage";
    const std::string refused =
        Refusal([&] { driver::Optimize(folder.path / "p.mil", options, diagnostics); });
    CHECK(failed.empty() == refused.empty());
    if (!failed.empty()) continue;
    CHECK(FilesOf(ours) == FilesOf(options.output));
    ++built[Ops().Find(sample.op)->name];
  }
  for (const OpDef& def : Ops().all()) {
    if (def.name == "classify") continue;  // mlc_program_set_labels makes it
    INFO(def.name);
    CHECK(built[def.name] > 0);
  }
}

TEST_CASE("c interface: errors of operations name operator, argument and rule, and can be mended") {
  Building building;
  const mlc_value x = building.Input("x", MLC_FP32, {2, 3}),
                  y = building.Input("i", MLC_INT32, {2});
  CHECK_THAT(ErrorText(mlc_op_new, building.body, "convolve", static_cast<const char*>(nullptr),
                       static_cast<mlc_op**>(nullptr)),
             ContainsSubstring("\"op\" is NULL"));
  mlc_op* op = nullptr;
  CHECK_THAT(
      ErrorText(mlc_op_new, building.body, "convolve", static_cast<const char*>(nullptr), &op),
      ContainsSubstring("error[unsupported-operator]: unknown operator convolve"));
  for (const auto& [given, meant] :
       {std::pair("rellu", "perhaps relu"), std::pair("Conv", "perhaps conv")})
    CHECK_THAT(ErrorText(mlc_op_new, building.body, given, static_cast<const char*>(nullptr), &op),
               ContainsSubstring(meant));
  Expect(mlc_op_new, building.body, "matmul", "z", &op);
  const OpHandle freed(op);
  CHECK_THAT(ErrorText(mlc_op_arg, op, "weight", x),
             ContainsSubstring("matmul has no parameter \"weight\"\n  expected: x, y"));
  Expect(mlc_op_arg, op, "x", x);
  const auto finish = [&] {
    return ErrorText(mlc_op_finish, op, 0, static_cast<mlc_value*>(nullptr),
                     static_cast<int32_t*>(nullptr));
  };
  CHECK_THAT(finish(), ContainsSubstring("matmul lacks \"y\""));
  CHECK_THAT(finish(), ContainsSubstring("at function \"main\", matmul \"z\""));
  Expect(mlc_op_arg, op, "y", y);
  CHECK_THAT(finish(), ContainsSubstring("error[bad-operand]: matmul"));
  Expect(mlc_op_arg, op, "y", x);
  CHECK_THAT(finish(), ContainsSubstring("matmul"));
  Expect(mlc_op_bool, op, "transpose_y", 1);
  CHECK(finish().empty());
  CHECK_THAT(finish(), ContainsSubstring("the operation is finished"));
}

TEST_CASE("c interface: a number that does not fit can be replaced") {
  Building building;
  const mlc_value x = building.Input("x", MLC_INT32, {2});
  mlc_op* op = nullptr;
  Expect(mlc_op_new, building.body, "add", "z", &op);
  const OpHandle freed(op);
  Expect(mlc_op_arg, op, "x", x);
  Expect(mlc_op_int, op, "y", int64_t{1} << 40);
  for (int i = 0; i < 2; ++i)
    CHECK_THAT(ErrorText(mlc_op_finish, op, 0, static_cast<mlc_value*>(nullptr),
                         static_cast<int32_t*>(nullptr)),
               ContainsSubstring("error[constant-range]"));
  Expect(mlc_op_int, op, "y", int64_t{1});
  Expect(mlc_op_finish, op, 0, static_cast<mlc_value*>(nullptr), static_cast<int32_t*>(nullptr));
}

TEST_CASE("c interface: values of other programs and blocks are refused") {
  Building one, other;
  const mlc_value x = one.Input("x", MLC_FP32, {2}), y = other.Input("x", MLC_FP32, {2});
  mlc_op* op = nullptr;
  Expect(mlc_op_new, one.body, "relu", "r", &op);
  OpHandle freed(op);
  CHECK_THAT(ErrorText(mlc_op_arg, op, "x", y), ContainsSubstring("belongs to another program"));
  CHECK_THAT(ErrorText(mlc_op_arg, op, "x", mlc_value{-7}), ContainsSubstring("not a value"));
  freed.reset();
  Expect(mlc_op_new, one.body, "cond", "c", &op);
  OpHandle branch(op);
  mlc_block* inner = nullptr;
  Expect(mlc_op_block, op, 0, &inner);
  const mlc_value inside = one.Binary(inner, "relu", "inside", x, -1);
  CHECK(mlc_value_rank(one.program.get(), inside) == 1);
  CHECK_THAT(ErrorText(mlc_block_output, one.body, "o", inside),
             ContainsSubstring("belongs to another block or function"));
  // Dropping the operation drops its blocks and their values.
  branch.reset();
  CHECK(mlc_value_rank(one.program.get(), inside) == -1);
  CHECK_THAT(ErrorText(mlc_block_output, inner, "o", x),
             ContainsSubstring("the block is finished"));
  one.Output("y", one.Binary(one.body, "relu", "y", x, -1));
  char* json = nullptr;
  Expect(mlc_program_optimise, static_cast<mlc_context*>(nullptr), one.program.get(), "{}", &json);
  CHECK_THAT(Taken(json), ContainsSubstring("\"passes\""));
  CHECK(mlc_value_name(one.program.get(), x) == nullptr);
  CHECK_THAT(ErrorText(mlc_block_output, one.body, "o", x), ContainsSubstring("is finished"));
  const ModelHandle model = one.Load();
  float in[2] = {-1, 2}, out[2] = {};
  CHECK(PredictTwo(model.get(), nullptr, in, out) == "");
  CHECK((out[0] == 0 && out[1] == 2));
}

TEST_CASE("c interface: a borrowed constant is not copied, and released once, with its last user") {
  int released = 0;
  std::vector<float> weights(1000, 2);
  ModelHandle model;
  {
    Building building;
    const mlc_value x = building.Input("x", MLC_FP32, {1000});
    const mlc_tensor tensor = TensorOf(weights.data(), MLC_FP32, {1000});
    mlc_value w = -1;
    Expect(
        mlc_block_constant_borrowed, building.body, "w", &tensor,
        [](void* user) { ++*static_cast<int*>(user); }, static_cast<void*>(&released), &w);
    building.Output("y", building.Binary(building.body, "mul", "y", x, w));
    weights[7] = 3;  // before it is used: the elements are not copied
    model = building.Load();
  }
  CHECK(released == 0);
  std::vector<float> in(1000, 1), out(1000);
  const std::vector<int64_t> dims{1000};
  const mlc_tensor x = TensorOf(in.data(), MLC_FP32, dims),
                   y = TensorOf(out.data(), MLC_FP32, dims);
  const mlc_tensor *inputs[] = {&x}, *outputs[] = {&y};
  const char *input_names[] = {"x"}, *output_names[] = {"y"};
  Expect(mlc_predict, model.get(), static_cast<mlc_state*>(nullptr), 1, input_names, inputs, 1,
         output_names, outputs, int64_t{0}, static_cast<mlc_results**>(nullptr));
  CHECK((out[7] == 3 && out[8] == 2));
  model.reset();
  CHECK(released == 1);
  // A refused constant is not released.
  Building building;
  mlc_tensor wrong = TensorOf(weights.data(), 99, {1000});
  CHECK(!ErrorText(
             mlc_block_constant_borrowed, building.body, "w", &wrong,
             [](void* user) { ++*static_cast<int*>(user); }, static_cast<void*>(&released),
             static_cast<mlc_value*>(nullptr))
             .empty());
  CHECK(released == 1);
}

TEST_CASE("c interface: weights by name, constants in files, symbols and labels") {
  const TemporaryFolder folder;
  const std::string file = (folder.path / "w.bin").string();
  const std::vector<float> weights(12, 0.5f);
  std::ofstream(file, std::ios::binary)
      .write("head", 4)
      .write(reinterpret_cast<const char*>(weights.data()), 48);
  Building building;
  int64_t n = 0;
  Expect(mlc_block_symbol, building.body, "n", int64_t{1}, int64_t{8}, &n);
  CHECK(n < 0);
  const int64_t dims[] = {n, 4}, weight_dims[] = {3, 4};
  mlc_value x = -1, w = -1;
  Expect(mlc_block_input, building.body, "x", MLC_FP32, 2, dims, &x);
  Expect(mlc_block_constant_file, building.body, "w", file.c_str(), uint64_t{4}, MLC_FP32, 2,
         weight_dims, &w);
  CHECK_THAT(ErrorText(mlc_block_constant_file, building.body, "v", file.c_str(), uint64_t{5},
                       MLC_FP32, 2, weight_dims, &w),
             ContainsSubstring("error[bad-file]"));
  mlc_op* op = nullptr;
  Expect(mlc_op_new, building.body, "linear", "z", &op);
  const OpHandle freed(op);
  Expect(mlc_op_arg, op, "x", x);
  Expect(mlc_op_arg, op, "weight", w);
  mlc_value z = -1;
  Expect(mlc_op_finish, op, 1, &z, static_cast<int32_t*>(nullptr));
  int64_t shape[2] = {};
  Expect(mlc_value_dims, building.program.get(), z, shape);
  CHECK((shape[0] == -1 && shape[1] == 3));
  building.Output("z", z);
  char* json = nullptr;
  Expect(mlc_program_weights, building.program.get(), &json);
  CHECK_THAT(Taken(json), ContainsSubstring(R"("name":"w","function":"main","dtype":"fp32")"));
  std::vector<double> more(12, 2);
  const mlc_tensor doubles = TensorOf(more.data(), MLC_FP64, {3, 4});
  Expect(mlc_program_set_weight, building.program.get(), "w", &doubles);
  CHECK_THAT(ErrorText(mlc_program_set_weight, building.program.get(), "u", &doubles),
             ContainsSubstring("the model has no weight \"u\""));
  std::vector<float> got(12);
  const mlc_tensor floats = TensorOf(got.data(), MLC_FP32, {3, 4});
  Expect(mlc_program_get_weight, building.program.get(), "w", &floats);
  CHECK(got == std::vector<float>(12, 2));
  const ModelHandle model = building.Load();
  CHECK_THAT(mlc_model_schema(model.get()),
             ContainsSubstring(R"("symbols":{"n":{"low":1,"high":8})"));
}

TEST_CASE("c interface: operators of ONNX become several operations, or leave nothing") {
  Building building;
  const mlc_value x = building.Input("x", MLC_INT32, {3}), f = building.Input("f", MLC_FP32, {3});
  mlc_op* op = nullptr;
  Expect(mlc_op_new, building.body, "onnx.BitwiseAnd", "bits", &op);
  const OpHandle freed(op);
  char* text = nullptr;
  Expect(mlc_op_arg, op, "A", f);
  Expect(mlc_op_int, op, "B", int64_t{12});
  mlc_value bits = -1;
  CHECK_THAT(ErrorText(mlc_op_finish, op, 1, &bits, static_cast<int32_t*>(nullptr)),
             ContainsSubstring("onnx.BitwiseAnd: \"A\" is fp32 [3]\n  at function \"main\", "
                               "onnx.BitwiseAnd \"bits\"\n  expected: int32"));
  Expect(mlc_op_arg, op, "A", x);
  Expect(mlc_op_finish, op, 1, &bits, static_cast<int32_t*>(nullptr));
  Expect(mlc_op_new, building.body, "onnx.ScatterElements", "scattered", &op);
  const OpHandle scatter(op);
  Expect(mlc_op_arg, op, "data", f);
  Expect(mlc_op_ints, op, "indices", 1, std::vector<int64_t>{-1}.data());
  CHECK_THAT(ErrorText(mlc_op_finish, op, 1, &bits, static_cast<int32_t*>(nullptr)),
             ContainsSubstring("onnx.ScatterElements lacks \"updates\""));
  Expect(mlc_op_floats, op, "updates", 1, std::vector<double>{7}.data());
  Expect(mlc_op_string, op, "updates", "text");
  CHECK_THAT(ErrorText(mlc_op_finish, op, 1, &bits, static_cast<int32_t*>(nullptr)),
             ContainsSubstring("onnx.ScatterElements: \"updates\" is a string"));
  Expect(mlc_op_floats, op, "updates", 1, std::vector<double>{7}.data());
  CHECK_THAT(ErrorText(mlc_op_string, op, "mode", "add"),
             ContainsSubstring("expected: data, indices, updates, axis, reduction"));
  Expect(mlc_op_string, op, "reduction", "add");
  mlc_value scattered = -1;
  Expect(mlc_op_finish, op, 1, &scattered, static_cast<int32_t*>(nullptr));
  building.Output("bits_out", bits);
  building.Output("scattered_out", scattered);
  Expect(mlc_program_text, building.program.get(), &text);
  CHECK_THAT(Taken(text), ContainsSubstring("scatter_along_axis"));
  const ModelHandle model = building.Load();
  int32_t in[3] = {7, 8, 13}, out[3] = {};
  float floats[3] = {1, 2, 3}, sums[3] = {};
  const mlc_tensor a = TensorOf(in, MLC_INT32, {3}), b = TensorOf(floats, MLC_FP32, {3}),
                   c = TensorOf(out, MLC_INT32, {3}), d = TensorOf(sums, MLC_FP32, {3});
  const mlc_tensor *inputs[] = {&a, &b}, *outputs[] = {&c, &d};
  const char *input_names[] = {"x", "f"}, *output_names[] = {"bits_out", "scattered_out"};
  Expect(mlc_predict, model.get(), static_cast<mlc_state*>(nullptr), 2, input_names, inputs, 2,
         output_names, outputs, int64_t{0}, static_cast<mlc_results**>(nullptr));
  CHECK((out[0] == 4 && out[1] == 8 && out[2] == 12));
  CHECK((sums[0] == 1 && sums[2] == 10));
  Expect(mlc_capabilities, &text);
  CHECK_THAT(Taken(text), ContainsSubstring(R"("name":"onnx.Unique","class":"decomposed")"));
}

namespace {

// The first result, converted to fp32, of a composite of the inputs x [2, 2] and y [2, 2], fp32, and constants.
std::vector<float> ResultOf(const char* name,
                            const std::function<void(mlc_op*, mlc_value, mlc_value)>& set,
                            int64_t elements) {
  INFO(name);
  Building building;
  const mlc_value x = building.Input("x", MLC_FP32, {2, 2}),
                  y = building.Input("y", MLC_FP32, {2, 2});
  mlc_op* op = nullptr;
  Expect(mlc_op_new, building.body, name, "made", &op);
  const OpHandle freed(op);
  set(op, x, y);
  mlc_value made = -1;
  Expect(mlc_op_finish, op, 1, &made, static_cast<int32_t*>(nullptr));
  mlc_op* cast = nullptr;
  mlc_value cast_result = -1;
  Expect(mlc_op_new, building.body, "cast", "numbers", &cast);
  const OpHandle freed_cast(cast);
  Expect(mlc_op_arg, cast, "x", made);
  Expect(mlc_op_string, cast, "dtype", "fp32");
  Expect(mlc_op_finish, cast, 1, &cast_result, static_cast<int32_t*>(nullptr));
  building.Output("numbers_out", cast_result);
  const ModelHandle model = building.Load();
  float in[2][4] = {{1, 2, 3, 4}, {0, 1, 10, 257}};
  const mlc_tensor a = TensorOf(in[0], MLC_FP32, {2, 2}), b = TensorOf(in[1], MLC_FP32, {2, 2});
  const mlc_tensor* inputs[] = {&a, &b};
  const char* names[] = {"x", "y"};
  mlc_results* results = nullptr;
  Expect(mlc_predict, model.get(), static_cast<mlc_state*>(nullptr), 2, names, inputs, 0,
         static_cast<const char* const*>(nullptr), static_cast<const mlc_tensor* const*>(nullptr),
         int64_t{0}, &results);
  const ResultsHandle kept(results);
  mlc_tensor found{sizeof(mlc_tensor), nullptr, 0, 0, nullptr, nullptr, nullptr};
  Expect(mlc_results_tensor, results, 0, &found);
  const auto* data = static_cast<const float*>(found.data);
  return {data, data + elements};
}

}  // namespace

TEST_CASE("c interface: composites compute what ONNX defines") {
  using Floats = std::vector<float>;
  CHECK(ResultOf(
            "onnx.Einsum",
            [](mlc_op* op, mlc_value x, mlc_value y) {
              const mlc_value both[] = {x, y};
              Expect(mlc_op_args, op, "Inputs", 2, static_cast<const mlc_value*>(both));
              Expect(mlc_op_string, op, "equation", "ij,kj->ik");
            },
            4) == Floats{2, 524, 4, 1058});
  CHECK(ResultOf(
            "onnx.MatMul",
            [](mlc_op* op, mlc_value x, mlc_value y) {
              Expect(mlc_op_arg, op, "A", x);
              Expect(mlc_op_arg, op, "B", y);
            },
            4) == Floats{20, 515, 40, 1031});
  CHECK(ResultOf(
            "onnx.Gather",
            [](mlc_op* op, mlc_value x, mlc_value) {
              Expect(mlc_op_arg, op, "data", x);
              Expect(mlc_op_ints, op, "indices", 1, std::vector<int64_t>{-1}.data());
              Expect(mlc_op_int, op, "axis", int64_t{1});
            },
            2) == Floats{2, 4});
  CHECK(ResultOf(
            "onnx.TopK",
            [](mlc_op* op, mlc_value, mlc_value y) {
              Expect(mlc_op_arg, op, "X", y);
              Expect(mlc_op_int, op, "K", int64_t{1});
            },
            2) == Floats{1, 257});
  CHECK(ResultOf(
            "onnx.Cast",
            [](mlc_op* op, mlc_value, mlc_value y) {
              Expect(mlc_op_arg, op, "input", y);
              Expect(mlc_op_string, op, "to", "bf16");
            },
            4) == Floats{0, 1, 10, 256});
  CHECK(ResultOf(
            "onnx.QuantizeLinear",
            [](mlc_op* op, mlc_value, mlc_value y) {
              Expect(mlc_op_arg, op, "x", y);
              Expect(mlc_op_float, op, "y_scale", 0.25);
            },
            4) == Floats{0, 4, 40, 255});
  CHECK(ResultOf(
            "onnx.DFT",
            [](mlc_op* op, mlc_value x, mlc_value) {
              Expect(mlc_op_arg, op, "input", x);
              Expect(mlc_op_int, op, "axis", int64_t{0});
            },
            4) == Floats{4, 6, -2, -2});
  CHECK(ResultOf(
            "onnx.HannWindow",
            [](mlc_op* op, mlc_value, mlc_value) { Expect(mlc_op_int, op, "size", int64_t{2}); },
            2) == Floats{0, 1});
}

TEST_CASE("c interface: a name that cannot be built is refused with the reason of the report") {
  Building building;
  mlc_op* op = nullptr;
  for (auto [name, why] :
       {std::pair{"const", "mlc_block_constant adds constants"},
        {"custom_layer", "only the code of an app can run it"},
        {"onnx.StringSplit", "Core ML does not support strings"},
        {"onnx.Resize", "only models have it, which mlc_program_open imports"}}) {
    CHECK_THAT(ErrorText(mlc_op_new, building.body, name, "n", &op),
               ContainsSubstring(fmt::format("{} cannot be built: {}", name, why)));
    char* text = nullptr;
    Expect(mlc_capabilities, &text);
    CHECK_THAT(Taken(text), ContainsSubstring(fmt::format(
                                R"({{"name":"{}","class":"never","why":"{}"}})", name, why)));
  }
  CHECK_THAT(ErrorText(mlc_op_new, building.body, "onnx.Einsun", "n", &op),
             ContainsSubstring("perhaps onnx.Einsum"));
}

}  // namespace mlc::test
