#include "tools/driver/runtimes.h"

#include "test/catch.h"
#include "test/refusal.h"

namespace mlc::test {
namespace {

TEST_CASE("runtimes: mlc's engine for reference, Core ML for all others", "[runtime]") {
  Diagnostics diagnostics;
  CHECK(MakeRuntime(Units::kReference, {}, diagnostics)->capabilities().devices ==
        std::vector{Device::kReference});
#ifndef __APPLE__
  CHECK(DefaultUnits() == Units::kReference);
  CHECK(RefusalId([&] { MakeRuntime(Units::kAne, {}, diagnostics); }) == "no-coreml");
#endif
}

}  // namespace
}  // namespace mlc::test
