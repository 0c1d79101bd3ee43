// lib/ir/text_values.h - the parser of dimensions, types and literals in MIL text. Private to the
// text parser.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "lib/ir/text.h"
#include "lib/ir/text_lex.h"

namespace mlc {

// An element of a literal, before it has a dtype.
struct Element {
  Token token;
  bool negative = false;
};

// The elements of a bracketed tensor literal.
struct Elements {
  Dims dims;
  std::vector<Element> list;
  size_t offset = 0;
  bool fill = false;  // a single element repeated

  bool AllAre(Token::Kind kind) const {
    return std::ranges::all_of(list, [&](const Element& e) { return e.token.kind == kind; });
  }
  bool AllBool() const {
    return std::ranges::all_of(
        list, [](const Element& e) { return e.token.is_name("true") || e.token.is_name("false"); });
  }
  bool AnyFloat() const {
    return std::ranges::any_of(list, [](const Element& e) {
      return e.token.kind == Token::Kind::kName ||
             e.token.text.find_first_of(".xepEP") != std::string_view::npos;
    });
  }
};

// A parsed value of any type. A tensor is in `tensor`; lists and tuples have members; the members
// of a dictionary are alternating keys and values.
struct Node {
  Tensor tensor;
  std::vector<Node> members;
};

// Maximum element count of `fill(v)`, which is meant for tests.
inline constexpr int64_t kMaxFill = int64_t{1} << 20;

// The dtype of untyped numbers if no other operand determines it; kNone if ambiguous. `types` 0
// allows all.
DType DefaultNumberType(DTypeSet types, bool is_float);

// A recursive-descent parser, the base of the parser of statements. A symbol is declared in
// `function_` at its first occurrence.
class TextReader {
 public:
  TextReader(std::string_view text, const std::string& source_name, const OpSet& ops,
             const ReadBlobFn& read_blob)
      : lexer_(text, source_name), read_blob_(read_blob), program_(&ops) {
    Advance();
  }

 protected:
  // Token access.
  void Advance() { token_ = lexer_.Next(); }
  Token Take() {
    Token token = token_;
    Advance();
    return token;
  }
  Token Ahead() const {
    TextLexer lexer = lexer_;
    return lexer.Next();
  }
  bool Accept(std::string_view punctuation) {
    if (!token_.is(punctuation)) return false;
    Advance();
    return true;
  }
  [[noreturn]] void Fail(size_t offset, std::string text, std::string expected = {}) const {
    Error error = lexer_.ErrorAt(offset, std::move(text));
    if (!expected.empty()) error.Expected(std::move(expected));
    throw error;
  }
  [[noreturn]] void FailHere(std::string_view expected) const {
    std::string found = token_.kind == Token::Kind::kEnd
                            ? "the end of the text"
                            : fmt::format("`{}`", token_.text.substr(0, 40));
    Fail(token_.offset, "unexpected " + found, std::string(expected));
  }
  void Expect(std::string_view punctuation, std::string_view example) {
    if (!Accept(punctuation)) FailHere(fmt::format("`{}` (e.g. {})", punctuation, example));
  }
  Token ExpectName(std::string_view what) {
    if (token_.kind != Token::Kind::kName) FailHere(what);
    return Take();
  }
  void ExpectWord(std::string_view word, std::string_view example) {
    if (!token_.is_name(word)) FailHere(fmt::format("`{}` (e.g. {})", word, example));
    Advance();
  }
  static constexpr int kMaxDepth = 64;  // nesting limit of types, literals, blocks and dimensions
  struct Nesting {
    explicit Nesting(TextReader& p) : parser(p) {
      if (++parser.depth_ > kMaxDepth) parser.Fail(parser.token_.offset, "nested too deeply");
    }
    ~Nesting() { --parser.depth_; }
    TextReader& parser;
  };

  // Types, dimensions and literals.
  int64_t ParseInteger(std::string_view what);
  Dim ParseDimension(bool unknown_allowed);
  Dim ParseSum();
  Dim ParseProduct();
  Dim ParseAtom();
  std::string ParseSymbol(const Token& name);
  Type ParseType();
  void ParseElements(Elements& out, size_t level, const Shape* shape);
  void ParseElement(Elements& out);
  Elements ParseUntyped();
  Tensor Convert(const Elements& elements, DType dtype);
  Node ParseLiteral(Type& type);
  Node ParseValue(Type& type);
  Node ParseBlob(const Type& type);
  Tensor TensorOf(const Node& node, const Type& type, size_t offset);

  TextLexer lexer_;
  const ReadBlobFn& read_blob_;
  Program program_;
  Function* function_ = nullptr;  // the function being parsed
  Token token_;
  int depth_ = 0;
  int atoms_ = 0;  // atoms of the dimension being parsed
};

}  // namespace mlc
