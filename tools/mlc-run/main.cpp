#include <vector>

#include "lib/runtime/worker.h"
#include "tools/mlc/command.h"

int main(int argc, char** argv) {
  mlc::driver::Command command = mlc::driver::RunCommand();
  command.name = "";
  command.example = "mlc-run model.mlpackage --input image=digit.npy --output-dir out";
  return mlc::runtime::ExitCodePastAbandoned(mlc::driver::RunCommandLine(
      "mlc-run", "mlc-run runs and measures models and Core ML packages.",
      std::vector<mlc::driver::Command>{command}, argc, argv));
}
