// backends/apple/errors.h - the border: what comes out of Core ML, and what may cross.
#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "lib/support/error.h"

#ifdef __OBJC__
#import <Foundation/Foundation.h>
#endif

namespace mlc::apple {

// What work() throws, as Error, Errors or InternalError; null when it does not. `doing` says what Core ML was at:
// "predicting". Written in plain C++: gcc's Objective-C runtime catches no C++ exceptions in an .mm file.
std::exception_ptr Caught(std::string_view doing, const std::function<void()>& work) noexcept;

// Calls work() in an autorelease pool of its own. An NSException, and whatever else Core ML throws, leaves as Error
// "runtime-failed"; where memory ran out, "resource-limit".
void EnterPool(std::string_view doing, const std::function<void()>& work);

// The same with a result. It is made within the pool: objects that it holds are retained.
template <class F>
auto Enter(std::string_view doing, F&& work) {
  using Result = std::invoke_result_t<F>;
  if constexpr (std::is_void_v<Result>) {
    EnterPool(doing, work);
  } else {
    std::optional<Result> result;
    EnterPool(doing, [&] { result.emplace(work()); });
    return std::move(*result);
  }
}

#ifdef __OBJC__
std::string ToText(NSString* text);  // nil: empty
// "com.apple.CoreML 3: DESCRIPTION", and behind it what lies under it. Nil: that nothing was said.
std::string Words(NSError* error);
// Error "runtime-failed".
[[noreturn]] void Fail(std::string_view doing, NSError* error);
#endif

}  // namespace mlc::apple
