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
  std::vector<Option> table = Grouped(
      OptionGroup::kInputs,
      {{"--function", "NAME",
        "compare only this function (default: all; both models must have the same "
        "functions)",
        Into(into.function)},
       Common({"--inputs", "DIR",
               "input tensors: NAME.npy, in_NAME.npy or input_<k>.pb; in DIR/FUNCTION for several "
               "functions, in subfolders 0, 1, ... for several samples (default: generated inputs)",
               Into(into.inputs)}),
       FitOption(into.fit),
       Common({"--samples", "N",
               "number of runs of each function; states carry over from one to the next. "
               "Generated inputs differ from run to run: the first has dynamic dimensions at "
               "their lower bounds, the second at the largest sizes that run quickly, and the "
               "others in between (default: the number of samples in --inputs; 3 for models "
               "with states; 16 for generated inputs, fewer for large models)",
               Whole("--samples", into.samples)})});
  Append(
      Grouped(
          OptionGroup::kLanguage,
          {Common({"--tokens", "5,17,100",
                   "token ids: the prompt of a language model, run as a whole and token by token, "
                   "or the input of an encoder (default: generated)",
                   [&into](const std::string& text) { into.tokens = ParseTokens(text); }})}),
      table);
  Append(
      Grouped(
          OptionGroup::kComparison,
          {Common({"--reference", "DIR|NPZ",
                   "outputs computed elsewhere, laid out like --inputs, with states in a subfolder "
                   "named \"states\" (default: mlc's own import of the source)",
                   Into(into.reference)}),
           Common({"--budget", "fp32|fp16|int8|FILE",
                   "error budget (default: that of the package's precision); see below",
                   Into(into.budget)}),
           {"--per-axis", "N",
            "compare each slice along axis N relative to its own range (default: outputs are "
            "judged as a whole)",
            Whole("--per-axis", into.per_axis)},
           Common({"--atol", "X",
                   "judge each element: |difference| <= atol + rtol * |reference| (default: "
                   "--budget judges instead)",
                   NotNegative("--atol", into.atol)}),
           Common({"--rtol", "X",
                   "see --atol; if only one of the two is given, the other is 0 (default: --budget "
                   "judges instead)",
                   NotNegative("--rtol", into.rtol)}),
           Common({"--layers", "",
                   "also compare intermediate values and name the first outside the budget",
                   Switch(into.layers)})}),
      table);
  std::vector<Option> generated = MadeUpTable(into.make_up);
  table.insert(table.begin() + 2, generated.begin(), generated.end());
  return table;
}

}  // namespace mlc::driver
