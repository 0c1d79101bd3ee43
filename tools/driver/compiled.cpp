#include "tools/driver/compiled.h"

#include <cstdlib>

#include "tools/driver/format.h"

namespace mlc {
CompiledModel CompiledFor(Runtime& runtime, const std::filesystem::path& model, Units) {
  if (DetectFormat(model) == Format::kBundle) return {model};
  char name[] = "/tmp/mlc.XXXXXX";
  const std::filesystem::path folder = mkdtemp(name);
  runtime.Compile(model, folder / "model.mlmodelc");
  return {folder / "model.mlmodelc", true};
}
}  // namespace mlc
