// tools/driver/version.h - the version that --version prints and manifests carry.
#pragma once

namespace mlc::driver {
inline constexpr const char* kVersion = "0.1.0";
}
