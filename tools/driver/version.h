// tools/driver/version.h - the version that --version prints and manifests carry.
#pragma once

namespace mlc::driver {
inline constexpr const char* kVersion = "0.1.0";
inline constexpr const char* kVersionDate = "2026-11-26";  // for man pages
}  // namespace mlc::driver
