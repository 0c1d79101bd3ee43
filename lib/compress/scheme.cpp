#include "lib/compress/scheme.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "lib/support/edit_distance.h"
#include "lib/support/error.h"

namespace mlc::compress {

namespace {

using Values = Scheme::Values;

constexpr std::string_view kExpected =
    "none, fp16, int8, int4, pal1, pal2, pal3, pal4, pal6, pal8, lut4, w8a8, sparse:SHARE or "
    "auto:bits=N, e.g. int4:block=32 or pal4:group=16";

struct SchemeRow {
  std::string_view name;
  Scheme scheme;
};
constexpr SchemeRow kSchemes[] = {
    {"none", {}},
    {"fp16", {.values = Values::kPlain}},
    {"int8", {.values = Values::kInteger, .bits = 8}},
    {"int4", {.values = Values::kInteger, .bits = 4, .block = 32}},
    {"pal1", {.values = Values::kPalette, .bits = 1}},
    {"pal2", {.values = Values::kPalette, .bits = 2}},
    {"pal3", {.values = Values::kPalette, .bits = 3}},
    {"pal4", {.values = Values::kPalette, .bits = 4}},
    {"pal6", {.values = Values::kPalette, .bits = 6}},
    {"pal8", {.values = Values::kPalette, .bits = 8}},
    {"lut4", {.values = Values::kPalette, .bits = 4, .group = 32}},
    {"w8a8", {.values = Values::kInteger, .bits = 8, .activations = true}},
    {"auto", {.values = Values::kAuto}},
};

template <class... Args>
Error Wrong(std::string_view scheme, fmt::format_string<Args...> format, Args&&... args) {
  return Error("usage", "option 'compress': \"{}\": {}", scheme,
               fmt::format(format, std::forward<Args>(args)...));
}

template <class T>
bool Number(std::string_view text, T& number) {
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && at == end && !text.empty();
}

// An option of a scheme; `set` returns false for an invalid value.
struct OptionRow {
  std::string_view name;  // up to and including '='; the whole text for a switch
  Values applies;
  bool (*set)(Scheme& scheme, std::string_view value);
  std::string_view expected;
};
constexpr OptionRow kOptions[] = {
    {"block=", Values::kInteger,
     [](Scheme& scheme, std::string_view value) {
       if (value == "row") return scheme.block = Scheme::kRow, true;
       if (value == "tensor") return scheme.block = Scheme::kTensor, true;
       return Number(value, scheme.block) && scheme.block >= 2;
     },
     "a number of inputs from 2, row or tensor"},
    {"asym", Values::kInteger,
     [](Scheme& scheme, std::string_view) { return scheme.asymmetric = true; }, ""},
    {"group=", Values::kPalette,
     [](Scheme& scheme, std::string_view value) {
       return Number(value, scheme.group) && scheme.group >= 1;
     },
     "a number of channels from 1"},
    {"axis=", Values::kPalette,
     [](Scheme& scheme, std::string_view value) {
       scheme.input_groups = value == "in";
       return value == "in" || value == "out";
     },
     "in or out"},
    {"vec=", Values::kPalette,
     [](Scheme& scheme, std::string_view value) {
       return Number(value, scheme.vector) && (scheme.vector == 2 || scheme.vector == 4);
     },
     "2 or 4"},
    {"scale=", Values::kPalette,
     [](Scheme& scheme, std::string_view value) { return scheme.row_scale = value == "row"; },
     "row"},
    {"lut=", Values::kPalette,
     [](Scheme& scheme, std::string_view value) { return scheme.int8_table = value == "int8"; },
     "int8"},
    {"bits=", Values::kAuto,
     [](Scheme& scheme, std::string_view value) {
       scheme.goal = Scheme::Goal::kBits;
       return Number(value, scheme.wanted) && scheme.wanted >= 1 && scheme.wanted <= 16;
     },
     "bits per element from 1 to 16"},
    {"size=", Values::kAuto,
     [](Scheme& scheme, std::string_view value) {
       scheme.goal = Scheme::Goal::kSize;
       if (!value.ends_with('%')) return false;
       return Number(value.substr(0, value.size() - 1), scheme.wanted) && scheme.wanted > 0 &&
              scheme.wanted <= 100;
     },
     "a percentage of the size of the weights, such as 30%"},
    {"snr=", Values::kAuto,
     [](Scheme& scheme, std::string_view value) {
       scheme.goal = Scheme::Goal::kSnr;
       return Number(value, scheme.wanted) && scheme.wanted > 0 && scheme.wanted <= 200;
     },
     "the signal-to-noise ratio of the outputs in dB, such as 40"},
};

const OptionRow* FindOption(std::string_view text) {
  for (const OptionRow& row : kOptions)
    if (row.name.ends_with('=') ? text.starts_with(row.name) : text == row.name) return &row;
  return nullptr;
}

std::string_view NameOf(std::string_view text) { return text.substr(0, text.find_first_of(":+,")); }

const SchemeRow* FindScheme(std::string_view name) {
  const auto* row = std::ranges::find(kSchemes, name, &SchemeRow::name);
  return row == std::end(kSchemes) ? nullptr : row;
}

// Parses 0.75 or 2:4 into the sparsity of a scheme.
void ParseZeros(std::string_view text, std::string_view whole, Scheme& scheme) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) {
    if (!Number(text, scheme.zeros) || !(scheme.zeros > 0 && scheme.zeros < 1))
      throw Wrong(whole, "\"{}\" is not a share of zeros", text)
          .Expected("a number between 0 and 1, e.g. sparse:0.75, or zeros of inputs, sparse:2:4");
    return;
  }
  if (!Number(text.substr(0, colon), scheme.zeros_of) ||
      !Number(text.substr(colon + 1), scheme.zeros_among) || scheme.zeros_of < 1 ||
      scheme.zeros_among > 64 || scheme.zeros_of >= scheme.zeros_among)
    throw Wrong(whole, "\"{}\" is not a number of zeros of every few inputs", text)
        .Expected("N:M with N below M, and M at most 64, e.g. sparse:2:4");
}

// Parses int8, or int8:block=32,asym.
Scheme ParseValues(std::string_view text, std::string_view whole) {
  const std::string_view name = NameOf(text);
  const SchemeRow* row = FindScheme(name);
  if (!row) {
    std::vector<std::string_view> names = {"sparse"};
    for (const SchemeRow& each : kSchemes) names.push_back(each.name);
    throw Wrong(whole, "unknown scheme \"{}\"{}", name, DidYouMean(names, name))
        .Expected(std::string(kExpected));
  }
  Scheme scheme = row->scheme;
  std::string_view rest = text.substr(name.size());
  if (rest.empty()) return scheme;
  if (rest == ":") throw Wrong(whole, "an option is missing after \":\"");
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const std::string_view option = rest.substr(0, rest.find(','));
    rest.remove_prefix(option.size());
    const OptionRow* found = FindOption(option);
    if (!found) {
      std::vector<std::string_view> names;
      for (const OptionRow& each : kOptions)
        names.push_back(each.name.substr(0, each.name.find('=')));
      throw Wrong(whole, "unknown option \"{}\"{}", option,
                  DidYouMean(names, option.substr(0, option.find('='))));
    }
    if (found->applies != scheme.values || scheme.activations)
      throw Wrong(whole, "{} has no option {}", name, option);
    if (!found->set(scheme, option.substr(found->name.size())))
      throw Wrong(whole, "invalid option \"{}\"", option).Expected(std::string(found->expected));
  }
  return scheme;
}

}  // namespace

bool BeginsWithScheme(std::string_view text) {
  const std::string_view name = NameOf(text);
  return FindScheme(name) || name == "sparse";
}

bool BeginsWithOption(std::string_view text) {
  return FindOption(text.substr(0, text.find_first_of(",;"))) != nullptr;
}

Scheme ParseScheme(std::string_view text) {
  if (NameOf(text) != "sparse") {
    const Scheme scheme = ParseValues(text, text);
    if (scheme.values == Values::kAuto && scheme.goal == Scheme::Goal::kNone)
      throw Wrong(text, "auto requires a goal")
          .Expected("auto:bits=4, auto:size=30% or auto:snr=40");
    if (scheme.input_groups && scheme.group == 0) throw Wrong(text, "axis=in requires group=N");
    if (scheme.vector > 1 && (scheme.input_groups || scheme.row_scale || scheme.int8_table))
      throw Wrong(text, "vec cannot be combined with axis=in, scale=row or lut=int8");
    if (scheme.row_scale && (scheme.int8_table || scheme.input_groups))
      throw Wrong(text, "scale=row cannot be combined with axis=in or lut=int8");
    return scheme;
  }
  const size_t plus = std::min(text.find('+'), text.size());
  std::string_view zeros = text.substr(0, plus);
  zeros.remove_prefix(std::string_view("sparse").size());
  Scheme scheme{.values = Values::kPlain};
  if (plus < text.size()) {
    scheme = ParseValues(text.substr(plus + 1), text);
    if ((scheme.values != Values::kInteger && scheme.values != Values::kPalette) ||
        scheme.activations)
      throw Wrong(text, "sparse can be combined with int8, int4 and palettes only");
    if (scheme.vector > 1 || scheme.row_scale || scheme.int8_table)
      throw Wrong(text, "sparse cannot be combined with vec, scale=row or lut=int8");
  }
  if (!zeros.starts_with(':'))
    throw Wrong(text, "the share of zeros is missing").Expected("sparse:0.75 or sparse:2:4");
  ParseZeros(zeros.substr(1), text, scheme);
  return scheme;
}

std::string Text(const Scheme& scheme) {
  std::string values, options;
  auto add = [&](bool given, std::string option) {
    if (given) options += (options.empty() ? ":" : ",") + option;
  };
  switch (scheme.values) {
    case Values::kKept:
      return "none";
    case Values::kPlain:
      values = "fp16";
      break;
    case Values::kInteger:
      if (scheme.activations) return "w8a8";
      values = fmt::format("int{}", scheme.bits);
      add(scheme.block == Scheme::kTensor, "block=tensor");
      add(scheme.block == Scheme::kRow && scheme.bits == 4, "block=row");
      add(scheme.block > 0, fmt::format("block={}", scheme.block));
      add(scheme.asymmetric, "asym");
      break;
    case Values::kPalette:
      values = fmt::format("pal{}", scheme.bits);
      add(scheme.group > 0, fmt::format("group={}", scheme.group));
      add(scheme.input_groups, "axis=in");
      add(scheme.vector > 1, fmt::format("vec={}", scheme.vector));
      add(scheme.row_scale, "scale=row");
      add(scheme.int8_table, "lut=int8");
      break;
    case Values::kAuto:
      values = "auto";
      add(scheme.goal == Scheme::Goal::kBits, fmt::format("bits={}", scheme.wanted));
      add(scheme.goal == Scheme::Goal::kSize, fmt::format("size={}%", scheme.wanted));
      add(scheme.goal == Scheme::Goal::kSnr, fmt::format("snr={}", scheme.wanted));
  }
  if (!scheme.sparse()) return values + options;
  std::string sparse = scheme.zeros_among > 0
                           ? fmt::format("sparse:{}:{}", scheme.zeros_of, scheme.zeros_among)
                           : fmt::format("sparse:{}", scheme.zeros);
  return scheme.values == Values::kPlain ? sparse : sparse + "+" + values + options;
}

Opset Since(const Scheme& scheme) {
  switch (scheme.values) {
    case Values::kKept:
      return Opset::kIos15;
    case Values::kPlain:
      return scheme.sparse() ? Opset::kIos16 : Opset::kIos15;
    case Values::kInteger:
      if (scheme.activations) return Opset::kIos17;
      return scheme.bits < 8 || scheme.block > 0 || scheme.sparse() ? Opset::kIos18 : Opset::kIos16;
    case Values::kAuto:
      return Opset::kIos18;
    case Values::kPalette:
      break;
  }
  const bool plain = scheme.bits != 3 && scheme.group == 0 && scheme.vector == 1 &&
                     !scheme.row_scale && !scheme.int8_table && !scheme.sparse();
  return plain ? Opset::kIos16 : Opset::kIos18;
}

Opset LowestTarget(const Scheme& scheme) {
  return scheme.values == Values::kAuto ? Opset::kIos16 : Since(scheme);
}

std::vector<Scheme> Choices(Opset target) {
  constexpr std::string_view kChoices[] = {"fp16",
                                           "int8",
                                           "pal8",
                                           "pal8:group=32",
                                           "pal8:vec=2",
                                           "pal6",
                                           "pal6:group=32",
                                           "pal6:vec=2",
                                           "int4:block=16,asym",
                                           "int4:block=16",
                                           "int4:block=32,asym",
                                           "int4:block=32",
                                           "int4:block=64",
                                           "int4:block=row",
                                           "pal4:group=8",
                                           "pal4:group=16",
                                           "pal4:group=32",
                                           "pal4",
                                           "pal3:group=8",
                                           "pal3:group=16",
                                           "pal3:group=32",
                                           "pal3",
                                           "pal2:group=8",
                                           "pal2:group=32",
                                           "pal2",
                                           "pal8:vec=4",
                                           "pal1"};
  std::vector<Scheme> choices;
  for (const std::string_view text : kChoices)
    if (const Scheme scheme = ParseScheme(text); Since(scheme) <= target) choices.push_back(scheme);
  return choices;
}

}  // namespace mlc::compress
