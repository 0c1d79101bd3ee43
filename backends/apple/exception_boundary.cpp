#include <new>

#include "backends/apple/coreml_errors.h"

namespace mlc::apple {
namespace {

[[noreturn]] void Failed(std::string_view doing, std::string_view words) {
  throw Error("runtime-failed", "Core ML, {}: {}", doing, words);
}

void Translate(std::string_view doing, const std::function<void()>& work) {
  try {
    work();
  } catch (const Error&) {
    throw;
  } catch (const Errors&) {
    throw;
  } catch (const InternalError&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw Error("resource-limit", "Core ML, {}: out of memory", doing);
  } catch (const std::exception& exception) {
    Failed(doing, exception.what());
  } catch (...) {
    Failed(doing, "an exception of an unknown kind");
  }
}

}  // namespace

std::exception_ptr CaptureException(std::string_view doing,
                                    const std::function<void()>& work) noexcept {
  try {
    Translate(doing, work);
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

}  // namespace mlc::apple
