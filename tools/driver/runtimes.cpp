#include "tools/driver/runtimes.h"

#ifdef __APPLE__
#include "backends/apple/coreml_runtime.h"
#endif

namespace mlc::driver {

#ifdef __APPLE__
std::unique_ptr<runtime::Runtime> (*make_core_ml)() = apple::MakeCoreMlRuntime;
#else
std::unique_ptr<runtime::Runtime> (*make_core_ml)() = nullptr;
#endif

runtime::Units DefaultUnits() {
  return make_core_ml ? runtime::Units::kAll : runtime::Units::kReference;
}

std::unique_ptr<runtime::Runtime> MakeRuntime(runtime::Units units,
                                              const ReferenceOptions& options) {
  if (units == runtime::Units::kReference) return MakeReferenceRuntime(options);
  if (!make_core_ml)
    throw Error("no-coreml", "--units {} requires Core ML, which runs on Apple's systems only",
                Name(units))
        .Help("use --units reference, mlc's own engine");
  return make_core_ml();
}

std::optional<std::chrono::milliseconds> LoadLimit(runtime::Units units,
                                                   std::optional<std::chrono::milliseconds> asked) {
  if (units == runtime::Units::kReference) return std::nullopt;
  return asked.value_or(kLoadLimit);
}

}  // namespace mlc::driver
