// What is done with a program: passes, packages, models, text, weights.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/ir/text.h"
#include "tools/driver/json_results.h"
#include "tools/driver/lora.h"
#include "tools/driver/model_interface.h"
#include "tools/driver/options_json.h"
#include "tools/driver/weights.h"
#include "tools/runtime/function_options.h"
#include "tools/runtime/model.h"
#include "tools/runtime/program.h"
#include "tools/runtime/tensor.h"

namespace fs = std::filesystem;
using namespace mlc;
using namespace mlc::abi;
using Json = nlohmann::ordered_json;

namespace {

ProgramParts& Complete(mlc_program* program) {
  Require(program, "program");
  program->parts->RequireComplete();
  return *program->parts;
}

}  // namespace

int32_t mlc_program_open(mlc_context* context, const char* model, const char* options,
                         mlc_program** program, mlc_error** error) {
  return Call(error, [&] {
    Require(model, "model");
    Require(program, "program");
    std::shared_ptr<ProgramParts> parts;
    RunJob(context, [&](Job& job) {
      ImportOptions given;
      driver::FillFromJson(driver::ImportTable(given), OrEmpty(options));
      parts = std::make_shared<ProgramParts>(driver::Import(model, given, job.diagnostics));
    });
    *program = new mlc_program{std::move(parts)};
  });
}

int32_t mlc_program_set_metadata(mlc_program* program, const char* key, const char* text,
                                 mlc_error** error) {
  return Call(error, [&] {
    Require(program, "program");
    Require(key, "key");
    Require(text, "text");
    Interface& interface = program->parts->program.interface;
    for (auto [name, field] : {std::pair{"author", &interface.author},
                               {"license", &interface.license},
                               {"description", &interface.short_description},
                               {"version", &interface.version}})
      if (std::string_view(name) == key) {
        *field = text;
        return;
      }
    auto entry =
        std::ranges::find(interface.metadata, key, &std::pair<std::string, std::string>::first);
    if (entry != interface.metadata.end())
      entry->second = text;
    else
      interface.metadata.emplace_back(key, text);
  });
}

int32_t mlc_program_set_labels(mlc_program* program, int32_t count, const char* const* labels,
                               mlc_error** error) {
  return Call(error, [&] {
    ProgramParts& parts = Complete(program);
    Require(labels, "labels");
    std::vector<std::string> list;
    for (int32_t i = 0; i < count; ++i) {
      Require(labels[i], "labels");
      list.emplace_back(labels[i]);
    }
    if (list.empty()) throw Error("usage", "there are no labels");
    Program changed = Clone(parts.program);
    driver::SetClassLabels(changed, list, parts.diagnostics);
    parts.Seal();
    parts.program = std::move(changed);
  });
}

int32_t mlc_program_optimise(mlc_context* context, mlc_program* program, const char* options,
                             char** result, mlc_error** error) {
  return Call(error, [&] {
    ProgramParts& parts = Complete(program);
    Json json;
    RunJob(context, [&](Job& job) {
      driver::OptimizeOptions given;
      driver::FillFromJson(OptimiseTable(given), OrEmpty(options));
      given.progress = job.progress;
      given.pipeline.progress = job.progress;
      // A failed pass leaves the program as it was.
      Program changed = Clone(parts.program);
      const driver::OptimizeResult done = driver::OptimizeProgram(changed, given, job.diagnostics);
      json = {{"changed", done.changed}, {"passes", Json::array()}};
      for (const passes::PassRun& run : done.passes)
        json["passes"].push_back(
            {{"name", run.name}, {"changed", run.changed}, {"ms", run.seconds * 1e3}});
      parts.Seal();
      parts.program = std::move(changed);
    });
    StoreResult(json, result);
  });
}

int32_t mlc_program_write(mlc_context* context, mlc_program* program, const char* output,
                          const char* options, char** result, mlc_error** error) {
  return Call(error, [&] {
    ProgramParts& parts = Complete(program);
    Require(output, "output");
    const fs::path path(output);
    if (path.extension() != ".mlpackage" && path.extension() != ".mil")
      throw Error("usage", "output: \"{}\" ends neither in .mil nor in .mlpackage", output);
    RunJob(context, [&](Job& job) {
      WriteOptions given;
      driver::FillFromJson(WriteTable(given), OrEmpty(options));
      Program written = Clone(parts.program);
      Verify(written);
      driver::WriteProgram(written, path, given.force, job.diagnostics);
    });
    StoreResult({{"package", fs::absolute(path).string()}}, result);
  });
}

int32_t mlc_program_compile(mlc_context* context, mlc_program* program, const char* output,
                            const char* options, char** result, mlc_error** error) {
  return Call(error, [&] {
    ProgramParts& parts = Complete(program);
    Require(output, "output");
    Json json;
    RunJob(context, [&](Job& job) {
      driver::CompileOptions given;
      driver::FillFromJson(CompileProgramTable(given), OrEmpty(options));
      given.progress = job.progress;
      given.passes.progress = job.progress;
      if (!given.target) given.target = parts.target;
      json = driver::CompileJson(driver::Compile(parts.program, output, given, job.diagnostics),
                                 job.diagnostics);
    });
    StoreResult(json, result);
  });
}

int32_t mlc_program_load(mlc_context* context, mlc_program* program, const char* options,
                         mlc_model** model, mlc_error** error) {
  return Call(error, [&] {
    ProgramParts& parts = Complete(program);
    Require(model, "model");
    mlc_model* made = nullptr;
    RunJob(context, [&](Job&) {
      LoadOptions given;
      driver::FillFromJson(LoadTable(given), OrEmpty(options));
      auto copy = std::make_shared<Program>(Clone(parts.program));
      Verify(*copy);
      made = LoadModel(given, [&](const driver::ModelOptions& load, Diagnostics& diagnostics) {
        return std::make_unique<driver::Model>(copy, load, diagnostics);
      });
    });
    *model = made;
  });
}

int32_t mlc_program_text(mlc_program* program, char** text, mlc_error** error) {
  return Call(error, [&] {
    Require(text, "text");
    *text = CopyText(PrintText(Complete(program).program));
  });
}

int32_t mlc_program_weights(mlc_program* program, char** result, mlc_error** error) {
  return Call(error, [&] {
    Require(program, "program");
    Json list = Json::array();
    for (const driver::NamedWeight& weight : driver::WeightsOf(program->parts->program)) {
      const Tensor& tensor = weight.operation->val;
      list.push_back({{"name", weight.name},
                      {"function", weight.operation->block->function->name},
                      {"dtype", Name(tensor.dtype())},
                      {"shape", tensor.dims()},
                      {"settable", weight.why_fixed.empty()}});
      if (!weight.source.empty()) list.back()["source"] = weight.source;
      if (!weight.why_fixed.empty()) list.back()["why"] = weight.why_fixed;
    }
    StoreResult({{"weights", list}}, result);
  });
}

int32_t mlc_program_get_weight(mlc_program* program, const char* name, const mlc_tensor* tensor,
                               mlc_error** error) {
  return Call(error, [&] {
    Require(program, "program");
    Require(name, "name");
    const Tensor& weight = driver::FindWeight(program->parts->program, name).operation->val;
    CopyTo(tensor, weight, weight.dtype(), fmt::format("weight \"{}\"", name));
  });
}

int32_t mlc_program_set_weight(mlc_program* program, const char* name, const mlc_tensor* tensor,
                               mlc_error** error) {
  return Call(error, [&] {
    Require(program, "program");
    Require(name, "name");
    driver::SetWeight(program->parts->program, name,
                      Copied(tensor, fmt::format("weight \"{}\"", name)));
  });
}

int32_t mlc_program_merge_lora(mlc_program* program, const char* weight, const mlc_tensor* down,
                               const mlc_tensor* up, double scale, mlc_error** error) {
  return Call(error, [&] {
    Require(program, "program");
    Require(weight, "weight");
    driver::MergeLora(program->parts->program, weight, Copied(down, "`down`"), Copied(up, "`up`"),
                      scale);
  });
}

int32_t mlc_program_add_lora_inputs(mlc_program* program, const char* weight, int64_t rank,
                                    double scale, mlc_error** error) {
  return Call(error, [&] {
    Require(program, "program");
    Require(weight, "weight");
    ProgramParts& parts = *program->parts;
    // A failure leaves the program as it is.
    Program changed = Clone(parts.program);
    driver::AddLoraInputs(changed, weight, rank, scale, parts.diagnostics);
    Verify(changed);
    parts.Seal();
    parts.program = std::move(changed);
  });
}
