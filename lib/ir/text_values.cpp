#include "lib/ir/text_values.h"

#include <bit>
#include <charconv>
#include <limits>

#include "lib/support/float_text.h"

namespace mlc {

namespace {

constexpr int kMaxAtoms = 16;               // products of long sums grow exponentially
constexpr std::string_view kUnknown = "?";  // placeholder of a `?`, replaced by inference

}  // namespace

DType DefaultNumberType(DTypeSet types, bool is_float) {
  DTypeSet numbers = 0;
  for (int i = 0; i < kDTypeCount; ++i) {
    auto dtype = static_cast<DType>(i);
    if ((IsFloat(dtype) || IsInteger(dtype)) && (!types || Contains(types, dtype)))
      numbers |= SetOf(dtype);
  }
  if (std::has_single_bit(numbers)) return static_cast<DType>(std::countr_zero(numbers));
  DType first = is_float ? DType::kFp32 : DType::kInt32,
        second = is_float ? DType::kFp16 : DType::kFp32;
  return Contains(numbers, first) ? first : Contains(numbers, second) ? second : DType::kNone;
}

int64_t TextReader::ParseInteger(std::string_view what) {
  bool negative = Accept("-");
  int64_t value = 0;
  const char* end = token_.text.data() + token_.text.size();
  if (token_.kind != Token::Kind::kNumber) FailHere(what);
  auto [stop, code] = std::from_chars(token_.text.data(), end, value);
  if (code != std::errc() || stop != end) FailHere(what);
  Advance();
  return negative ? -value : value;
}

Dim TextReader::ParseDimension(bool unknown_allowed) {
  if (unknown_allowed && Accept("?")) return Dim::Symbol(std::string(kUnknown));
  size_t offset = token_.offset;
  atoms_ = 0;
  Dim dim = ParseSum();
  if (dim.is_constant() && dim.constant() < 0) Fail(offset, "a dimension is negative");
  return dim;
}

Dim TextReader::ParseSum() {
  Nesting nesting(*this);
  Dim sum = ParseProduct();
  while (token_.is("+") || token_.is("-")) {
    bool minus = Take().is("-");
    Dim next = ParseProduct();
    sum = minus ? sum - next : sum + next;
  }
  return sum;
}

Dim TextReader::ParseProduct() {
  Dim product = ParseAtom();
  while (Accept("*")) product = product * ParseAtom();
  return product;
}

Dim TextReader::ParseAtom() {
  if (++atoms_ > kMaxAtoms) Fail(token_.offset, "a dimension with too many terms");
  if (token_.kind == Token::Kind::kNumber) return Dim(ParseInteger("an integer (e.g. 224)"));
  if (Accept("-")) return Dim(-1) * ParseAtom();
  if (Accept("(")) {
    Dim dim = ParseSum();
    Expect(")", "(h + 1)*2");
    return dim;
  }
  Token name = ExpectName("a dimension (e.g. 3, ?, h or 2*h + 1)");
  if (!Accept("(")) return Dim::Symbol(ParseSymbol(name));
  Dim a = ParseSum();
  Expect(",", "floordiv(h, 2)");
  size_t offset = token_.offset;
  Dim b = ParseSum();
  Expect(")", "floordiv(h, 2)");
  if (name.text == "max") return Max(a, b);
  if (b.is_constant() && b.constant() <= 0) Fail(offset, "a divisor is not positive");
  if (name.text == "floordiv") return FloorDiv(a, b);
  if (name.text == "ceildiv") return CeilDiv(a, b);
  Fail(name.offset, fmt::format("unknown dimension function `{}`", name.text),
       "floordiv, ceildiv or max");
}

std::string TextReader::ParseSymbol(const Token& name) {
  std::string symbol(name.text);
  if (!function_) Fail(name.offset, "a symbol outside a function");
  function_->symbols.try_emplace(symbol);
  return symbol;
}

Type TextReader::ParseType() {
  Nesting nesting(*this);
  Token name = ExpectName("a type (e.g. tensor<fp32, [1, 3]> or int32)");
  auto next = [&] { Expect(",", "tensor<fp32, [1, 3]>"); };
  if (std::optional<DType> dtype = ParseDType(name.text)) return Type::Tensor(*dtype);
  if (name.text != "tensor" && name.text != "list" && name.text != "tuple" && name.text != "dict" &&
      name.text != "state")
    Fail(name.offset, fmt::format("unknown type `{}`", name.text),
         "a type (e.g. tensor<fp32, [1, 3]> or int32)");
  Type type;
  Expect("<", "tensor<fp32, [1, 3]>");
  if (name.text == "tensor") {
    std::optional<DType> dtype = ParseDType(token_.text);
    if (!dtype) FailHere("an element type (e.g. fp16)");
    Advance();
    type.dtype = *dtype;
    next();
    Expect("[", "[1, 3]");
    while (!token_.is("]")) {
      if (!type.shape.empty()) next();
      type.shape.push_back(ParseDimension(true));
      if (type.shape.size() > kMaxDepth) Fail(token_.offset, "a tensor with too many dimensions");
    }
    Advance();
  } else if (name.text == "list") {
    Type element = ParseType();
    next();
    type = Type::List(std::move(element), ParseDimension(true));
  } else if (name.text == "state") {
    type = Type::State(ParseType());
  } else {
    type.kind = name.text == "dict" ? Type::Kind::kDict : Type::Kind::kTuple;
    type.elements.push_back(ParseType());
    while (Accept(",")) type.elements.push_back(ParseType());
    if (type.kind == Type::Kind::kDict && type.elements.size() != 2)
      Fail(name.offset, "a dict has a key type and a value type", "dict<string, int32>");
  }
  Expect(">", "tensor<fp32, [1, 3]>");
  return type;
}

void TextReader::ParseElement(Elements& out) {
  Element element;
  element.negative = Accept("-");
  element.token = token_;
  bool word = token_.is_name("inf") || token_.is_name("nan") ||
              (!element.negative && (token_.is_name("true") || token_.is_name("false")));
  if (token_.kind != Token::Kind::kNumber && !word &&
      (token_.kind != Token::Kind::kString || element.negative))
    FailHere("a number, true, false or a string");
  Advance();
  out.list.push_back(element);
}

// `shape` provides the rank and the dimensions (a placeholder allows any size); if it is null, they
// follow from the nesting of the brackets. Fills in out.dims.
void TextReader::ParseElements(Elements& out, size_t level, const Shape* shape) {
  if (shape ? level == shape->size() : !token_.is("[")) {
    if (!shape && !out.list.empty() && level != out.dims.size())
      Fail(token_.offset, "the rows of a constant differ in nesting depth");
    return ParseElement(out);
  }
  Nesting nesting(*this);
  size_t offset = token_.offset;
  Expect("[", "[1, 2]");
  bool first_visit = out.dims.size() <= level;
  if (first_visit && !shape && !out.list.empty())
    Fail(offset, "the rows of a constant differ in nesting depth");
  if (first_visit) out.dims.push_back(-1);
  int64_t count = 0;
  while (!token_.is("]")) {
    if (count++) Expect(",", "[1, 2]");
    ParseElements(out, level + 1, shape);
  }
  Advance();
  int64_t wanted = out.dims[level];
  if (wanted < 0 && shape && (*shape)[level].is_constant()) wanted = (*shape)[level].constant();
  if (wanted >= 0 && count != wanted)
    Fail(offset, fmt::format("{} elements, but dimension {} has size {}", count, level, wanted));
  out.dims[level] = count;
}

Elements TextReader::ParseUntyped() {
  Elements elements;
  elements.offset = token_.offset;
  ParseElements(elements, 0, nullptr);
  if (ElementCount(elements.dims) != static_cast<int64_t>(elements.list.size()))
    Fail(elements.offset, "the rows of a constant differ in nesting depth");  // [[], 1]
  return elements;
}

template <class T>
std::optional<T> ParseFloat(std::string_view text) {
  bool hex = text.starts_with("0x") || text.starts_with("0X");
  if (hex) text.remove_prefix(2);
  T value = 0;
  auto [stop, code] = FloatFromChars(text.data(), text.data() + text.size(), value,
                                     hex ? std::chars_format::hex : std::chars_format::general);
  if (stop != text.data() + text.size() || code != std::errc()) return std::nullopt;
  return value;
}

Tensor TextReader::Convert(const Elements& elements, DType dtype) {
  auto fail = [&](const Element& e) {
    Fail(e.token.offset, fmt::format("`{}{}` is not a valid {}", e.negative ? "-" : "",
                                     e.token.text.substr(0, 40), Name(dtype)));
  };
  if (elements.fill) {
    Elements one;
    one.list = elements.list;
    Tensor element = Convert(one, dtype);
    Pin<std::byte> bytes = element.bytes();
    std::vector<std::byte> all;
    for (int64_t i = ElementCount(elements.dims); i > 0; --i)
      all.insert(all.end(), bytes.begin(), bytes.end());
    return Tensor::Owned(dtype, elements.dims, std::move(all));
  }
  if (dtype == DType::kString) {
    std::vector<std::string> strings(elements.list.size());
    for (size_t i = 0; i < strings.size(); ++i) {
      const Element& e = elements.list[i];
      if (e.token.kind != Token::Kind::kString || !Unescape(e.token.text, strings[i])) fail(e);
    }
    return Tensor::Strings(elements.dims, std::move(strings));
  }
  for (const Element& e : elements.list)
    if (e.token.kind == Token::Kind::kString) fail(e);
  if (dtype == DType::kBool) {
    std::vector<bool> bools;
    for (const Element& e : elements.list) {
      if (e.token.kind != Token::Kind::kName || (e.token.text != "true" && e.token.text != "false"))
        fail(e);
      bools.push_back(e.token.text == "true");
    }
    return Tensor::Of<bool>(elements.dims, bools);
  }
  if (IsFloat(dtype)) {
    std::vector<double> values;
    for (const Element& e : elements.list) {
      double value = 0;
      if (e.token.is_name("inf")) {
        value = std::numeric_limits<double>::infinity();
      } else if (e.token.is_name("nan")) {
        value = std::numeric_limits<double>::quiet_NaN();
      } else if (e.token.kind != Token::Kind::kNumber) {
        fail(e);
      } else if (dtype == DType::kFp32) {
        std::optional<float> parsed = ParseFloat<float>(e.token.text);  // rounds once
        if (!parsed) fail(e);
        value = *parsed;
      } else {
        std::optional<double> parsed = ParseFloat<double>(e.token.text);
        if (!parsed) fail(e);
        value = *parsed;
      }
      values.push_back(e.negative ? -value : value);
    }
    return Tensor::Of<double>(elements.dims, values).Cast(dtype);
  }
  int bits = Bits(dtype);
  std::vector<std::byte> bytes(ByteCount(dtype, static_cast<int64_t>(elements.list.size())));
  for (size_t i = 0; i < elements.list.size(); ++i) {
    const Element& e = elements.list[i];
    uint64_t magnitude = 0;
    const char* end = e.token.text.data() + e.token.text.size();
    auto [stop, code] = std::from_chars(e.token.text.data(), end, magnitude);
    uint64_t half = uint64_t{1} << (bits - 1);
    uint64_t limit = IsSigned(dtype) ? (e.negative ? half : half - 1)
                     : e.negative    ? 0
                                     : half * 2 - 1;
    if (e.token.kind != Token::Kind::kNumber || code != std::errc() || stop != end ||
        magnitude > limit)
      fail(e);
    uint64_t value = e.negative ? 0 - magnitude : magnitude;
    for (int bit = 0; bit < bits; bit += bits < 8 ? 1 : 8) {
      size_t at = i * bits + bit;
      bytes[at / 8] |= std::byte(bits < 8 ? (value >> bit & 1) << at % 8 : value >> bit & 255);
    }
  }
  return Tensor::Owned(dtype, elements.dims, std::move(bytes));
}

// Parses from the opening parenthesis. Unknown dimensions of `type` are taken from the literal.
Node TextReader::ParseLiteral(Type& type) {
  Nesting nesting(*this);
  Node node;
  switch (type.kind) {
    case Type::Kind::kTensor: {
      if (token_.is_name("BLOBFILE")) return ParseBlob(type);
      Elements elements;
      elements.offset = token_.offset;
      if (token_.is_name("fill")) {
        Advance();
        Expect("(", "fill(0.5)");
        ParseElement(elements);
        Expect(")", "fill(0.5)");
        if (!IsStatic(type.shape)) Fail(elements.offset, "fill() needs a static shape");
        elements.dims = StaticDims(type.shape);
        elements.fill = true;
        if (type.dtype == DType::kString || type.dtype == DType::kBool || Bits(type.dtype) < 8)
          Fail(elements.offset, fmt::format("fill() does not support {}", Name(type.dtype)));
        if (ElementCount(elements.dims) > kMaxFill)
          Fail(elements.offset, fmt::format("fill() is limited to {} numbers", kMaxFill));
      } else {
        ParseElements(elements, 0, &type.shape);
        // Levels below an empty level were not visited.
        for (size_t i = elements.dims.size(); i < type.shape.size(); ++i)
          elements.dims.push_back(type.shape[i].is_constant() ? type.shape[i].constant() : 0);
      }
      node.tensor = Convert(elements, type.dtype);
      type.shape = ToShape(elements.dims);
      return node;
    }
    case Type::Kind::kList:
      Expect("[", "[\"cat\", \"dog\"]");
      while (!token_.is("]")) {
        if (!node.members.empty()) Expect(",", "[\"cat\", \"dog\"]");
        Type element = type.elements[0];
        node.members.push_back(ParseLiteral(element));
      }
      Advance();
      return node;
    case Type::Kind::kTuple:
      Expect("(", "(1, 2)");
      for (Type member : type.elements) {
        if (!node.members.empty()) Expect(",", "(1, 2)");
        node.members.push_back(ParseLiteral(member));
      }
      Expect(")", "(1, 2)");
      return node;
    case Type::Kind::kDict:
      Expect("{", "{{\"key\", 1}}");
      while (!token_.is("}")) {
        if (!node.members.empty()) Expect(",", "{{\"key\", 1}}");
        Type key = type.elements[0], value = type.elements[1];
        Expect("{", "{{\"key\", 1}}");
        node.members.push_back(ParseLiteral(key));
        Expect(",", "{{\"key\", 1}}");
        node.members.push_back(ParseLiteral(value));
        Expect("}", "{{\"key\", 1}}");
      }
      Advance();
      return node;
    case Type::Kind::kState:
      break;
  }
  Fail(token_.offset, "a state cannot be a literal");
}

Node TextReader::ParseBlob(const Type& type) {
  constexpr std::string_view kExample =
      "BLOBFILE(path = string(\"@model_path/weights/weight.bin\"), offset = uint64(64))";
  Advance();
  Expect("(", kExample);
  ExpectWord("path", kExample);
  Expect("=", kExample);
  size_t path_offset = token_.offset;
  Type path_type, offset_type;
  Tensor path = TensorOf(ParseValue(path_type), path_type, path_offset);
  Expect(",", kExample);
  ExpectWord("offset", kExample);
  Expect("=", kExample);
  Tensor offset = TensorOf(ParseValue(offset_type), offset_type, path_offset);
  Expect(")", kExample);
  if (path.dtype() != DType::kString || path.size() != 1 || !IsInteger(offset.dtype()) ||
      offset.size() != 1)
    Fail(path_offset, "BLOBFILE needs a path and an offset", std::string(kExample));
  if (!IsStatic(type.shape) || type.dtype == DType::kString)
    Fail(path_offset, "a blob needs a static numeric type");
  Dims dims = StaticDims(type.shape);
  std::string name = path.strings()[0];
  ElementCount(dims);
  if (read_blob_)
    return {read_blob_(name, static_cast<uint64_t>(offset.Int(0)), type.dtype, dims), {}};
  return {Tensor::Absent(name, static_cast<uint64_t>(offset.Int(0)), type.dtype, dims), {}};
}

// TYPE(literal); sets `type`.
Node TextReader::ParseValue(Type& type) {
  type = ParseType();
  Expect("(", "int32(1)");
  Node node = ParseLiteral(type);
  Expect(")", "int32(1)");
  return node;
}

// A list of equal tensors is stored as one tensor with the list's length as its first dimension.
Tensor TextReader::TensorOf(const Node& node, const Type& type, size_t offset) {
  if (type.is_tensor()) return node.tensor;
  if (type.kind == Type::Kind::kList && type.elements[0].is_tensor()) {
    if (type.elements[0].dtype == DType::kString && type.elements[0].rank() == 0) {
      std::vector<std::string> strings;
      for (const Node& member : node.members) strings.push_back(member.tensor.strings()[0]);
      Dims dims = {static_cast<int64_t>(strings.size())};
      return Tensor::Strings(std::move(dims), std::move(strings));
    }
    std::vector<std::byte> bytes;
    Dims dims;
    for (const Node& member : node.members) {
      if (Bits(member.tensor.dtype()) < 8 || (!dims.empty() && dims != member.tensor.dims()))
        Fail(offset, "the members of a list have different types, or fewer than 8 bits");
      dims = member.tensor.dims();
      Pin<std::byte> more = member.tensor.bytes();
      bytes.insert(bytes.end(), more.begin(), more.end());
    }
    dims.insert(dims.begin(), static_cast<int64_t>(node.members.size()));
    return Tensor::Owned(type.elements[0].dtype, std::move(dims), std::move(bytes));
  }
  Fail(offset, "unexpected tuple, dict or list of lists", "a tensor (e.g. int32(1))");
}

}  // namespace mlc
