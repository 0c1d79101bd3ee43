#include "lib/support/work_scope.h"

#include "lib/support/error.h"

namespace mlc {

namespace {
thread_local WorkLimits current;
}  // namespace

WorkScope::WorkScope(const WorkLimits& limits) : before_(current) { current = limits; }
WorkScope::~WorkScope() { current = before_; }
const WorkLimits& WorkScope::Current() { return current; }

void ThrowIfCancelled() {
  if (current.cancelled && current.cancelled->load(std::memory_order_relaxed))
    throw Error("cancelled", "the work was cancelled");
}

}  // namespace mlc
