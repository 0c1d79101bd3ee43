// Options of comparisons.

#include "lib/support/float_text.h"
#include "tools/driver/options.h"

namespace mlc::driver {

namespace {

Field NotNegative(std::string_view option, std::optional<double>& field) {
  return [option, &field](const std::string& text) {
    const std::optional<double> number = ParseNumber(text);
    if (!number || *number < 0)
      throw Error("usage", "{}: \"{}\" is not a number of at least 0", option, text);
    field = *number;
  };
}

}  // namespace

std::vector<Option> VerifyTable(VerifyOptions& into) {
  std::vector<Option> table = {
      {"--function", "NAME",
       "compare only this function (default: all; both models must have the same "
       "functions)",
       Into(into.function)},
      {"--inputs", "DIR",
       "input tensors: NAME.npy, in_NAME.npy or input_<k>.pb; in DIR/FUNCTION for several "
       "functions, in subfolders 0, 1, ... for several samples",
       Into(into.inputs)},
      {"--tokens", "5,17,100",
       "token ids: the prompt of a language model, run as a whole and token by token, "
       "or the input of an encoder (default: generated)",
       [&into](const std::string& text) { into.tokens = ParseTokens(text); }},
      {"--samples", "N",
       "number of runs of each function; states carry over from one to the next. "
       "Generated inputs differ from run to run: the first has dynamic dimensions at "
       "their lower bounds, the second at the largest sizes that run quickly, and the "
       "others in between (default: the number of samples in --inputs; 3 for models "
       "with states; 16 for generated inputs, fewer for large models)",
       Whole("--samples", into.samples)},
      {"--reference", "DIR|NPZ",
       "outputs computed elsewhere, laid out like --inputs, with states in a subfolder "
       "named \"states\" (default: mlc's own import of the source)",
       Into(into.reference)},
      {"--budget", "fp32|fp16|int8|FILE",
       "error budget (default: that of the package's precision); see below", Into(into.budget)},
      {"--per-axis", "N", "compare each slice along axis N relative to its own range",
       Whole("--per-axis", into.per_axis)},
      {"--atol", "X", "judge each element: |difference| <= atol + rtol * |reference|",
       NotNegative("--atol", into.atol)},
      {"--rtol", "X", "see --atol; if only one of the two is given, the other is 0",
       NotNegative("--rtol", into.rtol)},
      {"--layers", "", "also compare intermediate values and name the first outside the budget",
       Switch(into.layers)},
  };
  std::vector<Option> generated = MadeUpTable(into.make_up);
  table.insert(table.begin() + 2, generated.begin(), generated.end());
  return table;
}

}  // namespace mlc::driver
