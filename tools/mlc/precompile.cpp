#include <nlohmann/json.hpp>

#include "backends/coreml/bundle.h"
#include "frontends/coreml/import.h"
#include "tools/mlc/compile_model.h"
#include "tools/mlc/model.h"

namespace fs = std::filesystem;

namespace mlc {

const std::vector<Flag>& BundleFlags() {
  static const std::vector<Flag> flags = {
      {"--compiler-version", "V", "version of Core ML's compiler that the text names"},
      {"--mil-version", "V", "version of its MIL component that the text names"},
  };
  return flags;
}

std::string BundleVersion(const Invocation& invocation, std::string_view flag) {
  std::string version = invocation.get(flag);
  if (version.find_first_not_of("0123456789.") != std::string::npos ||
      (version.empty() && invocation.has(flag)))
    throw Error("usage", fmt::format("{}: \"{}\" is no version", flag, version))
        .Expected("numbers and dots, e.g. 3500.32.1");
  return version;
}

void Precompile(const fs::path& package, const fs::path& output, const fs::path& name,
                bool take_weights, const Invocation& invocation) {
  Program program = ImportCoreml(package, invocation.diagnostics);
  WriteBundle(program, ModelFolder(package), output,
              {.class_name = name.stem().string(),
               .compiler_version = BundleVersion(invocation, "--compiler-version"),
               .mil_version = BundleVersion(invocation, "--mil-version"),
               .force = invocation.has("--force"),
               .take_weights = take_weights},
              invocation.diagnostics);
}

fs::path ModelFolder(const fs::path& path) {
  Format format = DetectFormat(path);
  if (format == Format::kBundle) return path;
  if (format == Format::kPackage) return CoremlModelPath(path).parent_path();
  return path.parent_path();
}

namespace {

int PrecompileRun(const Invocation& invocation) {
  fs::path package = invocation.get("PACKAGE");
  if (package.filename().empty()) package = package.parent_path();
  if (invocation.has("--check"))
    throw Error("no-coreml",
                "--check compares with Core ML's own compiler, which this system does not have")
        .Help("run it on a Mac");
  Format format = DetectFormat(package);
  if (format == Format::kBundle)
    throw Error("usage", fmt::format("\"{}\" is a compiled bundle already", package.string()))
        .Expected("a .mlpackage");
  if (format != Format::kPackage && format != Format::kMlmodel)
    throw Error("usage", fmt::format("\"{}\" is a .{}", package.string(), Name(format)))
        .Expected("a .mlpackage")
        .Help("mlc compile makes one of a source model");
  fs::path output =
      invocation.get("-o", package.filename().replace_extension(".mlmodelc").string());
  if (output.extension() != ".mlmodelc")
    throw Error("usage", fmt::format("-o: \"{}\" does not end in .mlmodelc", output.string()));
  Precompile(package, output, package, false, invocation);
  if (invocation.json())
    fmt::print("{}\n", nlohmann::json{{"bundle", fs::absolute(output).string()}}.dump(2));
  else
    fmt::print("{}  ({})\n", output.string(), kExperimental);
  return 0;
}

}  // namespace

Command PrecompileCommand() {
  std::vector<Flag> flags = {
      {"PACKAGE", "", "a .mlpackage", true},
      {"-o", "OUT.mlmodelc", "where to write (default: the package's name)"},
      {"--check", "", "compare with what Core ML's own compiler makes (on a Mac)"},
      {"--force", "", "replace what is at -o, whatever it is and on any file system"},
      {"--json", "", "one JSON document on stdout"}};
  flags.insert(flags.end(), BundleFlags().begin(), BundleFlags().end());
  return {"precompile", "Make the compiled bundle of a package (experimental)",
          "mlc precompile model.mlpackage -o model.mlmodelc", flags, PrecompileRun};
}

}  // namespace mlc
