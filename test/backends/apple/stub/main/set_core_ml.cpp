// mlc-stub is mlc with this file: before main() begins it has Core ML's runtime, over the stub.
#include "backends/apple/coreml_runtime.h"
#include "tools/driver/runtimes.h"

namespace {
const bool kSet = (mlc::make_core_ml = mlc::MakeCoreMlRuntime, true);
}
