// Predictions: strides, states, results, requests, time limits, threads, failing allocations.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <thread>

#include "lib/support/half.h"
#include "lib/support/memory_use.h"
#include "lib/support/temporary_folder.h"
#include "test/lib/runtime/fake_runtime.h"
#include "test/paths.h"
#include "test/tools/runtime/failing_allocations.h"
#include "test/tools/runtime/handles.h"
#include "tools/driver/runtimes.h"

namespace mlc::test {
namespace {

// s += x, y = s, of [2] fp16 in fp32 arithmetic.
Building Summing() {
  Building building("{\"target\": \"iOS18\"}");
  const mlc_value x = building.Input("x", MLC_FP16, {2});
  const int64_t dims[] = {2};
  mlc_value s = -1, before = -1, sum = -1;
  Expect(mlc_block_state, building.body, "s", MLC_FP16, 1, dims, &s);
  mlc_op* op = nullptr;
  Expect(mlc_op_new, building.body, "read_state", "before", &op);
  Expect(mlc_op_arg, op, "input", s);
  Expect(mlc_op_finish, op, 1, &before, static_cast<int32_t*>(nullptr));
  mlc_op_free(op);
  sum = building.Binary(building.body, "add", "sum", before, x);
  Expect(mlc_op_new, building.body, "write_state", static_cast<const char*>(nullptr), &op);
  Expect(mlc_op_arg, op, "input", s);
  Expect(mlc_op_arg, op, "data", sum);
  Expect(mlc_op_finish, op, 0, static_cast<mlc_value*>(nullptr), static_cast<int32_t*>(nullptr));
  mlc_op_free(op);
  Expect(mlc_op_new, building.body, "cast", "y", &op);
  Expect(mlc_op_arg, op, "x", sum);
  Expect(mlc_op_string, op, "dtype", "fp32");
  mlc_value y = -1;
  Expect(mlc_op_finish, op, 1, &y, static_cast<int32_t*>(nullptr));
  mlc_op_free(op);
  building.Output("y", y);
  return building;
}

std::vector<float> Read(mlc_state* state) {
  uint16_t halves[2] = {};
  const std::vector<int64_t> dims{2};
  const mlc_tensor tensor = TensorOf(halves, MLC_FP16, dims);
  Expect(mlc_state_read, state, "s", &tensor);
  return {Half::ToFloat(halves[0]), Half::ToFloat(halves[1])};
}

}  // namespace

TEST_CASE("c interface: tensors with strides, and of an older header") {
  const Building building = Doubling();
  mlc_model* loaded = nullptr;
  Expect(mlc_program_load, static_cast<mlc_context*>(nullptr), building.program.get(),
         static_cast<const char*>(nullptr), &loaded);
  const ModelHandle model(loaded);
  float in[5] = {1, 9, 9, 2, 9}, out[4] = {7, 7, 7, 7};
  const std::vector<int64_t> dims{2}, wide{3}, back{-2};
  mlc_tensor x = TensorOf(in, MLC_FP32, dims), y = TensorOf(out + 3, MLC_FP32, dims);
  x.strides = wide.data();
  y.strides = back.data();
  x.struct_size = y.struct_size = offsetof(mlc_tensor, reserved);
  const mlc_tensor *inputs[] = {&x}, *outputs[] = {&y};
  const char *input_names[] = {"x"}, *output_names[] = {"y"};
  const auto predict = [&] {
    return ErrorText(mlc_predict, model.get(), static_cast<mlc_state*>(nullptr), 1, input_names,
                     inputs, 1, output_names, outputs, int64_t{0},
                     static_cast<mlc_results**>(nullptr));
  };
  CHECK(predict() == "");
  CHECK((out[0] == 7 && out[1] == 4 && out[2] == 7 && out[3] == 2));
  x.struct_size = 3;
  CHECK_THAT(predict(), ContainsSubstring("struct_size is 3"));
  x.struct_size = sizeof x + 64;  // of a newer header
  CHECK(predict() == "");
  x.dtype = MLC_FP64;
  double doubles[4] = {1, 0, 0, 0.1};
  x.data = doubles;
  CHECK_THAT(predict(), ContainsSubstring("input \"x\": element [1] is 0.1, which fp32 cannot"));
  y.dtype = MLC_INT32;
  x = TensorOf(in, MLC_FP32, dims);
  CHECK_THAT(predict(), ContainsSubstring("output \"y\": the memory is described as int32 [2]"));
  input_names[0] = "z";
  CHECK_THAT(predict(), ContainsSubstring("the model has no input \"z\"\n  expected: x"));
}

TEST_CASE("c interface: states are read, written, reset and copied") {
  Building building = Summing();
  for (const char* arithmetic : {"{\"arithmetic\": \"exact\"}", "{\"arithmetic\": \"faithful\"}"}) {
    const ModelHandle model = building.Load(arithmetic);
    mlc_state* made = nullptr;
    Expect(mlc_state_new, model.get(), &made);
    StateHandle state(made);
    float in[2] = {1, 2}, out[2] = {};
    CHECK(PredictTwo(model.get(), state.get(), in, out) == "");
    CHECK(PredictTwo(model.get(), state.get(), in, out) == "");
    CHECK((out[0] == 2 && out[1] == 4));
    CHECK(Read(state.get()) == std::vector<float>{2, 4});
    Expect(mlc_state_copy, state.get(), &made);
    const StateHandle copy(made);
    Expect(mlc_state_reset, state.get());
    CHECK(Read(state.get()) == std::vector<float>{0, 0});
    CHECK(PredictTwo(model.get(), copy.get(), in, out) == "");
    CHECK((out[0] == 3 && out[1] == 6));
    uint16_t ones[2] = {0x3c00, 0x3c00};
    const std::vector<int64_t> dims{2};
    const mlc_tensor tensor = TensorOf(ones, MLC_FP16, dims);
    Expect(mlc_state_write, state.get(), "s", &tensor);
    CHECK(PredictTwo(model.get(), state.get(), in, out) == "");
    CHECK((out[0] == 2 && out[1] == 3));
    CHECK(PredictTwo(model.get(), nullptr, in, out) == "");
    CHECK((out[0] == 1 && out[1] == 2));
    const ModelHandle other = building.Load();
    CHECK_THAT(PredictTwo(other.get(), state.get(), in, out),
               ContainsSubstring("the state belongs to another model"));
  }
}

TEST_CASE("c interface: requests and results outlive models and tensors") {
  mlc_request* made = nullptr;
  {
    Building building = Doubling();
    const ModelHandle model = building.Load();
    Expect(mlc_request_new, model.get(), &made);
  }
  const RequestHandle request(made);
  mlc_results* found = nullptr;
  CHECK_THAT(ErrorText(mlc_request_run, request.get(), int64_t{0}, &found),
             ContainsSubstring("inputs are missing: x"));
  {
    std::vector<float> in{3, 4};
    const mlc_tensor x = TensorOf(in.data(), MLC_FP32, {2});
    Expect(mlc_request_set_input, request.get(), "x", &x);
  }
  Expect(mlc_request_run, request.get(), int64_t{1000}, &found);
  const ResultsHandle results(found);
  REQUIRE(mlc_results_count(results.get()) == 1);
  CHECK(mlc_results_find(results.get(), "y") == 0);
  mlc_tensor y{};
  y.struct_size = sizeof y;
  Expect(mlc_results_tensor, static_cast<const mlc_results*>(results.get()), 0, &y);
  CHECK((y.dtype == MLC_FP32 && y.rank == 1 && y.dims[0] == 2));
  CHECK((static_cast<float*>(y.data)[0] == 6 && static_cast<float*>(y.data)[1] == 8));
  CHECK_THAT(mlc_results_timings(results.get()), ContainsSubstring("predict_ms"));
}

TEST_CASE("c interface: after a time limit, a late prediction touches nothing of the caller's",
          "[threads]") {
  constexpr auto kLate = std::chrono::seconds(5);
  static const auto plan = std::make_shared<runtime::FakePlan>();
  plan->given = [=](float x) {
    if (x < 0) std::this_thread::sleep_for(kLate);
  };
  driver::make_core_ml = +[]() -> std::unique_ptr<runtime::Runtime> {
    return std::make_unique<runtime::FakeRuntime>(plan);
  };
  Building building = Doubling();
  const ModelHandle model = building.Load("{\"units\": \"all\"}");
  driver::make_core_ml = nullptr;
  REQUIRE(model);
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* memory = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  float* floats = static_cast<float*>(memory);
  floats[0] = -1;
  const int late = plan->late_results;
  CHECK_THAT(PredictTwo(model.get(), nullptr, floats, floats + 2, 50),
             ContainsSubstring("error[timeout]"));
  mprotect(memory, page, PROT_NONE);  // the process ends if the late prediction uses it
  runtime::Await([&] { return plan->late_results > late; });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  munmap(memory, page);
  float in[2] = {1, 2}, out[2] = {};
  CHECK(PredictTwo(model.get(), nullptr, in, out, 60'000) == "");
  CHECK(out[1] == 4);
  char* json = nullptr;
  Expect(mlc_model_telemetry, model.get(), &json);
  CHECK_THAT(Taken(json), ContainsSubstring("\"timeout\":1"));
}

// y = x, after a loop that does not end.
Building Endless() {
  Building building;
  const mlc_value x = building.Input("x", MLC_FP32, {2});
  mlc_op* loop = nullptr;
  mlc_value y = -1;
  Expect(mlc_op_new, building.body, "while_loop", "loop", &loop);
  Expect(mlc_op_args, loop, "loop_vars", 1, &x);
  for (int32_t part = 0; part < 2; ++part) {
    mlc_block* block = nullptr;
    Expect(mlc_op_block, loop, part, &block);
    const int64_t dims[] = {2};
    mlc_value variable = -1;
    Expect(mlc_block_input, block, part ? "a" : "c", MLC_FP32, 1, dims, &variable);
    if (part == 1) {
      Expect(mlc_block_output, block, static_cast<const char*>(nullptr),
             building.Binary(block, "mul", "b", variable, variable));
      continue;
    }
    mlc_op* op = nullptr;
    mlc_value any = -1, always = -1;
    Expect(mlc_op_new, block, "reduce_max", "any", &op);
    Expect(mlc_op_arg, op, "x", variable);
    Expect(mlc_op_bool, op, "keep_dims", 0);
    Expect(mlc_op_finish, op, 1, &any, static_cast<int32_t*>(nullptr));
    mlc_op_free(op);
    Expect(mlc_op_new, block, "greater", "always", &op);
    Expect(mlc_op_arg, op, "x", any);
    Expect(mlc_op_float, op, "y", -1.0);
    Expect(mlc_op_finish, op, 1, &always, static_cast<int32_t*>(nullptr));
    mlc_op_free(op);
    Expect(mlc_block_output, block, static_cast<const char*>(nullptr), always);
  }
  Expect(mlc_op_finish, loop, 1, &y, static_cast<int32_t*>(nullptr));
  mlc_op_free(loop);
  building.Output("y", y);
  return building;
}

TEST_CASE("c interface: predictions that exceed their limit end, and other models go on",
          "[threads]") {
  Building building = Endless(), other = Doubling();
  const ModelHandle model = building.Load("{}"), doubling = other.Load("{}");
  REQUIRE((model && doubling));
  float in[2] = {1, 1}, out[2] = {};
  // More than the predictions that may be abandoned.
  for (int i = 0; i < 12; ++i) {
    CHECK_THAT(PredictTwo(model.get(), nullptr, in, out, 20), ContainsSubstring("error[timeout]"));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  CHECK(PredictTwo(doubling.get(), nullptr, in, out, 60'000) == "");
  CHECK(out[0] == 2);
}

TEST_CASE("c interface: failures refuse no predictions unless the circuit breaker is asked for") {
  for (const bool asked : {false, true}) {
    static const auto plan = std::make_shared<runtime::FakePlan>();
    plan->given = [](float x) {
      if (x < 0) throw Error("runtime-failed", "the device is lost");
    };
    driver::make_core_ml = +[]() -> std::unique_ptr<runtime::Runtime> {
      return std::make_unique<runtime::FakeRuntime>(plan);
    };
    Building building = Doubling();
    const ModelHandle model = building.Load(
        asked ? "{\"units\": \"all\", \"circuit-breaker\": true}" : "{\"units\": \"all\"}");
    driver::make_core_ml = nullptr;
    REQUIRE(model);
    float bad[2] = {-1, 0}, in[2] = {1, 2}, out[2] = {};
    for (int i = 0; i < 20; ++i) PredictTwo(model.get(), nullptr, bad, out, 0);
    const std::string text = PredictTwo(model.get(), nullptr, in, out, 0);
    INFO(text);
    CHECK((text == "") == !asked);
  }
}

TEST_CASE("c interface: eight threads on one model and on eight", "[threads]") {
  Building building = Doubling();
  for (const bool shared : {true, false}) {
    std::vector<ModelHandle> models;
    for (int i = 0; i < (shared ? 1 : 8); ++i) models.push_back(building.Load("{\"threads\": 1}"));
    std::atomic<int> wrong = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t)
      threads.emplace_back([&, t, model = models[shared ? 0 : static_cast<size_t>(t)].get()] {
        for (int i = 0; i < 100; ++i) {
          float in[2] = {static_cast<float>(t), static_cast<float>(i)}, out[2] = {};
          const std::vector<int64_t> dims{2};
          const mlc_tensor x = TensorOf(in, MLC_FP32, dims), y = TensorOf(out, MLC_FP32, dims);
          const mlc_tensor *inputs[] = {&x}, *outputs[] = {&y};
          const char *input_names[] = {"x"}, *output_names[] = {"y"};
          mlc_predict(model, nullptr, 1, input_names, inputs, 1, output_names, outputs,
                      i % 2 ? 10'000 : 0, nullptr, nullptr);
          wrong += out[0] != 2 * in[0] || out[1] != 2 * in[1];
          char* json = nullptr;
          mlc_model_telemetry(model, &json, nullptr);
          mlc_string_free(json);
        }
      });
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
  }
}

TEST_CASE("c interface: each allocation may fail") {
  int64_t failed = 0;
  for (int64_t at = 0; at < 4000; ++at) {
    // Everything is done without Catch, which allocates.
    int32_t code = MLC_OK;
    const int64_t dims[] = {2};
    mlc_program* program = nullptr;
    mlc_block* body = nullptr;
    mlc_op* op = nullptr;
    mlc_value x = -1, y = -1;
    mlc_error* error = nullptr;
    allocations_left = at;
    code = mlc_program_new(nullptr, &program, &error);
    if (!code) code = mlc_function_add(program, "main", &body, &error);
    if (!code) code = mlc_block_input(body, "x", MLC_FP32, 1, dims, &x, &error);
    if (!code) code = mlc_op_new(body, "add", "y", &op, &error);
    if (!code) code = mlc_op_arg(op, "x", x, &error);
    if (!code) code = mlc_op_float(op, "y", 1, &error);
    if (!code) code = mlc_op_finish(op, 1, &y, nullptr, &error);
    if (!code) code = mlc_block_output(body, "y", y, &error);
    char* text = nullptr;
    if (!code) code = mlc_program_text(program, &text, &error);
    const bool done = code == MLC_OK && allocations_left >= 0;
    allocations_left = -1;
    const std::string id = code ? mlc_error_id(error) : "";
    mlc_string_free(text);
    mlc_error_free(error);
    mlc_op_free(op);
    mlc_program_free(program);
    if (done) break;
    CHECK((code == MLC_OK || id == "resource-limit"));
    ++failed;
  }
  CHECK((failed > 20 && failed < 4000));
}

TEST_CASE("c interface: cycles of compiling, loading and predicting do not grow") {
  const char* asked = std::getenv("MLC_CYCLES");
  const int cycles = asked ? std::atoi(asked) : 100;
  const std::string model_path = SourcePath("manifests/digits/digits.onnx").string();
  const std::string package =
      (std::filesystem::temp_directory_path() / fmt::format("mlc-cycles-{}.mlpackage", getpid()))
          .string();
  int64_t before = 0;
  for (int i = 0; i < 2 * cycles; ++i) {
    if (i == cycles) before = ResidentBytes();
    Expect(mlc_compile, static_cast<mlc_context*>(nullptr), model_path.c_str(), package.c_str(),
           R"({"no-measure": true})", static_cast<char**>(nullptr));
    mlc_model* made = nullptr;
    Expect(mlc_model_load, static_cast<mlc_context*>(nullptr), package.c_str(),
           static_cast<const char*>(nullptr), &made);
    const ModelHandle model(made);
    std::vector<float> image(64, 0.5f), out(10);
    const std::vector<int64_t> dims{1, 1, 8, 8}, out_dims{1, 10};
    const mlc_tensor x = TensorOf(image.data(), MLC_FP32, dims),
                     y = TensorOf(out.data(), MLC_FP32, out_dims);
    const mlc_tensor *inputs[] = {&x}, *outputs[] = {&y};
    const char *input_names[] = {"image"}, *output_names[] = {"probabilities"};
    Expect(mlc_predict, model.get(), static_cast<mlc_state*>(nullptr), 1, input_names, inputs, 1,
           output_names, outputs, int64_t{0}, static_cast<mlc_results**>(nullptr));
  }
  std::filesystem::remove_all(package);
  std::filesystem::remove(package.substr(0, package.size() - 10) + ".manifest.json");
  const int64_t growth = ResidentBytes() - before;
  std::cout << "# c interface: " << cycles << " cycles grew by " << growth / 1000 << " kB\n";
  CHECK(growth < 1'000'000);
}

TEST_CASE("c interface: a pool serves threads, refuses when it is full, and ends in time",
          "[threads]") {
  const Building building = Doubling();
  mlc_model* loaded = nullptr;
  Expect(mlc_program_load, static_cast<mlc_context*>(nullptr), building.program.get(),
         static_cast<const char*>(nullptr), &loaded);
  const ModelHandle model(loaded);
  mlc_pool* pool = nullptr;
  CHECK_THAT(ErrorText(mlc_pool_new, model.get(), "{\"instances\": 0}", &pool),
             ContainsSubstring("option 'instances': 0\n  expected: 1 to 256"));
  Expect(mlc_pool_new, model.get(), "{\"instances\": 3, \"queue\": 2}", &pool);
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      mlc_request* request = nullptr;
      if (mlc_request_new(model.get(), &request, nullptr) != MLC_OK) return;
      const RequestHandle freed(request);
      for (int i = 0; i < 50; ++i) {
        float in[2] = {static_cast<float>(t), static_cast<float>(i)};
        const mlc_tensor x = TensorOf(in, MLC_FP32, {2});
        mlc_results* results = nullptr;
        if (mlc_request_set_input(request, "x", &x, nullptr) != MLC_OK) return;
        if (mlc_pool_run(pool, request, 1, i % 2 * 60'000, &results, nullptr) != MLC_OK) return;
        const ResultsHandle owned(results);
        mlc_tensor y{.struct_size = sizeof(mlc_tensor)};
        if (mlc_results_tensor(results, 0, &y, nullptr) != MLC_OK) return;
        const float* values = static_cast<const float*>(y.data);
        right += values[0] == 2 * in[0] && values[1] == 2 * in[1];
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 400);
  char* json = nullptr;
  Expect(mlc_pool_statistics, pool, &json);
  CHECK_THAT(Taken(json), ContainsSubstring("\"submitted\":400"));
  mlc_pool_free(pool);
  mlc_pool_free(nullptr);
}

TEST_CASE("c interface: a trace has the predictions and their operations") {
  const Building building = Doubling();
  const TemporaryFolder folder;
  const std::string path = (folder.path / "trace.json").string();
  float in[2] = {1, 2}, out[2] = {};
  const ModelHandle silent = building.Load();
  CHECK_THAT(ErrorText(mlc_model_trace, silent.get(), path.c_str()),
             ContainsSubstring("the model records no trace"));
  const ModelHandle model = building.Load(R"({"trace": true})");
  for (int i = 0; i < 2; ++i) CHECK(PredictTwo(model.get(), nullptr, in, out) == "");
  Expect(mlc_model_trace, model.get(), path.c_str());
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  CHECK_THAT(text, ContainsSubstring("\"cat\":\"prediction\""));
  CHECK_THAT(text, ContainsSubstring("{\"name\":\"add\",\"cat\":\"operation\""));
}

TEST_CASE("c interface: a classifier delivers its label and the probabilities of all labels") {
  Building building;
  const mlc_value x = building.Input("x", MLC_FP32, {1, 3});
  mlc_op* op = nullptr;
  mlc_value p = -1;
  Expect(mlc_op_new, building.body, "softmax", "p", &op);
  Expect(mlc_op_arg, op, "x", x);
  Expect(mlc_op_int, op, "axis", int64_t{-1});
  Expect(mlc_op_finish, op, 1, &p, static_cast<int32_t*>(nullptr));
  mlc_op_free(op);
  building.Output("p", p);
  const char* labels[] = {"cat", "dog", "owl"};
  Expect(mlc_program_set_labels, building.program.get(), 3, labels);
  mlc_model* loaded = nullptr;
  Expect(mlc_program_load, static_cast<mlc_context*>(nullptr), building.program.get(),
         static_cast<const char*>(nullptr), &loaded);
  const ModelHandle model(loaded);
  float in[3] = {0, 2, 1};
  const mlc_tensor tensor = TensorOf(in, MLC_FP32, {1, 3});
  const mlc_tensor* inputs[] = {&tensor};
  const char* names[] = {"x"};
  mlc_results* made = nullptr;
  Expect(mlc_predict, model.get(), static_cast<mlc_state*>(nullptr), 1, names, inputs, 0,
         static_cast<const char* const*>(nullptr), static_cast<const mlc_tensor* const*>(nullptr),
         int64_t{0}, &made);
  const ResultsHandle results(made);
  REQUIRE(mlc_results_count(results.get()) == 2);
  int found = 0;
  for (int32_t i = 0; i < 2; ++i) {
    if (mlc_model_port_dtype(model.get(), MLC_PORT_OUTPUT, i) == MLC_STRING) {
      CHECK(std::string(mlc_results_string(results.get(), i, 0)) == "dog");
      ++found;
      continue;
    }
    CHECK(mlc_model_port_dtype(model.get(), MLC_PORT_OUTPUT, i) == MLC_FP64);
    CHECK(mlc_model_port_rank(model.get(), MLC_PORT_OUTPUT, i) == 1);
    mlc_tensor y{.struct_size = sizeof(mlc_tensor)};
    Expect(mlc_results_tensor, results.get(), i, &y);
    REQUIRE((y.dtype == MLC_FP64 && y.rank == 1 && y.dims[0] == 3));
    CHECK(static_cast<const double*>(y.data)[1] == Approx(0.6652).epsilon(1e-3));
    double own[3] = {};
    const mlc_tensor to = TensorOf(own, MLC_FP64, {3});
    const mlc_tensor* outputs[] = {&to};
    const char* output_names[] = {mlc_results_name(results.get(), i)};
    Expect(mlc_predict, model.get(), static_cast<mlc_state*>(nullptr), 1, names, inputs, 1,
           output_names, outputs, int64_t{0}, static_cast<mlc_results**>(nullptr));
    CHECK(own[2] == Approx(0.2447).epsilon(1e-3));
    ++found;
  }
  CHECK(found == 2);
}

}  // namespace mlc::test
