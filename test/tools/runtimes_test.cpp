#include "tools/driver/runtimes.h"

#include "test/catch.h"
#include "test/expected_error.h"

namespace mlc::test {
using namespace driver;
namespace {

TEST_CASE("runtimes: the reference engine for unit \"reference\", Core ML for all others",
          "[runtime]") {
  CHECK(MakeRuntime(runtime::Units::kReference, {})->capabilities().devices ==
        std::vector{runtime::Device::kReference});
#ifndef __APPLE__
  CHECK(DefaultUnits() == runtime::Units::kReference);
  CHECK(RefusalId([&] { MakeRuntime(runtime::Units::kAne, {}); }) == "no-coreml");
#endif
}

}  // namespace
}  // namespace mlc::test
