#include "tools/driver/compression_sweep.h"

#include <algorithm>

#include "lib/compress/rules.h"
#include "lib/support/temporary_folder.h"
#include "tools/driver/benchmark.h"
#include "tools/driver/errors.h"
#include "tools/driver/frontends.h"
#include "tools/driver/output_path.h"

namespace fs = std::filesystem;

namespace mlc::driver {

namespace {

void ThrowAll(std::vector<Error> errors) {
  if (errors.size() == 1) throw std::move(errors[0]);
  if (!errors.empty()) throw Errors(std::move(errors));
}

// Returns a scheme as a part of a file name: "pal4:group=16" as "pal4-group-16".
std::string FileName(const std::string& scheme) {
  std::string name;
  for (char c : scheme) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '.' || c == '_';
    if (plain || !name.ends_with('-')) name.push_back(plain ? c : '-');
  }
  return name;
}

std::vector<std::string> FileNames(const std::vector<std::string>& schemes) {
  std::vector<std::string> names;
  for (const std::string& scheme : schemes) {
    const std::string name = FileName(scheme);
    std::string unique = name;
    for (int i = 2; std::ranges::find(names, unique) != names.end(); ++i)
      unique = fmt::format("{}_{}", name, i);
    names.push_back(unique);
  }
  return names;
}

uint64_t BytesIn(const fs::path& folder) {
  uint64_t bytes = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) bytes += entry.file_size();
  return bytes;
}

// One scheme of a sweep.
class Variant {
 public:
  Variant(const fs::path& model, const CompressionSweepOptions& options, CompressionSweepRow& row)
      : model_(model), options_(options), row_(row) {}

  void Measure(const fs::path& package, Diagnostics& diagnostics) {
    Compile(package, diagnostics);
    // The package is compared with the model before compression, whatever its manifest says.
    ImportOptions source = options_.compile.import;
    source.compress = "none";
    Step("verifying");
    options_.text.text.empty() ? CompareOutputs(package, source, diagnostics)
                               : CompareText(package, source, diagnostics);
    Step("timing");
    BenchmarkOptions run;
    run.units = options_.units;
    run.iterations = options_.iterations;
    run.warmup = options_.warmup;
    run.make_up = options_.verify.make_up;
    const BenchmarkResult timed = Benchmark(package, run, diagnostics);
    for (const BenchmarkResult::Failed& failed : timed.failures) {
      row_.errors.push_back(failed.error);
      break;
    }
    row_.times = timed.predict.statistics();
    row_.runtime = Name(timed.units);
  }

 private:
  void Step(const char* step) {
    if (options_.step) options_.step(row_.scheme, step);
  }

  void Compile(const fs::path& package, Diagnostics& diagnostics) {
    Step("compiling");
    CompileOptions compile = options_.compile;
    compile.import.compress = row_.scheme;
    compile.tokenizer_place = TokenizerPlace::kFolder;
    const CompileResult compiled = driver::Compile(model_, package, compile, diagnostics);
    row_.target = TargetName(compiled.target);
    row_.weight_bytes = compiled.weight_bytes;
    row_.bytes = BytesIn(package);
  }

  void CompareOutputs(const fs::path& package, const ImportOptions& source,
                      Diagnostics& diagnostics) {
    VerifyOptions verify = options_.verify;
    verify.import = source;
    const VerifyResult result = Verify(model_, package, verify, diagnostics);
    for (const verify::Compared& compared : result.outputs) {
      const verify::Comparison& comparison = compared.comparison;
      if (!comparison.discriminating && comparison.mismatch.empty()) continue;
      const double error = !comparison.mismatch.empty() ? std::numeric_limits<double>::infinity()
                           : comparison.exact           ? 1 - comparison.equal_fraction
                                                        : comparison.max_error;
      if (!row_.max_error || error > *row_.max_error) {
        row_.max_error = error;
        row_.worst = compared.name;
      }
      row_.rmse = std::max(row_.rmse.value_or(0), comparison.rmse);
    }
    const verify::Verdict verdict = Judge(result.outputs);
    if (verdict == verify::Verdict::kNothingCompared || !row_.max_error)
      throw Error("check-failed", "nothing was compared: no output discriminates")
          .Help("--inputs DIR compares on your own inputs");
    row_.within = !options_.verify.budget || verdict == verify::Verdict::kPassed;
  }

  void CompareText(const fs::path& package, const ImportOptions& source, Diagnostics& diagnostics) {
    row_.text =
        CompareOnText(model_, package, source, options_.verify.budget, options_.text, diagnostics);
    row_.within = !options_.verify.budget || row_.text->ok;
  }

  const fs::path& model_;
  const CompressionSweepOptions& options_;
  CompressionSweepRow& row_;
};

}  // namespace

std::vector<std::string> SchemesOf(const std::vector<std::string>& values) {
  std::vector<std::string> schemes;
  std::vector<Error> errors;
  auto add = [&](std::string scheme) {
    if (std::ranges::find(schemes, scheme) != schemes.end())
      errors.push_back(Error("usage", "--compress: \"{}\" is given twice", scheme));
    else
      schemes.push_back(std::move(scheme));
  };
  auto parse = [&](std::string_view text, bool whole) {
    try {
      const std::vector<compress::Rule> rules = compress::ParseRules(text);
      if (whole) return add(compress::Text(rules));
      for (const compress::Rule& rule : rules) add(compress::Text({rule}));
    } catch (const Error& error) {
      errors.push_back(error);
    }
  };
  for (const std::string& value : values) {
    if (value.find(';') != std::string::npos || value.starts_with('@')) {
      parse(value, true);
      continue;
    }
    // Each scheme is parsed on its own, so that all that are wrong are named. A comma before an
    // option of a scheme does not end it.
    for (size_t begin = 0; begin <= value.size();) {
      size_t end = begin;
      do end = std::min(value.find(',', end + (end > begin)), value.size());
      while (end < value.size() &&
             compress::BeginsWithOption(std::string_view(value).substr(end + 1)));
      parse(std::string_view(value).substr(begin, end - begin), false);
      begin = end + 1;
    }
  }
  ThrowAll(std::move(errors));
  if (schemes.empty())
    throw Error("usage", "--compress: no scheme is given").Expected("e.g. fp16,int8,int4,pal4");
  return schemes;
}

CompressionSweepResult SweepCompression(const fs::path& model,
                                        const CompressionSweepOptions& options,
                                        Diagnostics& diagnostics) {
  std::vector<Error> errors;
  if (options.compile.target)
    for (const std::string& scheme : options.schemes) try {
        compress::CheckTarget(compress::ParseRules(scheme), *options.compile.target);
      } catch (const Error& error) {
        errors.push_back(error);
      }
  ThrowAll(std::move(errors));
  if (options.iterations < 1 || options.warmup < 0)
    throw Error("usage", "--iterations must be at least 1, and --warmup at least 0");
  FrontendOf(model);  // throws if it is no model
  const std::string stem = fs::path(WithoutSlash(model)).stem().string();
  const std::vector<std::string> names = FileNames(options.schemes);
  CompressionSweepResult result;
  for (size_t i = 0; i < options.schemes.size(); ++i) {
    CompressionSweepRow& row = result.rows.emplace_back();
    row.scheme = options.schemes[i];
    std::optional<TemporaryFolder> temporary;
    const fs::path folder =
        options.folder.empty() ? temporary.emplace().path : OutputPath(options.folder / "", ".");
    const fs::path package = folder / fmt::format("{}-{}.mlpackage", stem, names[i]);
    try {
      Variant(model, options, row).Measure(package, diagnostics);
    } catch (...) {
      row.errors = CurrentErrors();
      // Wrong options are wrong for every scheme.
      if (ExitCode(row.errors[0].id()) == ExitCode("usage")) throw;
    }
    std::error_code ignored;
    if (!temporary && fs::exists(package, ignored)) row.package = package;
    for (const Error& error : row.errors)
      result.exit_code = std::max(result.exit_code, ExitCode(error.id()));
    if (!row.within) result.exit_code = std::max(result.exit_code, ExitCode("check-failed"));
  }
  return result;
}

}  // namespace mlc::driver
