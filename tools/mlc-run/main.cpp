#include "lib/runtime/worker.h"
#include "tools/mlc/command.h"

int main(int argc, char** argv) {
  const mlc::driver::Command command = mlc::driver::RunnerCommand();
  return mlc::runtime::ExitCodePastAbandoned(
      mlc::driver::RunCommandLine("mlc-run", command.summary, std::span(&command, 1), argc, argv));
}
