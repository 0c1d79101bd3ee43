// lib/ir/dim.h - a dimension: an integer, or an integer expression over named symbols in canonical
// form.
//
// A Dim is a polynomial with integer coefficients whose atoms are symbols, floordiv(a, b) and
// max(a, b). Two Dims that compare equal are equal for every value of their symbols; the converse
// holds for what the canonical form sees. Symbols are sizes of at least 1, always: a size that may
// be 0 is an expression, s - 1. Results beyond 64 bits or of thousands of terms throw Error
// "resource-limit".
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mlc {

// The sizes that a symbol may have.
struct Symbol {
  int64_t low = 1, high = 4096;     // inclusive, low at least 1
  std::vector<int64_t> enumerated;  // when only some sizes are possible; sorted, from low to high
};
using Symbols = std::map<std::string, Symbol>;

class Dim {
 public:
  Dim() = default;
  Dim(int64_t value) : constant_(value) {}  // NOLINT: integers are dimensions
  Dim(int value) : constant_(value) {}      // NOLINT
  static Dim Symbol(const std::string& name);

  bool is_constant() const { return !poly_; }
  int64_t constant() const { return constant_; }  // only when is_constant()
  // The name when this is exactly one symbol, else nothing.
  std::optional<std::string> symbol() const;
  // The symbol and the integer when this is one symbol plus an integer (0 too), else nothing.
  std::optional<std::pair<std::string, int64_t>> symbol_and_offset() const;
  void CollectSymbols(
      std::vector<std::string>& names) const;  // appends each once, in order of first occurrence
  // Whether `asked` is true of a symbol.
  bool HasSymbol(const std::function<bool(const std::string&)>& asked) const;
  // Value for given symbols; nothing when one is missing or a division by zero occurs.
  std::optional<int64_t> Evaluate(const std::map<std::string, int64_t>& symbols) const;
  // The value where each symbol has its smallest size; nothing when one has no bounds.
  std::optional<int64_t> Smallest(const Symbols& symbols) const;
  Dim Substitute(const std::map<std::string, Dim>& symbols) const;
  // Bounds for given bounds of the symbols (inclusive); unknown symbols are taken as [1, 2^31).
  struct Range {
    int64_t low, high;
  };
  Range Bounds(const Symbols& symbols) const;
  // The same size, written more simply where the bounds of the symbols allow it: max(n - 4, 0) is
  // n - 4 where n is at least 4; a symbol of one size is a number. What has one value by rounding
  // alone, as floordiv(n, 4) for n in 8..11, stays open: Core ML's inference does not see it.
  Dim Within(const Symbols& symbols) const;
  std::string ToString() const;  // canonical text, e.g. "2*n + floordiv(h + 1, 2) + 1"

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  friend Dim FloorDiv(
      const Dim& a,
      const Dim& b);  // b is taken as positive; Error "bad-operand" when it is known not to be
  friend Dim CeilDiv(const Dim& a, const Dim& b);
  friend Dim Max(const Dim& a, const Dim& b);
  friend bool operator==(const Dim& a, const Dim& b);

  struct Poly;
  struct Atom;

 private:
  // FloorDiv and Max for symbols within these bounds.
  static Dim Quotient(const Dim& a, const Dim& b, const Symbols& symbols);
  static Dim Greatest(const Dim& a, const Dim& b, const Symbols& symbols);
  template <class SizeFn>
  std::optional<int64_t> ValueFor(const SizeFn& size) const;
  template <class SymbolFn>
  Dim Rebuilt(const SymbolFn& symbol, const Symbols& symbols) const;
  static Dim FromPoly(Poly poly);
  static const Poly& AsPoly(const Dim& dim, Poly& storage);
  int64_t constant_ = 0;
  std::shared_ptr<const Poly> poly_;  // null when constant
};

// a / b when b divides a for every value of the symbols (as far as the canonical form shows).
std::optional<Dim> DivideExactly(const Dim& a, const Dim& b);

using Shape = std::vector<Dim>;
bool IsStatic(const Shape& shape);
// The integers of a static shape; MLC_CHECK otherwise.
std::vector<int64_t> StaticDims(const Shape& shape);
Shape ToShape(const std::vector<int64_t>& dims);
// Product of all dimensions (1 for rank 0).
Dim Product(const Shape& shape);
std::string ToString(const Shape& shape);  // "[1, 3, h, 2*w]"

}  // namespace mlc
