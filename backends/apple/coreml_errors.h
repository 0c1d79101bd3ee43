// backends/apple/coreml_errors.h - converts the exceptions and errors of Core ML to ours.
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

// Runs work() and returns its exception as Error, Errors or InternalError; null if it succeeds.
// `doing` describes the activity of Core ML, for example "predicting". Plain C++, because gcc's
// Objective-C runtime does not catch C++ exceptions in .mm files.
std::exception_ptr CaptureException(std::string_view doing,
                                    const std::function<void()>& work) noexcept;

// Calls work() in its own autorelease pool. NSExceptions and other exceptions from Core ML become
// Error "runtime-failed", or "resource-limit" if memory is exhausted.
void EnterPool(std::string_view doing, const std::function<void()>& work);

// The same with a result, which is created within the pool; the objects that it holds are retained.
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
std::string ToText(NSString* text);  // "" for nil
// "com.apple.CoreML 3: DESCRIPTION", followed by the underlying errors. For nil, says that Core ML
// gave no reason.
std::string Words(NSError* error);
// Throws Error "runtime-failed".
[[noreturn]] void Fail(std::string_view doing, NSError* error);
#endif

}  // namespace mlc::apple
