#include "test/tools/runtime/failing_allocations.h"

#include <cstdlib>
#include <new>

thread_local int64_t mlc::test::allocations_left = -1;

void* operator new(size_t size) {
  int64_t& left = mlc::test::allocations_left;
  if (left >= 0 && left-- == 0) throw std::bad_alloc();
  if (void* memory = std::malloc(size ? size : 1)) return memory;
  throw std::bad_alloc();
}
// Of the standard library as well, whose own would call that of a sanitizer.
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
