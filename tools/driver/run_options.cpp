// Options of runs and of generated inputs.

#include "lib/support/float_text.h"
#include "tools/driver/options.h"

namespace mlc::driver {

namespace {

using Arithmetic = engine::EngineOptions::Arithmetic;
using Reshapes = runtime::LoadOptions::Reshapes;
using Specialization = runtime::LoadOptions::Specialization;

// Names may contain '=', ranges do not.
std::pair<std::string, std::pair<double, double>> ParseRange(const std::string& text) {
  const size_t equals = text.rfind('='), dots = text.rfind("..");
  std::optional<double> low, high;
  if (equals != std::string::npos && dots != std::string::npos && dots > equals) {
    low = ParseNumber(std::string_view(text).substr(equals + 1, dots - equals - 1));
    high = ParseNumber(std::string_view(text).substr(dots + 2));
  }
  if (!low || !high)
    throw Error("usage", "--input-range: \"{}\" is not of the form NAME=LO..HI", text);
  if (*low > *high)
    throw Error("usage", "--input-range: \"{}\": the lower bound is above the upper bound", text);
  return {text.substr(0, equals), {*low, *high}};
}

}  // namespace

Option FitOption(media::Fit& into) {
  const Field field =
      OneOf("--fit", into, {{"stretch", media::Fit::kStretch}, {"crop", media::Fit::kCrop}});
  return Common(
      {"--fit", "stretch|crop",
       "scale pictures to the size of the input, with crop after cutting what is too wide "
       "or too high, and cut sounds or fill them with silence (default: another size is "
       "an error)",
       Field(field.set, [&into]() -> std::optional<Field::Values> {
         if (into == media::Fit::kNone) return std::nullopt;
         return Field::Values{into == media::Fit::kCrop ? "crop" : "stretch"};
       })});
}

runtime::Units UnitsNamed(const std::string& text) {
  const std::optional<runtime::Units> units = runtime::ParseUnits(text);
  if (!units) throw UnknownWord("--units", text, {"all", "cpu", "gpu", "ane", "reference"});
  return *units;
}

std::vector<Option> MadeUpTable(analysis::GeneratedInputOptions& into) {
  return Grouped(
      OptionGroup::kInputs,
      {Common({"--seed", "N", "seed for generated inputs (default 0)", Whole("--seed", into.seed)}),
       {"--input-range", "NAME=LO..HI",
        "value range of a generated input (default: inferred from its use)",
        [&into](const std::string& text) {
          auto [name, range] = ParseRange(text);
          AddOnce("--input-range", into.ranges, name, range);
        },
        false, true}});
}

std::vector<Option> RunTable(BenchmarkOptions& into) {
  std::vector<Option> table = Grouped(
      OptionGroup::kInputs,
      {Common(
           {"--input", "NAME=FILE",
            "file for an input: a tensor (.npy, .npz, .pb, or elements in .raw), a picture (.png, "
            ".jpg, .ppm, .pgm) or a sound (.wav) (default: inputs are generated)",
            Into(into.input_files), false, true}),
       Common({"--picture", "FILE",
               "picture for the only image input of the model, like --input NAME=FILE, or, with "
               "--prompt or --tokens, for a model that reads pictures and texts (default: none)",
               Into(into.picture)}),
       FitOption(into.fit),
       {"--function", "NAME", "function to run (default: the model's default function)",
        Into(into.function)}});
  Append(
      Grouped(
          OptionGroup::kLanguage,
          {Common({"--tokens", "5,17,100",
                   "run on these token ids instead of input tensors. Outputs: logits [tokens, "
                   "vocabulary] for a language model; hidden [tokens, width] and pooled [width], "
                   "or the outputs of its head, for an encoder (default: none)",
                   [&into](const std::string& text) { into.tokens = ParseTokens(text); }}),
           Common(
               {"--text", "TEXT",
                "run a text encoder on this text, with the tokenizer of the model and the special "
                "tokens of its template. Outputs: those of --tokens, and the classes of a "
                "classifier (default: none)",
                [&into](const std::string& text) { into.text.text = text; }}),
           {"--text-pair", "TEXT",
            "with --text: the second text of a pair (question and passage, two sentences) "
            "(default: "
            "none)",
            [&into](const std::string& text) { into.text.pair = text; }},
           {"--step", "",
            "feed --tokens one at a time, keeping the context in the model's states, and "
            "report the time of each",
            Switch(into.step)}}),
      table);
  Append(
      Grouped(OptionGroup::kOutput,
              {Common({"--output-dir", "DIR",
                       "write each output to DIR/NAME.npy, where NAME is its name in the model "
                       "(default: outputs are not written)",
                       Into(into.output_folder)}),
               Common({"--output", "NAME=FILE[,SCALE]",
                       "write this output to FILE: .npy, or a picture (.png, .jpg, .ppm, .pgm) of "
                       "its values, which SCALE brings to 0..255, e.g. y=out.png,255 (default: "
                       "outputs are not written; SCALE 1)",
                       Into(into.output_files), false, true})}),
      table);
  Append(
      Grouped(
          OptionGroup::kUnits,
          {Common({"--units", "all|cpu|gpu|ane|reference|sweep",
                   "compute units: Core ML's all (default where Core ML is available), cpu, gpu or "
                   "ane; reference, mlc's own CPU engine; or sweep, which measures each and "
                   "recommends one",
                   [&into](const std::string& text) {
                     into.sweep = text == "sweep";
                     into.units = runtime::ParseUnits(text);
                     if (!into.units && !into.sweep)
                       throw UnknownWord("--units", text,
                                         {"all", "cpu", "gpu", "ane", "reference", "sweep"});
                   }}),
           {"--require-units", "",
            "fail (exit code 3) if an operation is planned for a unit other than the "
            "requested one, or its unit is unknown",
            Switch(into.require_units)},
           {"--low-precision", "",
            "allow the GPU to accumulate in fp16 (Core ML's low precision accumulation)",
            Switch(into.hints.low_precision_accumulation)},
           {"--reshapes", "frequent|infrequent",
            "Core ML hint: how often input shapes change (default: Core ML's own)",
            OneOf("--reshapes", into.hints.reshapes,
                  {{"frequent", Reshapes::kFrequent}, {"infrequent", Reshapes::kInfrequent}})},
           {"--specialization", "default|fast-prediction",
            "Core ML hint: fast-prediction accepts a longer load for faster predictions (default: "
            "default)",
            OneOf("--specialization", into.hints.specialization,
                  {{"default", Specialization::kDefault},
                   {"fast-prediction", Specialization::kFastPrediction}})},
           {"--arithmetic", "faithful|exact",
            "arithmetic of the reference engine: faithful rounds fp16 results to fp16, as Core ML "
            "does (default for packages); exact computes in fp32 (default for source models)",
            OneOf("--arithmetic", into.arithmetic,
                  {{"faithful", Arithmetic::kFaithful}, {"exact", Arithmetic::kExact}})}}),
      table);
  Append(
      Grouped(
          OptionGroup::kMeasuring,
          {Common({"--iterations", "N", "number of measured runs (default: 1; 20 for two models)",
                   Whole("--iterations", into.iterations)}),
           Common({"--warmup", "N",
                   "number of runs before the measured ones (default: 0; 2 for two models)",
                   Whole("--warmup", into.warmup)}),
           {"--timeout", "MS",
            "abort a prediction after MS milliseconds and reload the model (exit code 4) (default: "
            "none)",
            Whole("--timeout", into.timeout)},
           {"--load-timeout", "MS",
            "abort a compilation or load by Core ML after MS milliseconds (default 600000)",
            Whole("--load-timeout", into.load_timeout)},
           {"--jobs", "N",
            "number of concurrent predictions, each on its own instance of the model (default "
            "1)",
            Whole("--jobs", into.jobs)},
           {"--soak", "DURATION",
            "predict for this long (90s, 30m, 1h) instead of --iterations, and report memory "
            "growth (default: none)",
            [&into](const std::string& text) { into.soak = ParseDuration("--soak", text); }},
           {"--warm-load", "", "load a second time and report how long that takes",
            Switch(into.warm_load)},
           {"--p99-budget", "MS",
            "open the circuit breaker, which stops calling the model for a while, when 3 "
            "of the last 100 predictions take longer than MS milliseconds (default: none)",
            Whole("--p99-budget", into.breaker.p99_budget_ms)},
           {"--memory-mark", "MB",
            "open the circuit breaker when the process uses more than MB megabytes (default: none)",
            [&into](const std::string& text) {
              constexpr int64_t kMegabyte = 1'000'000;
              const int64_t mark = ParseInt("--memory-mark", text);
              into.breaker.memory_limit =
                  mark > INT64_MAX / kMegabyte ? INT64_MAX : mark * kMegabyte;
            }},
           Common({"--profile", "", "report the time of each operator (reference engine only)",
                   Switch(into.profile)})}),
      table);
  Append(
      Grouped(
          OptionGroup::kComparison,
          {Common({"--compare", "reference|MODEL",
                   "compare outputs with the reference engine, or with another model on the same "
                   "units (exit code 3 outside the budget) (default: none)",
                   Into(into.compare)}),
           {"--operations", "",
            "with --compare reference: also compare intermediate results, from a copy of the "
            "package that outputs them",
            Switch(into.operations)},
           {"--budget", "fp32|fp16|int8|FILE",
            "error budget for --compare (default: that of the model's precision)",
            Into(into.budget)}}),
      table);
  std::vector<Option> generated = MadeUpTable(into.make_up);
  table.insert(table.begin() + 2, generated.begin(), generated.end());
  return table;
}

}  // namespace mlc::driver
