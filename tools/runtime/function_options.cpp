#include "tools/runtime/function_options.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/driver/options_json.h"
#include "tools/runtime/call.h"

namespace mlc::abi {

namespace {

using Table = std::vector<driver::Option>;

template <class Record, Table (*kTable)(Record&)>
nlohmann::ordered_json Describe() {
  Record record;
  return driver::OptionsJson(kTable(record));
}

// The options of functions, by name.
struct Row {
  std::string_view function;
  nlohmann::ordered_json (*describe)();
};
constexpr Row kRows[] = {
    {"mlc_compile", Describe<driver::CompileOptions, CompileFileTable>},
    {"mlc_compile_memory", Describe<driver::CompileOptions, CompileFileTable>},
    {"mlc_context_new", Describe<ContextOptions, ContextTable>},
    {"mlc_doctor", Describe<ImportOptions, driver::ImportTable>},
    {"mlc_explain", Describe<driver::ExplainOptions, driver::ExplainTable>},
    {"mlc_generator_new", Describe<driver::GenerateOptions, GeneratorTable>},
    {"mlc_inspect", Describe<InspectArguments, InspectTable>},
    {"mlc_model_load", Describe<LoadOptions, LoadFileTable>},
    {"mlc_operators", Describe<ImportOptions, driver::ImportTable>},
    {"mlc_pool_new", Describe<PoolOptions, PoolTable>},
    {"mlc_precompile", Describe<driver::PrecompileOptions, driver::PrecompileTable>},
    {"mlc_program_compile", Describe<driver::CompileOptions, CompileProgramTable>},
    {"mlc_program_load", Describe<LoadOptions, LoadTable>},
    {"mlc_program_new", Describe<driver::CompileOptions, NewProgramTable>},
    {"mlc_program_open", Describe<ImportOptions, driver::ImportTable>},
    {"mlc_program_optimise", Describe<driver::OptimizeOptions, OptimiseTable>},
    {"mlc_program_write", Describe<WriteOptions, WriteTable>},
    {"mlc_verify", Describe<driver::VerifyOptions, VerifyFilesTable>},
};

constexpr std::string_view kForce = "replace whatever exists";

// Passes print nothing here.
Table Silent(Table table) {
  return driver::Without(std::move(table), {"--print-after", "--time-passes"});
}

// Names a folder that exists.
driver::Field FolderInto(std::string_view option, std::filesystem::path& into) {
  return [option, &into](const std::string& text) {
    if (!std::filesystem::is_directory(text))
      throw Error("usage", "{}: \"{}\" is not a folder", option, text);
    into = text;
  };
}

}  // namespace

Table ContextTable(ContextOptions& into) {
  return {
      driver::ThreadsOption(into.threads, "maximum number of threads of a call"),
      {"--temporary-folder", "DIR", "folder for temporary files (default: that of the environment)",
       FolderInto("--temporary-folder", into.temporary_folder)},
      {"--cache-folder", "DIR",
       "folder of the cache of compiled models (default: that of the environment)",
       driver::Into(into.cache_folder)}};
}

Table CompileFileTable(driver::CompileOptions& into) { return Silent(driver::CompileTable(into)); }

Table InspectTable(InspectArguments& into) {
  Table table = driver::ImportTable(into.options.import);
  table.push_back({"--weights", "", "list the constants", driver::Switch(into.weights)});
  return table;
}

Table VerifyFilesTable(driver::VerifyOptions& into) {
  Table table = driver::VerifyTable(into);
  driver::Append(driver::ImportTable(into.import), table);
  return table;
}

Table LoadTable(LoadOptions& into) {
  Table table = driver::Only(
      driver::RunTable(into.run),
      {"--units", "--function", "--arithmetic", "--timeout", "--load-timeout", "--low-precision",
       "--reshapes", "--specialization", "--p99-budget", "--memory-mark"});
  table.push_back(driver::ThreadsOption(into.threads, "number of threads of the reference engine"));
  table.push_back({"--circuit-breaker", "", "refuse predictions for a while after many failures",
                   driver::Switch(into.breaker)});
  table.push_back({"--trace", "", "record predictions and operations, for mlc_model_trace",
                   driver::Switch(into.trace)});
  return table;
}

Table LoadFileTable(LoadOptions& into) {
  Table table = LoadTable(into);
  driver::Append(driver::ImportTable(into.run.import), table);
  return table;
}

Table PoolTable(PoolOptions& into) {
  return {{"--instances", "N", "instances of the model (default 2)",
           driver::Whole("--instances", into.instances)},
          {"--queue", "N", "predictions that may wait (default 16)",
           driver::Whole("--queue", into.queue)}};
}

Table GeneratorTable(driver::GenerateOptions& into) {
  Table table = driver::Only(
      driver::GenerateTable(into),
      {"--stop", "--temperature", "--top-k", "--top-p", "--min-p", "--repetition-penalty"});
  table.push_back({"--seed", "N", "seed of the sampling (default 0)",
                   driver::Whole("--seed", into.sampling.seed)});
  return table;
}

Table NewProgramTable(driver::CompileOptions& into) {
  return driver::Only(driver::CompileTable(into), {"--target"});
}

Table OptimiseTable(driver::OptimizeOptions& into) {
  return driver::Without(Silent(driver::OptimizeTable(into)), {"--inline", "--force"});
}

Table WriteTable(WriteOptions& into) {
  return {{"--force", "", kForce, driver::Switch(into.force)}};
}

Table CompileProgramTable(driver::CompileOptions& into) {
  return driver::Without(
      CompileFileTable(into),
      {"--shape", "--dim", "--const", "--outputs", "--replace", "--image", "--runtime", "--context",
       "--data-root", "--io", "--no-manifest", "--sha256"});
}

}  // namespace mlc::abi

using namespace mlc;

int32_t mlc_options(const char* function, char** result, mlc_error** error) {
  return abi::Call(error, [&] {
    abi::Require(function, "function");
    const auto row = std::ranges::find(abi::kRows, std::string_view(function), &abi::Row::function);
    if (row == std::end(abi::kRows)) {
      std::vector<std::string_view> names;
      for (const abi::Row& other : abi::kRows) names.push_back(other.function);
      throw Error("bad-name", "\"{}\" is not a function with options", function)
          .Expected("{}", fmt::join(names, ", "));
    }
    abi::StoreResult({{"options", row->describe()}}, result);
  });
}
