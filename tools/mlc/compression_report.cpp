#include "tools/mlc/compression_report.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "tools/driver/compiled_model_cache.h"
#include "tools/mlc/terminal.h"

namespace mlc::driver {
namespace {

using compress::WeightReport;

std::string SnrText(double snr) {
  return std::isfinite(snr) ? fmt::format("{:.1f} dB", snr) : std::string("exact");
}

// Whether a rule selects the weight, but it is stored in another way.
bool Differs(const WeightReport& weight) {
  return !weight.asked.empty() && weight.asked != "none" && !weight.reason.empty();
}

std::string Line(const WeightReport& weight) {
  constexpr size_t kOthers = 52;  // characters of a row without its name
  return fmt::format("  {} {:<16} {:<22} {:>9}\n", NameColumn(weight.name, kOthers, stderr),
                     fmt::format("[{}]", fmt::join(weight.dims, ",")),
                     weight.compressed ? weight.used : "unchanged",
                     weight.compressed ? SnrText(weight.snr()) : "");
}

std::string LossText(const compress::Loss& loss) {
  std::string text = loss.noise > 0 ? fmt::format("{:.1f} dB", -10 * std::log10(loss.noise))
                                    : std::string("exact");
  text += " signal to noise";
  if (loss.divergence) text += fmt::format(", divergence {:.3g}", *loss.divergence);
  return text;
}

// The sizes that auto compared.
std::string CurveText(const compress::Compression& compression) {
  std::string text;
  for (const compress::CurvePoint& point : compression.curve) {
    text += fmt::format("  {:>10.3f} MB  {:>6.2f} bits  {}", static_cast<double>(point.bytes) / 1e6,
                        point.bits, LossText(point.loss));
    if (!point.scheme.empty()) text += ", all " + point.scheme;
    text += point.chosen ? ", chosen\n" : "\n";
  }
  return text.empty() ? text : "sizes compared, before the final calibration:\n" + text;
}

}  // namespace

std::string CompressionText(const compress::Compression& compression) {
  constexpr size_t kWorst = 5, kDiffering = 12;
  const compress::Totals totals = compress::TotalsOf(compression.weights);
  std::vector<const WeightReport*> made, differing;
  for (const WeightReport& weight : compression.weights) {
    if (weight.compressed && weight.error > 0) made.push_back(&weight);
    if (Differs(weight)) differing.push_back(&weight);
  }
  std::string text = fmt::format(
      "compressed {} of {}, {} to {}{}\n", totals.compressed, Counted(totals.weights, "weight"),
      BytesText(totals.bytes_before), BytesText(totals.bytes_after),
      totals.error > 0 ? fmt::format(", {:.1f} dB signal to noise",
                                     10 * std::log10(totals.energy / totals.error))
                       : "");
  if (!compression.inputs.empty()) text += fmt::format("calibrated on {}\n", compression.inputs);
  if (compression.tuned) {
    const compress::Tuned& tuned = *compression.tuned;
    text +=
        tuned.weights > 0
            ? fmt::format("{}{} trained, {} on {}\n", tuned.codes ? "" : "tables and scales of ",
                          Counted(tuned.weights, "weight"), Counted(tuned.steps, "step"),
                          Counted(tuned.samples, "sample"))
            : fmt::format("no weight was trained: {}\n", tuned.why);
  }
  if (compression.stored)
    text += fmt::format("{} result{} taken from \"{}\"\n", compression.stored->found(),
                        compression.stored->found() == 1 ? " was" : "s were",
                        compression.stored->folder().string());
  if (!compression.activations.empty())
    text +=
        fmt::format("{} in 8 bits, ranges by {}\n",
                    Counted(std::ssize(compression.activations), "activation"), compression.ranges);
  if (const size_t left = compression.activations_left.size(); left > 0)
    text += fmt::format(
        "{} stay{} in fp16: in 8 bits, the largest error of an output would be "
        "{:.2g}\n",
        Counted(static_cast<int64_t>(left), "activation"), left == 1 ? "s" : "",
        compression.loss_in_8_bits);
  if (compression.loss)
    text +=
        fmt::format("outputs: {} ({})\n", LossText(*compression.loss), compression.evaluated_on);
  text += CurveText(compression);
  // The notes are in the JSON form only.
  std::vector<compress::UnitFinding> units = compression.units;
  std::erase_if(units, [](const auto& finding) { return finding.severity == "note"; });
  if (!units.empty()) text += "compute units (mlc explain --rules):\n";
  for (const compress::UnitFinding& finding : units)
    text += fmt::format("  {:<14} {:<10} {}: {} ({})\n", finding.unit, finding.severity,
                        finding.rule, finding.meaning, Counted(finding.operations, "operation"));
  std::ranges::stable_sort(made, {}, [](const WeightReport* weight) { return weight->snr(); });
  if (made.size() > kWorst) made.resize(kWorst);
  if (!made.empty()) text += "lowest signal to noise:\n";
  for (const WeightReport* weight : made) text += Line(*weight);
  if (!differing.empty()) text += "not as the rules say:\n";
  for (size_t i = 0; i < std::min(differing.size(), kDiffering); ++i)
    text += fmt::format("  {:<40} {}\n", differing[i]->name,
                        differing[i]->compressed
                            ? fmt::format("{}: {}", differing[i]->used, differing[i]->reason)
                            : "unchanged: " + differing[i]->reason);
  if (differing.size() > kDiffering)
    text += fmt::format("  and {} more, listed by --json\n", differing.size() - kDiffering);
  return text;
}

std::string CompressionHelp() {
  return "--compress [SELECTOR=]SCHEME takes several rules, separated by ; or , of which the last "
         "that selects a weight applies. Schemes:\n"
         "  int8, int4  integers with scales; options: block=N (inputs per scale; int4: 32), "
         "block=row, block=tensor, asym (with a zero point)\n"
         "  pal1|2|3|4|6|8  a table of values; options: group=N (one table per N outputs), axis=in "
         "(per N inputs), vec=2|4, scale=row, lut=int8\n"
         "  lut4  pal4:group=32\n"
         "  sparse:SHARE, sparse:N:M  zeros, of all weights or of every M inputs; "
         "sparse:0.75+int8, +int4 or +palN compress the rest\n"
         "  w8a8  int8, and activations of layers in 8 bits, with ranges from the inputs\n"
         "  fp16, none  plain weights; as they are\n"
         "  auto:GOAL  the scheme for each weight that loses least: within bits=N per element, "
         "within size=P% of the size, or with the fewest bytes for a signal-to-noise ratio of "
         "snr=DB\n"
         "Options follow a colon, separated by commas: int4:block=64,asym. Sizes that do not "
         "divide "
         "a weight are reduced, and the report says so. A selector is an operator (conv), first, "
         "last, or a name or glob (*attn*) of a weight or of an operation that uses it.\n"
         "With --calibrate, integers and indices minimise the error of what a weight computes on "
         "these inputs, and biases are corrected. Element-wise constants, tables of rotary "
         "embeddings, weights with fewer than 2048 elements and those with NaN or infinity are "
         "left "
         "as they are.\n"
         "int8 by row or tensor, pal1|2|4|6|8 with one table and sparse:... alone require iOS16, "
         "w8a8 iOS17, all others iOS18; auto chooses among what --target supports. Methods that "
         "train a model (quantisation-aware training, movement pruning) are not available.\n";
}

}  // namespace mlc::driver
