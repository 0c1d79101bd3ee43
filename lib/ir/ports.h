// lib/ir/ports.h - ports by a name, for who asks for many of them.
#pragma once

#include <functional>
#include <string_view>
#include <unordered_map>

#include "lib/ir/program.h"

namespace mlc {

// `Ports` is a vector of Port, const or not, that neither goes nor changes meanwhile.
template <class Ports>
class PortsByName {
 public:
  using Pointer = decltype(std::declval<Ports&>().data());

  // By `name` of each, a member or a function that gives a reference; of several that have one, the
  // first.
  template <class Name = std::string Port::*>
  explicit PortsByName(Ports& ports, Name name = &Port::name) {
    by_name_.reserve(ports.size());
    for (auto& port : ports) by_name_.emplace(std::invoke(name, port), &port);
  }
  // Null where there is none.
  Pointer Find(std::string_view name) const {
    auto it = by_name_.find(name);
    return it == by_name_.end() ? nullptr : it->second;
  }

 private:
  std::unordered_map<std::string_view, Pointer> by_name_;
};

}  // namespace mlc
