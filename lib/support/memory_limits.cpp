#include "lib/support/memory_limits.h"

#include <sys/resource.h>

#include <limits>

namespace mlc {

namespace {
size_t Limit(int resource) {
  struct rlimit limit;
  bool limited = getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return limited ? limit.rlim_cur : std::numeric_limits<size_t>::max();
}

struct LimitRow {
  int resource;
  const char* help;
};
constexpr LimitRow kLimits[] = {
    {RLIMIT_AS,
     "addresses are limited to {} MB: raise that (ulimit -v), or limit memory (ulimit -d)"},
    {RLIMIT_DATA, "memory is limited to {} MB: raise that (ulimit -d)"},
};
}  // namespace

size_t AddressLimit() { return Limit(RLIMIT_AS); }

Error OutOfMemory(std::string text) {
  Error error("resource-limit", std::move(text));
  for (const LimitRow& row : kLimits)
    if (size_t limit = Limit(row.resource); limit != std::numeric_limits<size_t>::max())
      error.Help(fmt::format(fmt::runtime(row.help), limit / 1'000'000));
  return error;
}

}  // namespace mlc
