// Functions that compile and examine models: options to a record, one call of tools/driver, the
// result as JSON.
#include <fstream>
#include <nlohmann/json.hpp>

#include "lib/ops/row.h"
#include "lib/support/atomic_install.h"
#include "lib/support/json_text.h"
#include "lib/support/temporary_folder.h"
#include "tools/driver/json_results.h"
#include "tools/driver/options_json.h"
#include "tools/driver/runtimes.h"
#include "tools/runtime/function_options.h"

namespace fs = std::filesystem;
using namespace mlc;
using namespace mlc::abi;
using Json = nlohmann::ordered_json;

namespace {

// A call that turns a job into a result.
int32_t Document(mlc_context* context, char** result, mlc_error** error,
                 const std::function<Json(Job&)>& make,
                 const char* function = __builtin_FUNCTION()) {
  return Call(
      error,
      [&] {
        Json json;
        RunJob(context, [&](Job& job) { json = make(job); });
        StoreResult(json, result);
      },
      function);
}

Json CompileFile(const fs::path& model, const char* output, driver::CompileOptions options,
                 Job& job) {
  options.progress = job.progress;
  options.passes.progress = job.progress;
  const driver::CompileResult compiled = driver::Compile(model, output, options, job.diagnostics);
  return driver::CompileJson(compiled, job.diagnostics);
}

driver::CompileOptions CompileOptionsFrom(const char* text) {
  driver::CompileOptions options;
  driver::FillFromJson(CompileFileTable(options), OrEmpty(text));
  return options;
}

}  // namespace

int32_t mlc_compile(mlc_context* context, const char* model, const char* output,
                    const char* options, char** result, mlc_error** error) {
  return Document(context, result, error, [&](Job& job) {
    Require(model, "model");
    Require(output, "output");
    return CompileFile(model, output, CompileOptionsFrom(options), job);
  });
}

int32_t mlc_compile_memory(mlc_context* context, const void* bytes, size_t size, const char* folder,
                           const char* output, const char* options, char** result,
                           mlc_error** error) {
  return Document(context, result, error, [&](Job& job) {
    Require(bytes, "bytes");
    Require(output, "output");
    driver::CompileOptions given = CompileOptionsFrom(options);
    if (folder && given.import.data_root.empty()) given.import.data_root = folder;
    const TemporaryFolder temporary;
    const fs::path model = temporary.path / "model";
    std::ofstream file(model, std::ios::binary);
    file.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(size));
    file.close();
    if (!file) throw Error("file-io", "cannot write \"{}\"", model.string());
    return CompileFile(model, output, std::move(given), job);
  });
}

int32_t mlc_inspect(mlc_context* context, const char* model, const char* options, char** result,
                    mlc_error** error) {
  return Document(context, result, error, [&](Job& job) {
    Require(model, "model");
    InspectArguments given;
    driver::FillFromJson(InspectTable(given), OrEmpty(options));
    return driver::InspectJson(driver::Inspect(model, given.options, job.diagnostics),
                               given.weights);
  });
}

int32_t mlc_operators(mlc_context* context, const char* model, const char* options, char** result,
                      mlc_error** error) {
  return Document(context, result, error, [&](Job& job) {
    Require(model, "model");
    ImportOptions given;
    driver::FillFromJson(driver::ImportTable(given), OrEmpty(options));
    return driver::OperatorsJson(driver::CheckOperators(model, given, job.diagnostics));
  });
}

int32_t mlc_explain(mlc_context* context, const char* model, const char* options, char** result,
                    mlc_error** error) {
  return Document(context, result, error, [&](Job& job) {
    Require(model, "model");
    driver::ExplainOptions given;
    driver::FillFromJson(driver::ExplainTable(given), OrEmpty(options));
    return driver::ExplainJson(model, driver::Explain(model, given, job.diagnostics), given);
  });
}

int32_t mlc_doctor(mlc_context* context, const char* model, const char* options, char** result,
                   mlc_error** error) {
  return Document(context, result, error, [&](Job& job) {
    Require(model, "model");
    ImportOptions given;
    driver::FillFromJson(driver::ImportTable(given), OrEmpty(options));
    return driver::FindingsJson(model, driver::Examine(model, given, job.diagnostics));
  });
}

int32_t mlc_system(mlc_context* context, char** result, mlc_error** error) {
  return Document(context, result, error, [&](Job&) {
    const auto runtime = driver::MakeRuntime(driver::DefaultUnits(), {});
    return driver::SystemJson(driver::ExamineSystem(*runtime));
  });
}

int32_t mlc_diff(mlc_context* context, const char* first, const char* second, char** result,
                 mlc_error** error) {
  return Document(context, result, error, [&](Job& job) {
    Require(first, "first");
    Require(second, "second");
    return driver::DiffJson(driver::Diff(first, second, job.diagnostics));
  });
}

int32_t mlc_verify(mlc_context* context, const char* source, const char* package,
                   const char* options, char** result, mlc_error** error) {
  return Document(context, result, error, [&](Job& job) {
    Require(source, "source");
    Require(package, "package");
    driver::VerifyOptions given;
    driver::FillFromJson(VerifyFilesTable(given), OrEmpty(options));
    return driver::VerifyJson(driver::Verify(source, package, given, job.diagnostics), given);
  });
}

int32_t mlc_precompile(mlc_context* context, const char* package, const char* output,
                       const char* options, char** result, mlc_error** error) {
  return Document(context, result, error, [&](Job& job) {
    Require(package, "package");
    Require(output, "output");
    driver::PrecompileOptions given;
    driver::FillFromJson(driver::PrecompileTable(given), OrEmpty(options));
    const bool cached = driver::Precompile(package, output, given, job.diagnostics);
    return Json{{"bundle", fs::absolute(output).string()}, {"cached", cached}};
  });
}
