#include "tools/driver/allocator.h"

#include <cstddef>

#include "lib/support/memory_limits.h"

// jemalloc(3); null if a tool is not linked with it.
#ifdef __APPLE__
static int (*const mallctl)(const char*, void*, size_t*, void*, size_t) = nullptr;
#else
extern "C" __attribute__((weak, visibility("default"))) int mallctl(const char* name, void* old,
                                                                    size_t* old_size, void* fresh,
                                                                    size_t fresh_size);
#endif

namespace mlc::driver {

std::string JemallocVersion() {
  const char* version = "";
  size_t size = sizeof version;
  if (!mallctl || mallctl("version", &version, &size, nullptr, 0) != 0) return "";
  const std::string text = version;  // "5.3.0-0-g54eaed1d8b56b1aa528be3bdd1877e59c56fa90c"
  return text.substr(0, text.find('-'));
}

void AllocateLittleAhead() {
  if (!mallctl || !IsMemoryLimited()) return;
  size_t most = 1 << 20;
  // Arena 0 belongs to the main thread; small limits allow no other threads (ThreadLimit). Older
  // versions lack the setting, which is no error.
  mallctl("arena.0.retain_grow_limit", nullptr, nullptr, &most, sizeof most);
}

}  // namespace mlc::driver
