// tools/runtime/composites.h - operators of other vocabularies that the builder lowers to several
// MIL operations (lib/lower).
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ir/builder.h"

namespace mlc::abi {

// The arguments of a composite operator, by parameter.
class CompositeArguments {
 public:
  CompositeArguments(std::span<const std::string_view> names, const std::vector<Operands>& operands)
      : names_(names), operands_(operands) {}
  // Null if omitted. Error "bad-operand" for a string.
  Value* value(std::string_view name) const;
  // The values of a parameter that takes several.
  std::vector<Value*> values(std::string_view name) const;
  // The constant of a parameter, or `otherwise`. Error "needs-constant" for other values.
  int64_t Int(std::string_view name, int64_t otherwise) const;
  // The same, within bounds. Error "bad-attribute".
  int64_t Int(std::string_view name, int64_t otherwise, int64_t low, int64_t high) const;
  double Float(std::string_view name) const;  // of a required parameter
  std::string String(std::string_view name, std::string_view otherwise) const;

 private:
  const Operands& At(std::string_view name) const;
  std::span<const std::string_view> names_;
  const std::vector<Operands>& operands_;
};

struct Composite {
  std::string_view name;       // "onnx.BitShift"
  std::string_view summary;    // what it computes
  std::string_view condition;  // restrictions; empty: none
  std::array<std::string_view, 5> parameters;
  size_t required;  // the first of them
  std::vector<Value*> (*lower)(Builder& b, const CompositeArguments& arguments);
  bool several = false;  // the first parameter takes several values

  std::span<const std::string_view> names() const;
};

std::span<const Composite> Composites();
const Composite* FindComposite(std::string_view name);  // null for an unknown name

// A name of MIL or ONNX that the builder does not build.
struct Refused {
  std::string name, why;
};
std::vector<Refused> RefusedOperators();

}  // namespace mlc::abi
