#include "tools/mlc/compile_model.h"

#include <sys/resource.h>

#include <chrono>
#include <future>

#include "backends/coreml/bundle.h"
#include "backends/coreml/classifier.h"
#include "backends/coreml/manifest.h"
#include "backends/coreml/package.h"
#include "lib/coreml/package.h"
#include "lib/ir/text.h"
#include "lib/support/hash.h"
#include "lib/support/install.h"
#include "lib/support/mapped_file.h"
#include "tools/mlc/model.h"
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

Manifest::Source DescribeSource(const fs::path& model, bool sha256) {
  Manifest::Source source;
  source.path = model.string();
  source.format = std::string(Name(DetectFormat(model)));
  if (fs::is_directory(model)) return source;
  if (sha256) source.sha256 = Sha256OfFile(model);
  if (DetectFormat(model) != Format::kOnnx) return source;
  OnnxFacts facts = ReadOnnxFacts(model);
  source.facts.emplace_back("ir_version", std::to_string(facts.ir_version));
  if (!facts.producer.empty()) source.facts.emplace_back("producer", facts.producer);
  for (const auto& [domain, version] : facts.opsets)
    source.facts.emplace_back(fmt::format("opset {}", domain.empty() ? "ai.onnx" : domain),
                              std::to_string(version));
  return source;
}

// What --io says; iOS15 knows no fp16 inputs and outputs.
DType BorderType(const std::string& text, std::optional<Opset> target) {
  if (text == "fp16") return DType::kFp16;
  if (text == "source") return target == Opset::kIos15 ? DType::kFp32 : DType::kNone;
  throw Error("usage", fmt::format("--io: \"{}\" is unknown", text)).Expected("source or fp16");
}

// The hash of the source, taken while its weights are in the cache because they are converted.
class SourceHash {
 public:
  explicit SourceHash(fs::path path) : path_(std::move(path)) {}
  void Pass(const MappedFile& file, uint64_t end) {
    // What lies far behind is no longer in the cache.
    constexpr uint64_t kFar = 64 << 20;
    if (file.path() != path_ || end <= at_ || end - at_ > kFar) return;
    hash_.Update(file.bytes().subspan(at_, end - at_));
    at_ = end;
  }
  // With all that did not pass.
  std::string Finish() {
    std::shared_ptr<const MappedFile> file = MappedFile::Open(path_);
    constexpr uint64_t kWindow = 2 << 20;
    for (uint64_t size = file->bytes().size(); at_ < size;) {
      uint64_t count = std::min(kWindow, size - at_);
      hash_.Update(file->bytes().subspan(at_, count));
      file->Release(at_, count);
      at_ += count;
    }
    return hash_.Hex();
  }

 private:
  fs::path path_;
  Xxh3 hash_;
  uint64_t at_ = 0;
};

constexpr const char* kTargetHelp =
    "iOS15 to iOS18, iOS26; macOS12 to macOS15, macOS26; tvOS15 to tvOS18, tvOS26; watchOS8 to "
    "watchOS11, watchOS26; visionOS1, visionOS2, visionOS26";

// Constants from here on are narrowed unseen at first; most of a model's bytes are in such.
constexpr int64_t kTrustedFrom = 1 << 16;

// Nothing when a constant that was trusted may not fit fp16.
std::optional<CompileResult> Attempt(const fs::path& model, const fs::path& output,
                                     const Invocation& invocation, int64_t trusted_from,
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

  auto make = [&](Diagnostics& into) {
    Program made = ImportModel(model, import, into);
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
  if (invocation.has("--save-ir")) Staging(invocation.get("--save-ir"), Staging::kFile);
  SourceHash hash(model);
  std::future<Manifest::Source> source;
  if (wants_manifest)
    source = std::async(std::launch::async, DescribeSource, model, invocation.has("--sha256"));
  program.interface.author = invocation.get("--author", program.interface.author);
  program.interface.license = invocation.get("--license", program.interface.license);
  program.interface.short_description =
      invocation.get("--description", program.interface.short_description);
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
  PackageResult package = WritePackage(program, written,
                                       {.target = context.target,
                                        .force = force,
                                        .narrowed_from = trusted_from,
                                        .passed =
                                            [&](const MappedFile& file, uint64_t end) {
                                              if (wants_manifest) hash.Pass(file, end);
                                            }},
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
    manifest.source = source.get();
    if (!fs::is_directory(model)) manifest.source.xxh3_128 = hash.Finish();
    manifest.precision = invocation.get("--precision", "fp16");
    manifest.package = package;
    manifest.passes = result.passes;
    manifest.phases = result.phases;
    manifest.peak_memory_bytes = PeakMemoryBytes();
    WriteManifest(output, manifest, program, diagnostics);
    result.manifest = ManifestPath(output);
  }
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
                           const Invocation& invocation) {
  bool shows = !invocation.get("--print-after", "").empty();  // and would show twice
  std::optional<CompileResult> result;
  for (int64_t trusted_from : {shows ? 0 : kTrustedFrom, int64_t{0}}) {
    Diagnostics diagnostics;
    try {
      result = Attempt(model, output, invocation, trusted_from, diagnostics);
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
