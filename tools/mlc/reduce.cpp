#include "tools/driver/reduce.h"

#include <nlohmann/json.hpp>

#include "lib/support/interrupt.h"
#include "tools/driver/output_path.h"
#include "tools/mlc/command.h"
#include "tools/mlc/progress_line.h"
#include "tools/mlc/terminal.h"

namespace fs = std::filesystem;

namespace mlc::driver {
namespace {

struct ReduceArguments {
  fs::path model;
  ReduceOptions options;
};

std::string_view Name(ReduceResult::End end) {
  switch (end) {
    case ReduceResult::End::kTimeLimit:
      return "time-limit";
    case ReduceResult::End::kInterrupted:
      return "interrupted";
    default:
      return "minimal";
  }
}

int RunReduce(const ReduceArguments& given, Session& session) {
  ReduceOptions options = given.options;
  const fs::path usual =
      given.model.stem().string() + "-reduced" + given.model.extension().string();
  options.output = options.output.empty() ? usual : OutputPath(options.output, usual);
  FirstInterrupt interrupt;
  options.interrupted = [&] { return interrupt.came(); };
  ReduceResult result;
  {
    ProgressLine line(session);
    options.progress = [&](const ReduceProgress& progress) {
      line.Show([&] {
        return fmt::format("{}, {}, reducing {}", Counted(progress.operations, "operation"),
                           Counted(progress.tests, "test"), progress.step);
      });
    };
    result = Reduce(given.model, options, session.diagnostics);
  }
  if (session.json)
    PrintDocument({{"output", fs::absolute(options.output).string()},
                   {"operations_before", result.operations_before},
                   {"operations", result.operations},
                   {"tests", result.tests},
                   {"end", Name(result.end)}});
  else
    fmt::print("{}\n  {} before, {} after; {}{}\n", options.output.string(),
               Counted(result.operations_before, "operation"), result.operations,
               Counted(result.tests, "test"),
               result.end == ReduceResult::End::kMinimal     ? ""
               : result.end == ReduceResult::End::kTimeLimit ? "; the time limit was reached"
                                                             : "; interrupted");
  if (result.end == ReduceResult::End::kInterrupted) {
    std::fflush(stdout);
    DieOfInterrupt();
  }
  return 0;
}

constexpr std::string_view kNotes =
    "SCRIPT is run as \"SCRIPT FILE\" and exits with 0 while FILE shows the fault, for example:\n"
    "  #!/bin/sh\n"
    "  mlc compile \"$1\" -o \"$(mktemp -d)/a.mlpackage\" 2>&1 | grep -q \"does not "
    "terminate\"\n\n";

}  // namespace

Command ReduceCommand() {
  auto given = std::make_shared<ReduceArguments>();
  ReduceOptions& options = given->options;
  return {"reduce",
          "Shrink a model that shows a fault to a minimal one",
          {"mlc reduce model.onnx --test ./is_faulty.sh -o small.onnx",
           "mlc reduce model.mlpackage --test ./is_faulty.sh --time-limit 10m"},
          {{"MODEL", "", "ONNX model, package or MIL text", Into(given->model), true},
           {"--test", "SCRIPT", "program that exits with 0 if a file shows the fault",
            Into(options.script), true},
           OutputOption({"-o", "OUT",
                         "output, in the format of MODEL (default: MODEL-reduced in this folder)",
                         Into(options.output)}),
           {"--time-limit", "DURATION",
            "stop after this time with the smallest version so far (default: none)",
            [&options](const std::string& text) {
              options.time_limit = ParseDuration("--time-limit", text);
            }},
           {"--script-timeout", "DURATION",
            "time after which a file counts as not faulty (default 60s)",
            [&options](const std::string& text) {
              options.script_timeout = ParseDuration("--script-timeout", text);
            }},
           {"--data-root", "DIR",
            "folder of external data that is not beside an ONNX model (default: the model's folder "
            "only)",
            Into(options.data_root)},
           {"--force", "", "replace whatever exists at -o", Switch(options.force)},
           JsonOption()},
          [given](Session& session) { return RunReduce(*given, session); },
          std::string(kNotes),
          {"extract"}};
}

}  // namespace mlc::driver
