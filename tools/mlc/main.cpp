#include "lib/runtime/worker.h"
#include "lib/support/atomic_install.h"
#include "tools/mlc/command.h"
#include "tools/mlc/help.h"

namespace mlc::driver {
namespace {

constexpr std::string_view kProgram = "mlc";
constexpr std::string_view kSummary =
    "mlc compiles ONNX, GGUF and Hugging Face models into Core ML packages, ahead of time.";

std::vector<Command> Commands();

void WriteInNewFolder(const std::filesystem::path& file, std::string_view text) {
  std::filesystem::create_directories(std::filesystem::absolute(file).parent_path());
  WriteFile(file, text);
}

std::string CompletionsOf(const std::string& shell, const std::string& program) {
  if (program == "mlc-run") {
    const Command runner = RunnerCommand();
    return Completions(shell, {"mlc-run", runner.summary, std::span(&runner, 1)});
  }
  if (!program.empty() && program != kProgram)
    throw UnknownWord("PROGRAM", program, {kProgram, "mlc-run"});
  const std::vector<Command> commands = Commands();
  return Completions(shell, {kProgram, kSummary, commands});
}

Command CompletionsCommand() {
  struct Arguments {
    std::string shell, program;
    std::filesystem::path output;
  };
  auto given = std::make_shared<Arguments>();
  return {"completions",
          "Print a shell completion script",
          {"mlc completions bash > mlc.bash && . ./mlc.bash",
           "mlc completions fish -o ~/.config/fish/completions/mlc.fish"},
          {{"SHELL", "bash|zsh|fish", "bash, zsh or fish", Into(given->shell), true},
           {"PROGRAM", "", "mlc (default) or mlc-run", Into(given->program)},
           OutputOption({"-o", "FILE", "output (default: stdout)", Into(given->output)})},
          [given](Session&) {
            const std::string script = CompletionsOf(given->shell, given->program);
            if (given->output.empty() || given->output == "-")
              fmt::print("{}", script);
            else
              WriteInNewFolder(given->output, script);
            return 0;
          },
          "cmake --install installs the scripts where shells look for them.\n",
          {"man"}};
}

// The page of mlc, or of a command.
std::string ManPage(std::string_view name) {
  const std::vector<Command> commands = Commands();
  const CommandLine line{kProgram, kSummary, commands};
  if (name.empty() || name == kProgram) return ProgramPage(line);
  std::vector<std::string_view> names;
  for (const Command& command : commands) {
    if (command.name == name) return CommandPage(line, command);
    names.push_back(command.name);
  }
  throw UnknownWord("COMMAND", name, names);
}

Command ManCommand() {
  struct Arguments {
    std::string command;
    std::filesystem::path folder;
  };
  auto given = std::make_shared<Arguments>();
  return {"man",
          "Print a manual page",
          {"mlc man compile > mlc-compile.1", "mlc man -o share/man/man1"},
          {{"COMMAND", "", "command to describe (default: mlc itself)", Into(given->command)},
           OutputOption({"-o", "DIR",
                         "write the pages of mlc and of all commands to a folder (default: stdout)",
                         Into(given->folder)})},
          [given](Session& session) {
            if (given->folder.empty()) {
              fmt::print("{}", ManPage(given->command));
              return 0;
            }
            Refuse({"COMMAND"}, "-o writes the pages of all commands", session);
            WriteInNewFolder(given->folder / "mlc.1", ManPage(""));
            for (const Command& command : Commands())
              WriteInNewFolder(given->folder / fmt::format("mlc-{}.1", command.name),
                               ManPage(command.name));
            return 0;
          },
          "cmake --install installs the pages: man mlc, man mlc-compile.\n",
          {"completions"}};
}

std::vector<Command> Commands() {
  return {CompileCommand(),    RunCommand(),         VerifyCommand(),    SweepCommand(),
          InspectCommand(),    DiffCommand(),        OptCommand(),       PrecompileCommand(),
          OpsCommand(),        BuildCommand(),       ManifestCommand(),  CacheCommand(),
          GateCommand(),       TokenizeCommand(),    DoctorCommand(),    ExplainCommand(),
          ExtractCommand(),    ReduceCommand(),      CalibrateCommand(), ExportWeightsCommand(),
          SetWeightsCommand(), CompletionsCommand(), ManCommand()};
}

}  // namespace
}  // namespace mlc::driver

// Read by jemalloc if linked. Huge pages make traversing a large program about an eighth faster.
extern "C" __attribute__((visibility("default"))) const char* malloc_conf;
const char* malloc_conf = "thp:always";

int main(int argc, char** argv) {
  return mlc::runtime::ExitCodePastAbandoned(mlc::driver::RunCommandLine(
      mlc::driver::kProgram, mlc::driver::kSummary, mlc::driver::Commands(), argc, argv));
}
