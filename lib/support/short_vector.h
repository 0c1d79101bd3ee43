// lib/support/short_vector.h - a vector that stores a single element inline and allocates memory
// only for more.
//
// Like std::vector, except that moving the vector moves an inline element. Holds at most 2^32 - 1
// elements, which must be nothrow-movable.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>

namespace mlc {

template <class T>
class ShortVector {
 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  ShortVector() noexcept : many_(nullptr) {}
  explicit ShortVector(size_t count) : ShortVector() { resize(count); }
  ShortVector(std::initializer_list<T> values) : ShortVector(values.begin(), values.end()) {}
  template <class Iterator, class = typename std::iterator_traits<Iterator>::iterator_category>
  ShortVector(Iterator first, Iterator last) : ShortVector() {
    reserve(static_cast<size_t>(std::distance(first, last)));
    for (; first != last; ++first) emplace_back(*first);
  }
  ShortVector(const ShortVector& other) : ShortVector(other.begin(), other.end()) {}
  ShortVector(ShortVector&& other) noexcept : ShortVector() { Take(other); }
  ShortVector& operator=(const ShortVector& other) {
    if (this != &other) *this = ShortVector(other);
    return *this;
  }
  ShortVector& operator=(ShortVector&& other) noexcept {
    if (this == &other) return *this;
    Free();
    Take(other);
    return *this;
  }
  ~ShortVector() { Free(); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return capacity_ == 1 ? &one_ : many_; }
  const T* data() const { return capacity_ == 1 ? &one_ : many_; }
  iterator begin() { return data(); }
  iterator end() { return data() + size_; }
  const_iterator begin() const { return data(); }
  const_iterator end() const { return data() + size_; }
  auto rbegin() const { return std::reverse_iterator(end()); }
  auto rend() const { return std::reverse_iterator(begin()); }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  T& front() { return *data(); }
  const T& front() const { return *data(); }
  T& back() { return data()[size_ - 1]; }
  const T& back() const { return data()[size_ - 1]; }

  template <class... Args>
  T& emplace_back(Args&&... args) {
    if (size_ == capacity_) {
      T made(std::forward<Args>(args)...);  // args may refer to an element that is about to move
      reserve(size_t{capacity_} * 2);
      return *std::construct_at(data() + size_++, std::move(made));
    }
    return *std::construct_at(data() + size_++, std::forward<Args>(args)...);
  }
  void push_back(const T& value) { emplace_back(value); }
  void push_back(T&& value) { emplace_back(std::move(value)); }
  void pop_back() { std::destroy_at(data() + --size_); }
  void clear() {
    while (size_ > 0) pop_back();
  }
  void resize(size_t count) {
    reserve(count);
    while (size_ > count) pop_back();
    while (size_ < count) emplace_back();
  }
  void reserve(size_t count) {
    static_assert(std::is_nothrow_move_constructible_v<T>);
    if (count <= capacity_) return;
    T* more = std::allocator<T>().allocate(count);
    std::uninitialized_move(begin(), end(), more);
    uint32_t size = size_;
    Free();
    many_ = more;
    size_ = size;
    capacity_ = static_cast<uint32_t>(count);
  }
  iterator erase(iterator at) {
    std::move(at + 1, end(), at);
    pop_back();
    return at;
  }

 private:
  // Leaves the vector empty and without memory.
  void Free() {
    clear();
    if (capacity_ > 1) std::allocator<T>().deallocate(many_, capacity_);
    capacity_ = 1;
  }
  // Requires that this vector holds no memory.
  void Take(ShortVector& other) noexcept {
    if (other.capacity_ == 1) {
      if (other.size_ == 1) emplace_back(std::move(other.one_));
      return other.clear();
    }
    many_ = std::exchange(other.many_, nullptr);
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, 1);
  }

  uint32_t size_ = 0, capacity_ = 1;
  union {
    T one_;    // if the capacity is 1
    T* many_;  // otherwise
  };
};

}  // namespace mlc
