// mlc-stub is mlc linked with this file, which installs the Core ML runtime over the stub before
// main() begins.
#include "backends/apple/coreml_runtime.h"
#include "tools/driver/runtimes.h"

namespace {
const bool kSet = (mlc::driver::make_core_ml = mlc::apple::MakeCoreMlRuntime, true);
}
