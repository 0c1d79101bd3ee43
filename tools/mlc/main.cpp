#include "lib/runtime/worker.h"
#include "tools/mlc/command.h"

namespace mlc::driver {
namespace {

std::vector<Command> Commands();

Command CompletionsCommand() {
  auto shell = std::make_shared<std::string>();
  return {"completions",
          "Print a shell completion script",
          "mlc completions bash > mlc.bash && . ./mlc.bash",
          {{"SHELL", "SHELL", "bash, zsh or fish", Into(*shell), true}},
          [shell](Session&) {
            fmt::print("{}", Completions(*shell, "mlc", Commands()));
            return 0;
          }};
}

std::vector<Command> Commands() {
  return {CompileCommand(),    RunCommand(),       VerifyCommand(),        InspectCommand(),
          DiffCommand(),       OptCommand(),       PrecompileCommand(),    OpsCommand(),
          BuildCommand(),      ManifestCommand(),  CacheCommand(),         GateCommand(),
          TokenizeCommand(),   DoctorCommand(),    ExplainCommand(),       ExtractCommand(),
          ReduceCommand(),     CalibrateCommand(), ExportWeightsCommand(), SetWeightsCommand(),
          CompletionsCommand()};
}

}  // namespace
}  // namespace mlc::driver

// Read by jemalloc if linked. Huge pages make traversing a large program about an eighth faster.
extern "C" __attribute__((visibility("default"))) const char* malloc_conf;
const char* malloc_conf = "thp:always";

int main(int argc, char** argv) {
  return mlc::runtime::ExitCodePastAbandoned(mlc::driver::RunCommandLine(
      "mlc",
      "mlc compiles ONNX, GGUF and Hugging Face models into Core ML packages, ahead of time.",
      mlc::driver::Commands(), argc, argv));
}
