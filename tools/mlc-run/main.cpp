#include <vector>

#include "lib/runtime/worker.h"
#include "tools/mlc/command.h"

int main(int argc, char** argv) {
  mlc::Command command = mlc::RunCommand();
  command.name = "";
  command.example = "mlc-run model.mlpackage --input image=digit.npy --output-dir out";
  return mlc::ExitCodePastAbandoned(
      mlc::RunCommandLine("mlc-run", "mlc-run runs and measures models and Core ML packages.",
                          std::vector<mlc::Command>{command}, argc, argv));
}
