#include "lib/support/float_text.h"

#include <locale.h>
#include <stdlib.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif

#include <cctype>
#include <cerrno>
#include <cmath>
#include <string>

namespace mlc {
namespace {

double Strto(const char* text, char** stop, locale_t locale, double) {
  return strtod_l(text, stop, locale);
}
float Strto(const char* text, char** stop, locale_t locale, float) {
  return strtof_l(text, stop, locale);
}

bool IsPrefixOfHex(const std::string& digits) {
  return digits.size() > 1 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
}

}  // namespace

template <class T>
std::from_chars_result FloatFromStrtod(const char* begin, const char* end, T& value,
                                       std::chars_format format) {
  static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
  const bool minus = begin != end && *begin == '-';
  const char* first = begin + minus;
  std::string digits(first, end);
  // Unlike std::from_chars, strtod also accepts spaces and signs.
  if (digits.empty() || digits[0] == '+' || digits[0] == '-' || isspace(digits[0]))
    return {begin, std::errc::invalid_argument};
  const bool hex = format == std::chars_format::hex;
  if (IsPrefixOfHex(digits)) digits.resize(1);                      // only the 0
  const bool is_word = isalpha(digits[0]) && !isxdigit(digits[0]);  // inf, nan
  const std::string text = hex && !is_word ? "0x" + digits : digits;
  char* stop = nullptr;
  errno = 0;
  const T found = Strto(text.c_str(), &stop, plain, T());
  const std::ptrdiff_t used = stop - text.c_str() - (text.size() > digits.size() ? 2 : 0);
  if (used <= 0) return {begin, std::errc::invalid_argument};
  if (errno == ERANGE && (std::isinf(found) || found == 0))
    return {first + used, std::errc::result_out_of_range};
  value = minus ? -found : found;
  return {first + used, std::errc()};
}

template <class T>
std::from_chars_result FloatFromChars(const char* begin, const char* end, T& value,
                                      std::chars_format format) {
#ifdef __cpp_lib_to_chars
  return std::from_chars(begin, end, value, format);
#else
  return FloatFromStrtod(begin, end, value, format);
#endif
}

template std::from_chars_result FloatFromChars(const char*, const char*, float&, std::chars_format);
template std::from_chars_result FloatFromChars(const char*, const char*, double&,
                                               std::chars_format);
template std::from_chars_result FloatFromStrtod(const char*, const char*, float&,
                                                std::chars_format);
template std::from_chars_result FloatFromStrtod(const char*, const char*, double&,
                                                std::chars_format);

std::optional<double> ParseNumber(std::string_view text) {
  double value = 0;
  const auto [end, error] = FloatFromChars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

}  // namespace mlc
