// lib/ir/dim.h - a dimension: an integer, or an integer expression over named symbols in canonical
// form.
//
// A Dim is a polynomial with integer coefficients whose atoms are symbols, floordiv(a, b) and
// max(a, b). Dims that compare equal are equal for all values of their symbols; the converse holds
// as far as the canonical form can tell. A symbol is always a size of at least 1; a size that may
// be 0 is written s - 1. Error "resource-limit" if a result exceeds 64 bits or has thousands of
// terms.
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

// The range of sizes of a symbol.
struct Symbol {
  int64_t low = 1, high = 4096;  // inclusive, low at least 1
  std::vector<int64_t>
      enumerated;  // the only possible sizes, sorted from low to high; empty: the whole range
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
  // The name if this Dim is exactly one symbol, else nullopt.
  std::optional<std::string> symbol() const;
  // The symbol and the integer if this Dim is one symbol plus an integer (possibly 0), else
  // nullopt.
  std::optional<std::pair<std::string, int64_t>> symbol_and_offset() const;
  void CollectSymbols(
      std::vector<std::string>& names) const;  // appends each once, in order of first occurrence
  // Returns whether the predicate holds for any symbol of this Dim.
  bool HasSymbol(const std::function<bool(const std::string&)>& asked) const;
  // The value for given symbols; nullopt if a symbol is missing or a divisor is zero.
  std::optional<int64_t> Evaluate(const std::map<std::string, int64_t>& symbols) const;
  // The value with each symbol at its lower bound; nullopt if a symbol has no bounds.
  std::optional<int64_t> Smallest(const Symbols& symbols) const;
  Dim Substitute(const std::map<std::string, Dim>& symbols) const;
  // Inclusive bounds for given bounds of the symbols; an unknown symbol ranges over [1, 2^31).
  struct Range {
    int64_t low, high;
  };
  Range Bounds(const Symbols& symbols) const;
  // The same size, simplified within the bounds of the symbols: max(n - 4, 0) becomes n - 4 if n is
  // at least 4, and a symbol with a single size becomes a number. A dimension that is constant only
  // because of rounding, such as floordiv(n, 4) for n in 8..11, stays symbolic because Core ML's
  // inference does not simplify it.
  Dim Within(const Symbols& symbols) const;
  std::string ToString() const;  // canonical text, e.g. "2*n + floordiv(h + 1, 2) + 1"

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  friend Dim FloorDiv(const Dim& a,
                      // Assumes that b is positive; Error "bad-operand" if b is known not to be.
                      const Dim& b);
  friend Dim CeilDiv(const Dim& a, const Dim& b);
  friend Dim Max(const Dim& a, const Dim& b);
  friend bool operator==(const Dim& a, const Dim& b);

  struct Poly;
  struct Atom;

 private:
  // FloorDiv and Max, simplified within the bounds of the symbols.
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

// a / b if b divides a for every value of the symbols, as far as the canonical form shows; else
// nullopt.
std::optional<Dim> DivideExactly(const Dim& a, const Dim& b);

using Shape = std::vector<Dim>;
bool IsStatic(const Shape& shape);
// The dimensions of a static shape as integers; MLC_CHECK fails for any other shape.
std::vector<int64_t> StaticDims(const Shape& shape);
Shape ToShape(const std::vector<int64_t>& dims);
// Product of all dimensions (1 for rank 0).
Dim Product(const Shape& shape);
std::string ToString(const Shape& shape);  // "[1, 3, h, 2*w]"

}  // namespace mlc
