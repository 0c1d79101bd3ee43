#include "backends/apple/coreml_errors.h"

namespace mlc::apple {
namespace {

// A separate function, because the handlers of one function must be of one language.
void WithoutNSException(std::string_view doing, const std::function<void()>& work) {
  std::string words;
  @try {
    work();
    return;
  } @catch (NSException* exception) {
    words = fmt::format("{}: {}", ToText([exception name]), ToText([exception reason]));
  }
  throw Error("runtime-failed", "Core ML, {}, threw {}", doing, words);
}

}  // namespace

void EnterPool(std::string_view doing, const std::function<void()>& work) {
  std::exception_ptr failure;
  @autoreleasepool {  // an exception would skip draining it
    failure = CaptureException(doing, [&] { WithoutNSException(doing, work); });
  }
  if (failure) std::rethrow_exception(failure);
}

std::string ToText(NSString* text) {
  const char* bytes = [text UTF8String];
  return bytes ? bytes : "";
}

std::string Words(NSError* error) {
  if (!error) return "no error was given";
  std::string words = fmt::format("{} {}: {}", ToText([error domain]), long{[error code]},
                                  ToText([error localizedDescription]));
  NSDictionary* info = [error userInfo];
  NSMutableArray* below = [NSMutableArray array];
  id one = [info objectForKey:NSUnderlyingErrorKey];
  if (one) [below addObject:one];
  id several = [info objectForKey:@"NSMultipleUnderlyingErrorsKey"];  // macOS 11.3
  if ([several isKindOfClass:[NSArray class]]) [below addObjectsFromArray:several];
  for (id cause in below)
    if ([cause isKindOfClass:[NSError class]]) words += "; underlying error: " + Words(cause);
  return words;
}

void Fail(std::string_view doing, NSError* error) {
  throw Error("runtime-failed", "Core ML, {}: {}", doing, Words(error));
}

}  // namespace mlc::apple
