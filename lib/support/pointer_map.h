// lib/support/pointer_map.h - a map keyed by address, for data about each operation of a program.
// Entries are contiguous in order of insertion and are never removed.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace mlc {

template <class Key, class T>
class PointerMap {
 public:
  using Entry = std::pair<const Key*, T>;
  using iterator = typename std::vector<Entry>::iterator;
  using const_iterator = typename std::vector<Entry>::const_iterator;

  iterator begin() { return entries_.begin(); }
  iterator end() { return entries_.end(); }
  const_iterator begin() const { return entries_.begin(); }
  const_iterator end() const { return entries_.end(); }
  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  void reserve(size_t count) {
    entries_.reserve(count);
    if (count * 2 > places_.size()) Spread(std::bit_ceil(count * 2));
  }

  iterator find(const Key* key) { return begin() + (std::as_const(*this).find(key) - begin()); }
  const_iterator find(const Key* key) const {
    if (places_.empty()) return end();
    uint32_t entry = places_[PlaceOf(key)];
    return entry == 0 ? end() : begin() + (entry - 1);
  }
  bool contains(const Key* key) const { return find(key) != end(); }
  // Inserting a new entry invalidates references and iterators.
  std::pair<iterator, bool> try_emplace(const Key* key) {
    constexpr size_t kFirst = 16;
    if (entries_.size() * 2 >= places_.size())
      Spread(places_.empty() ? kFirst : places_.size() * 2);
    uint32_t& entry = places_[PlaceOf(key)];
    bool made = entry == 0;
    if (made) {
      entries_.emplace_back(key, T());
      entry = static_cast<uint32_t>(entries_.size());
    }
    return {begin() + (entry - 1), made};
  }
  T& operator[](const Key* key) { return try_emplace(key).first->second; }

 private:
  // The slot of the key, or the slot where it would be inserted.
  size_t PlaceOf(const Key* key) const {
    constexpr uint64_t kSpread = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio
    uint64_t hash = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(key)) * kSpread;
    size_t last = places_.size() - 1, place = static_cast<size_t>(hash >> shift_);
    while (places_[place] != 0 && entries_[places_[place] - 1].first != key)
      place = (place + 1) & last;
    return place;
  }
  void Spread(size_t places) {
    places_.assign(places, 0);
    shift_ = 64 - std::countr_zero(places);
    for (size_t i = 0; i < entries_.size(); ++i)
      places_[PlaceOf(entries_[i].first)] = static_cast<uint32_t>(i + 1);
  }

  std::vector<Entry> entries_;
  // Hash table: index + 1 of an entry, or 0 if the slot is empty. The size is a power of two, and
  // at most half of the slots are used.
  std::vector<uint32_t> places_;
  int shift_ = 64;
};

}  // namespace mlc
