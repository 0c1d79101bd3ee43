// lib/ir/node_pool.h - memory for the nodes of lists, which lie together and are used again.
//
// As std::pmr's pool resources, whose code is not in macOS 13's library.
#pragma once

#include <cstddef>
#include <mutex>
#include <new>

namespace mlc {

// An allocator whose single objects come from chunks that the process keeps. Thread-safe; all are equal.
template <class T>
struct NodePool {
  using value_type = T;
  NodePool() = default;
  template <class U>
  NodePool(const NodePool<U>&) {}  // NOLINT: allocators turn into one another

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
    size_t chunk = 32;  // nodes, doubled with each
  };
  // Outlives all that is in it.
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
