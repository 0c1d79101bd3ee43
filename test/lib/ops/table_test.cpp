// Properties of the whole operator table: it is complete, sorted and documented, and agrees with
// Core ML's own definitions where these are available.
#include <fmt/ranges.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "lib/ops/row.h"
#include "test/catch.h"
#include "test/paths.h"

using namespace mlc;

namespace {

struct Family {
  std::string_view file;
  std::span<const OpRow> rows;
};
std::vector<Family> Families() {
  return {{"activations", ActivationRows()},
          {"constexpr", ConstexprRows()},
          {"control", ControlRows()},
          {"conv", ConvRows()},
          {"elementwise_binary", ElementwiseBinaryRows()},
          {"elementwise_unary", ElementwiseUnaryRows()},
          {"image", ImageRows()},
          {"linear", LinearRows()},
          {"lists", ListRows()},
          {"normalization", NormalizationRows()},
          {"pool", PoolRows()},
          {"quantization", QuantizationRows()},
          {"random", RandomRows()},
          {"recurrent", RecurrentRows()},
          {"reductions", ReductionRows()},
          {"scatter_gather", ScatterGatherRows()},
          {"selection", SelectionRows()},
          {"shape", ShapeRows()},
          {"slice", SliceRows()},
          {"space", SpaceRows()},
          {"tensor", TensorRows()}};
}

std::string TypesText(DTypeSet types) {
  std::string text;
  for (int i = 0; i < kDTypeCount; ++i)
    if (Contains(types, DType(i))) text += (text.empty() ? "" : "/") + std::string(Name(DType(i)));
  return text;
}

}  // namespace

TEST_CASE("ops table: every row has documentation, inference and evaluation") {
  for (const OpDef& def : Ops().all()) {
    INFO(def.name);
    CHECK(!def.doc.empty());
    CHECK(def.infer != nullptr);
    CHECK((def.eval != nullptr) == def.no_eval.empty());
    for (size_t i = 1; i < def.forms.size(); ++i)
      CHECK(def.forms[i - 1].since < def.forms[i].since);
  }
}

TEST_CASE("ops table: rows of a family are sorted") {
  for (const Family& family : Families())
    for (size_t i = 1; i < family.rows.size(); ++i) {
      INFO(family.file << ": " << family.rows[i].name);
      CHECK(family.rows[i - 1].name < family.rows[i].name);
    }
}

TEST_CASE("ops table: the canonical form has every parameter of older ones") {
  for (const OpDef& def : Ops().all())
    for (const Form& form : def.forms)
      for (const Param& param : form.params) {
        std::string name = fmt::format("{}.{}", def.name, param.name);
        INFO(name);
        CHECK(def.Find(param.name) >= 0);
      }
}

TEST_CASE("ops table: computed defaults have a function") {
  for (const OpDef& def : Ops().all())
    for (const Param& param : def.canonical().params) {
      INFO(def.name << "." << param.name);
      if (param.default_kind == Param::Default::kComputed) CHECK(def.default_value != nullptr);
    }
}

namespace {

// One parameter of one operator version: "add 6: x fp16/fp32/int32", with `const` if it must be
// constant, `?` if it is optional, and `=VALUE` (`=*`: computed) for its default.
std::string Describe(std::string_view op, int since, const Param& param) {
  std::string text = fmt::format("{} {}: {}", op, since, param.name);
  text += param.variadic                      ? " variadic"
          : param.kind == Param::Kind::kList  ? " list"
          : param.kind == Param::Kind::kState ? " state"
                                              : "";
  if (param.is_const) text += " const";
  std::string value(param.default_text);
  char* end = nullptr;
  double number = std::strtod(value.c_str(), &end);
  bool numeric = !value.empty() && *end == '\0';
  switch (param.default_kind) {
    case Param::Default::kRequired:
      break;
    case Param::Default::kOptional:
      text += "?";
      break;
    case Param::Default::kComputed:
      text += "=*";
      break;
    case Param::Default::kLiteral:
      text += numeric ? fmt::format("={:g}", number) : "=" + value;
  }
  if (!param.variadic && param.kind == Param::Kind::kTensor) text += " " + TypesText(param.types);
  return text;
}

// The same for an entry of mil-ops.json.
std::string Describe(std::string_view op, int since, const nlohmann::json& input) {
  std::string kind = input["kind"];
  std::string text = fmt::format("{} {}: {}", op, since, input["name"].get<std::string>());
  text += kind == "Tuple"   ? " variadic"
          : kind == "List"  ? " list"
          : kind == "State" ? " state"
                            : "";
  if (input["const"]) text += " const";
  if (input["optional"]) {
    nlohmann::json value = input.contains("default")
                               ? input["default"].value("value", nlohmann::json())
                               : nlohmann::json();
    if (value.is_string())
      text += "=" + value.get<std::string>();
    else if (value.is_number())
      text += fmt::format("={:g}", value.get<double>());
    else if (value.is_boolean())
      text += value.get<bool>() ? "=true" : "=false";
    else
      text += input.contains("default") && input["default"].contains("computed") ? "=*" : "?";
  }
  if (kind == "Tensor") {
    DTypeSet types = 0;
    for (const nlohmann::json& type : input["types"])
      types |= SetOf(ParseDType(type.get<std::string>()).value());
    text += " " + TypesText(types);
  }
  return text;
}

std::vector<std::string> Lines(std::istream& in) {
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);)
    if (!line.starts_with("#")) lines.push_back(line);
  return lines;
}

}  // namespace

// signatures.txt lists every parameter in coremltools 9, one per line, up to iOS18. It does not
// cover forms of newer systems; every other form must match it, which ensures that all rows exist.
TEST_CASE("ops table: signatures equal those of coremltools") {
  // Intended differences.
  const std::set<std::string> explained = {
      "identity 6: x",  // any type there, element types here: identity does not accept lists
      // The canonical form includes the parameters of older forms, and their bit packing.
      "constexpr_lut_to_dense 9: shape",
      "constexpr_sparse_to_dense 9: mask",
      "constexpr_sparse_to_dense 9: shape",
      "crop_resize 8: boxes",
      "crop_resize 8: roi",
      "non_maximum_suppression 8: score_threshold",
  };
  auto is_explained = [&](const std::string& line) {
    return explained.contains(line.substr(0, line.find_first_of(" ?=", line.find(": ") + 2)));
  };
  std::ifstream file(test::SourcePath("test/lib/ops/signatures.txt"));
  REQUIRE(file);
  std::map<std::string, std::vector<std::string>> known, ours;  // by operator
  for (const std::string& line : Lines(file))
    if (!is_explained(line)) known[line.substr(0, line.find(' '))].push_back(line);
  for (const OpDef& def : Ops().all())
    for (const Form& form : def.forms) {
      if (form.since > Opset::kIos18) continue;
      for (const Param& param : form.params)
        if (std::string line = Describe(def.name, static_cast<int>(form.since), param);
            !is_explained(line))
          ours[std::string(def.name)].push_back(line);
    }
  CHECK(known.size() >= 160);
  ours.erase("write_state");  // coremltools' frontend has coreml_update_state instead
  for (const auto& [op, lines] : ours) {
    INFO("coremltools 9 does not declare, for systems up to iOS18:\n"
         << fmt::format("{}", fmt::join(lines, "\n")));
    CHECK(lines == known[op]);
  }
  // The exceptions are custom_layer, which only code of an app can execute, and _const_symbolic and
  // conv_quantized, which exist only in the Python part of coremltools.
  for (const auto& [op, lines] : known) {
    INFO("Core ML has " << op << ", and no row of lib/ops");
    CHECK(ours.contains(op));
  }
  CHECK(Ops().Find("const"));
  CHECK(Ops().Find("write_state"));
}

TEST_CASE("ops table: signatures.txt matches the reference") {
  std::filesystem::path path = test::SourcePath("../shared/reference/mil-ops.json");
  std::ifstream json(path), file(test::SourcePath("test/lib/ops/signatures.txt"));
  if (!json) {
    std::cout << "# signatures: skipped, no " << path.filename().string() << "\n";
    return;
  }
  nlohmann::json ops = nlohmann::json::parse(json)["ops"];
  std::vector<std::string> lines;
  for (const auto& [op, record] : ops.items()) {
    if (!Ops().Find(op)) continue;  // the three exceptions of signatures.txt
    for (const nlohmann::json& version : record["versions"])
      for (const nlohmann::json& input : version["inputs"])
        if (!input.value("internal", false) && input["kind"] != "PyFunction")
          lines.push_back(Describe(op, std::max(version["since_spec"].get<int>(), 6), input));
  }
  CHECK(Lines(file) == lines);
}
