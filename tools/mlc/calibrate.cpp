#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/driver/calibration.h"
#include "tools/driver/compiled_model_cache.h"
#include "tools/driver/output_path.h"
#include "tools/mlc/command.h"
#include "tools/mlc/progress_line.h"
#include "tools/mlc/terminal.h"

namespace fs = std::filesystem;

namespace mlc::driver {
namespace {

struct CalibrateArguments {
  fs::path model;
  CalibrateOptions options;
  std::vector<std::string> merge;
};

CalibrateOptions::Shard ParseShard(const std::string& text) {
  const size_t slash = text.find('/');
  if (slash != text.npos) {
    const CalibrateOptions::Shard shard{ParseInt("--shard", text.substr(0, slash)),
                                        ParseInt("--shard", text.substr(slash + 1))};
    if (shard.index >= 1 && shard.index <= shard.count) return shard;
  }
  throw Error("usage", "--shard: \"{}\"", text).Expected("I/N with I from 1 to N, as 2/8");
}

int RunCalibrate(const CalibrateArguments& given, Session& session) {
  if (!given.merge.empty())
    RefuseAllBut({"--merge", "-o", "--json"}, "--merge needs neither a model nor its options",
                 session);
  else if (given.model.empty())
    throw Error("usage", "MODEL is missing").Help("mlc calibrate --help");
  CalibrateOptions options = given.options;
  options.output = OutputPath(
      options.output,
      given.model.empty() ? "merged.stats" : fs::path(given.model).replace_extension(".stats"));
  CalibrateResult result;
  {
    ProgressLine line(session);
    options.progress = options.compile.progress = line.Showing();
    result = given.merge.empty() ? Calibrate(given.model, options, session.diagnostics)
                                 : MergeStatistics(given.merge, options.output);
  }
  const fs::path& output = options.output;
  if (session.json) {
    PrintDocument({{"output", fs::absolute(output).string()},
                   {"samples", result.samples},
                   {"weights", result.weights},
                   {"activations", result.values},
                   {"without_inputs", result.without},
                   {"bytes", result.bytes}});
    return 0;
  }
  fmt::print("{}  {}: {}, {}, {}\n", output.string(), result.inputs,
             Counted(result.weights, "weight"), Counted(result.values, "activation"),
             BytesText(result.bytes));
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
      {"MODEL", "", "source model or package", Into(given->model)},
      {"--inputs", "generated:N|FILE|DIR",
       "inputs as for --calibrate of mlc compile, or statistics of other inputs; repeat it to add "
       "up",
       [&options](const std::string& text) { options.inputs.push_back(text); }, false, true},
      Common({"--shard", "I/N",
              "use block I of N blocks of the samples: parts of a long run, for --merge (default: "
              "all samples)",
              [&options](const std::string& text) { options.shard = ParseShard(text); }}),
      Common({"--merge", "STATS",
              "add up the statistics of parts, without a model; repeat it for each part",
              Into(given->merge), false, true}),
      OutputOption({"-o", "STATS", "output, for --calibrate of mlc compile and mlc opt",
                    Into(options.output), true}),
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
          {"mlc calibrate model.onnx --inputs samples -o model.stats",
           "mlc calibrate model.onnx --inputs generated:16 -o model.stats"},
          std::move(table),
          [given](Session& session) { return RunCalibrate(*given, session); },
          "The statistics of parts of the inputs add up to those of all inputs, to the bit:\n"
          "  mlc calibrate model.onnx --inputs samples --shard 1/2 -o 1.stats\n"
          "  mlc calibrate model.onnx --inputs samples --shard 2/2 -o 2.stats\n"
          "  mlc calibrate --merge 1.stats --merge 2.stats -o all.stats\n\n",
          {"compile", "opt"}};
}

}  // namespace mlc::driver
