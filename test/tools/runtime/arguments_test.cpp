// Arguments that functions refuse, and what the errors say; options, progress and cancellation.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "lib/support/error.h"
#include "lib/support/temporary_folder.h"
#include "test/paths.h"
#include "test/tools/runtime/handles.h"

namespace mlc::test {
namespace {

namespace fs = std::filesystem;

constexpr mlc_context* kNone = nullptr;

std::string OptionsOf(const char* function) {
  char* json = nullptr;
  Expect(mlc_options, function, &json);
  return Taken(json);
}

std::string InputError(int32_t dtype, const std::vector<int64_t>& dims) {
  Building building;
  mlc_value value = -1;
  return ErrorText(mlc_block_input, building.body, "x", dtype, static_cast<int32_t>(dims.size()),
                   dims.data(), &value);
}

}  // namespace

TEST_CASE("c interface: NULL is refused with the names of function and argument") {
  mlc_model* model = nullptr;
  CHECK_THAT(ErrorText(mlc_model_load, kNone, static_cast<const char*>(nullptr),
                       static_cast<const char*>(nullptr), &model),
             ContainsSubstring("mlc_model_load: the argument \"path\" is NULL"));
  // Checked on the thread of the job, and by a function that several share.
  CHECK_THAT(ErrorText(mlc_doctor, kNone, static_cast<const char*>(nullptr),
                       static_cast<const char*>(nullptr), static_cast<char**>(nullptr)),
             ContainsSubstring("mlc_doctor: the argument \"model\" is NULL"));
  CHECK_THAT(ErrorText(mlc_op_int, static_cast<mlc_op*>(nullptr), "x", int64_t{1}),
             ContainsSubstring("mlc_op_int: the argument \"op\" is NULL"));
}

TEST_CASE("c interface: errors of tensors name the input") {
  const Building building = Doubling();
  mlc_model* loaded = nullptr;
  Expect(mlc_program_load, kNone, building.program.get(), static_cast<const char*>(nullptr),
         &loaded);
  const ModelHandle model(loaded);
  float in[2] = {1, 2};
  const auto refusal = [&](auto change) {
    mlc_tensor x = TensorOf(in, MLC_FP32, {2});
    change(x);
    const mlc_tensor* inputs[] = {&x};
    const char* names[] = {"x"};
    mlc_results* results = nullptr;
    const std::string text =
        ErrorText(mlc_predict, model.get(), static_cast<mlc_state*>(nullptr), 1, names, inputs, 0,
                  static_cast<const char* const*>(nullptr),
                  static_cast<const mlc_tensor* const*>(nullptr), int64_t{0}, &results);
    mlc_results_free(results);
    return text;
  };
  const int64_t negative[] = {-2}, vast[] = {INT64_MAX, 4};
  using std::string_literals::operator""s;
  for (const auto& [text, expected] : {
           std::pair(refusal([](mlc_tensor& x) { x.dtype = 99; }),
                     "input \"x\": 99 is not an element type"s),
           {refusal([](mlc_tensor& x) { x.rank = -1; }), "input \"x\": the rank is -1"},
           {refusal([](mlc_tensor& x) { x.dims = nullptr; }), "input \"x\": dims is NULL"},
           {refusal([&](mlc_tensor& x) { x.dims = negative; }), "input \"x\": size 0 is -2"},
           {refusal([&](mlc_tensor& x) { x.dims = vast, x.rank = 2; }), "input \"x\": a tensor of"},
           {refusal([](mlc_tensor& x) { x.data = nullptr; }), "input \"x\": data is NULL"},
           {refusal([&](mlc_tensor& x) { x.reserved = in; }), "input \"x\": reserved is not NULL"},
           {refusal([](mlc_tensor& x) { x.dtype = MLC_STRING; }),
            "input \"x\": strings cannot be passed in a tensor"},
       })
    CHECK_THAT(text, ContainsSubstring(expected));
  // A header without `reserved` does not set it.
  CHECK(refusal([&](mlc_tensor& x) {
          x.reserved = in;
          x.struct_size = offsetof(mlc_tensor, reserved);
        }).empty());
}

TEST_CASE("c interface: inputs that Core ML cannot have are refused when they are declared") {
  CHECK_THAT(InputError(MLC_INT64, {2}),
             ContainsSubstring("error[unsupported-dtype]: input \"x\" cannot have elements of int64"
                               "\n  expected: MLC_BOOL to MLC_UINT16"));
  CHECK_THAT(InputError(MLC_STRING, {2}), ContainsSubstring("cannot have elements of string"));
  CHECK_THAT(InputError(MLC_FP32, {1, 1, 1, 1, 1, 2}),
             ContainsSubstring("error[rank-limit]: input \"x\" has 6 dimensions"));
  CHECK_THAT(InputError(MLC_FP32, {-5}), ContainsSubstring("input \"x\": size 0 is -5, which"));
  CHECK(InputError(MLC_UINT16, {1, 1, 1, 1, 2}).empty());
}

TEST_CASE("c interface: numbers and booleans are told apart, and a value names its program") {
  Building one, other;
  const mlc_value x = one.Input("x", MLC_FP32, {2, 3}), y = other.Input("y", MLC_FP32, {2});
  mlc_op* op = nullptr;
  Expect(mlc_op_new, one.body, "reduce_sum", "s", &op);
  const OpHandle freed(op);
  CHECK_THAT(ErrorText(mlc_op_arg, op, "x", y),
             ContainsSubstring("reduce_sum: \"x\": value 0 belongs to another program: the "));
  CHECK_THAT(ErrorText(mlc_op_arg, op, "x", x + 7),
             ContainsSubstring("reduce_sum: \"x\": the program has no value 7"));
  Expect(mlc_op_arg, op, "x", x);
  const auto finish = [&] {
    return ErrorText(mlc_op_finish, op, 0, static_cast<mlc_value*>(nullptr),
                     static_cast<int32_t*>(nullptr));
  };
  Expect(mlc_op_int, op, "keep_dims", int64_t{1});
  CHECK_THAT(finish(), ContainsSubstring("reduce_sum: \"keep_dims\" takes bool, not numbers"));
  CHECK_THAT(finish(), ContainsSubstring("help: set it with mlc_op_bool"));
  Expect(mlc_op_bool, op, "keep_dims", 1);
  Expect(mlc_op_bool, op, "axes", 1);
  CHECK_THAT(finish(), ContainsSubstring("axes"));
  Expect(mlc_op_ints, op, "axes", 1, std::vector<int64_t>{1}.data());
  CHECK(finish() == "");
}

TEST_CASE("c interface: the options of a function are listed with type, default and text") {
  const std::string compile = OptionsOf("mlc_compile");
  CHECK_THAT(compile,
             ContainsSubstring(R"({"name":"precision","type":"string","value":"fp16|fp32|mixed",)"
                               R"("choices":["fp16","fp32","mixed"],"default":"fp16")"));
  CHECK_THAT(compile, ContainsSubstring(R"({"name":"dim","type":"object")"));
  CHECK_THAT(compile, ContainsSubstring(R"({"name":"force","type":"boolean","default":false)"));
  CHECK_THAT(OptionsOf("mlc_pool_new"),
             ContainsSubstring(R"({"name":"queue","type":"number","value":"N","default":16)"));
  CHECK_THAT(OptionsOf("mlc_generator_new"), ContainsSubstring(R"("name":"stop","type":"array")"));
  CHECK_THAT(OptionsOf("mlc_context_new"), ContainsSubstring(R"("name":"cache-folder")"));
  // Without a command line.
  CHECK(compile.find("--") == std::string::npos);
  char* json = nullptr;
  CHECK_THAT(ErrorText(mlc_options, "mlc_predict", &json),
             ContainsSubstring("\"mlc_predict\" is not a function with options"));
}

TEST_CASE("c interface: temporary files go to the folder of the context") {
  const TemporaryFolder folder;
  const std::string model_path = SourcePath("manifests/digits/digits.onnx").string();
  std::ifstream file(model_path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const std::string options = fmt::format(R"({{"temporary-folder": "{}"}})", folder.path.string());
  mlc_context* made = nullptr;
  CHECK_THAT(ErrorText(mlc_context_new, R"({"temporary-folder": "/nowhere"})", &made),
             ContainsSubstring("option 'temporary-folder': \"/nowhere\" is not a folder"));
  Expect(mlc_context_new, options.c_str(), &made);
  const ContextHandle context(made);
  struct Seen {
    fs::path folder;
    bool copy = false;
  } seen{folder.path};
  mlc_context_set_progress(
      context.get(),
      [](const char*, double, void* user) {
        auto& found = *static_cast<Seen*>(user);
        for (const fs::directory_entry& entry : fs::directory_iterator(found.folder))
          found.copy |= fs::exists(entry.path() / "model");
        return int32_t{1};  // cancels
      },
      &seen);
  const std::string output = (folder.path / "d.mlpackage").string();
  CHECK_THAT(ErrorText(mlc_compile_memory, context.get(), static_cast<const void*>(bytes.data()),
                       bytes.size(), static_cast<const char*>(nullptr), output.c_str(),
                       R"({"no-measure": true})", static_cast<char**>(nullptr)),
             ContainsSubstring("error[cancelled]"));
  CHECK(seen.copy);
  CHECK(fs::is_empty(folder.path));
}

TEST_CASE("c interface: the progress of a step never falls") {
  const TemporaryFolder folder;
  const std::string model_path = SourcePath("manifests/digits/digits.onnx").string(),
                    output = (folder.path / "d.mlpackage").string();
  mlc_context* made = nullptr;
  Expect(mlc_context_new, static_cast<const char*>(nullptr), &made);
  const ContextHandle context(made);
  struct Steps {
    std::map<std::string, double> highest;
    int calls = 0, falls = 0;
  } steps;
  mlc_context_set_progress(
      context.get(),
      [](const char* step, double share, void* user) {
        auto& all = *static_cast<Steps*>(user);
        double& highest = all.highest[step];
        all.falls += share < highest || share > 1;
        highest = share;
        ++all.calls;
        return int32_t{0};
      },
      &steps);
  Expect(mlc_compile, context.get(), model_path.c_str(), output.c_str(), R"({"compress": "int8"})",
         static_cast<char**>(nullptr));
  CHECK(steps.calls > 2);
  CHECK(steps.falls == 0);
  CHECK(steps.highest.contains("writing weights"));
}

TEST_CASE(
    "c interface: a generator refuses unknown tokens when they are fed, and starts from states") {
  const std::string verses = SourcePath("manifests/verses/verses").string();
  mlc_model* loaded = nullptr;
  Expect(mlc_model_load, kNone, verses.c_str(), R"({"context": 64})", &loaded);
  const ModelHandle model(loaded);
  const auto generator = [&] {
    mlc_generator* made = nullptr;
    Expect(mlc_generator_new, model.get(), static_cast<mlc_tokenizer*>(nullptr),
           static_cast<const char*>(nullptr), &made);
    return std::unique_ptr<mlc_generator, Freeing<mlc_generator_free>>(made);
  };
  const auto next = [](mlc_generator* from) {
    int32_t id = -1;
    Expect(mlc_generator_next, from, &id, static_cast<const char**>(nullptr),
           static_cast<int32_t*>(nullptr));
    return id;
  };
  const std::vector<int32_t> prompt = {5, 17, 100}, rest = {7, 9};
  const auto feed = [](mlc_generator* to, const std::vector<int32_t>& ids) {
    return ErrorText(mlc_generator_feed_ids, to, ids.data(), ids.size());
  };
  const auto whole = generator(), first = generator(), second = generator();
  CHECK_THAT(feed(whole.get(), {5, 1 << 30}),
             ContainsSubstring("token 1073741824 is not in the vocabulary of the model"));
  CHECK_THAT(feed(whole.get(), {-1}), ContainsSubstring("token -1 is not in the vocabulary"));
  CHECK_THAT(feed(whole.get(), std::vector<int32_t>(65, 5)),
             ContainsSubstring("0 tokens and 65 more exceed the model's context of 64"));
  CHECK_THAT(ErrorText(mlc_generator_next, whole.get(), static_cast<int32_t*>(nullptr),
                       static_cast<const char**>(nullptr), static_cast<int32_t*>(nullptr)),
             ContainsSubstring("there is no token to continue"));
  // Nothing of what was refused was appended.
  Expect(mlc_generator_feed_ids, first.get(), prompt.data(), prompt.size());
  const int32_t chosen = next(first.get());
  mlc_state* made = nullptr;
  size_t count = 0;
  Expect(mlc_generator_state, first.get(), &made, &count);
  const StateHandle state(made);
  CHECK(count == prompt.size());
  std::vector<int32_t> all = prompt;
  all.insert(all.end(), rest.begin(), rest.end());
  CHECK(feed(whole.get(), all) == "");
  CHECK_THAT(ErrorText(mlc_generator_start, second.get(), state.get(), rest.data(), size_t{65}),
             ContainsSubstring("exceed the model's context"));
  Expect(mlc_generator_start, second.get(), state.get(), prompt.data(), prompt.size());
  CHECK(feed(second.get(), rest) == "");
  for (int i = 0; i < 3; ++i) CHECK(next(whole.get()) == next(second.get()));
  // The state is a copy: it can be started from again.
  Expect(mlc_generator_start, second.get(), state.get(), prompt.data(), prompt.size());
  CHECK(feed(second.get(), {chosen}) == "");
  CHECK(next(second.get()) == next(first.get()));
}

}  // namespace mlc::test
