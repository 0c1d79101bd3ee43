// lib/support/progress.h - how far long work is.
#pragma once

#include <functional>
#include <string_view>

namespace mlc {

// Called now and then with what is done ("writing") and how much of it, from 0 to 1. Calls do not
// overlap, but may come from different threads.
using Progress = std::function<void(std::string_view step, double share)>;

}  // namespace mlc
