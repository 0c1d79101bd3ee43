#include "lib/ir/dim.h"

#include <random>

#include "lib/support/error.h"
#include "test/catch.h"

namespace mlc {
namespace {

const Dim n = Dim::Symbol("n"), h = Dim::Symbol("h"), w = Dim::Symbol("w");

TEST_CASE("dim: ToString is canonical") {
  CHECK(Dim(3).ToString() == "3");
  CHECK((w * n + 1 + n * w).ToString() == "2*n*w + 1");
  CHECK((Dim(2) * n + CeilDiv(h, 2)).ToString() == "2*n + floordiv(h + 1, 2)");
  CHECK((n - w * 3 - 4).ToString() == "n - 3*w - 4");
  CHECK((Dim(0) - n).ToString() == "-n");
  CHECK(Max(Dim(4), h).ToString() == "max(h, 4)");
  CHECK(ToString(Shape{1, 3, h, w * 2}) == "[1, 3, h, 2*w]");
}

TEST_CASE("dim: equal expressions have one canonical form") {
  CHECK((n + 1) * (n - 1) == n * n - 1);
  CHECK(FloorDiv(n, 1) == n);
  CHECK(FloorDiv(Dim(4) * n + 3, 4) == n);
  CHECK(FloorDiv(Dim(4) * n - 1, 4) == n - 1);
  CHECK(FloorDiv(Dim(6) * n + Dim(4), 4) == n + 1 + FloorDiv(n, 2));
  CHECK(CeilDiv(h, 2) == FloorDiv(h - 1, 2) + 1);
  CHECK(FloorDiv(FloorDiv(h, 2), 3) == FloorDiv(h, 6));
  CHECK(FloorDiv(FloorDiv(h - 1, 2), 2) + 1 == CeilDiv(CeilDiv(h, 2), 2));
  CHECK(FloorDiv(n * h * w, h) == n * w);
  CHECK(FloorDiv(n * h + 2 * n, h + 2) == n);
  CHECK(FloorDiv(n * h, n * w) == FloorDiv(h, w));
  CHECK(FloorDiv(n, n + 1) == Dim(0));
  CHECK(Max(n, h) == Max(h, n));
  CHECK(Max(Max(n, h), w) == Max(n, Max(w, h)));
  CHECK(Max(n + 1, n) == n + 1);
  CHECK(Max(n, 1) == n);
  CHECK(Max(n - 5, Dim(-4)) == n - 5);
  Dim least = 0 - Max(0 - n, Dim(-300));  // min(n, 300)
  CHECK(Max(n, least) == n);
  CHECK(Max(least + 1, n + 1) == n + 1);
}

TEST_CASE("dim: expressions that may differ are not equal") {
  CHECK(!(n == h));
  CHECK(!(FloorDiv(n, 2) * 2 == n));
  CHECK(!(FloorDiv(n + h, 2) == FloorDiv(n, 2) + FloorDiv(h, 2)));
  CHECK(!(Max(n, 2) == n));
  CHECK(!(Max(h, 0 - Max(0 - n, Dim(-300))) == h));
  CHECK(!(FloorDiv(FloorDiv(n, 2) * 2, 4) == n));
}

TEST_CASE("dim: symbols") {
  CHECK(n.symbol() == "n");
  CHECK(!(n * 2).symbol());
  CHECK(!Dim(1).symbol());
  std::vector<std::string> names;
  (w + FloorDiv(h, n) + n).CollectSymbols(names);
  CHECK(names.size() == 3);
  CHECK((n * h + 1).Substitute({{"n", 2}, {"h", w + 1}}) == 2 * w + 3);
  CHECK(CeilDiv(h, 32).Substitute({{"h", Dim(224)}}) == Dim(7));
  CHECK(Max(h, w).Substitute({{"h", w}}) == w);
  CHECK((n + h).Evaluate({{"n", 1}}) == std::nullopt);
  CHECK(FloorDiv(n, h - 1).Evaluate({{"n", 1}, {"h", 1}}) == std::nullopt);
}

TEST_CASE("dim: exact division") {
  CHECK(DivideExactly(n * 6, 3) == n * 2);
  CHECK(DivideExactly(n * h - n, h - 1) == n);
  CHECK(!DivideExactly(n * 6 + 1, 3));
  CHECK(!DivideExactly(n, h));
  CHECK(!DivideExactly(n, 0));
  CHECK(DivideExactly(0, n) == Dim(0));
}

TEST_CASE("dim: bounds") {
  Dim::Range range = (CeilDiv(h, 2) * 3 - w).Bounds({{"h", {1, 10, {}}}, {"w", {1, 4, {}}}});
  CHECK(range.low == -1);
  CHECK(range.high == 14);
  CHECK(n.Bounds({}).low == 1);
  CHECK(Max(n, 7).Bounds({}).low == 7);
  Dim cube = n * n * n * n;
  CHECK(cube.Bounds({}).high == std::numeric_limits<int64_t>::max());
  CHECK((cube - n * n * n * n * 2).Bounds({}).low == std::numeric_limits<int64_t>::min());
}

TEST_CASE("dim: hostile expressions are rejected") {
  Dim big = int64_t{1} << 62;
  CHECK_THROWS_WITH(big + big, ContainsSubstring("64 bits"));
  CHECK_THROWS_WITH(big * n * 4, ContainsSubstring("64 bits"));
  CHECK_THROWS_WITH(FloorDiv(n, 0), ContainsSubstring("divided by 0"));
  auto grow = [] {
    Dim x = n;
    for (int i = 0; i < 100; ++i) x = FloorDiv(x * x + h, 3);
  };
  CHECK_THROWS_WITH(grow(), ContainsSubstring("terms"));
  auto expand = [] {
    Dim x = n + h + w + 1;
    for (int i = 0; i < 20; ++i) x = x * x;
  };
  CHECK_THROWS_AS(expand(), Error);
}

// An expression and the function that it represents, built in parallel.
struct Pair {
  Dim dim;
  std::function<int64_t(const std::map<std::string, int64_t>&)> value;
};

TEST_CASE("dim: a maximum of differences stays small") {
  // x[..., :-1] applied eight times: the clamped bounds and the distance between them.
  Dim size = n, zero = 0;
  for (int i = 1; i <= 8; ++i) {
    Dim end = 0 - Max(0 - Max(size - 1, zero), 0 - size);
    size = Max(end - zero, zero);
    CHECK(size == Max(n - i, zero));
  }
  CHECK(size.ToString() == "max(n - 8, 0)");
  CHECK(Max(Max(n, h) - 3, w).ToString() == Max(n - 3, Max(h - 3, w)).ToString());
  CHECK(Max(n, FloorDiv(n, 2) + 1).ToString() == "max(n, floordiv(n, 2) + 1)");  // n may be 1
  CHECK(Max(n, FloorDiv(n, 2)) == n);
  CHECK(Max(n - FloorDiv(n, 2), zero) == n - FloorDiv(n, 2));
  CHECK(Max(FloorDiv(n, 2) * 2 - n, Dim(-1)) == FloorDiv(n, 2) * 2 - n);
  CHECK(!(Max(FloorDiv(n, 2) * 2 - n, zero) == FloorDiv(n, 2) * 2 - n));
}

TEST_CASE("dim: expressions are simplified within the bounds of symbols") {
  auto within = [](const Dim& dim, int64_t low, int64_t high) {
    return dim.Within({{"n", {low, high, {}}}}).ToString();
  };
  CHECK(within(Max(n - 8, 0), 8, 64) == "n - 8");
  CHECK(within(Max(n - 8, 0), 7, 64) == "max(n - 8, 0)");
  CHECK(within(Max(n - 8, 0) * h, 8, 64) == "h*n - 8*h");
  CHECK(within(Max(FloorDiv(n, 4) - 2, 0), 8, 64) == "floordiv(n, 4) - 2");
  CHECK(within(Max(FloorDiv(n, 4) - 2, 0), 7, 64) == "max(floordiv(n, 4) - 2, 0)");
  CHECK(within(FloorDiv(Max(n - 3, 1), 2), 4, 64) == "floordiv(n + 1, 2) - 2");
  CHECK(within(FloorDiv(n, h), 4, 64) == "floordiv(n, h)");
  // A symbol with a single size becomes a number; an expression that is constant only by rounding
  // does not.
  CHECK(within(n * 2 + 1, 5, 5) == "11");
  CHECK(within(h + FloorDiv(n, 4), 8, 8) == "h + 2");
  CHECK(within(FloorDiv(n, 4), 8, 11) == "floordiv(n, 4)");
  CHECK(within(Max(n, 12), 8, 11) == "max(n, 12)");
}

TEST_CASE("dim: symbol_and_offset") {
  using Open = std::optional<std::pair<std::string, int64_t>>;
  CHECK(n.symbol_and_offset() == Open({"n", 0}));
  CHECK((n - 1).symbol_and_offset() == Open({"n", -1}));
  CHECK_FALSE((n * 2).symbol_and_offset());
  CHECK_FALSE((n + h).symbol_and_offset());
  CHECK_FALSE(Dim(3).symbol_and_offset());
}

TEST_CASE("dim: random expressions evaluate correctly") {
  std::mt19937 random(7);
  auto floor = [](int64_t a, int64_t b) {
    return static_cast<int64_t>(std::floor(static_cast<double>(a) / static_cast<double>(b)));
  };
  for (int round = 0; round < 3000; ++round) {
    std::vector<Pair> pool;
    for (const char* name : {"n", "h", "w"})
      pool.push_back({Dim::Symbol(name), [name](const auto& symbols) { return symbols.at(name); }});
    for (int step = 0; step < 6; ++step) {
      Pair a = pool[random() % pool.size()], b = pool[random() % pool.size()];
      int64_t c = static_cast<int64_t>(random() % 9) - 4, d = 1 + random() % 6;
      switch (random() % 6) {
        case 0:
          pool.push_back(
              {a.dim + b.dim * c, [=](const auto& s) { return a.value(s) + b.value(s) * c; }});
          break;
        case 1:
          pool.push_back({a.dim - c, [=](const auto& s) { return a.value(s) - c; }});
          break;
        case 2:
          pool.push_back(
              {Max(a.dim, b.dim), [=](const auto& s) { return std::max(a.value(s), b.value(s)); }});
          break;
        case 3:
          pool.push_back({FloorDiv(a.dim, d), [=](const auto& s) { return floor(a.value(s), d); }});
          break;
        case 4: {
          // A positive divisor: a symbol plus a nonnegative integer.
          Dim by = Dim::Symbol("h") * d + Dim(d / 2);
          pool.push_back({FloorDiv(a.dim * b.dim, by), [=](const auto& s) {
                            return floor(a.value(s) * b.value(s), s.at("h") * d + d / 2);
                          }});
          break;
        }
        case 5:
          pool.push_back({CeilDiv(a.dim * d + c, d + 1),
                          [=](const auto& s) { return floor(a.value(s) * d + c + d, d + 1); }});
          break;
      }
    }
    const Pair& last = pool.back();
    Dim::Range bounds =
        last.dim.Bounds({{"n", {1, 12, {}}}, {"h", {1, 12, {}}}, {"w", {1, 12, {}}}});
    Symbols narrow;
    for (const char* name : {"n", "h", "w"}) {
      int64_t low = 1 + random() % 12;
      narrow[name] = {low, low + static_cast<int64_t>(random() % (13 - low)), {}};
    }
    Dim within = last.dim.Within(narrow);
    for (int sample = 0; sample < 8; ++sample) {
      std::map<std::string, int64_t> symbols;
      std::map<std::string, Dim> dims;
      for (const char* name : {"n", "h", "w"}) dims[name] = symbols[name] = 1 + random() % 12;
      int64_t expected = last.value(symbols);
      if (std::abs(expected) > int64_t{1} << 40) continue;
      CAPTURE(last.dim.ToString(), symbols);
      REQUIRE(last.dim.Evaluate(symbols) == expected);
      REQUIRE(last.dim.Substitute(dims) == Dim(expected));
      REQUIRE(bounds.low <= expected);
      REQUIRE(expected <= bounds.high);
      for (const auto& [name, symbol] : narrow)
        symbols[name] =
            symbol.low + static_cast<int64_t>(random() % (symbol.high - symbol.low + 1));
      expected = last.value(symbols);
      if (std::abs(expected) > int64_t{1} << 40) continue;
      CAPTURE(within.ToString(), symbols);
      REQUIRE(within.Evaluate(symbols) == expected);
    }
  }
}

}  // namespace
TEST_CASE("dim: Smallest and HasSymbol", "[dim]") {
  Symbols symbols = {{"n", {2, 9, {}}}, {"m", {3, 4, {}}}};
  Dim n = Dim::Symbol("n"), m = Dim::Symbol("m");
  CHECK((n * m + FloorDiv(m, Dim(2))).Smallest(symbols) == 7);
  CHECK(Dim(5).Smallest({}) == 5);
  CHECK_FALSE((n + Dim::Symbol("other")).Smallest(symbols));
  auto is_m = [](const std::string& name) { return name == "m"; };
  CHECK(Max(n, FloorDiv(m, Dim(2))).HasSymbol(is_m));
  CHECK_FALSE((n * n + 1).HasSymbol(is_m));
  CHECK_FALSE(Dim(5).HasSymbol([](const std::string&) { return true; }));
}

}  // namespace mlc
