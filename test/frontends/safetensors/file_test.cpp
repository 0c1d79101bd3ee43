#include "frontends/safetensors/file.h"

#include <nlohmann/json.hpp>

#include "test/catch.h"
#include "test/expected_error.h"
#include "test/frontends/safetensors/writer.h"
#include "test/paths.h"
#include "test/read_in_parts.h"

using namespace mlc;
using namespace mlc::safetensors;
using namespace mlc::test;
namespace fs = std::filesystem;

namespace {

const std::string kOne = R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})";

class Scratch {
 public:
  SafetensorsFile Open(const std::string& bytes) {
    Put(folder_ / "x.safetensors", bytes);
    return SafetensorsFile::Open(folder_ / "x.safetensors");
  }
  // Returns the error for a file that is rejected. The header follows the length.
  std::string Refusal(const std::string& bytes) {
    std::string text = mlc::test::Refusal([&] { Open(bytes); });
    CHECK_THAT(text, ContainsSubstring("x.safetensors"));
    return text;
  }
  std::string OfHeader(const std::string& header, size_t data = 8) {
    return Refusal(Packed(header, std::string(data, '\1')));
  }

 private:
  ScratchFolder folder_;
};

}  // namespace

// Names and sizes of element types in the format, from safetensors/src/tensor.rs.
TEST_CASE("safetensors: element types") {
  struct Case {
    std::string name;
    DType dtype;
    size_t bytes;
  };
  const std::vector<Case> kCases = {
      {"F64", DType::kFp64, 8},        {"F32", DType::kFp32, 4},
      {"F16", DType::kFp16, 2},        {"BF16", DType::kBf16, 2},
      {"I64", DType::kInt64, 8},       {"I32", DType::kInt32, 4},
      {"I16", DType::kInt16, 2},       {"I8", DType::kInt8, 1},
      {"U8", DType::kUint8, 1},        {"U16", DType::kUint16, 2},
      {"U32", DType::kUint32, 4},      {"U64", DType::kUint64, 8},
      {"BOOL", DType::kBool, 1},       {"F8_E4M3", DType::kFp8E4M3FN, 1},
      {"F8_E5M2", DType::kFp8E5M2, 1},
  };
  Scratch scratch;
  for (const Case& row : kCases) {
    INFO(row.name);
    std::string header =
        fmt::format(R"({{"t": {{"dtype": "{}", "shape": [3, 2], "data_offsets": [0, {}]}}}}  )",
                    row.name, 6 * row.bytes);
    std::string data;
    for (size_t i = 0; i < 6 * row.bytes; ++i) data += static_cast<char>(i % row.bytes == 0);
    SafetensorsFile file = scratch.Open(Packed(header, data));
    REQUIRE(file.entries().size() == 1);
    Tensor tensor = file.Get(file.entries()[0]);
    CHECK(tensor.dtype() == row.dtype);
    CHECK(tensor.dims() == Dims{3, 2});
    Pin<std::byte> bytes = tensor.bytes();
    CHECK(std::memcmp(bytes.data(), data.data(), data.size()) == 0);
  }
}

TEST_CASE("safetensors: an unsupported type is rejected when the tensor is requested") {
  Scratch scratch;
  for (std::string_view type : {"C64", "F8_E8M0", "F4", "F6_E2M3", "F99"}) {
    INFO(type);
    const size_t bytes = type == "C64" ? 32 : type == "F4" ? 2 : type == "F6_E2M3" ? 3 : 4;
    SafetensorsFile file = scratch.Open(
        Packed(fmt::format(R"({{"t": {{"dtype": "{}", "shape": [4], "data_offsets": [0, {}]}}}})",
                           type, bytes),
               std::string(bytes, '\0')));
    std::string text = Refusal([&] { file.Get(*file.Find("t")); });
    CHECK_THAT(text, ContainsSubstring("error[unsupported-dtype]") &&
                         ContainsSubstring(std::string(type)) && ContainsSubstring("\"t\""));
  }
}

TEST_CASE("safetensors: empty tensors, scalars and unaligned tensors") {
  Scratch scratch;
  SafetensorsFile file = scratch.Open(Packed(
      R"({"__metadata__": {"format": "pt", "": ""},
          "byte": {"dtype": "U8", "shape": [], "data_offsets": [0, 1]},
          "none": {"dtype": "F32", "shape": [0, 3], "data_offsets": [1, 1]},
          "last": {"dtype": "F32", "shape": [1], "data_offsets": [1, 5]},
          "truth": {"dtype": "BOOL", "shape": [3], "data_offsets": [5, 8]}})",
      std::string("\x07\x00\x00\x80\x3f\x00\x01\x80", 8)));
  CHECK(file.metadata() == std::map<std::string, std::string>{{"", ""}, {"format", "pt"}});
  CHECK(file.Get(*file.Find("byte")).Int(0) == 7);
  CHECK(file.Get(*file.Find("byte")).rank() == 0);
  CHECK(file.Get(*file.Find("none")).size() == 0);
  CHECK(file.Get(*file.Find("last")).data<float>()[0] == 1.0f);
  CHECK(file.Get(*file.Find("truth")).Ints() == std::vector<int64_t>{0, 1, 1});
  CHECK(file.Get(*file.Find("truth")).bytes()[2] == std::byte{1});
  CHECK(file.Find("missing") == nullptr);
}

TEST_CASE("safetensors: a header without tensors") {
  CHECK(Scratch().Open(Packed("{}", "")).entries().empty());
}

TEST_CASE("safetensors: truncated files are rejected") {
  Scratch scratch;
  CHECK_THAT(scratch.Refusal(""), ContainsSubstring("offset 0"));
  CHECK_THAT(scratch.Refusal("1234567"), ContainsSubstring("7 bytes"));
  CHECK_THAT(scratch.Refusal(Packed(kOne, "", 1000)),
             ContainsSubstring("the header has 1000 bytes"));
  CHECK_THAT(scratch.Refusal(Packed(kOne, "", INT64_MAX)), ContainsSubstring("at most 16777216"));
  CHECK_THAT(scratch.Refusal("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"),
             ContainsSubstring("git lfs pull"));
  const std::string whole = Packed(kOne, std::string(8, '\1'));
  for (size_t size = 0; size < whole.size(); ++size)
    CHECK_THAT(scratch.Refusal(whole.substr(0, size)), ContainsSubstring("error[bad-file]"));
  CHECK(scratch.Open(whole).entries().size() == 1);
}

TEST_CASE("safetensors: gaps and overlaps of tensors are rejected") {
  Scratch scratch;
  auto two = [&](int a, int b, int c, int d, size_t data) {
    return scratch.OfHeader(
        fmt::format(R"({{"a": {{"dtype": "U8", "shape": [{}], "data_offsets": [{}, {}]}},
                         "b": {{"dtype": "U8", "shape": [{}], "data_offsets": [{}, {}]}}}})",
                    b - a, a, b, d - c, c, d),
        data);
  };
  CHECK_THAT(two(0, 4, 3, 8, 8),
             ContainsSubstring("byte 3 of the data also belongs to tensor \"a\"") &&
                 ContainsSubstring("tensor \"b\""));
  CHECK_THAT(two(0, 8, 0, 8, 8), ContainsSubstring("byte 0 of the data also belongs to"));
  CHECK_THAT(two(0, 3, 4, 8, 8), ContainsSubstring("bytes 3 to 4 of the data, before this tensor"));
  CHECK_THAT(two(4, 8, 1, 4, 8), ContainsSubstring("bytes 0 to 1 of the data, before this tensor"));
  CHECK_THAT(two(0, 4, 4, 8, 7),
             ContainsSubstring("bytes 4 to 8, but the file has only 7 bytes of data"));
  CHECK_THAT(two(0, 4, 4, 8, 9), ContainsSubstring("1 bytes after the last tensor"));
  // Tensors may be in any order.
  SafetensorsFile file =
      scratch.Open(Packed(R"({"a": {"dtype": "U8", "shape": [1], "data_offsets": [1, 2]},
                 "b": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}})",
                          "\1\2"));
  CHECK(file.Get(*file.Find("a")).Int(0) == 2);
}

TEST_CASE("safetensors: sizes that do not match the elements are rejected") {
  Scratch scratch;
  auto sized = [&](std::string_view dtype, std::string_view shape, std::string_view offsets) {
    return scratch.OfHeader(fmt::format(
        R"({{"t": {{"dtype": "{}", "shape": {}, "data_offsets": {}}}}})", dtype, shape, offsets));
  };
  CHECK_THAT(sized("F32", "[3]", "[0, 8]"),
             ContainsSubstring("F32 [3] is stored in 8 bytes") && ContainsSubstring("32 bits"));
  CHECK_THAT(sized("F32", "[]", "[0, 8]"), ContainsSubstring("tensor \"t\""));
  CHECK_THAT(sized("F4", "[15]", "[0, 8]"), ContainsSubstring("4 bits"));
  for (std::string_view huge :
       {"[4294967296, 4294967296]", "[9223372036854775807]", "[2, 9223372036854775807]",
        "[65536, 65536, 65536, 65536, 65536]", "[9223372036854775807, 2, 0]"})
    CHECK_THAT(sized("U8", huge, "[0, 8]"), ContainsSubstring("the shape is"));
  CHECK_THAT(sized("F99", "[4294967296, 4294967296]", "[0, 8]"), ContainsSubstring("the shape is"));
  for (std::string_view wrong : {"[18446744073709551615]", "[-1]", "[1.5]", "[1e3]", "[\"8\"]",
                                 "[null]", "[[8]]", "8", "null", "{}", "\"8\"", "[1e999]"})
    CHECK_THAT(sized("U8", wrong, "[0, 8]"), ContainsSubstring("error[bad-file]"));
  for (std::string_view wrong : {"[8, 0]", "[0]", "[0, 8, 8]", "[]", "[-8, 0]", "[0, 8.0]",
                                 "[0, 18446744073709551615]", "8", "{}", "true"})
    CHECK_THAT(sized("U8", "[8]", wrong), ContainsSubstring("tensor \"t\""));
  CHECK_THAT(sized("U8",
                   "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
                   "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,8]",
                   "[0, 8]"),
             ContainsSubstring("more than 64"));
}

TEST_CASE("safetensors: invalid headers are rejected") {
  Scratch scratch;
  const std::string tensor = R"({"dtype": "U8", "shape": [8], "data_offsets": [0, 8]})";
  struct Case {
    std::string header, says;
  };
  for (const Case& row : std::vector<Case>{
           {"[]", "does not begin with {"},
           {" " + kOne, "does not begin with {"},
           {"{", "not valid JSON"},
           {"{\"a\"", "not valid JSON"},
           {kOne + "x", "not valid JSON"},
           {kOne + std::string(3, '\0'), "a zero byte"},
           {"{\"\xff\": 1}", "not valid JSON"},
           {"{\"a\": 1}", "the tensor's description is 1"},
           {"{\"a\": [" + tensor + "]}", "a list"},
           {"{\"a\": {}}", "\"dtype\" is missing"},
           {R"({"a": {"dtype": "U8", "shape": [8]}})", "\"data_offsets\" is missing"},
           {R"({"a": {"dtype": 8}})", "\"dtype\" is or contains 8"},
           {R"({"a": {"dtype": {}}})", "\"dtype\" is or contains an object"},
           {R"({"a": {"dtype": "U8", "dtype": "U8"}})", "duplicate member \"dtype\""},
           {R"({"a": {"strides": [8]}})", "unknown member \"strides\""},
           {"{\"a\": " + tensor + ", \"a\": " + tensor + "}", "also belongs to tensor \"a\""},
           {R"({"__metadata__": 1})", "__metadata__"},
           {R"({"__metadata__": {"a": 1}})", "\"a\" of __metadata__ is 1"},
           {R"({"__metadata__": {"a": {}}})", "\"a\" of __metadata__ is an object"},
           {R"({"__metadata__": {"a": "", "a": ""}})", "duplicate member \"a\""},
           {R"({"__metadata__": {}, "__metadata__": {}})", "duplicate member \"__metadata__\""},
           {"{\"" + std::string(5000, 'n') + "\": 1}", "a name has 5000 bytes"},
       }) {
    INFO(row.header.substr(0, 100));
    CHECK_THAT(scratch.OfHeader(row.header), ContainsSubstring(row.says));
  }
  // Empty ranges do not overlap: two tensors of the same name without elements may have the same
  // offset.
  const std::string empty = R"({"dtype": "U8", "shape": [0], "data_offsets": [0, 0]})";
  CHECK_THAT(scratch.OfHeader("{\"a\": " + empty + ", \"a\": " + empty + "}", 0),
             ContainsSubstring("duplicate tensor \"a\""));
  for (std::string_view deep : {"[", "{\"a\":", "{\"a\":{\"shape\":["}) {
    std::string header = "{\"x\":";
    while (header.size() < (size_t{1} << 20)) header += deep;
    CHECK_THAT(scratch.OfHeader(header), ContainsSubstring("error[bad-file]"));
  }
}

TEST_CASE("safetensors: detection of the format by the first bytes") {
  auto looks = [](const std::string& bytes) {
    return LooksLikeSafetensors(std::as_bytes(std::span(bytes.data(), bytes.size())));
  };
  CHECK(looks(Packed(kOne, "")));
  CHECK(looks(Packed("{}", "", 1 << 30)));
  CHECK_FALSE(looks(Packed("{", "").substr(0, 8)));
  CHECK_FALSE(looks("program {\n"));
  CHECK_FALSE(looks(Packed("[]", "")));
}

TEST_CASE("safetensors: a file is read piecewise if address space is limited") {
  ScratchFolder folder;
  Put(folder / "x", Packed(R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})",
                           std::string("\0\0\x80\x3f\0\0\0\x40", 8)));
  OpenInParts(folder / "x");  // accounts for memory that the allocator keeps
  struct rlimit before, low;
  getrlimit(RLIMIT_AS, &before);
  low = before;
  low.rlim_cur = 1;
  setrlimit(RLIMIT_AS, &low);
  std::optional<SafetensorsFile> file;
  std::string refusal = Refusal([&] { file = SafetensorsFile::Open(folder / "x"); });
  setrlimit(RLIMIT_AS, &before);
  REQUIRE(refusal == "");
  CHECK(file->Get(*file->Find("a")).Doubles() == std::vector<double>{1, 2});
}

// Compares with the bytes at the offsets that an independent parser finds in the header.
TEST_CASE("safetensors: tensors of the corpus match the bytes of their files") {
  size_t files = 0, tensors = 0;
  for (const char* part : {"huggingface", "safetensors"}) {
    std::optional<fs::path> corpus = Corpus(part, "safetensors files");
    if (!corpus) continue;
    for (const auto& each : fs::recursive_directory_iterator(*corpus)) {
      if (each.path().extension() != ".safetensors") continue;
      INFO(each.path());
      const std::string bytes = ContentsOf(each.path());
      uint64_t length;
      std::memcpy(&length, bytes.data(), sizeof length);
      const auto header = nlohmann::json::parse(bytes.substr(8, length));
      SafetensorsFile file = SafetensorsFile::Open(each.path());
      CHECK(file.entries().size() == header.size() - header.count("__metadata__"));
      for (const SafetensorsFile::Entry& entry : file.entries()) {
        const auto& said = header.at(entry.name);
        Tensor tensor = file.Get(entry);
        CHECK(tensor.dims() == said.at("shape").get<Dims>());
        CHECK(said.at("dtype") == entry.dtype);
        uint64_t begin = said.at("data_offsets")[0], end = said.at("data_offsets")[1];
        REQUIRE(tensor.byte_size() == end - begin);
        Pin<std::byte> elements = tensor.bytes();
        CHECK(std::memcmp(elements.data(), bytes.data() + 8 + length + begin, end - begin) == 0);
        CHECK(tensor.file_view().offset == 8 + length + begin);
        ++tensors;
      }
      ++files;
    }
  }
  if (files) std::printf("# safetensors: %zu tensors of %zu files\n", tensors, files);
}
