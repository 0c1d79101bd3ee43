// lib/ir/node_pool.h - an allocator for list nodes that keeps nodes close together and reuses them.
//
// It replaces std::pmr's pool resources, which the library of macOS 13 lacks.
#pragma once

#include <cstddef>
#include <mutex>
#include <new>

namespace mlc {

// An allocator that takes single objects from chunks owned by the process. Thread-safe; all
// instances compare equal.
template <class T>
struct NodePool {
  using value_type = T;
  NodePool() = default;
  template <class U>
  NodePool(const NodePool<U>&) {}  // NOLINT: allocators convert implicitly

  T* allocate(size_t count) {
    if (count != 1) return static_cast<T*>(::operator new(count * sizeof(T)));
    Pool& pool = Shared();
    std::lock_guard lock(pool.mutex);
    if (!pool.free) Grow(pool);
    Node* node = pool.free;
    pool.free = node->next;
    return reinterpret_cast<T*>(node);
  }
  void deallocate(T* object, size_t count) {
    if (count != 1) return ::operator delete(object);
    Pool& pool = Shared();
    std::lock_guard lock(pool.mutex);
    pool.free = new (object) Node{pool.free};
  }
  template <class U>
  bool operator==(const NodePool<U>&) const {
    return true;
  }

 private:
  union Node {
    Node* next;
    alignas(T) std::byte object[sizeof(T)];
  };
  struct Pool {
    std::mutex mutex;
    Node* free = nullptr;
    size_t chunk = 32;  // nodes per chunk; doubles with each chunk
  };
  // The process-wide pool, never destroyed.
  static Pool& Shared() {
    static auto* pool = new Pool;
    return *pool;
  }
  static void Grow(Pool& pool) {
    constexpr size_t kMost = 1 << 14;
    auto* nodes = static_cast<Node*>(::operator new(pool.chunk * sizeof(Node)));
    for (size_t i = pool.chunk; i-- > 0;) pool.free = new (nodes + i) Node{pool.free};
    if (pool.chunk < kMost) pool.chunk *= 2;
  }
};

}  // namespace mlc
