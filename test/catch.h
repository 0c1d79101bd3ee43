// test/catch.h - Catch2 2 (Debian) or 3 (Homebrew), Approx and ContainsSubstring at global scope.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>

using Catch::Approx;
using Catch::Matchers::ContainsSubstring;
#else
#include <catch2/catch.hpp>

inline auto ContainsSubstring(const std::string& text) { return Catch::Matchers::Contains(text); }
#endif
