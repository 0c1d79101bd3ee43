#include "tools/driver/compiled_model_cache.h"

#include <unistd.h>

#include <fstream>

#include "test/catch.h"
#include "test/expected_error.h"
#include "test/lib/runtime/fake_runtime.h"
#include "test/paths.h"
#include "tools/driver/compile.h"

namespace mlc::test {
using namespace driver;
namespace {

namespace fs = std::filesystem;

struct TempFolder {
  fs::path path = fs::temp_directory_path() / ("compiled_test_" + std::to_string(getpid()));
  TempFolder() {
    fs::remove_all(path);
    fs::create_directory(path);
  }
  ~TempFolder() { fs::remove_all(path); }
};

// A runtime that counts its compilations.
class Compiler : public runtime::Runtime {
 public:
  runtime::Capabilities found{.runtime = "a compiler", .runtime_version = "1", .os_build = "24B83"};
  int compiled = 0;
  bool fails = false;
  fs::path full;                    // compilations into this folder fail because its disk is full
  runtime::Latch* latch = nullptr;  // blocks the compilation until it opens

  runtime::Capabilities capabilities() const override { return found; }
  bool loads_packages() const override { return false; }
  void Compile(const fs::path&, const fs::path& bundle) override {
    ++compiled;
    if (latch) latch->Wait();
    if (!full.empty() && bundle.string().starts_with(full.string()))
      throw Error("file-io", "no space left");
    fs::create_directory(bundle);
    std::ofstream(bundle / "model.mil") << "program";
    if (fails) throw Error("runtime-failed", "no");
  }
  std::unique_ptr<runtime::LoadedModel> Load(const fs::path&,
                                             const runtime::LoadOptions&) override {
    return nullptr;
  }
};

// fp32, so that nothing is measured and no OpenMP threads run, which the thread sanitizer does not
// support.
fs::path MakePackage(const fs::path& folder) {
  Diagnostics diagnostics;
  const CompileOptions options{.precision = passes::PassContext::Precision::kFp32};
  return Compile(SourcePath("manifests/digits/digits.onnx"), folder / "digits.mlpackage", options,
                 diagnostics)
      .package;
}

TEST_CASE("compiled: cache entries are specific to runtime, system and compute units") {
  TempFolder temp;
  const fs::path package = MakePackage(temp.path);
  cache::FolderCache cache(temp.path / "cache");
  Compiler compiler;
  const CompiledModel first = CompiledFor(compiler, package, runtime::Units::kAll, &cache);
  CHECK(first.made);
  CHECK(first.path.filename() == "digits.mlmodelc");
  CHECK_FALSE(CompiledFor(compiler, package / "", runtime::Units::kAll, &cache).made);
  CHECK(compiler.compiled == 1);
  CHECK(CompiledFor(compiler, package, runtime::Units::kCpu, &cache).made);
  const runtime::Capabilities before = compiler.found;
  SECTION("another version of the runtime") { compiler.found.runtime_version = "2"; }
  SECTION("another build of the system") { compiler.found.os_build = "24B84"; }
  SECTION("another runtime") { compiler.found.runtime = "another"; }
  CHECK(CompiledFor(compiler, package, runtime::Units::kAll, &cache).made);
  compiler.found = before;
  CHECK_FALSE(CompiledFor(compiler, package, runtime::Units::kAll, &cache).made);
  const cache::CachedModel entry = cache.List().at(0);
  CHECK(entry.part("model") == "digits.mlpackage");
  CHECK(entry.part("units") == "all");
  CHECK(entry.part("os build") == "24B83");
  // While the first copy exists, the entry is not evicted.
  for (const cache::Eviction& eviction : cache.Clear()) CHECK(eviction.key != entry.key);
  CHECK(fs::exists(first.path / "model.mil"));
}

TEST_CASE("compiled: without a cache, the folder exists as long as a copy of the object") {
  TempFolder temp;
  const fs::path package = MakePackage(temp.path);
  Compiler compiler;
  fs::path path;
  {
    CompiledModel copy;
    {
      const CompiledModel model = CompiledFor(compiler, package, runtime::Units::kAll);
      CHECK(model.made);
      copy = model;
      path = model.path;
    }
    CHECK(fs::exists(path));
  }
  CHECK_FALSE(fs::exists(path.parent_path()));
}

TEST_CASE("compiled: compiled bundles are used in place; other formats are refused") {
  TempFolder temp;
  Compiler compiler;
  const fs::path bundle = temp.path / "m.mlmodelc";
  fs::create_directory(bundle);
  std::ofstream(bundle / "model.mil") << "program(1.0)\n{\n}\n";
  std::ofstream(bundle / "coremldata.bin") << "";
  CHECK(CompiledFor(compiler, bundle, runtime::Units::kAll).path == bundle);
  CHECK(compiler.compiled == 0);
  CHECK(RefusalId([&] {
          CompiledFor(compiler, SourcePath("manifests/digits/digits.onnx"), runtime::Units::kAll);
        }) == "usage");
}

TEST_CASE("compiled: compiler errors are passed on, and the next attempt compiles again") {
  TempFolder temp;
  const fs::path package = MakePackage(temp.path);
  cache::FolderCache cache(temp.path / "cache");
  Compiler compiler;
  compiler.fails = true;
  CHECK(RefusalId([&] { CompiledFor(compiler, package, runtime::Units::kAll, &cache); }) ==
        "runtime-failed");
  compiler.fails = false;
  CHECK(CompiledFor(compiler, package, runtime::Units::kAll, &cache).made);
}

TEST_CASE("compiled: failures of an optional cache are notes") {
  TempFolder temp;
  const fs::path package = MakePackage(temp.path);
  cache::FolderCache cache(temp.path / "cache");
  Compiler compiler;
  // Without this folder, nothing can be linked into the cache.
  fs::remove_all(temp.path / "cache" / "cas");
  std::ofstream(temp.path / "cache" / "cas") << "";
  CHECK(RefusalId([&] { CompiledFor(compiler, package, runtime::Units::kAll, &cache); }) ==
        "file-io");
  std::vector<Error> faults;
  const CompiledModel model = CompiledFor(compiler, package, runtime::Units::kAll, &cache, &faults);
  CHECK(fs::exists(model.path / "model.mil"));
  CHECK(faults.size() == 1);
  compiler.fails = true;
  CHECK(RefusalId([&] { CompiledFor(compiler, package, runtime::Units::kCpu, &cache, &faults); }) ==
        "runtime-failed");
  CHECK(faults.size() == 1);
}

TEST_CASE("compiled: when the disk of the cache is full, another folder is used") {
  TempFolder temp;
  const fs::path package = MakePackage(temp.path);
  cache::FolderCache cache(temp.path / "cache");
  std::vector<Error> faults;
  Compiler compiler;
  compiler.full = temp.path / "cache";
  const CompiledModel model = CompiledFor(compiler, package, runtime::Units::kAll, &cache, &faults);
  CHECK(fs::exists(model.path / "model.mil"));
  REQUIRE(faults.size() == 1);
  CHECK(faults[0].text() == "no space left");
  CHECK(cache.List().empty());
}

TEST_CASE("compiled: cache failures are noted, but not after a timeout", "[guarded]") {
  using namespace std::chrono_literals;
  TempFolder temp;
  const fs::path package = MakePackage(temp.path);
  setenv("MLC_CACHE_DIR", (temp.path / "cache").c_str(), 1);
  auto compiler = std::make_shared<Compiler>();
  compiler->full = temp.path / "cache";
  Diagnostics diagnostics;
  CompiledWithin(1h, compiler, package, runtime::Units::kAll, diagnostics);
  CHECK(diagnostics.notes() ==
        std::vector<std::string>{"compiled models are not cached: no space left"});
  runtime::Latch latch;
  compiler->latch = &latch;
  CHECK(RefusalId([&] {
          CompiledWithin(1ms, compiler, package, runtime::Units::kAll, diagnostics);
        }) == "timeout");
  latch.Open();
  runtime::Await([] { return runtime::Abandoned::OfProcess()->alive() == 0; });
  CHECK(compiler->compiled == 4);  // compiled without the cache
  CHECK(diagnostics.notes().size() == 1);
  unsetenv("MLC_CACHE_DIR");
}

TEST_CASE("compiled: sizes in bytes as users write them") {
  struct Row {
    const char* text;
    uint64_t bytes;
  };
  for (const Row& row : {Row{"0", 0},
                         {"5000000", 5000000},
                         {"500MB", 500000000},
                         {"1.5 GB", 1500000000},
                         {"2KiB", 2048},
                         {"1GiB", 1u << 30},
                         {"3kB", 3000},
                         {"1TB", 1000000000000}})
    CHECK(ParseBytes("--limit", row.text) == row.bytes);
  for (const char* text : {"", "MB", "-1", "1XB", "1 2", "nan", "inf", "1e30", "5MB "})
    CHECK(RefusalId([&] { ParseBytes("--limit", text); }) == "usage");
  CHECK(BytesText(999) == "999 B");
  CHECK(BytesText(1500000) == "1.50 MB");
}

}  // namespace
}  // namespace mlc::test
