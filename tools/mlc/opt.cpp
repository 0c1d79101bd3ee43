#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "backends/coreml/package.h"
#include "lib/ir/text.h"
#include "lib/support/install.h"
#include "lib/verify/check_same.h"
#include "tools/mlc/compile_model.h"
#include "tools/mlc/model.h"

namespace mlc {

const std::vector<Flag>& PipelineFlags() {
  static const std::vector<Flag> flags = {
      {"--print-after", "PASS|all", "print the program after a pass, to stderr", false, true},
      {"--verify-each", "", "check the program after every pass"},
      {"--check-each", "SEED", "run the program before and after every pass on made-up inputs"},
      {"--time-passes", "", "print how long each pass took, to stderr"},
  };
  return flags;
}

PipelineOptions ParsePipelineOptions(const Invocation& invocation) {
  PipelineOptions options;
  options.verify_each = invocation.has("--verify-each");
  if (invocation.has("--check-each")) {
    uint64_t seed = static_cast<uint64_t>(invocation.Int("--check-each", 0));
    options.check_each = [seed](const Program& before, const Program& after,
                                std::string_view pass) { CheckSame(before, after, seed, pass); };
  }
  options.print_after = invocation.get("--print-after");
  if (!options.print_after.empty() && options.print_after != "all")
    ParsePasses(options.print_after);
  options.print = [](std::string_view pass, const Program& program) {
    fmt::print(stderr, "// after {}\n{}\n", pass,
               PrintText(program, {.inline_limit = 8, .max_elements = 16}));
  };
  return options;
}

namespace {

// Constants of more bytes are not written into the text of a program that a pass failed on.
constexpr uint64_t kMostConstants = 64 << 20;

std::string_view FlagOf(PassContext::Precision precision) {
  return precision == PassContext::Precision::kFp16   ? "fp16"
         : precision == PassContext::Precision::kFp32 ? "fp32"
                                                      : "mixed";
}

// A new file PREFIX-XXXXXX.mil in the folder for temporary files; its path.
std::string WriteTemporary(std::string_view prefix, const std::string& text) {
  std::string path =
      (std::filesystem::temp_directory_path() / fmt::format("{}-XXXXXX.mil", prefix)).string();
  int file = mkstemps(path.data(), 4);
  std::FILE* stream = file < 0 ? nullptr : fdopen(file, "w");
  bool written = stream && std::fwrite(text.data(), 1, text.size(), stream) == text.size();
  if (stream) written = std::fclose(stream) == 0 && written;
  if (!written) throw Error("file-io", fmt::format("cannot write \"{}\"", path));
  return path;
}

}  // namespace

std::vector<PassRun> RunPipeline(Program& program, const std::function<Program()>& again,
                                 const std::vector<const PassDef*>& passes, PassContext& context,
                                 const PipelineOptions& options) {
  try {
    return RunPasses(program, passes, context, options);
  } catch (const PassFailure& failure) {
    std::string help;
    try {
      Program before = again();
      Diagnostics ignored;
      PassContext same{ignored, context.precision, context.target, context.trusted_from};
      RunPasses(before, passes, same, {.at_most = failure.completed});
      uint64_t bytes = 0;
      for (const auto& function : before.functions)
        ForEachOperation(*function,
                         [&](Operation* op) { bytes += op->val ? op->val.byte_size() : 0; });
      bool whole = bytes <= kMostConstants;
      std::string path = WriteTemporary(
          fmt::format("mlc-before-{}", failure.pass),
          PrintText(before, {.inline_limit = 8, .max_elements = whole ? 0 : 32}) + "\n");
      help = fmt::format(
          "\n  the program before it: {}{}\n  to rerun: mlc opt {} --passes {} "
          "--precision {} --verify-each",
          path, whole ? "" : " (without its constants, which are too large)",
          whole ? path : "MODEL", failure.pass, FlagOf(context.precision));
    } catch (const std::exception& error) {
      help = fmt::format("\n  the program before it could not be saved: {}", error.what());
    }
    throw InternalError(failure.what() + help);
  }
}

void PrintPassTimes(const std::vector<PassRun>& runs) {
  double total = 0;
  fmt::print(stderr, "{:<32} {:>9} {:>8}\n", "pass", "ms", "changed");
  for (const PassRun& run : runs) {
    fmt::print(stderr, "{:<32} {:>9.2f} {:>8}\n", run.name, run.seconds * 1e3,
               run.changed ? "yes" : "no");
    total += run.seconds;
  }
  fmt::print(stderr, "{:<32} {:>9.2f}\n", "total", total * 1e3);
}

PassContext::Precision ParsePrecision(const std::string& text) {
  if (text == "fp16") return PassContext::Precision::kFp16;
  if (text == "fp32") return PassContext::Precision::kFp32;
  if (text == "mixed") return PassContext::Precision::kMixed;
  throw Error("usage", fmt::format("--precision: \"{}\" is unknown", text))
      .Expected("fp16, fp32 or mixed");
}

namespace {

int Opt(const Invocation& invocation) {
  std::filesystem::path path = invocation.get("IN"), output = invocation.get("-o");
  if (!output.empty() && output.extension() != ".mlpackage" && output.extension() != ".mil")
    throw Error("usage",
                fmt::format("-o: \"{}\" ends neither in .mil nor in .mlpackage", output.string()))
        .Help("for a .mlmodelc, write a package and run mlc precompile");
  Program program = ImportModel(path, {}, invocation.diagnostics);
  Verify(program);
  if (output.extension() == ".mlpackage")
    CheckPackageTarget(output, invocation.has("--force"));
  else if (!output.empty())
    Staging(output, Staging::kFile);  // says now what is in the way
  PassContext context{invocation.diagnostics, ParsePrecision(invocation.get("--precision", "fp32")),
                      std::nullopt};
  std::vector<const PassDef*> passes = invocation.has("--passes")
                                           ? ParsePasses(invocation.get("--passes"))
                                           : DefaultPipeline(context.precision);
  auto again = [&] {
    Diagnostics ignored;
    return ImportModel(path, {}, ignored);
  };
  std::vector<PassRun> runs =
      RunPipeline(program, again, passes, context, ParsePipelineOptions(invocation));
  if (invocation.has("--time-passes")) PrintPassTimes(runs);
  bool changed = false;
  for (const PassRun& run : runs) changed = changed || run.changed;

  nlohmann::ordered_json answer{{"changed", changed}, {"passes", nlohmann::ordered_json::array()}};
  for (const PassRun& run : runs)
    answer["passes"].push_back(
        {{"name", run.name}, {"changed", run.changed}, {"ms", run.seconds * 1e3}});
  if (!output.empty()) answer["output"] = std::filesystem::absolute(output).string();
  if (output.extension() == ".mlpackage") {
    WritePackage(program, output, {.force = invocation.has("--force")}, invocation.diagnostics);
    if (!invocation.json()) fmt::print("{}\n", output.string());
  } else {
    std::string text = PrintText(program, {.inline_limit = invocation.has("--inline") ? 64 : 0});
    if (output.empty() && invocation.json()) {
      answer["text"] = text;
    } else if (output.empty()) {
      fmt::print("{}{}", text, text.ends_with('\n') ? "" : "\n");
    } else {
      WriteFile(output, text);
    }
  }
  if (invocation.json())
    fmt::print("{}\n",
               answer.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  else
    fmt::print(stderr, "changed: {}\n", changed ? "yes" : "no");
  return 0;
}

}  // namespace

namespace {

// The table of passes is the help text.
std::string PassList() {
  std::string text = "Passes:\n";
  for (const PassDef* pass : AllPasses())
    text += fmt::format("  {:<24} {}\n", pass->name, pass->summary);
  return text + "\n";
}

}  // namespace

Command OptCommand() {
  std::vector<Flag> flags = {
      {"IN", "", "MIL text, a package or a source model", true},
      {"-o", "FILE.mil|OUT.mlpackage", "where to write (default: MIL text on stdout)"},
      {"--passes", "LIST", "comma-separated passes; \"\" for none (default: the whole pipeline)"},
      {"--precision", "fp16|fp32|mixed", "what the default pipeline aims at (default fp32)"},
      {"--inline", "", "write small constants where they are used"},
      {"--force", "", "replace what is at -o, whatever it is and on any file system"},
  };
  flags.insert(flags.end(), PipelineFlags().begin(), PipelineFlags().end());
  flags.push_back({"--json", "", "one JSON document on stdout; with the text, if there is no -o"});
  std::string_view summary = "Run passes on a program and print it as MIL text";
  return {"opt", summary, "mlc opt model.mil --passes fold-constants,dead-code",
          flags, Opt,     PassList()};
}

}  // namespace mlc
