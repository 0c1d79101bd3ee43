#include "tools/driver/version.h"

#include <dlfcn.h>

#include <algorithm>
#include <mlc_functions.inc>  // kFunctions, the names in libmlc.map

#include "tools/runtime/call.h"

using namespace mlc;

const char* mlc_version() { return driver::kVersion; }
int32_t mlc_abi_version() { return MLC_ABI_VERSION; }
int32_t mlc_abi_supports(const char* function) {
  return function &&
         std::ranges::find(kFunctions, std::string_view(function)) != std::end(kFunctions);
}
int32_t mlc_require(int32_t header, mlc_error** error) {
  return abi::Call(error, [&] {
    constexpr int32_t kOwn = MLC_ABI_VERSION;
    if (header >> 16 == kOwn >> 16 && header <= kOwn) return;
    const auto text = [](int32_t version) {
      return fmt::format("{}.{}", version >> 16, version & 0xffff);
    };
    Dl_info info{};
    const bool found = dladdr(reinterpret_cast<void*>(&mlc_version), &info) && info.dli_fname;
    throw Error("needs-system", "the program was built for interface {}, libmlc has {}",
                text(header), text(kOwn))
        .Note("libmlc {} was loaded from {}", driver::kVersion,
              found ? info.dli_fname : "an unknown place")
        .Help(header > kOwn ? "install a newer libmlc" : "build the program with the new mlc.h");
  });
}
