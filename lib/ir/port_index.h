// lib/ir/port_index.h - an index of ports by name, for callers that look up many of them.
#pragma once

#include <functional>
#include <string_view>
#include <unordered_map>

#include "lib/ir/program.h"

namespace mlc {

// `Ports` is a vector of Port, possibly const, that outlives the index and does not change.
template <class Ports>
class PortIndex {
 public:
  using Pointer = decltype(std::declval<Ports&>().data());

  // Indexes by `name`, a data member or a member function that returns a reference. The first of
  // several equal names wins.
  template <class Name = std::string Port::*>
  explicit PortIndex(Ports& ports, Name name = &Port::name) {
    by_name_.reserve(ports.size());
    for (auto& port : ports) by_name_.emplace(std::invoke(name, port), &port);
  }
  // Null if there is no such port.
  Pointer Find(std::string_view name) const {
    auto it = by_name_.find(name);
    return it == by_name_.end() ? nullptr : it->second;
  }

 private:
  std::unordered_map<std::string_view, Pointer> by_name_;
};

}  // namespace mlc
