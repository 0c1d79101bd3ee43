// Tests that GGUF files are read correctly, and that invalid files are rejected with the location
// of the error.
#include "frontends/gguf/file.h"

#include <chrono>
#include <functional>
#include <iostream>

#include "lib/ir/encoding.h"
#include "test/backends/coreml/package_files.h"
#include "test/catch.h"
#include "test/expected_error.h"
#include "test/frontends/gguf/writer.h"
#include "test/paths.h"
#include "test/read_in_parts.h"

namespace fs = std::filesystem;

namespace mlc::test {
using namespace gguf;
namespace {

constexpr uint32_t kF32 = 0, kQ4_0 = 2;

void WriteFile(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}
GgufFile OpenBytes(const ScratchFolder& folder, const std::string& bytes,
                   const std::string& name = "m.gguf") {
  WriteFile(folder / name, bytes);
  return GgufFile::Open(folder / name);
}
GgufFile OpenBytes(const std::string& bytes) {
  ScratchFolder folder;
  return OpenBytes(folder, bytes);
}
// Returns the error for a file that is rejected.
std::string Why(const std::string& bytes) {
  return Refusal([&] { OpenBytes(bytes); });
}

GgufWriter EveryType() {
  GgufWriter file;
  file.Key<uint8_t>("a.uint8", GgufType::kUint8, 200);
  file.Key<int8_t>("a.int8", GgufType::kInt8, -100);
  file.Key<uint16_t>("a.uint16", GgufType::kUint16, 60000);
  file.Key<int16_t>("a.int16", GgufType::kInt16, -30000);
  file.Key<uint32_t>("a.uint32", GgufType::kUint32, 4'000'000'000);
  file.Key<int32_t>("a.int32", GgufType::kInt32, -2'000'000'000);
  file.Key<uint64_t>("a.uint64", GgufType::kUint64, UINT64_MAX);
  file.Key<int64_t>("a.int64", GgufType::kInt64, INT64_MIN);
  file.Key<float>("a.float32", GgufType::kFloat32, 0.1f);
  file.Key<double>("a.float64", GgufType::kFloat64, 0.1);
  file.Key<uint8_t>("a.bool", GgufType::kBool, 1);
  file.Key("a.string", "text, \xC3\xA4");
  file.Array("a.ints", GgufType::kInt16, 3, Raw<int16_t>(-1) + Raw<int16_t>(0) + Raw<int16_t>(7));
  file.Array("a.floats", GgufType::kFloat32, 2, Raw(1.5f) + Raw(-2.0f));
  file.Array("a.bools", GgufType::kBool, 3, std::string("\1\0\1", 3));
  file.Array("a.strings", GgufType::kString, 3, GgufText("one") + GgufText("") + GgufText("three"));
  file.Array("a.nested", GgufType::kArray, 2,
             Raw(GgufType::kUint8) + Raw<uint64_t>(2) + "\1\2" + Raw(GgufType::kString) +
                 Raw<uint64_t>(1) + GgufText("in"));
  file.Tensor("w", {64, 4}, kQ4_0, std::string(4 * 2 * 18, '\1'));
  file.Tensor("b", {4}, kF32, Raw(1.0f) + Raw(2.0f) + Raw(3.0f) + Raw(4.0f));
  file.Tensor("scalar", {}, kF32, Raw(5.0f));
  return file;
}

void CheckEveryType(const GgufFile& file) {
  CHECK(file.metadata().size() == 17);
  CHECK(file.Int("a.uint8") == 200);
  CHECK(file.Int("a.int8") == -100);
  CHECK(file.Int("a.uint16") == 60000);
  CHECK(file.Int("a.int16") == -30000);
  CHECK(file.Int("a.uint32") == 4'000'000'000);
  CHECK(file.Int("a.int32") == -2'000'000'000);
  CHECK(file.Int("a.int64") == INT64_MIN);
  CHECK(file.Number(*file.Find("a.uint64")) == 0x1p64);
  CHECK(file.Float("a.float32") == 0.1f);
  CHECK(file.Float("a.float64") == 0.1);
  CHECK(file.Bool("a.bool"));
  CHECK(file.String("a.string") == "text, \xC3\xA4");
  CHECK(file.Text(*file.Find("a.string"), 4) == "text");
  CHECK(file.Ints("a.ints") == std::vector<int64_t>{-1, 0, 7});
  CHECK(file.Ints("a.uint8") == std::vector<int64_t>{200});
  CHECK(file.Floats("a.floats") == std::vector<double>{1.5, -2});
  CHECK(file.Bools("a.bools") == std::vector<bool>{true, false, true});
  CHECK(file.Strings("a.strings") == std::vector<std::string>{"one", "", "three"});
  CHECK(file.Strings("a.string").size() == 1);
  std::vector<GgufValue> nested = file.Elements(*file.Find("a.nested"), 10);
  REQUIRE(nested.size() == 2);
  CHECK(file.Integer(file.Elements(nested[0], 2)[1]) == 2);
  CHECK(file.Text(file.Elements(nested[1], 1)[0]) == "in");
  CHECK(file.Elements(*file.Find("a.strings"), 2).size() == 2);
  CHECK(file.Int("missing", 7) == 7);
  CHECK(file.String("missing", "x") == "x");

  REQUIRE(file.tensors().size() == 3);
  CHECK(file.tensors()[0].dims == Dims{4, 64});
  CHECK(file.tensors()[0].type->name == "Q4_0");
  CHECK(file.tensors()[0].bytes == 144);
  CHECK(file.Constant("w").dims() == Dims{4, 64});
  CHECK(file.Constant("b").Doubles() == std::vector<double>{1, 2, 3, 4});
  CHECK(file.Constant("scalar").dims() == Dims{});
  CHECK(file.Constant("scalar").Double(0) == 5);
}

TEST_CASE("gguf: metadata of every type and tensors are read") {
  for (uint32_t version : {2, 3}) {
    GgufWriter file = EveryType();
    file.version = version;
    ScratchFolder folder;
    GgufFile read = OpenBytes(folder, file.Bytes());
    CHECK(read.version() == version);
    CheckEveryType(read);
    CHECK(read.Constant("b").file_view().file == read.files()[0].get());
  }
}

TEST_CASE("gguf: a file is read piecewise if address space is limited") {
  ScratchFolder folder;
  WriteFile(folder / "m.gguf", EveryType().Bytes());
  CheckEveryType(GgufFile::Open(OpenInParts(folder / "m.gguf")));
}

TEST_CASE("gguf: errors of getters name the key and the types found and expected") {
  ScratchFolder folder;
  GgufFile file = OpenBytes(folder, EveryType().Bytes());
  auto why = [&](auto get) { return Refusal(get); };
  CHECK_THAT(why([&] { file.Int("a.string"); }), ContainsSubstring("of type string"));
  CHECK_THAT(why([&] { file.Int("a.string"); }), ContainsSubstring("key \"a.string\""));
  CHECK_THAT(why([&] { file.Int("a.string"); }), ContainsSubstring("expected: an integer"));
  CHECK_THAT(why([&] { file.Int("a.bool"); }), ContainsSubstring("of type bool"));
  CHECK_THAT(why([&] { file.Int("a.uint64"); }), ContainsSubstring("exceeds 9223372036854775807"));
  CHECK_THAT(why([&] { file.Float("a.int8"); }), ContainsSubstring("expected: a float"));
  CHECK_THAT(why([&] { file.Bool("a.int8"); }), ContainsSubstring("expected: a bool"));
  CHECK_THAT(why([&] { file.String("a.strings"); }),
             ContainsSubstring("array of 3 of type string"));
  CHECK_THAT(why([&] { file.Strings("a.ints"); }), ContainsSubstring("expected: strings"));
  CHECK_THAT(why([&] { file.Ints("a.floats"); }), ContainsSubstring("expected: integers"));
  CHECK_THAT(why([&] { file.Int("a.missing"); }), ContainsSubstring("no key \"a.missing\""));
  CHECK_THAT(why([&] { file.Constant("x"); }), ContainsSubstring("no tensor \"x\""));
}

// A model of two parts with one tensor each.
struct Split {
  GgufWriter parts[2];
  Split() {
    for (uint16_t i = 0; i < 2; ++i) {
      if (i == 0) parts[i].Key("general.architecture", "llama");
      parts[i].Key<uint16_t>("split.no", GgufType::kUint16, i);
      parts[i].Key<uint16_t>("split.count", GgufType::kUint16, 2);
      parts[i].Key<int32_t>("split.tensors.count", GgufType::kInt32, 2);
      parts[i].Tensor(i == 0 ? "first" : "second", {1}, kF32, Raw(static_cast<float>(i)));
    }
  }
  void Write(const ScratchFolder& folder) const {
    for (int i = 0; i < 2; ++i)
      WriteFile(folder / fmt::format("m-0000{}-of-00002.gguf", i + 1), parts[i].Bytes());
  }
};

TEST_CASE("gguf: any part of a split model opens the whole model") {
  ScratchFolder folder;
  Split().Write(folder);
  for (const char* name : {"m-00001-of-00002.gguf", "m-00002-of-00002.gguf"}) {
    GgufFile file = GgufFile::Open(folder / name);
    CHECK(file.String("general.architecture") == "llama");
    CHECK(file.files().size() == 2);
    CHECK(file.tensors().size() == 2);
    CHECK(file.Constant("second").Double(0) == 1);
    CHECK(file.FindTensor("second")->part == 1);
  }
}

TEST_CASE("gguf: parts of different models are rejected") {
  ScratchFolder folder;
  Split split;
  split.Write(folder);
  auto why = [&](const std::string& name) {
    return Refusal([&] { GgufFile::Open(folder / name); });
  };
  fs::rename(folder / "m-00002-of-00002.gguf", folder / "other.gguf");
  CHECK_THAT(why("m-00001-of-00002.gguf"), ContainsSubstring("part 2 of 2 is missing"));
  CHECK_THAT(why("other.gguf"), ContainsSubstring("ends in -00002-of-00002.gguf"));
  fs::copy_file(folder / "m-00001-of-00002.gguf", folder / "m-00002-of-00002.gguf");
  CHECK_THAT(why("m-00001-of-00002.gguf"), ContainsSubstring("instead of part 2 of 2"));
  split.parts[1].Tensor("first", {1}, kF32, Raw(1.0f));
  split.Write(folder);
  CHECK_THAT(why("m-00001-of-00002.gguf"), ContainsSubstring("also in another part"));
  split = Split();
  split.parts[1].Tensor("third", {1}, kF32, Raw(1.0f));
  split.Write(folder);
  CHECK_THAT(why("m-00001-of-00002.gguf"),
             ContainsSubstring("3 tensors in total, but the model declares 2"));
}

TEST_CASE("gguf: errors name unsupported versions and byte orders") {
  auto of = [](uint32_t version) {
    GgufWriter file;
    file.version = version;
    return Why(file.Bytes());
  };
  CHECK_THAT(of(1), ContainsSubstring("GGUF version 1"));
  CHECK_THAT(of(4), ContainsSubstring("GGUF version 4"));
  CHECK_THAT(of(0), ContainsSubstring("GGUF version 0"));
  CHECK_THAT(of(3u << 24), ContainsSubstring("big-endian"));
  CHECK_THAT(Why("GGML rest"), ContainsSubstring("not a GGUF file"));
  CHECK_THAT(Why(""), ContainsSubstring("not a GGUF file"));
}

TEST_CASE("gguf: truncated files are rejected") {
  ScratchFolder folder;
  const std::string whole = EveryType().Bytes();
  OpenBytes(folder, whole);
  for (size_t size = 0; size < whole.size(); ++size) {
    WriteFile(folder / "m.gguf", whole.substr(0, size));
    INFO(size);
    std::string why = Refusal([&] { GgufFile::Open(folder / "m.gguf"); });
    CHECK(!why.empty());
    CHECK(why.find("m.gguf") != std::string::npos);
  }
  std::cout << "# gguf: " << whole.size() << " truncated files refused\n";
}

TEST_CASE("gguf: impossible counts, sizes and types are rejected") {
  struct Case {
    const char* what;
    std::function<void(GgufWriter&)> damage;
    const char* why;
  };
  const uint64_t huge = UINT64_MAX, large = uint64_t{1} << 62;
  const std::vector<Case> cases = {
      {"keys", [&](GgufWriter& f) { f.key_count = huge; }, "more than fit into the file"},
      {"tensors", [&](GgufWriter& f) { f.tensor_count = large; }, "more than fit into the file"},
      {"a long key",
       [&](GgufWriter& f) { f.keys = Raw(huge) + std::string(64, 'k'), f.key_count = 1; }, "65535"},
      {"a long string", [&](GgufWriter& f) { f.Value("k", GgufType::kString, Raw(huge)); },
       "ends inside a value of type string"},
      {"a type",
       [&](GgufWriter& f) { f.Value("k", static_cast<GgufType>(13), std::string(8, 'x')); },
       "unknown type 13"},
      {"an array", [&](GgufWriter& f) { f.Array("k", GgufType::kUint64, large + 1, ""); },
       "array has 4611686018427387905 elements of type uint64"},
      {"an array of strings",
       [&](GgufWriter& f) { f.Array("k", GgufType::kString, 1 << 20, GgufText("x")); },
       "array has 1048576 elements of type string"},
      {"a string in an array",
       [&](GgufWriter& f) { f.Array("k", GgufType::kString, 1, Raw(large)); },
       "ends inside a value of type string"},
      {"deep arrays",
       [&](GgufWriter& f) {
         std::string raw;
         for (int i = 0; i < 100; ++i) raw += Raw(GgufType::kArray) + Raw<uint64_t>(1);
         f.Value("k", GgufType::kArray, raw);
       },
       "nested more than 8 levels deep"},
      {"a key twice",
       [&](GgufWriter& f) {
         f.Key("k", "a");
         f.Key("k", "b");
       },
       "duplicate key"},
      {"an empty key", [&](GgufWriter& f) { f.Key("", "a"); }, "a key is empty"},
      {"a key that is not text", [&](GgufWriter& f) { f.Key("\xFF", "a"); },
       "a key is not UTF-8 text"},
      {"an escape", [&](GgufWriter& f) { f.Key("\x1B[2J", "a"); }, "a key is not UTF-8 text"},
      {"an alignment",
       [&](GgufWriter& f) { f.Key<uint32_t>("general.alignment", GgufType::kUint32, 24); },
       "not a power of 2"},
      {"an alignment of 0",
       [&](GgufWriter& f) { f.Key<uint32_t>("general.alignment", GgufType::kUint32, 0); },
       "not a power of 2"},
      {"an alignment of text", [&](GgufWriter& f) { f.Key("general.alignment", "32"); },
       "expected: a non-negative integer"},
      {"a great alignment",
       [&](GgufWriter& f) {
         f.Key<uint64_t>("general.alignment", GgufType::kUint64, large);
         f.Entry("t", {1}, kF32, 0);
       },
       "the file is truncated"},
      {"rank 5",
       [&](GgufWriter& f) {
         f.Entry("t", {1, 1, 1, 1, 1}, kF32, 0);
       },
       "5 dimensions"},
      {"an empty tensor", [&](GgufWriter& f) { f.Entry("t", {0}, kF32, 0); }, "a dimension of 0"},
      {"a dimension", [&](GgufWriter& f) { f.Entry("t", {huge}, kF32, 0); }, "too many elements"},
      {"a product",
       [&](GgufWriter& f) {
         f.Entry("t", {1u << 31, 1u << 31, 4}, kF32, 0);
       },
       "too many elements"},
      {"a row", [&](GgufWriter& f) { f.Entry("t", {33}, kQ4_0, 0); }, "rows of 33 elements"},
      {"a scalar of blocks", [&](GgufWriter& f) { f.Entry("t", {}, kQ4_0, 0); },
       "rows of 1 elements"},
      {"a type of tensor", [&](GgufWriter& f) { f.Entry("t", {32}, 99, 0); }, "ggml type 99"},
      {"a removed type", [&](GgufWriter& f) { f.Entry("t", {32}, 31, 0); }, "ggml type 31"},
      {"an offset", [&](GgufWriter& f) { f.Entry("t", {32}, kF32, large); },
       "the file is truncated"},
      {"an offset that wraps", [&](GgufWriter& f) { f.Entry("t", {32}, kF32, huge - 31); },
       "is too large"},
      {"an odd offset", [&](GgufWriter& f) { f.Entry("t", {1}, kF32, 4); }, "not a multiple of"},
      {"a tensor twice",
       [&](GgufWriter& f) {
         f.Tensor("t", {1}, kF32, Raw(1.0f));
         f.Tensor("t", {1}, kF32, Raw(1.0f));
       },
       "two tensors have this name"},
      {"an overlap",
       [&](GgufWriter& f) {
         f.Tensor("t", {16}, kF32, std::string(64, 'x'));
         f.Entry("u", {1}, kF32, 32);
       },
       "overlap those of tensor \"t\""},
      {"the same place",
       [&](GgufWriter& f) {
         f.Tensor("t", {16}, kF32, std::string(64, 'x'));
         f.Entry("u", {16}, kF32, 0);
       },
       "overlap those of tensor \"t\""},
      {"data that are missing",
       [&](GgufWriter& f) { f.Tensor("t", {16}, kF32, std::string(60, 'x')); },
       "1 of 1 tensors are incomplete"},
  };
  auto begin = std::chrono::steady_clock::now();
  for (const Case& one : cases) {
    INFO(one.what);
    GgufWriter file;
    one.damage(file);
    CHECK_THAT(Why(file.Bytes()), ContainsSubstring(one.why));
  }
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(cases.size()));
}

TEST_CASE("gguf: errors for a damaged model say what is missing") {
  auto path = Corpus("bad/las7_tiny.gguf", "damaged gguf");
  if (!path) return;
  std::string why = Refusal([&] { GgufFile::Open(*path); });
  CHECK_THAT(why, ContainsSubstring("error[bad-file]"));
  CHECK_THAT(why, ContainsSubstring("las7_tiny.gguf"));
}

TEST_CASE("gguf: all models and tokenizers of the corpus are readable") {
  int files = 0, tensors = 0;
  for (const char* name : {"gguf", "gguf/blocks", "tokenizers"}) {
    auto folder = Corpus(name, "gguf files");
    if (!folder) continue;
    for (const fs::directory_entry& entry : fs::directory_iterator(*folder)) {
      if (entry.path().extension() != ".gguf") continue;
      INFO(entry.path().string());
      GgufFile file = GgufFile::Open(entry.path());
      if (file.Has("general.architecture")) CHECK(!file.String("general.architecture").empty());
      for (const GgufTensor& tensor : file.tensors())
        CHECK(file.Constant(tensor).dims() == tensor.dims);
      ++files, tensors += static_cast<int>(file.tensors().size());
    }
  }
  std::cout << "# gguf: " << files << " files of the corpus read, " << tensors << " tensors\n";
}

}  // namespace
}  // namespace mlc::test
