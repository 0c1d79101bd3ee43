// tools/driver/version.h - the version that --version prints and manifests carry.
#pragma once

namespace mlc {
inline constexpr const char* kVersion = "0.1.0";
}
