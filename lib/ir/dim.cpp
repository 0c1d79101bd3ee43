#include "lib/ir/dim.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "lib/support/error.h"

namespace mlc {

namespace {
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
// The maximum number of symbols, operators and coefficients in an expression; only malicious input
// exceeds it.
constexpr int64_t kMaxNodes = 2000;

[[noreturn]] void Overflow() {
  throw Error("resource-limit", "the size of a dimension exceeds 64 bits");
}
int64_t CheckedAdd(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_add_overflow(a, b, &result)) Overflow();
  return result;
}
int64_t CheckedMul(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_mul_overflow(a, b, &result)) Overflow();
  return result;
}
int64_t Clamp(__int128 value) {
  return value > kMax ? kMax : value < kMin ? kMin : static_cast<int64_t>(value);
}
// Rounds toward negative infinity; requires b > 0.
int64_t Floor(int64_t a, int64_t b) { return a / b - (a % b < 0); }
}  // namespace

// Terms are sorted by descending degree, then by their atoms, and have nonzero coefficients. This
// is a graded lexicographic order, so polynomial division by the leading term terminates.
struct Dim::Poly {
  using AtomRef = std::shared_ptr<const Atom>;
  struct Term {
    int64_t coefficient;
    std::vector<AtomRef> atoms;  // sorted; repeated for powers
  };
  std::vector<Term> terms;

  static Poly Of(const Dim& dim) {
    Poly storage;
    return AsPoly(dim, storage);
  }
  static Dim ToDim(Poly poly) { return FromPoly(std::move(poly)); }
  static Dim ToDim(Atom atom);

  static int Compare(const Atom& a, const Atom& b);
  static int Compare(const std::vector<AtomRef>& a, const std::vector<AtomRef>& b);
  static int Compare(const Poly& a, const Poly& b);
  static int Compare(const Dim& a, const Dim& b);

  static Poly Add(const Poly& a, const Poly& b, int64_t factor);
  static Poly Multiply(const Poly& a, const Poly& b);
  // Division with a = quotient * b + remainder; the quotient collects the terms that divide
  // exactly.
  static Poly Divide(Poly a, const Poly& b, Poly& remainder);
  static std::optional<Term> Divide(const Term& a, const Term& b);
  // The coefficient of the constant term.
  int64_t constant() const {
    return !terms.empty() && terms.back().atoms.empty() ? terms.back().coefficient : 0;
  }
  void AddConstant(int64_t value) { *this = Add(*this, Of(Dim(value)), 1); }
  int64_t Nodes() const;
  // Returns whether the expression is at least 0 for all sizes of the symbols, as far as bounds can
  // prove it.
  static bool IsNatural(const Dim& dim, const Symbols& symbols) {
    int tries = 32;
    return IsNatural(dim, symbols, tries);
  }
  static bool IsNatural(const Dim& dim, const Symbols& symbols, int& tries);
  bool IsSmall() const {  // products with small numbers do not overflow
    return std::ranges::all_of(
        terms, [](const Term& term) { return std::abs(term.coefficient) <= int64_t{1} << 32; });
  }
};

struct Dim::Atom {
  enum class Kind { kSymbol, kFloorDiv, kMax } kind;
  std::string name;       // name of a symbol
  std::vector<Dim> args;  // floordiv: a, b; max: two or more, sorted, none provably below another
  int64_t nodes = 1;
};

int64_t Dim::Poly::Nodes() const {
  int64_t nodes = 0;
  for (const Term& term : terms) {
    ++nodes;
    for (const AtomRef& atom : term.atoms) nodes += atom->nodes;
  }
  return nodes;
}

Dim Dim::Poly::ToDim(Atom atom) {
  for (const Dim& arg : atom.args) atom.nodes += Of(arg).Nodes();
  return FromPoly(Poly{{{1, {std::make_shared<const Atom>(std::move(atom))}}}});
}

int Dim::Poly::Compare(const Atom& a, const Atom& b) {
  if (&a == &b) return 0;
  if (a.kind != b.kind) return a.kind < b.kind ? -1 : 1;
  if (int order = a.name.compare(b.name)) return order;
  if (a.args.size() != b.args.size()) return a.args.size() < b.args.size() ? -1 : 1;
  for (size_t i = 0; i < a.args.size(); ++i)
    if (int order = Compare(a.args[i], b.args[i])) return order;
  return 0;
}

int Dim::Poly::Compare(const std::vector<AtomRef>& a, const std::vector<AtomRef>& b) {
  if (a.size() != b.size()) return a.size() > b.size() ? -1 : 1;
  for (size_t i = 0; i < a.size(); ++i)
    if (int order = Compare(*a[i], *b[i])) return order;
  return 0;
}

int Dim::Poly::Compare(const Poly& a, const Poly& b) {
  if (a.terms.size() != b.terms.size()) return a.terms.size() < b.terms.size() ? -1 : 1;
  for (size_t i = 0; i < a.terms.size(); ++i) {
    if (int order = Compare(a.terms[i].atoms, b.terms[i].atoms)) return order;
    int64_t x = a.terms[i].coefficient, y = b.terms[i].coefficient;
    if (x != y) return x < y ? -1 : 1;
  }
  return 0;
}

int Dim::Poly::Compare(const Dim& a, const Dim& b) {
  if (a.poly_ == b.poly_ && a.poly_) return 0;
  Poly x, y;
  return Compare(AsPoly(a, x), AsPoly(b, y));
}

Dim::Poly Dim::Poly::Add(const Poly& a, const Poly& b, int64_t factor) {
  Poly sum;
  sum.terms.reserve(a.terms.size() + b.terms.size());
  auto x = a.terms.begin(), y = b.terms.begin();
  while (x != a.terms.end() || y != b.terms.end()) {
    int order = x == a.terms.end() ? 1 : y == b.terms.end() ? -1 : Compare(x->atoms, y->atoms);
    Term term = order <= 0 ? *x : *y;
    term.coefficient = CheckedAdd(order <= 0 ? x->coefficient : 0,
                                  order >= 0 ? CheckedMul(y->coefficient, factor) : 0);
    if (term.coefficient != 0) sum.terms.push_back(std::move(term));
    if (order <= 0) ++x;
    if (order >= 0) ++y;
  }
  return sum;
}

Dim::Poly Dim::Poly::Multiply(const Poly& a, const Poly& b) {
  Poly product;
  for (const Term& x : a.terms) {
    Poly row;  // stays sorted, because the order respects multiplication
    for (const Term& y : b.terms) {
      Term term{CheckedMul(x.coefficient, y.coefficient), {}};
      std::merge(x.atoms.begin(), x.atoms.end(), y.atoms.begin(), y.atoms.end(),
                 std::back_inserter(term.atoms),
                 [](const AtomRef& p, const AtomRef& q) { return Compare(*p, *q) < 0; });
      row.terms.push_back(std::move(term));
    }
    product = Add(product, row, 1);
    if (static_cast<int64_t>(product.terms.size()) > kMaxNodes) break;  // ToDim throws
  }
  return product;
}

std::optional<Dim::Poly::Term> Dim::Poly::Divide(const Term& a, const Term& b) {
  if (a.coefficient % b.coefficient != 0) return std::nullopt;
  Term quotient{a.coefficient / b.coefficient, {}};
  auto divisor = b.atoms.begin();
  for (const AtomRef& atom : a.atoms) {
    if (divisor != b.atoms.end() && Compare(*atom, **divisor) == 0) {
      ++divisor;
    } else {
      quotient.atoms.push_back(atom);
    }
  }
  if (divisor != b.atoms.end()) return std::nullopt;
  return quotient;
}

Dim::Poly Dim::Poly::Divide(Poly a, const Poly& b, Poly& remainder) {
  Poly quotient;
  remainder = {};
  for (int64_t steps = 0; !a.terms.empty() && steps < kMaxNodes; ++steps) {
    std::optional<Term> term = Divide(a.terms.front(), b.terms.front());
    if (term) {
      Poly single{{*term}};
      quotient = Add(quotient, single, 1);
      a = Add(a, Multiply(single, b), -1);
    } else {
      remainder.terms.push_back(a.terms.front());
      a.terms.erase(a.terms.begin());
    }
  }
  remainder = Add(remainder, a, 1);
  return quotient;
}

// Replaces an atom by a bound, so that the remaining atoms decide: a maximum is at least each of
// its members and equals one of them, and c floor(a / b) lies between c (a - b + 1) / b and c a /
// b.
bool Dim::Poly::IsNatural(const Dim& dim, const Symbols& symbols, int& tries) {
  // Nested divisions grow with every operation; only small expressions are worth proving.
  constexpr int64_t kSmall = 1 << 16, kMostNodes = 96;
  if (tries-- <= 0 || Of(dim).Nodes() > kMostNodes) return false;
  if (dim.Bounds(symbols).low >= 0) return true;
  if (!dim.poly_ || !dim.poly_->IsSmall()) return false;
  for (const Term& term : dim.poly_->terms) {
    if (term.atoms.size() != 1 || term.atoms[0]->kind == Atom::Kind::kSymbol) continue;
    const std::vector<Dim>& args = term.atoms[0]->args;
    auto small = [](const Dim& arg) { return Of(arg).IsSmall(); };
    if (std::abs(term.coefficient) > kSmall || !std::ranges::all_of(args, small)) continue;
    Dim rest = dim - ToDim(Poly{{term}});
    auto with = [&](const Dim& member) {
      return IsNatural(rest + term.coefficient * member, symbols, tries);
    };
    if (term.atoms[0]->kind == Atom::Kind::kMax) {
      if (term.coefficient < 0 ? std::ranges::all_of(args, with) : std::ranges::any_of(args, with))
        return true;
    } else if (args[1].is_constant() && args[1].constant() <= kSmall) {
      Dim top = term.coefficient > 0 ? args[0] - args[1] + 1 : args[0];
      if (IsNatural(args[1] * rest + term.coefficient * top, symbols, tries)) return true;
    }
  }
  return false;
}

Dim Dim::FromPoly(Poly poly) {
  if (poly.terms.empty()) return Dim(0);
  if (poly.terms.size() == 1 && poly.terms[0].atoms.empty()) return Dim(poly.terms[0].coefficient);
  if (poly.Nodes() > kMaxNodes)
    throw Error("resource-limit", "the expression of a dimension has more than {} terms",
                kMaxNodes);
  Dim dim;
  dim.poly_ = std::make_shared<const Poly>(std::move(poly));
  return dim;
}

const Dim::Poly& Dim::AsPoly(const Dim& dim, Poly& storage) {
  if (dim.poly_) return *dim.poly_;
  if (dim.constant_ != 0) storage.terms.push_back({dim.constant_, {}});
  return storage;
}

Dim Dim::Symbol(const std::string& name) {
  return Poly::ToDim(Atom{Atom::Kind::kSymbol, name, {}});
}

std::optional<std::string> Dim::symbol() const {
  if (!poly_ || poly_->terms.size() != 1) return std::nullopt;
  const Poly::Term& term = poly_->terms[0];
  if (term.coefficient != 1 || term.atoms.size() != 1) return std::nullopt;
  if (term.atoms[0]->kind != Atom::Kind::kSymbol) return std::nullopt;
  return term.atoms[0]->name;
}

std::optional<std::pair<std::string, int64_t>> Dim::symbol_and_offset() const {
  if (!poly_) return std::nullopt;
  int64_t offset = poly_->constant();
  std::optional<std::string> name = (*this - Dim(offset)).symbol();
  if (!name) return std::nullopt;
  return std::pair(std::move(*name), offset);
}

void Dim::CollectSymbols(std::vector<std::string>& names) const {
  if (!poly_) return;
  for (const Poly::Term& term : poly_->terms) {
    for (const Poly::AtomRef& atom : term.atoms) {
      if (atom->kind == Atom::Kind::kSymbol && std::ranges::find(names, atom->name) == names.end())
        names.push_back(atom->name);
      for (const Dim& arg : atom->args) arg.CollectSymbols(names);
    }
  }
}

bool Dim::HasSymbol(const std::function<bool(const std::string&)>& asked) const {
  if (!poly_) return false;
  auto in_atom = [&](const Poly::AtomRef& atom) {
    return atom->kind == Atom::Kind::kSymbol ? asked(atom->name)
                                             : std::ranges::any_of(atom->args, [&](const Dim& arg) {
                                                 return arg.HasSymbol(asked);
                                               });
  };
  return std::ranges::any_of(poly_->terms, [&](const Poly::Term& term) {
    return std::ranges::any_of(term.atoms, in_atom);
  });
}

// `size` returns the size of a symbol by its name, or nullopt.
template <class SizeFn>
std::optional<int64_t> Dim::ValueFor(const SizeFn& size) const {
  if (!poly_) return constant_;
  int64_t sum = 0;
  for (const Poly::Term& term : poly_->terms) {
    int64_t product = term.coefficient;
    for (const Poly::AtomRef& atom : term.atoms) {
      std::vector<int64_t> args;
      for (const Dim& arg : atom->args) {
        std::optional<int64_t> value = arg.ValueFor(size);
        if (!value) return std::nullopt;
        args.push_back(*value);
      }
      int64_t value = 0;
      switch (atom->kind) {
        case Atom::Kind::kSymbol: {
          std::optional<int64_t> found = size(atom->name);
          if (!found) return std::nullopt;
          value = *found;
          break;
        }
        case Atom::Kind::kFloorDiv: {
          if (args[1] == 0 || (args[1] == -1 && args[0] == kMin)) return std::nullopt;
          int64_t rest = args[0] % args[1];
          value = args[0] / args[1] - (rest != 0 && (rest < 0) != (args[1] < 0));
          break;
        }
        case Atom::Kind::kMax:
          value = *std::ranges::max_element(args);
          break;
      }
      if (__builtin_mul_overflow(product, value, &product)) return std::nullopt;
    }
    if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
  }
  return sum;
}

std::optional<int64_t> Dim::Evaluate(const std::map<std::string, int64_t>& symbols) const {
  return ValueFor([&](const std::string& name) {
    auto found = symbols.find(name);
    return found == symbols.end() ? std::nullopt : std::optional(found->second);
  });
}

std::optional<int64_t> Dim::Smallest(const Symbols& symbols) const {
  return ValueFor([&](const std::string& name) {
    auto found = symbols.find(name);
    return found == symbols.end() ? std::nullopt : std::optional(found->second.low);
  });
}

// Rebuilds the expression with each symbol replaced by `symbol`(name), and simplifies it within
// the bounds in `symbols`.
template <class SymbolFn>
Dim Dim::Rebuilt(const SymbolFn& symbol, const Symbols& symbols) const {
  if (!poly_) return *this;
  Dim sum = 0;
  for (const Poly::Term& term : poly_->terms) {
    Dim product = term.coefficient;
    for (const Poly::AtomRef& atom : term.atoms) {
      std::vector<Dim> args;
      for (const Dim& arg : atom->args) args.push_back(arg.Rebuilt(symbol, symbols));
      Dim value;
      switch (atom->kind) {
        case Atom::Kind::kSymbol:
          value = symbol(atom->name);
          break;
        case Atom::Kind::kFloorDiv:
          value = Quotient(args[0], args[1], symbols);
          break;
        case Atom::Kind::kMax:
          value = args[0];
          for (size_t i = 1; i < args.size(); ++i) value = Greatest(value, args[i], symbols);
          break;
      }
      product = product * value;
    }
    sum = sum + product;
  }
  return sum;
}

Dim Dim::Substitute(const std::map<std::string, Dim>& symbols) const {
  return Rebuilt(
      [&](const std::string& name) {
        auto found = symbols.find(name);
        return found != symbols.end() ? found->second : Symbol(name);
      },
      {});
}

Dim Dim::Within(const Symbols& symbols) const {
  constexpr int64_t kMostNodes = 64;  // for larger expressions the cost exceeds the benefit
  if (!poly_ || poly_->Nodes() > kMostNodes) return *this;
  // A polynomial of symbols without fixed sizes is already in its simplest form.
  auto stays = [&](const Poly::AtomRef& atom) {
    if (atom->kind != Atom::Kind::kSymbol) return false;
    auto found = symbols.find(atom->name);
    return found == symbols.end() || found->second.low != found->second.high;
  };
  if (std::ranges::all_of(poly_->terms, [&](const Poly::Term& term) {
        return std::ranges::all_of(term.atoms, stays);
      }))
    return *this;
  bool open = false;
  auto symbol = [&](const std::string& name) {
    auto found = symbols.find(name);
    bool one = found != symbols.end() && found->second.low == found->second.high;
    open = open || !one;
    return one ? Dim(found->second.low) : Symbol(name);
  };
  Dim simple = Rebuilt(symbol, symbols);
  return open && simple.is_constant() ? *this : simple;
}

Dim::Range Dim::Bounds(const Symbols& symbols) const {
  if (!poly_) return {constant_, constant_};
  auto times = [](Range a, Range b) {
    __int128 p[] = {static_cast<__int128>(a.low) * b.low, static_cast<__int128>(a.low) * b.high,
                    static_cast<__int128>(a.high) * b.low, static_cast<__int128>(a.high) * b.high};
    return Range{Clamp(*std::min_element(p, p + 4)), Clamp(*std::max_element(p, p + 4))};
  };
  // A bound beyond 64 bits stays at the limit and cannot return below it.
  auto plus = [](int64_t a, int64_t b, int64_t limit) {
    return a == limit || b == limit ? limit : Clamp(static_cast<__int128>(a) + b);
  };
  Range sum{0, 0};
  for (const Poly::Term& term : poly_->terms) {
    Range product{term.coefficient, term.coefficient};
    for (const Poly::AtomRef& atom : term.atoms) {
      std::vector<Range> args;
      for (const Dim& arg : atom->args) args.push_back(arg.Bounds(symbols));
      Range value{1, (int64_t{1} << 31) - 1};
      switch (atom->kind) {
        case Atom::Kind::kSymbol: {
          auto found = symbols.find(atom->name);
          if (found != symbols.end()) value = {found->second.low, found->second.high};
          break;
        }
        case Atom::Kind::kFloorDiv: {
          // The divisor is positive, and an infinite bound stays infinite.
          int64_t low = std::max<int64_t>(args[1].low, 1), high = std::max(args[1].high, low);
          auto floor = [](int64_t a, int64_t b) {
            return a == kMin || a == kMax ? a : Floor(a, b);
          };
          value.low = floor(args[0].low, args[0].low < 0 ? low : high);
          value.high = floor(args[0].high, args[0].high < 0 ? high : low);
          break;
        }
        case Atom::Kind::kMax:
          value = args[0];
          for (const Range& arg : args)
            value = {std::max(value.low, arg.low), std::max(value.high, arg.high)};
          break;
      }
      product = times(product, value);
    }
    sum = {plus(sum.low, product.low, kMin), plus(sum.high, product.high, kMax)};
  }
  return sum;
}

std::string Dim::ToString() const {
  if (!poly_) return std::to_string(constant_);
  std::string out;
  for (const Poly::Term& term : poly_->terms) {
    bool negative = term.coefficient < 0;
    out += out.empty() ? (negative ? "-" : "") : (negative ? " - " : " + ");
    uint64_t magnitude = negative ? 0 - static_cast<uint64_t>(term.coefficient)
                                  : static_cast<uint64_t>(term.coefficient);
    std::string separator;
    if (magnitude != 1 || term.atoms.empty()) {
      out += std::to_string(magnitude);
      separator = "*";
    }
    for (const Poly::AtomRef& atom : term.atoms) {
      out += separator + atom->name;
      separator = "*";
      if (atom->kind == Atom::Kind::kSymbol) continue;
      out += atom->kind == Atom::Kind::kMax ? "max(" : "floordiv(";
      for (size_t i = 0; i < atom->args.size(); ++i)
        out += (i ? ", " : "") + atom->args[i].ToString();
      out += ")";
    }
  }
  return out;
}

Dim operator+(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return CheckedAdd(a.constant_, b.constant_);
  if (a.is_constant() && a.constant_ == 0) return b;
  if (b.is_constant() && b.constant_ == 0) return a;
  Dim::Poly x, y;
  return Dim::FromPoly(Dim::Poly::Add(Dim::AsPoly(a, x), Dim::AsPoly(b, y), 1));
}

Dim operator-(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant())
    return CheckedAdd(a.constant_, CheckedMul(b.constant_, -1));
  if (b.is_constant() && b.constant_ == 0) return a;
  Dim::Poly x, y;
  return Dim::FromPoly(Dim::Poly::Add(Dim::AsPoly(a, x), Dim::AsPoly(b, y), -1));
}

Dim operator*(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return CheckedMul(a.constant_, b.constant_);
  if (a.is_constant() && a.constant_ == 1) return b;
  if (b.is_constant() && b.constant_ == 1) return a;
  Dim::Poly x, y;
  return Dim::FromPoly(Dim::Poly::Multiply(Dim::AsPoly(a, x), Dim::AsPoly(b, y)));
}

//Identities used, for integers and b > 0:
//  floor((q*b + r) / b) = q + floor(r / b)
//  floor(g*a / (g*b)) = floor(a / b)
//  floor((g*a + c) / (g*b)) = floor((a + floor(c / g)) / b) for constant g, b
//  floor((floor(a / b) + r) / c) = floor((a + b*r) / (b*c)) for constant b, c
Dim Dim::Quotient(const Dim& a, const Dim& b, const Symbols& symbols) {
  if (b.is_constant() && b.constant_ <= 0) {
    throw Error("bad-operand", "a dimension is divided by {}", b.constant_);
  }
  if (b.is_constant() && a.is_constant()) return Floor(a.constant_, b.constant_);
  if (b.is_constant() && b.constant_ == 1) return a;

  Poly rest, quotient = Poly::Divide(Poly::Of(a), Poly::Of(b), rest);
  if (!b.is_constant()) {
    Dim whole = FromPoly(std::move(quotient));
    if (rest.terms.empty()) return whole;
    // Cancels common atoms and the common integer factor of both sides.
    Poly divisor = Poly::Of(b);
    Poly::Term common{0, divisor.terms[0].atoms};
    for (const Poly* poly : {&rest, &divisor}) {
      for (const Poly::Term& term : poly->terms) {
        common.coefficient = std::gcd(common.coefficient, term.coefficient);
        std::vector<Poly::AtomRef> shared;
        std::set_intersection(common.atoms.begin(), common.atoms.end(), term.atoms.begin(),
                              term.atoms.end(), std::back_inserter(shared),
                              [](const Poly::AtomRef& p, const Poly::AtomRef& q) {
                                return Poly::Compare(*p, *q) < 0;
                              });
        common.atoms = std::move(shared);
      }
    }
    if (common.coefficient != 1 || !common.atoms.empty()) {
      for (Poly* poly : {&rest, &divisor})
        for (Poly::Term& term : poly->terms) term = *Poly::Divide(term, common);
      return whole + Quotient(FromPoly(std::move(rest)), FromPoly(std::move(divisor)), symbols);
    }
    Dim top = FromPoly(std::move(rest));
    for (int guess : {0, -1}) {
      Dim left = top - Dim(guess) * b;
      if (Poly::IsNatural(left, symbols) && Poly::IsNatural(b - left - 1, symbols))
        return whole + Dim(guess);
    }
    return whole + Poly::ToDim(Atom{Atom::Kind::kFloorDiv, "", {top, b}});
  }

  // For a constant divisor, keeps remainders smaller than the divisor and reduces the constant term
  // to [0, divisor).
  int64_t divisor = b.constant_, common = divisor;
  quotient = rest = {};
  for (const Poly::Term& term : Poly::Of(a).terms) {
    int64_t whole =
        term.atoms.empty() ? Floor(term.coefficient, divisor) : term.coefficient / divisor;
    int64_t left = term.coefficient - whole * divisor;
    if (whole != 0) quotient.terms.push_back({whole, term.atoms});
    if (left != 0) rest.terms.push_back({left, term.atoms});
    if (!term.atoms.empty()) common = std::gcd(common, left);
  }
  if (common > 1) {
    divisor /= common;
    for (Poly::Term& term : rest.terms) term.coefficient = Floor(term.coefficient, common);
    std::erase_if(rest.terms, [](const Poly::Term& term) { return term.coefficient == 0; });
  }
  Dim whole = FromPoly(std::move(quotient));
  if (divisor == 1 || rest.terms.empty()) return whole + FromPoly(std::move(rest));
  if (rest.terms.size() == 1 && rest.terms[0].atoms.empty()) return whole;

  const Poly::Term* nested = nullptr;
  int nested_count = 0;
  for (const Poly::Term& term : rest.terms) {
    if (term.coefficient != 1 || term.atoms.size() != 1) continue;
    const Atom& atom = *term.atoms[0];
    if (atom.kind != Atom::Kind::kFloorDiv || !atom.args[1].is_constant()) continue;
    nested = &term;
    ++nested_count;
  }
  if (nested_count == 1 && nested->atoms[0]->args[1].constant_ <= kMax / divisor) {
    Dim inner = nested->atoms[0]->args[0], by = nested->atoms[0]->args[1];
    Dim others = FromPoly(Poly::Add(rest, Poly{{*nested}}, -1));
    return whole + Quotient(inner + by * others, by * Dim(divisor), symbols);
  }
  Dim top = FromPoly(std::move(rest));
  Range range = top.Bounds(symbols);
  if (range.low >= 0 && range.high < divisor) return whole;
  return whole + Poly::ToDim(Atom{Atom::Kind::kFloorDiv, "", {top, Dim(divisor)}});
}

Dim FloorDiv(const Dim& a, const Dim& b) { return Dim::Quotient(a, b, {}); }

Dim CeilDiv(const Dim& a, const Dim& b) { return FloorDiv(a + (b - Dim(1)), b); }

Dim Max(const Dim& a, const Dim& b) { return Dim::Greatest(a, b, {}); }

Dim Dim::Greatest(const Dim& a, const Dim& b, const Symbols& symbols) {
  if (a.is_constant() && b.is_constant()) return std::max(a.constant_, b.constant_);
  // Pairwise comparison is too expensive for many members, so only equal ones are removed.
  constexpr size_t kFew = 8;
  std::vector<Dim> args;
  auto at_least = [&](const Dim& x, const Dim& y) { return Poly::IsNatural(x - y, symbols); };
  for (const Dim* side : {&a, &b}) {
    // r + max(a, b) = max(r + a, r + b).
    std::vector<Dim> members{*side};
    const Poly::Term* nested = nullptr;
    int nested_count = 0;
    Poly storage;
    for (const Poly::Term& term : AsPoly(*side, storage).terms) {
      if (term.coefficient != 1 || term.atoms.size() != 1 ||
          term.atoms[0]->kind != Atom::Kind::kMax)
        continue;
      nested = &term;
      ++nested_count;
    }
    if (nested_count == 1) {
      Dim rest = *side - Poly::ToDim(Poly{{*nested}});
      members = nested->atoms[0]->args;
      for (Dim& member : members) member = rest + member;
    }
    for (Dim& member : members) {
      if (args.size() <= kFew) {
        bool below =
            std::ranges::any_of(args, [&](const Dim& arg) { return at_least(arg, member); });
        if (below) continue;
        std::erase_if(args, [&](const Dim& arg) { return at_least(member, arg); });
      }
      args.push_back(std::move(member));
    }
  }
  if (args.size() == 1) return args[0];
  std::ranges::sort(args, [](const Dim& x, const Dim& y) { return Poly::Compare(x, y) < 0; });
  args.erase(std::unique(args.begin(), args.end()), args.end());
  // For readability, symbols precede the constant: max(h, 4).
  std::stable_partition(args.begin(), args.end(), [](const Dim& x) { return !x.is_constant(); });
  return Poly::ToDim(Atom{Atom::Kind::kMax, "", std::move(args)});
}

bool operator==(const Dim& a, const Dim& b) {
  if (a.is_constant() || b.is_constant())
    return a.is_constant() && b.is_constant() && a.constant_ == b.constant_;
  return a.poly_ == b.poly_ || Dim::Poly::Compare(*a.poly_, *b.poly_) == 0;
}

std::optional<Dim> DivideExactly(const Dim& a, const Dim& b) {
  using Poly = Dim::Poly;
  if (b == Dim(0)) return std::nullopt;
  Poly rest, quotient = Poly::Divide(Poly::Of(a), Poly::Of(b), rest);
  if (!rest.terms.empty()) return std::nullopt;
  return Poly::ToDim(std::move(quotient));
}

bool IsStatic(const Shape& shape) {
  return std::ranges::all_of(shape, [](const Dim& dim) { return dim.is_constant(); });
}

std::vector<int64_t> StaticDims(const Shape& shape) {
  std::vector<int64_t> dims;
  for (const Dim& dim : shape) {
    MLC_CHECK(dim.is_constant(), "shape {} is not static", ToString(shape));
    dims.push_back(dim.constant());
  }
  return dims;
}

Shape ToShape(const std::vector<int64_t>& dims) { return Shape(dims.begin(), dims.end()); }

Dim Product(const Shape& shape) {
  Dim product = 1;
  for (const Dim& dim : shape) product = product * dim;
  return product;
}

std::string ToString(const Shape& shape) {
  constexpr size_t kMostShown = 32;  // the shape of no valid tensor is longer
  std::string out = "[";
  for (size_t i = 0; i < std::min(shape.size(), kMostShown); ++i)
    out += (i ? ", " : "") + shape[i].ToString();
  if (shape.size() > kMostShown) out += fmt::format(", ... ({} dimensions)", shape.size());
  return out + "]";
}

}  // namespace mlc
