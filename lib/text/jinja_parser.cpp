// The parser: recursive descent in the order of jinja2/parser.py.
#include <algorithm>

#include "lib/support/float_text.h"
#include "lib/text/jinja_syntax.h"

namespace mlc::text::jinja {

namespace {

using Kind = Node::Kind;
constexpr int kNesting = 200;    // brackets, expressions in them, and blocks
constexpr int kTreeDepth = 400;  // also a + b + c + ...

class Parser {
 public:
  explicit Parser(std::string_view source) : source_(source), tokens_(Lex(source)) {}

  Body Run() { return ParseBody({}, ""); }

 private:
  class Level {
   public:
    explicit Level(Parser& parser) : parser_(parser) {
      if (++parser.nesting_ > kNesting) parser.TooDeep();
    }
    ~Level() { --parser_.nesting_; }

   private:
    Parser& parser_;
  };

  [[noreturn]] void TooDeep() const {
    throw Error("resource-limit", "the chat template is nested too deeply")
        .At(PlaceOf(source_, Here().offset));
  }
  [[noreturn]] void Fail(std::string text) const {
    FailAt(source_, Here().offset, std::move(text), "");
  }
  [[noreturn]] void Unsupported(const std::string& what, size_t offset) const {
    FailAt(source_, offset, fmt::format("{} is not supported in chat templates", what), kElsewhere);
  }
  const Token& Here(size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  bool IsName(std::string_view name, size_t ahead = 0) const {
    return Here(ahead).kind == Token::Kind::kName && Here(ahead).text == name;
  }
  bool IsOperator(std::string_view symbol) const {
    return Here().kind == Token::Kind::kOperator && Here().text == symbol;
  }
  bool TakeName(std::string_view name) { return IsName(name) ? (++at_, true) : false; }
  bool TakeOperator(std::string_view symbol) { return IsOperator(symbol) ? (++at_, true) : false; }
  std::string Found() const {
    switch (Here().kind) {
      case Token::Kind::kEnd:
        return "the end of the template";
      case Token::Kind::kVariableEnd:
        return "}}";
      case Token::Kind::kBlockEnd:
        return "%}";
      default:
        return fmt::format("'{}'", Here().text);
    }
  }
  void Expect(std::string_view symbol) {
    if (!TakeOperator(symbol)) Fail(fmt::format("expected '{}', found {}", symbol, Found()));
  }
  std::string ExpectName() {
    if (Here().kind != Token::Kind::kName) Fail(fmt::format("expected a name, found {}", Found()));
    return tokens_[at_++].text;
  }
  void ExpectEnd() {
    if (Here().kind != Token::Kind::kBlockEnd) Fail(fmt::format("expected %}}, found {}", Found()));
    ++at_;
  }

  NodePtr Make(Kind kind, size_t offset) { return std::make_unique<Node>(Node{kind, offset}); }
  template <class... Kids>
  NodePtr Make(Kind kind, size_t offset, Kids... kids) {
    NodePtr node = Make(kind, offset);
    (Attach(*node, std::move(kids)), ...);
    return node;
  }
  void Attach(Node& node, NodePtr kid) {
    Deepen(node, kid.get());
    node.kids.push_back(std::move(kid));
  }
  void Deepen(Node& node, const Node* kid) {
    if (kid) node.depth = std::max(node.depth, kid->depth + 1);
    if (node.depth > kTreeDepth) TooDeep();
  }

  // ---- Statements --------------------------------------------------------------------------

  // Parses up to a tag in `ends`, whose name remains to be read; to the end if `ends` is empty.
  Body ParseBody(std::initializer_list<std::string_view> ends, std::string_view opener) {
    const Level level(*this);
    Body body;
    for (;;) {
      const Token& token = Here();
      switch (token.kind) {
        case Token::Kind::kText: {
          NodePtr text = Make(Kind::kText, token.offset);
          text->name = token.text;
          body.push_back(std::move(text));
          ++at_;
          break;
        }
        case Token::Kind::kVariableBegin: {
          ++at_;
          body.push_back(Make(Kind::kOutput, token.offset, ParseTuple(true)));
          if (Here().kind != Token::Kind::kVariableEnd)
            Fail(fmt::format("expected }}}}, found {}", Found()));
          ++at_;
          break;
        }
        case Token::Kind::kBlockBegin: {
          ++at_;
          if (std::any_of(ends.begin(), ends.end(), [this](auto end) { return IsName(end); }))
            return body;
          body.push_back(ParseStatement());
          break;
        }
        default:
          if (ends.size() > 0)
            Fail(fmt::format("the tag {} has no end: expected {}", opener, *(ends.end() - 1)));
          return body;
      }
    }
  }
  // Parses up to a tag that ends the body, and that tag.
  Body ParseBlock(std::string_view end, std::string_view opener) {
    ExpectEnd();
    Body body = ParseBody({end}, opener);
    ++at_;
    return body;
  }
  void FinishBlock(Node& node, Body body) {
    for (const NodePtr& each : body) Deepen(node, each.get());
    node.bodies.push_back(std::move(body));
  }

  NodePtr ParseStatement() {
    const size_t offset = Here().offset;
    if (Here().kind != Token::Kind::kName) Fail(fmt::format("expected a tag, found {}", Found()));
    const std::string tag = Here().text;
    ++at_;
    NodePtr node;
    if (tag == "if")
      node = ParseIf(offset);
    else if (tag == "for")
      node = ParseFor(offset);
    else if (tag == "set")
      node = ParseSet(offset);
    else if (tag == "macro")
      node = ParseMacro(offset);
    else if (tag == "call")
      node = ParseCallBlock(offset);
    else if (tag == "filter")
      node = ParseFilterBlock(offset);
    else if (tag == "with")
      node = ParseWith(offset);
    else if (tag == "generation") {
      node = Make(Kind::kScope, offset);
      FinishBlock(*node, ParseBlock("endgeneration", tag));
    } else if (tag == "break" || tag == "continue") {
      if (loops_ == 0) FailAt(source_, offset, fmt::format("'{}' outside of a loop", tag), "");
      node = Make(tag == "break" ? Kind::kBreak : Kind::kContinue, offset);
    } else if (tag.starts_with("end") || tag == "else" || tag == "elif") {
      FailAt(source_, offset, fmt::format("unexpected tag '{}'", tag), "");
    } else {
      static constexpr std::string_view kOthers[] = {
          "autoescape", "block", "debug", "do", "extends", "from", "import", "include", "trans"};
      if (std::find(std::begin(kOthers), std::end(kOthers), tag) != std::end(kOthers))
        Unsupported(fmt::format("the tag '{}'", tag), offset);
      FailAt(source_, offset, fmt::format("there is no tag '{}'", tag), "");
    }
    ExpectEnd();
    return node;
  }

  NodePtr ParseIf(size_t offset) {
    NodePtr node = Make(Kind::kIf, offset);
    for (;;) {
      Attach(*node, ParseTuple(false));
      ExpectEnd();
      FinishBlock(*node, ParseBody({"elif", "else", "endif"}, "if"));
      if (TakeName("elif")) continue;
      if (TakeName("else"))
        FinishBlock(*node, ParseBlock("endif", "if"));
      else
        ++at_;
      return node;
    }
  }

  NodePtr ParseFor(size_t offset) {
    NodePtr target = ParseTarget(false);
    if (!TakeName("in")) Fail(fmt::format("expected 'in', found {}", Found()));
    NodePtr values = ParseTuple(false);
    NodePtr condition = TakeName("if") ? ParseExpression() : nullptr;
    if (IsName("recursive")) Unsupported("a recursive loop", Here().offset);
    NodePtr node =
        Make(Kind::kFor, offset, std::move(target), std::move(values), std::move(condition));
    ExpectEnd();
    ++loops_;
    FinishBlock(*node, ParseBody({"else", "endfor"}, "for"));
    --loops_;
    if (TakeName("else"))
      FinishBlock(*node, ParseBlock("endfor", "for"));
    else
      ++at_;
    return node;
  }

  NodePtr ParseSet(size_t offset) {
    NodePtr target = ParseTarget(true);
    if (TakeOperator("=")) return Make(Kind::kSet, offset, std::move(target), ParseTuple(true));
    NodePtr filters = ParseFilters(nullptr, false);
    NodePtr node = Make(Kind::kSetBlock, offset, std::move(target), std::move(filters));
    FinishBlock(*node, ParseBlock("endset", "set"));
    return node;
  }

  void ParseParameters(Node& node) {
    Expect("(");
    while (!TakeOperator(")")) {
      if (!node.arguments.empty()) Expect(",");
      Argument parameter{.name = ExpectName(), .value = nullptr};
      if (TakeOperator("="))
        parameter.value = ParseExpression();
      else if (!node.arguments.empty() && node.arguments.back().value)
        Fail("a parameter without a default follows one with a default");
      Deepen(node, parameter.value.get());
      node.arguments.push_back(std::move(parameter));
    }
  }
  // The body of a macro is not inside the loops around it.
  Body ParseSeparateBody(std::string_view end, std::string_view opener) {
    const int loops = std::exchange(loops_, 0);
    Body body = ParseBlock(end, opener);
    loops_ = loops;
    return body;
  }

  NodePtr ParseMacro(size_t offset) {
    NodePtr node = Make(Kind::kMacro, offset);
    node->name = ExpectName();
    ParseParameters(*node);
    FinishBlock(*node, ParseSeparateBody("endmacro", "macro"));
    return node;
  }

  NodePtr ParseCallBlock(size_t offset) {
    NodePtr node = Make(Kind::kCallBlock, offset);
    node->name = "caller";
    if (IsOperator("(")) ParseParameters(*node);
    Attach(*node, ParseExpression());
    if (node->kids[0]->kind != Kind::kCall) FailAt(source_, offset, "expected a call", "");
    FinishBlock(*node, ParseSeparateBody("endcall", "call"));
    return node;
  }

  NodePtr ParseFilterBlock(size_t offset) {
    NodePtr node = Make(Kind::kFilterBlock, offset, ParseFilters(nullptr, true));
    FinishBlock(*node, ParseBlock("endfilter", "filter"));
    return node;
  }

  NodePtr ParseWith(size_t offset) {
    NodePtr node = Make(Kind::kWith, offset);
    while (Here().kind != Token::Kind::kBlockEnd) {
      if (!node->kids.empty()) Expect(",");
      Attach(*node, ParseTarget(false));
      Expect("=");
      Attach(*node, ParseExpression());
    }
    FinishBlock(*node, ParseBlock("endwith", "with"));
    return node;
  }

  // A name, a tuple of names, or an attribute of a namespace.
  NodePtr ParseTarget(bool attributes) {
    const size_t offset = Here().offset;
    if (attributes && Here().kind == Token::Kind::kName && Here(1).text == "." &&
        Here(1).kind == Token::Kind::kOperator) {
      NodePtr name = MakeName();
      ++at_;
      NodePtr node = Make(Kind::kAttribute, offset, std::move(name));
      node->name = ExpectName();
      return node;
    }
    NodePtr first = ParseOneTarget();
    if (!IsOperator(",")) return first;
    NodePtr tuple = Make(Kind::kTuple, offset, std::move(first));
    while (TakeOperator(",") && (Here().kind == Token::Kind::kName || IsOperator("(")) &&
           !IsName("in"))
      Attach(*tuple, ParseOneTarget());
    return tuple;
  }
  NodePtr ParseOneTarget() {
    if (!TakeOperator("(")) return MakeName();
    const Level level(*this);
    NodePtr inner = ParseTarget(false);
    Expect(")");
    return inner;
  }
  NodePtr MakeName() {
    const size_t offset = Here().offset;
    std::string name = ExpectName();
    static constexpr std::string_view kReserved[] = {"true", "false", "none",
                                                     "True", "False", "None"};
    if (std::find(std::begin(kReserved), std::end(kReserved), name) != std::end(kReserved))
      FailAt(source_, offset, fmt::format("cannot assign to '{}'", name), "");
    NodePtr node = Make(Kind::kName, offset);
    node->name = std::move(name);
    return node;
  }

  // ---- Expressions -------------------------------------------------------------------------

  // One expression, or several with commas between them, which are a tuple.
  NodePtr ParseTuple(bool conditions, bool parentheses = false) {
    const size_t offset = Here().offset;
    Body items;
    bool comma = false;
    while (!AtTupleEnd()) {
      items.push_back(conditions ? ParseExpression() : ParseOr());
      if (!TakeOperator(",")) break;
      comma = true;
    }
    if (items.size() == 1 && !comma) return std::move(items[0]);
    if (items.empty() && !parentheses)
      Fail(fmt::format("expected an expression, found {}", Found()));
    NodePtr tuple = Make(Kind::kTuple, offset);
    for (NodePtr& item : items) Attach(*tuple, std::move(item));
    return tuple;
  }
  bool AtTupleEnd() const {
    const Token::Kind kind = Here().kind;
    return kind == Token::Kind::kVariableEnd || kind == Token::Kind::kBlockEnd || IsOperator(")") ||
           IsName("recursive");
  }

  NodePtr ParseExpression() {
    const Level level(*this);
    NodePtr value = ParseOr();
    while (IsName("if")) {
      const size_t offset = Here().offset;
      ++at_;
      NodePtr condition = ParseOr();
      NodePtr other = TakeName("else") ? ParseExpression() : nullptr;
      value =
          Make(Kind::kCondition, offset, std::move(condition), std::move(value), std::move(other));
    }
    return value;
  }

  NodePtr ParseOr() {
    NodePtr left = ParseAnd();
    while (IsName("or")) {
      const size_t offset = tokens_[at_++].offset;
      left = Make(Kind::kOr, offset, std::move(left), ParseAnd());
    }
    return left;
  }
  NodePtr ParseAnd() {
    NodePtr left = ParseNot();
    while (IsName("and")) {
      const size_t offset = tokens_[at_++].offset;
      left = Make(Kind::kAnd, offset, std::move(left), ParseNot());
    }
    return left;
  }
  NodePtr ParseNot() {
    if (!IsName("not")) return ParseCompare();
    const Level level(*this);
    const size_t offset = tokens_[at_++].offset;
    return Make(Kind::kNot, offset, ParseNot());
  }

  std::string TakeComparison() {
    for (std::string_view symbol : {"==", "!=", "<=", ">=", "<", ">"})
      if (TakeOperator(symbol)) return std::string(symbol);
    if (TakeName("in")) return "in";
    if (IsName("not") && IsName("in", 1)) {
      at_ += 2;
      return "not in";
    }
    return "";
  }
  NodePtr ParseCompare() {
    const size_t offset = Here().offset;
    NodePtr first = ParseSum();
    NodePtr node;
    for (;;) {
      std::string symbol = TakeComparison();
      if (symbol.empty()) return node ? std::move(node) : std::move(first);
      if (!node) node = Make(Kind::kCompare, offset, std::move(first));
      node->operators.push_back(std::move(symbol));
      Attach(*node, ParseSum());
    }
  }

  // Left-associative operators over operands that `next` parses.
  NodePtr ParseBinary(std::initializer_list<std::string_view> symbols, NodePtr (Parser::*next)()) {
    NodePtr left = (this->*next)();
    for (;;) {
      const auto symbol = std::find_if(symbols.begin(), symbols.end(),
                                       [this](std::string_view s) { return IsOperator(s); });
      if (symbol == symbols.end()) return left;
      const size_t offset = tokens_[at_++].offset;
      left = Make(Kind::kArithmetic, offset, std::move(left), (this->*next)());
      left->name = *symbol;
    }
  }
  NodePtr ParseSum() { return ParseBinary({"+", "-"}, &Parser::ParseConcat); }
  NodePtr ParseConcat() {
    const size_t offset = Here().offset;
    NodePtr first = ParseProduct();
    if (!IsOperator("~")) return first;
    NodePtr node = Make(Kind::kConcat, offset, std::move(first));
    while (TakeOperator("~")) Attach(*node, ParseProduct());
    return node;
  }
  NodePtr ParseProduct() { return ParseBinary({"*", "/", "//", "%"}, &Parser::ParsePower); }
  NodePtr ParsePower() { return ParseBinary({"**"}, &Parser::ParseUnary); }
  NodePtr ParseUnary() { return ParseSigned(true); }

  NodePtr ParseSigned(bool filters) {
    const size_t offset = Here().offset;
    NodePtr node;
    if (IsOperator("-") || IsOperator("+")) {
      const Level level(*this);
      const Kind kind = IsOperator("-") ? Kind::kNegative : Kind::kPositive;
      ++at_;
      node = Make(kind, offset, ParseSigned(false));
    } else {
      node = ParsePostfix(ParsePrimary());
    }
    return filters ? ParseFilterExpression(std::move(node)) : std::move(node);
  }

  NodePtr ParsePrimary() {
    const Token& token = Here();
    const auto constant = [&](auto value) {
      ++at_;
      NodePtr node = Make(Kind::kConstant, token.offset);
      node->constant = std::move(value);
      return node;
    };
    switch (token.kind) {
      case Token::Kind::kName: {
        if (token.text == "true" || token.text == "True") return constant(true);
        if (token.text == "false" || token.text == "False") return constant(false);
        if (token.text == "none" || token.text == "None") return constant(std::monostate());
        ++at_;
        NodePtr node = Make(Kind::kName, token.offset);
        node->name = token.text;
        return node;
      }
      case Token::Kind::kString: {
        std::string text;
        while (Here().kind == Token::Kind::kString) text += tokens_[at_++].text;
        --at_;
        return constant(std::move(text));
      }
      case Token::Kind::kInteger:
        return constant(Integer(token));
      case Token::Kind::kFloat: {
        double number = 0;
        FloatFromChars(token.text.data(), token.text.data() + token.text.size(), number);
        return constant(number);
      }
      case Token::Kind::kOperator:
        if (token.text == "(") {
          const Level level(*this);
          ++at_;
          NodePtr inner = ParseTuple(true, true);
          Expect(")");
          return inner;
        }
        if (token.text == "[") return ParseListLiteral();
        if (token.text == "{") return ParseDictLiteral();
        break;
      default:
        break;
    }
    Fail(fmt::format("expected an expression, found {}", Found()));
  }

  int64_t Integer(const Token& token) {
    std::string_view digits = token.text;
    int base = 10;
    if (digits.size() > 1 && digits[0] == '0' && digits[1] > '9') {
      base = (digits[1] | 0x20) == 'x' ? 16 : (digits[1] | 0x20) == 'o' ? 8 : 2;
      digits.remove_prefix(2);
    }
    int64_t number = 0;
    const auto [end, fault] =
        std::from_chars(digits.data(), digits.data() + digits.size(), number, base);
    if (fault == std::errc::result_out_of_range)
      Unsupported("an integer beyond 64 bits", token.offset);
    if (end != digits.data() + digits.size() ||
        (base == 10 && digits.size() > 1 && digits[0] == '0' &&
         digits.find_first_not_of('0') != digits.npos))
      FailAt(source_, token.offset, fmt::format("'{}' is not a number", token.text), "");
    return number;
  }

  NodePtr ParseListLiteral() {
    const Level level(*this);
    NodePtr node = Make(Kind::kList, Here().offset);
    ++at_;
    while (!TakeOperator("]")) {
      if (!node->kids.empty()) {
        Expect(",");
        if (TakeOperator("]")) break;
      }
      Attach(*node, ParseExpression());
    }
    return node;
  }
  NodePtr ParseDictLiteral() {
    const Level level(*this);
    NodePtr node = Make(Kind::kDict, Here().offset);
    ++at_;
    while (!TakeOperator("}")) {
      if (!node->kids.empty()) {
        Expect(",");
        if (TakeOperator("}")) break;
      }
      Attach(*node, ParseExpression());
      Expect(":");
      Attach(*node, ParseExpression());
    }
    return node;
  }

  NodePtr ParsePostfix(NodePtr node) {
    for (;;) {
      if (IsOperator(".") || IsOperator("["))
        node = ParseSubscript(std::move(node));
      else if (IsOperator("("))
        node = ParseCall(std::move(node));
      else
        return node;
    }
  }
  NodePtr ParseFilterExpression(NodePtr node) {
    for (;;) {
      if (IsOperator("|"))
        node = ParseFilters(std::move(node), false);
      else if (IsName("is"))
        node = ParseTest(std::move(node));
      // Calls behind a filter, as in Jinja.
      else if (IsOperator("("))
        node = ParseCall(std::move(node));
      else
        return node;
    }
  }

  NodePtr ParseSubscript(NodePtr object) {
    const size_t offset = Here().offset;
    if (TakeOperator(".")) {
      if (Here().kind == Token::Kind::kInteger) {
        NodePtr key = Make(Kind::kConstant, Here().offset);
        key->constant = Integer(Here());
        ++at_;
        return Make(Kind::kItem, offset, std::move(object), std::move(key));
      }
      std::string name = ExpectName();
      NodePtr node = Make(Kind::kAttribute, offset, std::move(object));
      node->name = std::move(name);
      return node;
    }
    ++at_;
    const Level level(*this);
    NodePtr start = IsOperator(":") ? nullptr : ParseExpression();
    if (!TakeOperator(":")) {
      if (IsOperator(",")) Unsupported("a subscript of several values", Here().offset);
      Expect("]");
      return Make(Kind::kItem, offset, std::move(object), std::move(start));
    }
    const auto part = [this]() -> NodePtr {
      return IsOperator(":") || IsOperator("]") ? nullptr : ParseExpression();
    };
    NodePtr stop = part(), step;
    if (TakeOperator(":")) step = part();
    Expect("]");
    return Make(Kind::kSlice, offset, std::move(object), std::move(start), std::move(stop),
                std::move(step));
  }

  void ParseArguments(Node& node) {
    const Level level(*this);
    Expect("(");
    while (!TakeOperator(")")) {
      if (!node.arguments.empty()) {
        Expect(",");
        if (TakeOperator(")")) return;
      }
      Argument argument{.value = nullptr};
      if (TakeOperator("*"))
        argument.kind = Argument::Kind::kList;
      else if (TakeOperator("**"))
        argument.kind = Argument::Kind::kDict;
      else if (Here().kind == Token::Kind::kName && Here(1).kind == Token::Kind::kOperator &&
               Here(1).text == "=") {
        argument.kind = Argument::Kind::kNamed;
        argument.name = Here().text;
        at_ += 2;
      } else if (!node.arguments.empty() && node.arguments.back().kind != Argument::Kind::kPlain &&
                 node.arguments.back().kind != Argument::Kind::kList) {
        Fail("a positional argument follows a named one");
      }
      argument.value = ParseExpression();
      Deepen(node, argument.value.get());
      node.arguments.push_back(std::move(argument));
    }
  }
  NodePtr ParseCall(NodePtr function) {
    NodePtr node = Make(Kind::kCall, Here().offset, std::move(function));
    ParseArguments(*node);
    return node;
  }

  // | filter | filter(...); `begun`: the first one has no bar.
  NodePtr ParseFilters(NodePtr node, bool begun) {
    while (begun || TakeOperator("|")) {
      begun = false;
      const size_t offset = Here().offset;
      std::string name = ExpectName();
      while (TakeOperator(".")) name += "." + ExpectName();
      node = Make(Kind::kFilter, offset, std::move(node));
      node->name = std::move(name);
      if (IsOperator("(")) ParseArguments(*node);
    }
    return node;
  }

  NodePtr ParseTest(NodePtr value) {
    ++at_;
    const bool negated = TakeName("not");
    const size_t offset = Here().offset;
    NodePtr node = Make(Kind::kTest, offset, std::move(value));
    node->name = ExpectName();
    while (TakeOperator(".")) node->name += "." + ExpectName();
    const Token::Kind kind = Here().kind;
    if (IsOperator("(")) {
      ParseArguments(*node);
    } else if ((kind == Token::Kind::kName || kind == Token::Kind::kString ||
                kind == Token::Kind::kInteger || kind == Token::Kind::kFloat || IsOperator("[") ||
                IsOperator("{")) &&
               !IsName("else") && !IsName("or") && !IsName("and")) {
      if (IsName("is")) Fail("tests cannot be chained with 'is'");
      const Level level(*this);
      Argument argument{.value = ParsePostfix(ParsePrimary())};
      Deepen(*node, argument.value.get());
      node->arguments.push_back(std::move(argument));
    }
    return negated ? Make(Kind::kNot, offset, std::move(node)) : std::move(node);
  }

  std::string_view source_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int nesting_ = 0, loops_ = 0;
};

}  // namespace

Body Parse(std::string_view source) { return Parser(source).Run(); }

}  // namespace mlc::text::jinja
