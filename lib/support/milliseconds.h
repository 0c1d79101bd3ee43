// lib/support/milliseconds.h - elapsed time as shown in reports.
#pragma once

#include <chrono>

namespace mlc {

template <class Rep, class Period>
double Milliseconds(std::chrono::duration<Rep, Period> duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}
inline double Milliseconds(std::chrono::steady_clock::time_point from,
                           std::chrono::steady_clock::time_point to) {
  return Milliseconds(to - from);
}
inline double MillisecondsSince(std::chrono::steady_clock::time_point begin) {
  return Milliseconds(std::chrono::steady_clock::now() - begin);
}

}  // namespace mlc
