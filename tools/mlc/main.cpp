#include "tools/mlc/command.h"

namespace mlc {
namespace {

std::vector<Command> Commands();

int PrintCompletions(const Invocation& invocation) {
  fmt::print("{}", Completions(invocation.get("SHELL"), "mlc", Commands()));
  return 0;
}

std::vector<Command> Commands() {
  return {CompileCommand(),
          RunCommand(),
          VerifyCommand(),
          InspectCommand(),
          DiffCommand(),
          OptCommand(),
          PrecompileCommand(),
          OpsCommand(),
          BuildCommand(),
          Command{"completions",
                  "Print a completion script for a shell",
                  "mlc completions bash > mlc.bash && . ./mlc.bash",
                  {{"SHELL", "SHELL", "bash, zsh or fish", true}},
                  PrintCompletions}};
}

}  // namespace
}  // namespace mlc

int main(int argc, char** argv) {
  return mlc::RunCommandLine("mlc",
                             "Compiles trained networks into Core ML packages, on any machine.",
                             mlc::Commands(), argc, argv);
}
