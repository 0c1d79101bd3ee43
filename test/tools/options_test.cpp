// Option tables: parsing of arguments, and the canonical form of a request.
#include "tools/driver/options.h"

#include "test/catch.h"
#include "test/expected_error.h"
#include "tools/driver/errors.h"
#include "tools/driver/options_json.h"

namespace mlc::test {
using namespace driver;
namespace {

CompileOptions Parsed(const std::vector<std::string>& words) {
  CompileOptions options;
  std::vector<Option> table = CompileTable(options);
  Fill(table, ParseOptions(table, words));
  return options;
}

TEST_CASE("options: the library's texts name fields, the command line flags") {
  CHECK(WithFlags("option 'dim' n=4, or option 'data-root'") == "--dim n=4, or --data-root");
  CHECK(WithFlags("no option of 'dim'") == "no option of 'dim'");
  CHECK(WithFlags("option 'dim") == "--dim");
  CHECK(WithFlags("") == "");
}

}  // namespace

TEST_CASE("options: the request is read from the record, regardless of how it was filled",
          "[options]") {
  CompileOptions options;
  CHECK(AskedFor(options).empty());
  options.precision = passes::PassContext::Precision::kMixed;
  options.target = Opset::kIos17;
  options.measure = false;
  options.labels = "somewhere/labels.txt";
  options.save_ir = "somewhere/out.mil";
  options.import.dims["n"] = Symbol{1, 4, {1, 2, 4}};
  options.import.dims["m"] = Symbol{3, 3, {}};
  options.import.shapes["x"] = {1, 3};
  options.import.constants["k"] = Tensor::Scalar(5.0f);
  options.import.io = DType::kFp16;
  const GivenOptions expected = {
      {"--precision", {"mixed"}},
      {"--target", {"iOS17"}},
      {"--no-measure", {}},
      {"--labels", {"labels.txt"}},
      {"--save-ir", {}},
      {"--dim", {"m=3", "n=1,2,4"}},
      {"--shape", {"x=1,3"}},
      {"--io", {"fp16"}},
      {"--const", {"k=xxh3:" + Tensor::Scalar(5.0f).hash()}},
  };
  CHECK(AskedFor(options) == expected);
}

TEST_CASE("options: requests are written in a canonical form with the same meaning", "[options]") {
  const std::vector<std::pair<std::vector<std::string>, GivenOptions>> cases = {
      {{"--precision", "fp16"}, {}},  // same as without the option
      {{"--target", "macos14"}, {{"--target", {"iOS17"}}}},
      {{"--dim=b=4,2,1", "--dim", "a=1..8"}, {{"--dim", {"a=1..8", "b=1,2,4"}}}},
      {{"--fp32-ops", "softmax,exp", "--fp32-ops=log"}, {{"--fp32-ops", {"softmax,exp,log"}}}},
      {{"--replace", "Resize.antialias=0"}, {{"--replace", {"Resize.antialias=0"}}}},
      {{"--image", "x=rgb,mean=0.5,std=0.25"}, {{"--image", {"x=rgb,scale=0.015686275,bias=-2"}}}},
      {{"--image", "x=bgr,2,1,2,3"}, {{"--image", {"x=bgr,scale=2,bias=1,2,3"}}}},
      {{"--stats", "here/stats.json", "--sha256"}, {{"--stats", {}}, {"--sha256", {}}}},
      {{"--calibrate", "/"}, {{"--calibrate", {""}}}},
      {{"--calibrate", "here/text.txt"}, {{"--calibrate", {"text.txt"}}}},
      {{"--calibrate", "generated:8"}, {{"--calibrate", {"generated:8"}}}},
      {{"--budget", "fp32"}, {{"--budget", {"fp32"}}}},
      {{"--budget", "here/budget.json"}, {{"--budget", {"budget.json"}}}},
  };
  for (const auto& [words, expected] : cases) {
    INFO(words[0] << " " << words.back());
    CHECK(AskedFor(Parsed(words)) == expected);
    // Parsing the canonical form again gives the same request; --calibrate and files in other
    // folders need not exist.
    std::vector<std::string> again;
    for (const auto& [name, values] : expected) {
      if (values.empty() && name != "--stats") again.push_back(name);
      for (const std::string& value : values)
        if (!value.empty()) again.push_back(name + "=" + value);
    }
    if (!expected.contains("--stats") && !expected.contains("--calibrate"))
      CHECK(AskedFor(Parsed(again)) == expected);
  }
}

TEST_CASE("options: callers without a command line read fields instead of flags") {
  CHECK(WithFields("-o: \"x\" does not end in .mlpackage") ==
        "output: \"x\" does not end in .mlpackage");
  CHECK(WithFields("--budget requires --precision mixed") ==
        "option 'budget' requires option 'precision' mixed");
  CHECK(WithFields("(--dim) a--b -- c --9") == "(option 'dim') a--b -- c --9");
  // A command stays one.
  CHECK(WithFields("`mlc ops option 'frontend' onnx` lists --dim") ==
        "`mlc ops --frontend onnx` lists option 'dim'");
  CHECK(WithFields(WithFlags("option 'dim' and option 'no-measure'")) ==
        "option 'dim' and option 'no-measure'");
}

TEST_CASE("options: as JSON they are those of the command line") {
  CompileOptions options;
  const std::vector<Option> table = CompileTable(options);
  FillFromJson(table, R"({"precision": "fp32", "dim": {"n": "1..8", "m": [1, 2], "k": 4},
      "shape": {"x=y": [1, 3]}, "no-measure": true, "sha256": false, "fp32-ops": ["a", "b"],
      "outputs": ["p", "q"], "context": 12, "replace": ["Resize.antialias=0"]})");
  CHECK(AskedFor(options) ==
        AskedFor(Parsed({"--precision=fp32", "--dim=n=1..8", "--dim=m=1,2", "--dim=k=4",
                         "--shape=x=y=1,3", "--no-measure", "--fp32-ops=a,b", "--outputs=p,q",
                         "--context=12", "--replace=Resize.antialias=0"})));
  FillFromJson(table, "");
  for (auto [text, message] : {std::pair{"[1]", "the options are not a JSON object"},
                               {"{", "error[usage]"},
                               {R"({"dims": 1})", "did you mean \"dim\"?"},
                               {R"({"dim": 3})", "is not of the form NAME=VALUE"},
                               {R"({"dim": {"n": {}}})", "option 'dim': {} is not a value of it"},
                               {R"({"sha256": 1})", "expected: true or false"},
                               {R"({"precision": null})", "option 'precision': null is not"}})
    CHECK_THAT(Refusal([&] { FillFromJson(table, text); }), ContainsSubstring(message));
}

}  // namespace mlc::test
