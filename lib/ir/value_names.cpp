#include "lib/ir/value_names.h"

#include <algorithm>
#include <functional>

namespace mlc {

// The slot of the name, or the slot where it would be inserted.
size_t Names::PlaceOf(std::string_view text, size_t hash) const {
  size_t last = places_.size() - 1, place = hash & last;
  while (places_[place] != 0) {
    const Name& name = names_[places_[place] - 1];
    if (name.hash == hash && name.text == text) break;
    place = (place + 1) & last;
  }
  return place;
}

const Names::Name* Names::Find(std::string_view text) const {
  if (places_.empty()) return nullptr;
  size_t place = PlaceOf(text, std::hash<std::string_view>()(text));
  return places_[place] == 0 ? nullptr : &names_[places_[place] - 1];
}

Names::Name& Names::operator[](std::string_view text) {
  constexpr size_t kFirst = 64;
  if (places_.size() <= names_.size() * 4) {
    places_.assign(std::max(kFirst, places_.size() * 2), 0);
    size_t last = places_.size() - 1;
    for (size_t i = 0; i < names_.size(); ++i) {
      size_t place = names_[i].hash & last;
      while (places_[place] != 0) place = (place + 1) & last;
      places_[place] = static_cast<uint32_t>(i + 1);
    }
  }
  size_t hash = std::hash<std::string_view>()(text), place = PlaceOf(text, hash);
  if (places_[place] == 0) {
    names_.push_back({std::string(text), hash});
    places_[place] = static_cast<uint32_t>(names_.size());
  }
  return names_[places_[place] - 1];
}

}  // namespace mlc
