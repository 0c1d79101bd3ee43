#include "tools/mlc/compile_model.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>

#include "backends/coreml/bundle.h"
#include "backends/coreml/classifier.h"
#include "backends/coreml/manifest.h"
#include "backends/coreml/package.h"
#include "lib/coreml/package.h"
#include "lib/ir/text.h"
#include "lib/support/install.h"
#include "lib/support/utf8.h"
#include "tools/mlc/model.h"
#include "tools/mlc/source.h"
#include "tools/mlc/version.h"

namespace fs = std::filesystem;

namespace mlc {

const std::vector<Flag>& CompileFlags() {
  static const std::vector<Flag> flags = [] {
    std::vector<Flag> list = {
        {"--target", "iOS17|macOS14|...",
         "oldest system that must load it (default: iOS16, raised when an operation needs more)"},
        {"--precision", "fp16|fp32|mixed",
         "fp16 (default), fp32, or fp16 with sensitive operations in fp32"},
    };
    list.insert(list.end(), ImportFlags().begin(), ImportFlags().end());
    std::vector<Flag> rest = {
        {"--io", "source|fp16",
         "type of float inputs and outputs: the source's (default), or fp16, which needs iOS16"},
        {"--labels", "FILE",
         "make a classifier: one label a line for each element of the output that has as many"},
        {"--author", "S", "author in the package's metadata"},
        {"--license", "S", "licence in the package's metadata"},
        {"--description", "S", "description in the package's metadata"},
        {"--no-manifest", "", "do not write OUT.manifest.json"},
        {"--sha256", "", "SHA-256 of the source in the manifest"},
        {"--stats", "FILE", "write times and memory, which the manifest does not have, as JSON"},
        {"--force", "", "replace what is at -o, whatever it is and on any file system"},
        {"--compiler-version", "V", "version of Core ML's compiler that a .mlmodelc names"},
        {"--mil-version", "V", "version of its MIL component that a .mlmodelc names"},
        {"--save-ir", "FILE", "write the optimised program as MIL text, large constants shortened"},
    };
    list.insert(list.end(), rest.begin(), rest.end());
    list.insert(list.end(), PipelineFlags().begin(), PipelineFlags().end());
    return list;
  }();
  return flags;
}

namespace {

int64_t PeakMemoryBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
#ifdef __APPLE__
  return usage.ru_maxrss;
#else
  return int64_t{usage.ru_maxrss} * 1024;
#endif
}

// What the manifest says of the source, but for the hashes.
Manifest::Source DescribeSource(const fs::path& model, const OnnxFacts& facts) {
  Manifest::Source source;
  source.name = (model.has_filename() ? model : model.parent_path()).filename().string();
  source.format = std::string(Name(DetectFormat(model)));
  if (facts.opsets.empty()) return source;
  source.facts.emplace_back("ir_version", std::to_string(facts.ir_version));
  if (!facts.producer.empty()) source.facts.emplace_back("producer", facts.producer);
  for (const auto& [domain, version] : facts.opsets)
    source.facts.emplace_back(fmt::format("opset {}", domain.empty() ? "ai.onnx" : domain),
                              std::to_string(version));
  return source;
}

void Describe(const std::vector<SourceFile>& files, Manifest::Source& source) {
  source.xxh3_128 = CombinedXxh3(files);
  source.sha256 = CombinedSha256(files);
  if (files.size() > 1)
    for (const SourceFile& file : files)
      source.files.push_back({file.name, file.bytes, file.xxh3_128, file.sha256});
}

// Every option that was given, as the manifest has it: what is a place on this machine says its
// last part only, and where something goes nothing, so that the bytes are the same in every folder.
std::vector<std::pair<std::string, std::vector<std::string>>> OptionsGiven(
    const Invocation& invocation) {
  std::vector<std::pair<std::string, std::vector<std::string>>> options;
  std::vector<Flag> flags = CompileFlags();
  std::sort(flags.begin(), flags.end(),
            [](const Flag& a, const Flag& b) { return a.name < b.name; });
  for (const Flag& flag : flags) {
    if (!invocation.has(flag.name)) continue;
    std::vector<std::string> values = invocation.all(flag.name);
    bool place = flag.value.ends_with("FILE") || flag.value.ends_with("DIR");
    if (flag.name == "--save-ir" || flag.name == "--stats") values.clear();
    for (std::string& value : values) {
      if (!place) continue;
      size_t named = flag.value.ends_with("=FILE") ? value.rfind('=') + 1 : 0;
      fs::path path = fs::path(value.substr(named)).lexically_normal();
      if (!path.has_filename()) path = path.parent_path();
      value = value.substr(0, named) + path.filename().string();
    }
    options.emplace_back(flag.name, std::move(values));
  }
  return options;
}

// What --io says; iOS15 knows no fp16 inputs and outputs.
DType BorderType(const std::string& text, std::optional<Opset> target) {
  if (text == "fp16") return DType::kFp16;
  if (text == "source") return target == Opset::kIos15 ? DType::kFp32 : DType::kNone;
  throw Error("usage", fmt::format("--io: \"{}\" is unknown", text)).Expected("source or fp16");
}

constexpr const char* kTargetHelp =
    "iOS15 to iOS18, iOS26; macOS12 to macOS15, macOS26; tvOS15 to tvOS18, tvOS26; watchOS8 to "
    "watchOS11, watchOS26; visionOS1, visionOS2, visionOS26";

// Constants from here on are narrowed unseen at first; most of a model's bytes are in such.
constexpr int64_t kTrustedFrom = 1 << 16;

// Nothing when a constant that was trusted may not fit fp16.
std::optional<CompileResult> Attempt(const fs::path& model, const fs::path& output,
                                     const Invocation& invocation, int64_t trusted_from,
                                     const std::vector<SourceFile>* known,
                                     Diagnostics& diagnostics) {
  CompileResult result;
  auto start = std::chrono::steady_clock::now();
  auto phase = [&](std::string name) {
    auto now = std::chrono::steady_clock::now();
    result.phases.emplace_back(std::move(name), std::chrono::duration<double>(now - start).count());
    start = now;
  };
  PassContext context{diagnostics, ParsePrecision(invocation.get("--precision", "fp16")),
                      std::nullopt};
  if (invocation.has("--target")) {
    context.target = ParseTarget(invocation.get("--target"));
    if (!context.target)
      throw Error("usage", fmt::format("--target: \"{}\" is unknown", invocation.get("--target")))
          .Expected(kTargetHelp);
  }
  context.trusted_from = trusted_from;
  OnnxOptions import = ImportOptions(invocation);
  import.io = BorderType(invocation.get("--io", "source"), context.target);
  import.target = context.target;
  PipelineOptions pipeline = ParsePipelineOptions(invocation);

  OnnxFacts facts;
  auto make = [&](Diagnostics& into) {
    Program made = ImportModel(model, import, into, &facts);
    if (invocation.has("--labels"))
      MakeClassifier(made, ReadLabels(invocation.get("--labels")), into);
    return made;
  };
  auto again = [&] {
    Diagnostics ignored;
    return make(ignored);
  };
  Program program = make(diagnostics);
  phase("import");
  bool wants_manifest = !invocation.has("--no-manifest"), force = invocation.has("--force"),
       bundle = output.extension() == ".mlmodelc";
  // Now that all is known that is read, and before anything is written.
  bundle ? CheckBundleTarget(output, force) : CheckPackageTarget(output, force);
  if (wants_manifest) CheckManifestTarget(output, force);
  for (std::string_view flag : {"--save-ir", "--stats"})
    if (invocation.has(flag)) Staging(invocation.get(flag), Staging::kFile);
  std::vector<SourceFile> files;
  if (wants_manifest && !known) files = SourceFiles(model, facts, &program);
  SourceHashes hashes(std::move(files), invocation.has("--sha256"));
  auto text = [&](std::string_view flag, std::string& field) {
    if (!invocation.has(flag)) return;
    std::string given = invocation.get(flag);
    RequireUtf8(given, "usage", std::string(flag));
    field = WithoutBom(given);
  };
  text("--author", program.interface.author);
  text("--license", program.interface.license);
  text("--description", program.interface.short_description);
  program.build_info = {{std::string(kMlcVersionKey), kVersion}};
  Verify(program);
  result.passes =
      RunPipeline(program, again, DefaultPipeline(context.precision), context, pipeline);
  if (invocation.has("--time-passes")) PrintPassTimes(result.passes);
  phase("passes");
  if (invocation.has("--save-ir"))
    WriteFile(invocation.get("--save-ir"),
              PrintText(program, {.inline_limit = 8, .max_elements = 32}) + "\n");
  // A bundle is made of a package that nobody sees.
  std::optional<Staging> hidden;
  if (bundle) hidden.emplace(output, Staging::kFolder, force);
  fs::path written = bundle ? hidden->path().parent_path() / "hidden.mlpackage" : output;
  PackageResult package = WritePackage(
      program, written,
      {.target = context.target,
       .force = force,
       .narrowed_from = trusted_from,
       .passed = [&](const MappedFile& file, uint64_t end) { hashes.Pass(file, end); }},
      diagnostics);
  if (!package.installed) return std::nullopt;
  if (bundle) {
    Precompile(written, output, output, true, invocation);
    package.content_hash = PackageHash(output);
  }
  phase("write");
  if (wants_manifest) {
    Manifest manifest;
    manifest.mlc_version = kVersion;
    manifest.source = DescribeSource(model, facts);
    Describe(known ? *known : hashes.Finish(), manifest.source);
    manifest.precision = invocation.get("--precision", "fp16");
    manifest.options = OptionsGiven(invocation);
    manifest.package = package;
    manifest.passes = result.passes;
    WriteManifest(output, manifest, program, diagnostics);
    result.manifest = ManifestPath(output);
    phase("manifest");
  }
  result.peak_memory_bytes = PeakMemoryBytes();
  result.package = output;
  result.target = package.target;
  result.precision = invocation.get("--precision", "fp16");
  result.operators = Histogram(program);
  for (const auto& [name, count] : result.operators) result.operations += count;
  result.weight_bytes = package.weight_bytes;
  result.content_hash = package.content_hash;
  result.program = std::make_shared<Program>(std::move(program));
  return result;
}

void Append(const Diagnostics& from, Diagnostics& to) {
  for (const Error& error : from.errors()) to.Add(error);
  for (const Error& warning : from.warnings()) to.Warn(warning);
  for (const std::string& note : from.notes()) to.Note(note);
  for (const Decision& decision : from.decisions())
    to.Decide(decision.kind, decision.subject, decision.reason);
}

}  // namespace

// Weights are read once: whether they fit fp16 shows while they are written. The few models that
// have one that does not are compiled anew, with all of them measured first.
CompileResult CompileModel(const fs::path& model, const fs::path& output,
                           const Invocation& invocation, const std::vector<SourceFile>* known) {
  bool shows = !invocation.get("--print-after", "").empty();  // and would show twice
  std::optional<CompileResult> result;
  for (int64_t trusted_from : {shows ? 0 : kTrustedFrom, int64_t{0}}) {
    Diagnostics diagnostics;
    try {
      result = Attempt(model, output, invocation, trusted_from, known, diagnostics);
    } catch (...) {
      Append(diagnostics, invocation.diagnostics);
      throw;
    }
    if (!result) continue;
    Append(diagnostics, invocation.diagnostics);
    return std::move(*result);
  }
  MLC_CHECK(false, "constants that were all measured are trusted");
}

}  // namespace mlc
