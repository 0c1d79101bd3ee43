// tools/runtime/function_options.h - the options of each function, as tables bound to a record.
#pragma once

#include <filesystem>

#include "tools/driver/inspect.h"
#include "tools/driver/options.h"
#include "tools/runtime/model.h"

namespace mlc::abi {

struct ContextOptions {
  int threads = 0;
  std::filesystem::path temporary_folder, cache_folder;
};
struct InspectArguments {
  driver::InspectOptions options;
  bool weights = false;
};
struct PoolOptions {
  int64_t instances = 2, queue = 16;
};
struct WriteOptions {
  bool force = false;
};

std::vector<driver::Option> ContextTable(ContextOptions& into);
std::vector<driver::Option> CompileFileTable(driver::CompileOptions& into);
std::vector<driver::Option> InspectTable(InspectArguments& into);
std::vector<driver::Option> VerifyFilesTable(driver::VerifyOptions& into);
// Of models from files, and of those from programs.
std::vector<driver::Option> LoadFileTable(LoadOptions& into);
std::vector<driver::Option> LoadTable(LoadOptions& into);
std::vector<driver::Option> PoolTable(PoolOptions& into);
std::vector<driver::Option> GeneratorTable(driver::GenerateOptions& into);
std::vector<driver::Option> NewProgramTable(driver::CompileOptions& into);
std::vector<driver::Option> OptimiseTable(driver::OptimizeOptions& into);
std::vector<driver::Option> WriteTable(WriteOptions& into);
std::vector<driver::Option> CompileProgramTable(driver::CompileOptions& into);

}  // namespace mlc::abi
