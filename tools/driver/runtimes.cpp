#include "tools/driver/runtimes.h"

#ifdef __APPLE__
#include "backends/apple/coreml_runtime.h"
#endif

namespace mlc {

#ifdef __APPLE__
std::unique_ptr<Runtime> (*make_core_ml)() = MakeCoreMlRuntime;
#else
std::unique_ptr<Runtime> (*make_core_ml)() = nullptr;
#endif

Units DefaultUnits() { return make_core_ml ? Units::kAll : Units::kReference; }

std::unique_ptr<Runtime> MakeRuntime(Units units, const ReferenceOptions& options) {
  if (units == Units::kReference) return MakeReferenceRuntime(options);
  if (!make_core_ml)
    throw Error(
        "no-coreml",
        fmt::format("--units {} requires Core ML, which runs on Apple's systems only", Name(units)))
        .Help("use --units reference, mlc's own engine");
  return make_core_ml();
}

std::optional<std::chrono::milliseconds> LoadLimit(Units units,
                                                   std::optional<std::chrono::milliseconds> asked) {
  if (units == Units::kReference) return std::nullopt;
  return asked.value_or(kLoadLimit);
}

}  // namespace mlc
