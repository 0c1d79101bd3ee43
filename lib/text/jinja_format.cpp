#include "lib/text/jinja_format.h"

#include <algorithm>
#include <cmath>

#include "lib/text/unicode.h"

namespace mlc::text::jinja {

namespace {

constexpr int64_t kLargestPrecision = 1000;

// Reads digits; `most` bounds what a width may cost.
int64_t Number(Runtime& runtime, std::string_view text, size_t& at) {
  int64_t number = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    number = number * 10 + (text[at] - '0');
    if (number > 1'000'000) runtime.Fail("a width or precision in a format is too large");
  }
  return number;
}

std::string Digits(const FormatSpec& spec, uint64_t magnitude) {
  switch (spec.type) {
    case 'x':
      return fmt::format(fmt::runtime(spec.alternate ? "{:#x}" : "{:x}"), magnitude);
    case 'X':
      return fmt::format(fmt::runtime(spec.alternate ? "{:#X}" : "{:X}"), magnitude);
    case 'o':
      return (spec.alternate ? "0o" : "") + fmt::format("{:o}", magnitude);
    case 'b':
      return fmt::format(fmt::runtime(spec.alternate ? "{:#b}" : "{:b}"), magnitude);
    default:
      return fmt::format("{}", magnitude);
  }
}

std::string Grouped(std::string_view digits) {
  const size_t end = std::min(digits.find_first_not_of("0123456789"), digits.size());
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && i < end && (end - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

// `text` is in single quotes, as repr and ascii have it.
std::string Ascii(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const auto code = static_cast<uint32_t>(NextCharacter(text, at));
    out += code < 0x80      ? std::string(1, static_cast<char>(code))
           : code < 0x100   ? fmt::format("\\x{:02x}", code)
           : code < 0x10000 ? fmt::format("\\u{:04x}", code)
                            : fmt::format("\\U{:08x}", code);
  }
  return out;
}

// The magnitude in the format of C's printf, whose digits are Python's.
std::string RealDigits(Runtime& runtime, double magnitude, const FormatSpec& spec) {
  if (std::isinf(magnitude) || std::isnan(magnitude)) {
    std::string text = std::isnan(magnitude) ? "nan" : "inf";
    if (spec.type == 'E' || spec.type == 'F' || spec.type == 'G')
      std::transform(text.begin(), text.end(), text.begin(),
                     [](char c) { return static_cast<char>(c - 32); });
    return text;
  }
  const int precision = static_cast<int>(spec.precision < 0 ? 6 : spec.precision);
  if (precision > kLargestPrecision) runtime.Fail("a precision in a format is too large");
  const char letter = spec.type == '%' ? 'f' : spec.type;
  if (spec.type == '%') magnitude *= 100;
  const std::string format = fmt::format("{{:{}.{{}}{}}}", spec.alternate ? "#" : "", letter);
  std::string text = fmt::format(fmt::runtime(format), magnitude, precision);
  return spec.type == '%' ? text + "%" : text;
}

}  // namespace

std::string Padded(Runtime& runtime, std::string_view text, std::string_view fill, char align,
                   int64_t width) {
  const int64_t missing = width - CountCharacters(text);
  if (missing <= 0) return std::string(text);
  CheckSize(runtime, static_cast<double>(missing) * static_cast<double>(fill.size()));
  const int64_t left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  std::string out;
  for (int64_t i = 0; i < left; ++i) out += fill;
  out += text;
  for (int64_t i = left; i < missing; ++i) out += fill;
  return out;
}

std::string Formatted(Runtime& runtime, const Value& value, const FormatSpec& given) {
  FormatSpec spec = given;
  std::string sign, body;
  bool numeric = true;
  constexpr std::string_view kWhole = "dxXob", kReal = "eEfFgG%";
  if (value.number_like() && spec.type == 0 && !value.is(Type::kBool))
    spec.type = value.is(Type::kInt) ? 'd' : spec.precision >= 0 ? 'g' : 'r';
  if (kWhole.find(spec.type) != kWhole.npos && spec.type) {
    if (!value.integral())
      runtime.Fail(
          fmt::format("format '{}' requires an integer, not {}", spec.type, TypeName(value)));
    const int64_t number = value.whole();
    if (number < 0) sign = "-";
    body = Digits(spec, number < 0 ? uint64_t{0} - static_cast<uint64_t>(number)
                                   : static_cast<uint64_t>(number));
  } else if (spec.type == 'r' && value.is(Type::kFloat)) {
    if (std::signbit(value.number)) sign = "-";
    body = FloatText(std::fabs(value.number));
  } else if (kReal.find(spec.type) != kReal.npos && spec.type) {
    if (!value.number_like())
      runtime.Fail(
          fmt::format("format '{}' requires a number, not {}", spec.type, TypeName(value)));
    if (std::signbit(value.real())) sign = "-";
    body = RealDigits(runtime, std::fabs(value.real()), spec);
  } else if (spec.type == 's' || spec.type == 0) {
    numeric = false;
    body = TextOf(runtime, value);
    if (spec.precision >= 0) {
      size_t end = 0;
      for (int64_t i = 0; i < spec.precision && end < body.size(); ++i)
        end += CharacterBytes(body[end]);
      body.resize(std::min(end, body.size()));
    }
  } else {
    runtime.Unsupported(fmt::format("the format '{}'", spec.type));
  }
  if (spec.grouped) body = Grouped(body);
  if (numeric && sign.empty() && spec.sign) sign = spec.sign;
  if (spec.align == '=' && numeric)
    return sign + Padded(runtime, body, spec.fill, '>', spec.width - std::ssize(sign));
  const char align = spec.align && spec.align != '=' ? spec.align : numeric ? '>' : '<';
  return Padded(runtime, sign + body, spec.fill, align, spec.width);
}

std::string Format(Runtime& runtime, std::string_view format, const Value& values) {
  std::string out;
  size_t used = 0;
  const bool tuple = values.is(Type::kTuple);
  const auto next = [&]() -> Value {
    if (!tuple) {
      if (used++ > 0) runtime.Fail("not enough arguments for format string");
      return values;
    }
    if (used >= values.list->items.size()) runtime.Fail("not enough arguments for format string");
    return values.list->items[used++];
  };
  bool mapped = false;
  for (size_t at = 0; at < format.size();) {
    if (format[at] != '%') {
      const size_t end = std::min(format.find('%', at), format.size());
      runtime.Memory(end - at);
      out += format.substr(at, end - at);
      at = end;
      continue;
    }
    ++at;
    std::optional<Value> keyed;
    if (at < format.size() && format[at] == '(') {
      const size_t end = format.find(')', at);
      if (end == format.npos) runtime.Fail("incomplete format key");
      if (!values.is(Type::kDict)) runtime.Fail("format requires a mapping");
      const std::string_view key = format.substr(at + 1, end - at - 1);
      const Value* found = Find(*values.dict, key);
      if (!found) runtime.Fail(fmt::format("the format names the missing key '{}'", key));
      keyed = *found;
      mapped = true;
      at = end + 1;
    }
    FormatSpec spec{.align = '>'};
    bool zero = false;
    for (; at < format.size(); ++at) {
      if (format[at] == '-')
        spec.align = '<';
      else if (format[at] == '+')
        spec.sign = '+';
      else if (format[at] == ' ')
        spec.sign = spec.sign ? spec.sign : ' ';
      else if (format[at] == '0')
        zero = true;
      else if (format[at] == '#')
        spec.alternate = true;
      else
        break;
    }
    const auto amount = [&] {
      if (at >= format.size() || format[at] != '*') return Number(runtime, format, at);
      ++at;
      const Value given = next();
      if (!given.integral()) runtime.Fail("* wants int");
      if (given.whole() > 1'000'000 || given.whole() < -1'000'000)
        runtime.Fail("a width or precision in a format is too large");
      return given.whole();
    };
    spec.width = amount();
    if (spec.width < 0) spec.align = '<', spec.width = -spec.width;
    if (at < format.size() && format[at] == '.') {
      ++at;
      spec.precision = std::max<int64_t>(amount(), 0);
    }
    while (at < format.size() && (format[at] == 'l' || format[at] == 'h' || format[at] == 'L'))
      ++at;
    if (at >= format.size()) runtime.Fail("incomplete format");
    char type = format[at++];
    if (type == '%') {
      out += '%';
      continue;
    }
    Value value = keyed ? *keyed : next();
    if (type == 'i' || type == 'u') type = 'd';
    if (type == 'r' || type == 'a') {
      std::string text;
      AppendRepr(runtime, value, text);
      value = runtime.String(type == 'a' ? Ascii(text) : text);
      type = 's';
    }
    if (type == 'd' && value.is(Type::kFloat)) {
      if (std::fabs(value.number) >= 9e18 || std::isnan(value.number))
        runtime.Unsupported("an integer beyond 64 bits");
      value = Value::Int(static_cast<int64_t>(value.number));
    }
    if (type == 'c') runtime.Unsupported("the format %c");
    if (std::string_view("dxXoseEfFgG").find(type) == std::string_view::npos)
      runtime.Fail(fmt::format("unsupported format character '{}'", type));
    if (type == 'd' && !value.number_like())
      runtime.Fail(fmt::format("%d format: a real number is required, not {}", TypeName(value)));
    spec.type = type;
    if (spec.precision >= 0 && (type == 'd' || type == 'x' || type == 'X' || type == 'o'))
      runtime.Unsupported("a precision of an integer in a format");
    if (zero && type != 's' && spec.align != '<') spec.align = '=', spec.fill = "0";
    out += Formatted(runtime, value, spec);
  }
  const bool all = tuple ? used >= values.list->items.size()
                         : used > 0 || mapped || values.is(Type::kDict) || values.is(Type::kList) ||
                               values.is(Type::kUndefined);
  if (!all) runtime.Fail("not all arguments converted during string formatting");
  runtime.Memory(out.size());
  return out;
}

std::string FormatBraces(Runtime& runtime, std::string_view format, const Arguments& arguments) {
  std::string out;
  size_t automatic = 0;
  for (size_t at = 0; at < format.size();) {
    const char c = format[at];
    if ((c == '{' || c == '}') && at + 1 < format.size() && format[at + 1] == c) {
      out += c;
      at += 2;
      continue;
    }
    if (c == '}') runtime.Fail("Single '}' encountered in format string");
    if (c != '{') {
      const size_t end = std::min(format.find_first_of("{}", at), format.size());
      runtime.Memory(end - at);
      out += format.substr(at, end - at);
      at = end;
      continue;
    }
    const size_t end = format.find_first_of("{}", ++at);
    if (end == format.npos) runtime.Fail("expected '}' before end of string");
    if (format[end] == '{') runtime.Unsupported("a nested field in a format");
    std::string_view field = format.substr(at, end - at), how;
    at = end + 1;
    if (const size_t colon = field.find(':'); colon != field.npos) {
      how = field.substr(colon + 1);
      field = field.substr(0, colon);
    }
    char conversion = 0;
    if (const size_t mark = field.find('!'); mark != field.npos) {
      if (mark + 2 != field.size()) runtime.Fail("expected ':' after conversion specifier");
      conversion = field[mark + 1];
      field = field.substr(0, mark);
    }
    if (field.find_first_of(".[") != field.npos)
      runtime.Unsupported("an attribute or element in a field of a format");
    Value value;
    size_t digits = 0;
    const bool numbered = !field.empty() && field.find_first_not_of("0123456789") == field.npos;
    const size_t index = field.empty() ? automatic++
                         : numbered    ? static_cast<size_t>(Number(runtime, field, digits))
                                       : 0;
    if (field.empty() || numbered) {
      if (index >= arguments.positional.size())
        runtime.Fail(
            fmt::format("Replacement index {} out of range for positional args tuple", index));
      value = arguments.positional[index];
    } else {
      const auto found = std::find_if(arguments.named.begin(), arguments.named.end(),
                                      [&](const auto& each) { return each.first == field; });
      if (found == arguments.named.end())
        runtime.Fail(fmt::format("the format names '{}', which is not given", field));
      value = found->second;
    }
    if (conversion == 'r') {
      std::string text;
      AppendRepr(runtime, value, text);
      value = runtime.String(std::move(text));
    } else if (conversion == 's') {
      value = runtime.String(TextOf(runtime, value));
    } else if (conversion) {
      runtime.Unsupported(fmt::format("the conversion !{}", conversion));
    }
    FormatSpec spec;
    size_t i = 0;
    const auto aligns = [&](size_t k) {
      return k < how.size() && std::string_view("<>^=").find(how[k]) != std::string_view::npos;
    };
    if (!how.empty()) {
      const size_t first = std::min(CharacterBytes(how[0]), how.size());
      if (aligns(first)) {
        spec.fill = how.substr(0, first);
        spec.align = how[first];
        i = first + 1;
      } else if (aligns(0)) {
        spec.align = how[i++];
      }
    }
    if (i < how.size() && (how[i] == '+' || how[i] == ' '))
      spec.sign = how[i++];
    else if (i < how.size() && how[i] == '-')
      ++i;
    if (i < how.size() && how[i] == '#') spec.alternate = true, ++i;
    if (i < how.size() && how[i] == '0') {
      if (!spec.align) spec.align = '=', spec.fill = "0";
      ++i;
    }
    spec.width = Number(runtime, how, i);
    if (i < how.size() && how[i] == ',') spec.grouped = true, ++i;
    if (i < how.size() && how[i] == '.') spec.precision = Number(runtime, how, ++i);
    if (i < how.size()) spec.type = how[i++];
    if (i < how.size()) runtime.Fail(fmt::format("Invalid format specifier '{}'", how));
    out += Formatted(runtime, value, spec);
  }
  runtime.Memory(out.size());
  return out;
}

}  // namespace mlc::text::jinja
