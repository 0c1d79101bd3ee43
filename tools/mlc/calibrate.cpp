#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/driver/calibration.h"
#include "tools/driver/output_path.h"
#include "tools/mlc/command.h"

namespace fs = std::filesystem;

namespace mlc::driver {
namespace {

struct CalibrateArguments {
  fs::path model;
  CalibrateOptions options;
};

int RunCalibrate(const CalibrateArguments& given, Session& session) {
  const CalibrateResult result = Calibrate(given.model, given.options, session.diagnostics);
  const fs::path& output = given.options.output;
  if (session.json) {
    PrintDocument({{"output", fs::absolute(output).string()},
                   {"samples", result.samples},
                   {"weights", result.weights},
                   {"activations", result.values},
                   {"without_inputs", result.without},
                   {"bytes", result.bytes}});
    return 0;
  }
  fmt::print("{}  {}: {} weights, {} activations, {:.2f} MB\n", output.string(), result.inputs,
             result.weights, result.values, static_cast<double>(result.bytes) / 1e6);
  if (!result.without.empty())
    fmt::print("inputs unknown, because they are looked up, recurrent or not executed:\n");
  for (const std::string& name : result.without) fmt::print("  {}\n", name);
  return 0;
}

}  // namespace

Command CalibrateCommand() {
  auto given = std::make_shared<CalibrateArguments>();
  CalibrateOptions& options = given->options;
  std::vector<Option> table = {
      {"MODEL", "", "source model or package", Into(given->model), true},
      {"--inputs", "generated:N|FILE|DIR",
       "inputs as for --calibrate of mlc compile, or statistics of other inputs; repeat it to add "
       "up",
       [&options](const std::string& text) { options.inputs.push_back(text); }, true, true},
      {"-o", "STATS", "output, for --calibrate of mlc compile and mlc opt",
       [&options](const std::string& text) { options.output = WithoutSlash(text); }, true},
      JsonOption()};
  Append(ProgramTable(options.compile), table);
  // Statistics are those of the program before it is compressed and narrowed.
  constexpr std::string_view kLater[] = {"--compress", "--requant",     "--calibrate",
                                         "--budget",   "--fp16-strict", "--no-measure",
                                         "--fp32-ops", "--fp16-ops"};
  std::erase_if(table, [&](const Option& option) {
    return std::ranges::find(kLater, option.name) != std::end(kLater);
  });
  return {"calibrate",
          "Write statistics of what weights are multiplied by, to compress for",
          "mlc calibrate model.onnx --inputs samples -o model.stats",
          std::move(table),
          [given](Session& session) { return RunCalibrate(*given, session); },
          "The statistics of parts of the inputs add up to those of all inputs, to the bit:\n"
          "  mlc calibrate model.onnx --inputs part1.stats --inputs part2.stats -o all.stats\n\n"};
}

}  // namespace mlc::driver
