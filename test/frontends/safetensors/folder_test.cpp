#include "frontends/safetensors/folder.h"

#include <fmt/ranges.h>

#include <cmath>

#include "lib/ir/encoding.h"
#include "lib/ir/npy.h"
#include "test/catch.h"
#include "test/expected_error.h"
#include "test/frontends/safetensors/writer.h"
#include "test/paths.h"

using namespace mlc;
using namespace mlc::safetensors;
using namespace mlc::test;
namespace fs = std::filesystem;

namespace {

struct Piece {
  std::string name, dtype;
  Dims dims;
  std::string bytes;
};

std::string Of(const std::vector<Piece>& pieces) {
  std::string header = "{", data;
  for (const Piece& piece : pieces) {
    header +=
        fmt::format(R"({}"{}": {{"dtype": "{}", "shape": [{}], "data_offsets": [{}, {}]}})",
                    header.size() > 1 ? ", " : "", piece.name, piece.dtype,
                    fmt::join(piece.dims, ", "), data.size(), data.size() + piece.bytes.size());
    data += piece.bytes;
  }
  return Packed(header + "}", data);
}

// 2 x 64 4-bit weights in groups of 32.
std::vector<Piece> Quantised() {
  return {{"m.weight", "U32", {2, 8}, std::string(64, '\x21')},
          {"m.scales", "F32", {2, 2}, std::string(16, '\0')},
          {"m.biases", "F32", {2, 2}, std::string(16, '\0')}};
}

class Made {
 public:
  void Config(const std::string& text) { Put(path / "config.json", text); }
  std::string Refused() {
    return Refusal([&] { Folder::Open(path); });
  }
  std::string Refused(const std::string& name) {
    return Refusal([&] { Folder::Open(path).tensor(name); });
  }

 private:
  ScratchFolder scratch_;

 public:
  fs::path path = scratch_ / "model";
  Made() { fs::create_directory(path); }
};

}  // namespace

// expected.npz was computed with NumPy by test/frontends/safetensors/quantised.py.
TEST_CASE("folder: MLX and FP8 weights match NumPy") {
  size_t count = 0;
  for (const char* kind : {"mlx", "fp8"}) {
    const fs::path path = SourcePath(std::string("test/frontends/safetensors/quantised/") + kind);
    Folder folder = Folder::Open(path);
    std::map<std::string, Tensor> expected = ReadNpz(path / "expected.npz");
    CHECK(folder.names().size() == expected.size());
    for (const std::string& name : folder.names()) {
      INFO(kind << " " << name);
      REQUIRE(expected.contains(name));
      Tensor tensor = folder.tensor(name);
      CHECK(tensor.SameBytes(expected.at(name)));
      CHECK((tensor.encoding() != nullptr) == (name != "norm.weight"));
      CHECK(folder.item(name).problem == "");
      ++count;
    }
  }
  CHECK(count == 14);
}

TEST_CASE("folder: integers of MLX weights are not copied") {
  const fs::path path = SourcePath("test/frontends/safetensors/quantised/mlx");
  Folder folder = Folder::Open(path);
  const SafetensorsFile& file = folder.files()[0];
  for (auto [name, dtype] : {std::pair("layers.2.weight", DType::kUint2),
                             {"layers.3.weight", DType::kUint3},
                             {"layers.4.weight", DType::kUint4},
                             {"layers.6.weight", DType::kUint6},
                             {"layers.8.weight", DType::kUint8},
                             {"experts.weight", DType::kUint3}}) {
    INFO(name);
    Tensor tensor = folder.tensor(name);
    const Encoding& encoding = *tensor.encoding();
    CHECK(encoding.data.dtype() == dtype);
    CHECK(encoding.data.file_view().offset == file.Find(name)->offset);
    CHECK(encoding.data.file_view().size == file.Find(name)->bytes);
    CHECK(encoding.data.InPlace(0, encoding.data.size()).size() == file.Find(name)->bytes);
    CHECK(encoding.scale.file_view().file != nullptr);
    CHECK(encoding.bias.file_view().file != nullptr);
  }
  // Random access to 5-bit elements, for which we convert the data.
  Tensor five = folder.tensor("layers.5.weight").encoding()->data;
  Pin<uint8_t> all = five.data<uint8_t>();
  for (int64_t first = 0; first < 24; ++first) {
    std::vector<std::byte> some(37);
    five.Read(first, 37, some.data());
    for (int64_t i = 0; i < 37; ++i) CHECK(std::to_integer<int>(some[i]) == all[first + i]);
  }
  CHECK(folder.item("layers.4.weight").type == "4 bits in groups of 64");
  CHECK(folder.item("layers.4.weight").bytes == 3 * 64 + 2 * 3 * 2 * 2);
  CHECK(folder.item("experts.weight").dims == Dims{2, 4, 64});
  CHECK(folder.has("layers.4.scales"));
  CHECK(folder.tensor("layers.4.weight").Cast(DType::kFp16).encoding() != nullptr);
}

TEST_CASE("folder: inconsistent parts of MLX weights are rejected") {
  Made made;
  made.Config(R"({"quantization": {"group_size": 32, "bits": 4}})");
  auto refusal = [&](const std::function<void(std::vector<Piece>&)>& change) {
    std::vector<Piece> pieces = Quantised();
    change(pieces);
    Put(made.path / "model.safetensors", Of(pieces));
    std::string problem = Folder::Open(made.path).item("m.weight").problem;
    std::string text = made.Refused("m.weight");
    CHECK((text == "") == (problem == ""));
    if (text.size()) CHECK_THAT(text, ContainsSubstring("model.safetensors, tensor \"m."));
    return text;
  };
  CHECK(refusal([](auto&) {}) == "");
  CHECK_THAT(refusal([](auto& all) {
               all[1].dims = {4, 1};
             }),
             ContainsSubstring("words [2, 8], scales [4, 1] and biases [2, 2]"));
  CHECK_THAT(refusal([](auto& all) { all[1].dims = {4}; }), ContainsSubstring("bad-constant"));
  CHECK_THAT(refusal([](auto& all) { all[2].dims = {1, 4}; }), ContainsSubstring("bad-constant"));
  CHECK_THAT(refusal([](auto& all) { all[0].dims = {8, 2}; }), ContainsSubstring("bad-constant"));
  CHECK_THAT(refusal([](auto& all) { all[0].dims = {16}; }), ContainsSubstring("bad-constant"));
  CHECK_THAT(refusal([](auto& all) { all.pop_back(); }), ContainsSubstring("without biases"));
  CHECK_THAT(refusal([](auto& all) { all[1].dtype = "I32"; }),
             ContainsSubstring("unsupported type I32 of scales"));
  CHECK_THAT(refusal([](auto& all) {
               for (Piece& piece : all) piece.dims = {0, piece.dims[1]}, piece.bytes = "";
             }),
             ContainsSubstring("bad-constant"));
  for (const char* how :
       {R"({"group_size": 32, "bits": 7})", R"({"group_size": 0, "bits": 4})",
        R"({"group_size": 32, "bits": -4})", R"({"group_size": 32, "bits": 4, "mode": "mxfp4"})"}) {
    made.Config(fmt::format(R"({{"quantization": {}}})", how));
    CHECK_THAT(refusal([](auto&) {}), ContainsSubstring("error[unsupported-dtype]"));
  }
  for (const char* how :
       {R"({"group_size": 2147483647, "bits": 4})",
        R"({"group_size": 32, "bits": 4, "m": {"bits": 8}})", R"({"group_size": 64, "bits": 4})"}) {
    made.Config(fmt::format(R"({{"quantization": {}}})", how));
    CHECK_THAT(refusal([](auto&) {}), ContainsSubstring("error[bad-constant]"));
  }
  made.Config(R"({"quantization": {"bits": 4}})");
  CHECK_THAT(made.Refused("m.weight"), ContainsSubstring("quantization.group_size"));
  // This is not MLX's format, so these are three separate tensors.
  made.Config(R"({"quantization_config": {"bits": 4, "group_size": 32, "quant_method": "gptq"}})");
  Folder folder = Folder::Open(made.path);
  CHECK(folder.names() == std::vector<std::string>{"m.biases", "m.scales", "m.weight"});
  CHECK(folder.tensor("m.weight").dtype() == DType::kUint32);
  CHECK_THAT(Refusal([&] { folder.tensor("m.qweight"); }),
             ContainsSubstring("similar names: \"m.weight\"") && ContainsSubstring("by gptq"));
}

TEST_CASE("folder: inconsistent FP8 scales are rejected") {
  Made made;
  auto refusal = [&](Dims scale, const std::string& dtype = "F32") {
    std::string bytes(ElementCount(scale) * 4, '\0');
    Put(made.path / "model.safetensors",
        Of({{"w", "F8_E4M3", {130, 257}, std::string(130 * 257, '\0')},
            {"w_scale_inv", dtype, scale, bytes}}));
    return made.Refused("w");
  };
  for (const Dims& good : {Dims{2, 3}, Dims{}, Dims{1}, Dims{1, 1}, Dims{130}, Dims{130, 1}})
    CHECK(refusal(good) == "");
  for (const Dims& bad :
       {Dims{3, 2}, Dims{2, 2}, Dims{6}, Dims{257}, Dims{1, 257}, Dims{2, 3, 1}, Dims{0}})
    CHECK_THAT(refusal(bad),
               ContainsSubstring("error[bad-constant]") && ContainsSubstring("[130, 257]"));
  CHECK_THAT(refusal({2, 3}, "I32"), ContainsSubstring("unsupported type I32 of scales"));
  made.Config(R"({"quantization_config": {"weight_block_size": [0, -1]}})");
  CHECK_THAT(refusal({2, 3}), ContainsSubstring("error[bad-constant]"));
  made.Config(R"({"quantization_config": {"weight_block_size": "128"}})");
  CHECK_THAT(refusal({2, 3}), ContainsSubstring("quantization_config.weight_block_size"));
  Put(made.path / "model.safetensors",
      Of({{"w", "F8_E4M3", {0, 4}, ""}, {"w_scale_inv", "F32", {1, 1}, std::string(4, '\0')}}));
  CHECK(made.Refused("w") == "");
}

TEST_CASE("folder: shards are found by the index") {
  Made made;
  made.Config(R"({"architectures": ["A", "B"], "model_type": "a", "vocab_size": 3})");
  Put(made.path / "one.safetensors", Of({{"x", "U8", {1}, "\1"}, {"both", "U8", {1}, "\2"}}));
  Put(made.path / "two.safetensors", Of({{"y", "U8", {1}, "\3"}, {"both", "U8", {1}, "\4"}}));
  auto index = [&](const std::string& map) {
    Put(made.path / "model.safetensors.index.json",
        "{\"metadata\": {\"total_size\": 4}, \"weight_map\": " + map + "}");
  };
  index(R"({"x": "one.safetensors", "y": "two.safetensors", "both": "two.safetensors"})");
  Folder folder = Folder::Open(made.path);
  CHECK(folder.names() == std::vector<std::string>{"both", "x", "y"});
  CHECK(folder.tensor("both").Int(0) == 4);
  CHECK(folder.tensor("x").Int(0) == 1);
  CHECK(folder.files().size() == 2);
  CHECK(folder.paths().size() == 4);
  CHECK(folder.architecture() == "A");
  CHECK(folder.model_type() == "a");
  CHECK(folder.config().Int("vocab_size") == 3);
  CHECK_THAT(Refusal([&] { folder.tensor("z"); }), ContainsSubstring("tensor \"z\" is missing"));

  index(R"({"z": "one.safetensors"})");
  CHECK_THAT(made.Refused(),
             ContainsSubstring("tensor \"z\" is missing") && ContainsSubstring("one.safetensors"));
  index(R"({"x": "three.safetensors"})");
  CHECK_THAT(made.Refused(), ContainsSubstring("error[file-io]"));
  for (const char* outside :
       {"../one.safetensors", "/etc/passwd", "..", "", ".", "a/b", "a\\u0000"}) {
    INFO(outside);
    index(fmt::format(R"({{"x": "{}"}})", outside));
    CHECK(made.Refused() != "");
  }
  index(R"({"x": 3})");
  CHECK_THAT(made.Refused(), ContainsSubstring("weight_map"));
  index("[]");
  CHECK_THAT(made.Refused(), ContainsSubstring("weight_map"));
  Put(made.path / "model.safetensors.index.json", "{\"weight_map\": ");
  CHECK_THAT(made.Refused(), ContainsSubstring("index.json, line 1:"));
  // The usual name has priority.
  Put(made.path / "model.safetensors", Of({{"whole", "U8", {1}, "\5"}}));
  CHECK(Folder::Open(made.path).names() == std::vector<std::string>{"whole"});
}

TEST_CASE("folder: selection of the weights file") {
  Made made;
  made.Config("{}");
  CHECK_THAT(made.Refused(),
             ContainsSubstring("no weights") && ContainsSubstring("model.safetensors"));
  Put(made.path / "pytorch_model.bin", "PK");
  CHECK_THAT(made.Refused(), ContainsSubstring("safe_serialization"));
  Put(made.path / "a.safetensors", Of({{"x", "U8", {1}, "\1"}}));
  CHECK(Folder::Open(made.path).names().size() == 1);
  Put(made.path / "b.safetensors", Of({{"y", "U8", {1}, "\1"}}));
  CHECK_THAT(made.Refused(), ContainsSubstring("2 .safetensors files"));
  Folder one = Folder::Open(made.path / "b.safetensors");
  CHECK(one.names() == std::vector<std::string>{"y"});
  CHECK(one.architecture() == "");
  made.Config(R"({"architectures": "A"})");
  CHECK_THAT(Refusal([&] { Folder::Open(made.path / "b.safetensors").architecture(); }),
             ContainsSubstring("\"architectures\" is \"A\""));
  made.Config("{");
  CHECK_THAT(made.Refused(), ContainsSubstring("config.json, line 1:2"));
  CHECK_THAT(Refusal([&] { Folder::Open(made.path / "none.safetensors"); }),
             ContainsSubstring("config"));
}

TEST_CASE("folder: the corpus opens") {
  std::optional<fs::path> corpus = Corpus("huggingface", "Hugging Face folders");
  if (!corpus) return;
  size_t folders = 0, tensors = 0;
  for (const auto& each : fs::directory_iterator(*corpus)) {
    INFO(each.path());
    Folder folder = Folder::Open(each.path());
    CHECK(folder.architecture() != "");
    CHECK(folder.model_type() != "");
    CHECK(folder.names().size() == folder.files()[0].entries().size());
    for (const std::string& name : folder.names()) {
      CHECK(folder.item(name).problem == "");
      CHECK(folder.tensor(name).dims() == folder.item(name).dims);
      ++tensors;
    }
    ++folders;
  }
  std::printf("# folders: %zu tensors of %zu Hugging Face folders\n", tensors, folders);
}
