#include "backends/coreml/manifest.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "lib/analysis/placement_rules.h"
#include "lib/coreml/interface_entry.h"
#include "lib/coreml/package_layout.h"
#include "lib/support/atomic_install.h"
#include "lib/support/input_registry.h"
#include "lib/support/json_text.h"
#include "lib/support/mapped_file.h"
#include "lib/support/regular_file.h"

namespace mlc::coreml {

namespace {

using Json = nlohmann::ordered_json;

void Put(Json& json, const char* key, const std::string& text) {
  if (!text.empty()) json[key] = text;
}
void Put(Json& json, const char* key, Json value) {
  if (!value.empty()) json[key] = std::move(value);
}

// Rounds up to three digits.
double Digits(double value) {
  if (!(value > 0)) return 0;
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - 2);
  return std::ceil(value / unit - 1e-6) * unit;
}

Json Number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json Texts(const std::vector<std::pair<std::string, std::string>>& pairs) {
  Json json = Json::object();
  for (const auto& [key, value] : pairs) json[key] = value;
  return json;
}

Json Dims(const Shape& shape) {
  Json json = Json::array();
  for (const Dim& dim : shape) {
    if (dim.is_constant())
      json.push_back(dim.constant());
    else
      json.push_back(dim.ToString());
  }
  return json;
}

Json PortJson(const Value& value, const Port* port) {
  const Type& type = value.type.kind == Type::Kind::kState ? value.type.elements[0] : value.type;
  std::string name = port ? port->name : value.name;
  std::string dtype(type.kind == Type::Kind::kDict ? "dict" : Name(type.dtype));
  Json json;
  json["name"] = name;
  json["dtype"] = std::move(dtype);
  json["shape"] = Dims(type.shape);
  if (!port) return json;
  json["source_name"] = port->source_name.empty() ? name : port->source_name;
  if (port->source_dtype != DType::kNone) {
    json["source_dtype"] = Name(port->source_dtype);
    json["source_shape"] = Dims(port->source_shape);
  }
  Put(json, "image", std::string(ImageName(port->feature)));
  Put(json, "description", port->description);
  return json;
}

const Port* At(const std::vector<Port>& ports, size_t i) {
  return i < ports.size() ? &ports[i] : nullptr;
}

// The sizes of the symbols in the shapes of inputs.
Json InputSymbols(const Function& function) {
  std::vector<std::string> names;
  for (const auto& input : function.body.inputs)
    for (const Dim& dim : input->type.shape) dim.CollectSymbols(names);
  Json json = Json::object();
  for (const std::string& name : names) {
    const Symbol& symbol = function.symbols.at(name);
    json[name] = {{"low", symbol.low}, {"high", symbol.high}};
    Put(json[name], "sizes", Json(symbol.enumerated));
  }
  return json;
}

Json IoSchema(const Program& program) {
  Json schema = Json::object();
  for (const auto& function : program.functions) {
    Json inputs = Json::array(), outputs = Json::array(), states = Json::array();
    for (const auto& input : function->body.inputs) {
      bool is_state = input->type.kind == Type::Kind::kState;
      Json& list = is_state ? states : inputs;
      list.push_back(
          PortJson(*input, At(is_state ? function->states : function->inputs, list.size())));
    }
    for (const Value* output : function->body.outputs())
      outputs.push_back(PortJson(*output, At(function->outputs, outputs.size())));
    Json& json = schema[function->name];
    json = {{"inputs", std::move(inputs)}, {"outputs", std::move(outputs)}};
    Put(json, "states", std::move(states));
    Put(json, "symbols", InputSymbols(*function));
  }
  return schema;
}

// Describes the coverage of the Neural Engine of the default chip, at the default sizes.
Json PlacementJson(const Program& program) {
  const analysis::Chip& chip = analysis::DefaultChip();
  int64_t operations = 0, eligible = 0, segments = 0;
  double work = 0, eligible_work = 0;
  std::map<std::string, std::vector<std::string>> refused;
  for (const auto& function : program.functions) {
    const analysis::Placement placement =
        analysis::PlacementOf(*function, analysis::Unit::kNeuralEngine, chip,
                              analysis::SizesToExamine(*function).front());
    operations += std::ssize(placement.operations);
    eligible += placement.eligible_operations;
    segments += placement.eligible_segments;
    work += placement.work;
    eligible_work += placement.eligible_work;
    for (const analysis::PlacementFinding& finding : placement.findings)
      if (finding.op && finding.rule->severity == analysis::Severity::kCannotRun)
        refused[std::string(finding.rule->id)].push_back(analysis::NameOf(*finding.op));
  }
  auto percent = [](double part, double whole) {
    return whole > 0 ? std::round(1e4 * part / whole) / 100 : 100.0;
  };
  Json json{{"chip", chip.name},
            {"ane_op_coverage_pct",
             percent(static_cast<double>(eligible), static_cast<double>(operations))},
            {"ane_work_coverage_pct", percent(eligible_work, work)},
            {"segments", segments}};
  Put(json, "not_eligible", Json(refused));
  return json;
}

}  // namespace

std::string ManifestJson(const Manifest& manifest, const Program& program,
                         const Diagnostics& diagnostics) {
  const PackageResult& package = manifest.package;
  Json json{{"schema", 2}, {"mlc", manifest.mlc_version}};

  Json source{{"name", manifest.source.name}};
  Put(source, "format", manifest.source.format);
  Put(source, "xxh3_128", manifest.source.xxh3_128);
  Put(source, "sha256", manifest.source.sha256);
  Json files = Json::array();
  for (const Manifest::Source::File& file : manifest.source.files) {
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"xxh3_128", file.xxh3_128}});
    Put(files.back(), "sha256", file.sha256);
  }
  Put(source, "files", std::move(files));
  Put(source, "facts", Texts(manifest.source.facts));
  json["source"] = std::move(source);

  json["package"] = {{"xxh3_128", package.content_hash},
                     {"target", TargetName(package.target)},
                     {"specification", static_cast<int>(package.target)},
                     {"program_bytes", package.program_bytes},
                     {"weight_bytes", package.weight_bytes}};
  if (const Manifest::Tokenizer& tokenizer = manifest.tokenizer; !tokenizer.format.empty())
    json["tokenizer"] = {
        {"format", tokenizer.format}, {"bytes", tokenizer.bytes}, {"xxh3_128", tokenizer.xxh3_128}};
  Put(json, "precision", manifest.precision);
  json["fp16_share"] = std::round(manifest.fp16_share * 1e4) / 1e4;
  json["fp16_segments"] = manifest.fp16_segments;
  if (manifest.no_fp16_form_share > 0)
    json["no_fp16_form_share"] = std::round(manifest.no_fp16_form_share * 1e4) / 1e4;
  json["placement"] = PlacementJson(program);
  if (!manifest.measured_on.empty()) {
    Json& rounding = json["rounding"] = Json::object({{"inputs", manifest.measured_on}});
    for (const Manifest::Exceeded& one : manifest.exceeded)
      rounding["exceeded"].push_back({{"output", one.output},
                                      {"error", Number(Digits(one.error))},
                                      {"allowed", Number(Digits(one.allowed))}});
    if (manifest.mixed_share > 0) rounding["mixed_fp32_share"] = Digits(manifest.mixed_share);
  }
  if (manifest.compression)
    json["compression"] = Json::parse(compress::CompressionJson(*manifest.compression));
  Json options = Json::object();
  for (const auto& [name, values] : manifest.options)
    options[name] = values.empty() ? Json(true) : Json(values);
  Put(json, "options", std::move(options));

  json["io_schema"] = IoSchema(program);
  json["operators"] = package.operators;
  Json passes = Json::array();
  for (const passes::PassRun& run : manifest.passes)
    passes.push_back({{"name", run.name},
                      {"changed", run.changed},
                      {"operators_before", Json(run.operators_before)},
                      {"operators_after", Json(run.operators_after)}});
  Put(json, "passes", std::move(passes));

  Json decisions = Json::array(), warnings = Json::array();
  for (const Decision& decision : diagnostics.decisions()) {
    Json& entry = decisions.emplace_back(Json::object());
    entry["kind"] = decision.kind;
    entry["subject"] = decision.subject;
    entry["reason"] = manifest.text(decision.reason);
    if (!decision.id.empty()) entry["id"] = decision.id;
  }
  for (const Error& warning : diagnostics.warnings()) {
    Location location = warning.location();
    location.file = std::filesystem::path(location.file).filename().string();
    warnings.push_back({{"id", warning.id()},
                        {"text", manifest.text(warning.text())},
                        {"location", location.ToString()}});
  }
  Put(json, "decisions", std::move(decisions));
  Put(json, "warnings", std::move(warnings));
  Json notes = Json::array();
  for (const std::string& note : diagnostics.notes()) notes.push_back(manifest.text(note));
  Put(json, "notes", std::move(notes));

  Json parity = Json::array();
  for (const Manifest::Parity& result : manifest.parity)
    parity.push_back({{"output", result.output},
                      {"max_error", Number(result.max_error)},
                      {"rmse", Number(result.rmse)},
                      {"max_error_budget", result.max_error_budget},
                      {"rmse_budget", result.rmse_budget},
                      {"passed", result.passed}});
  Put(json, "parity", std::move(parity));
  // Names in a source may be invalid UTF-8.
  return JsonText(json, 2, BadUtf8::kReplace) + "\n";
}

std::filesystem::path ManifestPath(const std::filesystem::path& package) {
  std::filesystem::path path = package.has_filename() ? package : package.parent_path();
  return path.replace_extension(".manifest.json");
}

std::optional<Stated> StatedOf(const std::filesystem::path& package) {
  std::error_code ignored;
  std::filesystem::path path = ManifestPath(package);
  if (!std::filesystem::is_regular_file(path, ignored)) return std::nullopt;
  InputRegistry::Unnoted look;
  Json json = ParseJsonIfValid(AsText(MappedFile::Open(path)->bytes()));
  try {
    if (json.at("package").at("xxh3_128") != PackageHash(package)) return std::nullopt;
    Stated stated{json.at("precision"), json.at("source").at("format")};
    stated.source_sha256 = json.at("source").value("sha256", "");
    const Json rounding = json.value("rounding", Json::object());  // absent if nothing was measured
    for (const Json& output : rounding.value("exceeded", Json::array()))
      if (output.at("error").is_number())
        stated.exceeded[output.at("output")] = output.at("error").get<double>();
    for (const char* inputs : {"loss", "generated_loss"}) {
      const Json loss = json.value("compression", Json::object()).value(inputs, Json::object());
      for (const Json& output : loss.value("outputs", Json::array())) {
        double& error = stated.lost[output.at("output")];
        error = std::max(error, output.at("max_error").get<double>());
      }
    }
    const Json options = json.value("options", Json::object());  // absent if no options were given
    for (const auto& [name, values] : options.items())
      // A switch has the value true.
      stated.options[name] =
          values.is_array() ? values.get<std::vector<std::string>>() : std::vector<std::string>();
    for (const Json& decision : json.value("decisions", Json::array()))
      stated.decisions.push_back({decision.at("kind"), decision.at("subject"),
                                  decision.at("reason"), decision.value("id", "")});
    return stated;
  } catch (const Json::exception&) {  // not a manifest of mlc
    return std::nullopt;
  }
}

void CheckManifestTarget(const std::filesystem::path& package, bool force) {
  std::filesystem::path path = ManifestPath(package);
  Staging check(path, Staging::kFile);
  std::error_code error;
  if (force || !std::filesystem::exists(path, error)) return;
  InputRegistry::Unnoted look;
  Json json = ParseJsonIfValid(AsText(MappedFile::Open(path)->bytes()));
  if (!json.is_object() || !json.contains("mlc"))
    throw Error("file-exists", "\"{}\" exists and is not a manifest written by mlc", path.string())
        .Help(
            "choose another output, remove the existing one first, or pass option 'force' or "
            "option 'no-manifest'");
}

void WriteManifest(const std::filesystem::path& package, const Manifest& manifest,
                   const Program& program, const Diagnostics& diagnostics) {
  WriteFile(ManifestPath(package), ManifestJson(manifest, program, diagnostics));
}

}  // namespace mlc::coreml
