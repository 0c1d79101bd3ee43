#include <unistd.h>

#include <fstream>

#include "frontends/onnx/model/model.h"
#include "frontends/onnx/onnx.h"
#include "lib/support/byte_window.h"
#include "test/catch.h"
#include "test/expected_error.h"
#include "test/frontends/onnx/wire.h"
#include "test/read_in_parts.h"

namespace mlc::test {
using namespace onnx;
namespace {

namespace fs = std::filesystem;

onnx::Model Read(const std::string& bytes) { return ReadModel(AsBytes(bytes)); }

// Reads a model whose only initializer is this TensorProto.
const Constant Initializer(const std::string& proto) {
  return Read(Model({}, {}, {}, {proto})).graph.initializers.at(0);
}
std::string InitializerError(const std::string& proto) {
  return RefusalId([&] { Initializer(proto).Get(); });
}

struct Folder {
  fs::path path = fs::temp_directory_path() / fmt::format("mlc_onnx_read_{}", getpid());
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  void Write(const std::string& name, const std::string& bytes) const {
    fs::create_directories((path / name).parent_path());
    std::ofstream(path / name, std::ios::binary) << bytes;
  }
};

TEST_CASE("onnx: raw_data of any size stays in the file") {
  std::vector<float> values(20'000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  std::string proto = Proto("w", {20'000}, values);
  std::string attribute = TensorAttribute("value", Proto("v", {20'000}, values));
  std::string bytes = Model({Node("Constant", {}, {"c"}, {attribute})}, {}, {Info("c")}, {proto});
  ByteWindow window = AsBytes(bytes);
  CHECK(StripRawData(window).size() < 200);

  Folder folder;
  folder.Write("m.onnx", bytes);
  auto file = OpenInParts(folder.path / "m.onnx");
  ByteWindow parts(*file);
  CHECK(LooksLikeOnnx(parts));
  CHECK(StripRawData(parts) == StripRawData(window));
  onnx::Model model = ReadModel(folder.path / "m.onnx");
  for (const Tensor& tensor :
       {model.graph.initializers[0].Get(), model.graph.nodes[0].attributes[0].tensors[0].Get()}) {
    CHECK(tensor.file_view().file != nullptr);
    CHECK(tensor.Doubles()[19'999] == 19'999);
  }
}

TEST_CASE("onnx: typed data fields") {
  auto with = [](int type, int64_t count, const std::string& data) {
    return Number(1, count) + Number(2, type) + data + Bytes(8, "w");
  };
  CHECK(Initializer(with(1, 1, Bytes(4, Raw<float>({1.5f})))).Get().Doubles() ==
        std::vector<double>{1.5});
  CHECK(Initializer(with(11, 1, Bytes(10, Raw<double>({0.1})))).Get().Doubles() ==
        std::vector<double>{0.1});
  CHECK(Initializer(with(3, 2, Number(5, -3) + Number(5, 4))).Get().Ints() ==
        std::vector<int64_t>{-3, 4});
  CHECK(Initializer(with(9, 2, Number(5, 1) + Number(5, 0))).Get().Ints() ==
        std::vector<int64_t>{1, 0});
  CHECK(Initializer(with(10, 1, Number(5, 0x3C00))).Get().Doubles() == std::vector<double>{1});
  CHECK(Initializer(with(12, 1, Number(11, 4000000000))).Get().Ints() ==
        std::vector<int64_t>{4000000000});
  CHECK(Initializer(with(8, 1, Bytes(6, "text"))).Get().strings() ==
        std::vector<std::string>{"text"});
}

TEST_CASE("onnx: any nonzero byte of a bool tensor is true") {
  CHECK(Initializer(Proto("w", 9, {3}, std::string("\x02\x00\xFF", 3))).Get().Ints() ==
        std::vector<int64_t>{1, 0, 1});
}

TEST_CASE("onnx: errors in a tensor are reported on its first use") {
  CHECK(InitializerError(Proto("w", 1, {3}, "short")) == "bad-constant");
  CHECK(InitializerError(Proto("w", 1, {-3}, "")) == "bad-constant");
  CHECK(InitializerError(Proto("w", 1, {int64_t{1} << 40, int64_t{1} << 40}, "")) ==
        "resource-limit");
  CHECK(InitializerError(Proto("w", 1, {int64_t{1} << 40}, "")) == "bad-constant");
  CHECK(InitializerError(Proto("w", 14, {1}, "12345678")) == "unsupported-dtype");  // complex64
  CHECK(InitializerError(Proto("w", 99, {1}, "1")) == "unsupported-dtype");
}

TEST_CASE("onnx: fields and types unknown to the ONNX library are skipped") {
  std::string node =
      Node("Relu", {"x"}, {"y"}) + Bytes(8, "overload") + Bytes(9, "metadata") + Number(1000, 5);
  std::string more = Bytes(26, "configuration") + Bytes(2000, "later");
  onnx::Model model = Read(Model({node}, {Info("x", 23, {1})}, {Info("y")}, {}, 28, more));
  CHECK(model.graph.nodes.at(0).op == "Relu");
  CHECK(model.graph.inputs.at(0).data_type == 23);
  CHECK(model.opsets.at("") == 28);
}

TEST_CASE("onnx: default attributes of functions") {
  std::string function = Bytes(1, "F") + Bytes(10, "my") + Bytes(11, Int("n", 3));
  onnx::Model model = Read(Model({}, {}, {}, {}, 17, Bytes(25, function)));
  CHECK(model.functions.at(0).defaults.at(0).ints == std::vector<int64_t>{3});
}

TEST_CASE("onnx: external data") {
  std::vector<float> values(3000, 2.0f);
  auto proto = [](const std::string& location, const std::string& offset, int64_t count) {
    auto entry = [](const std::string& key, const std::string& value) {
      return Bytes(13, Bytes(1, key) + Bytes(2, value));
    };
    return Number(1, count) + Number(2, 1) + Bytes(8, "w") + entry("location", location) +
           entry("offset", offset) + Number(14, 1);
  };
  Folder folder;
  folder.Write("model/data.bin", Raw(values));
  folder.Write("secret.bin", Raw(values));
  fs::create_symlink(folder.path / "secret.bin", folder.path / "model" / "link.bin");
  auto error = [&](const std::string& tensor) {
    folder.Write("model/m.onnx", Model({}, {}, {}, {tensor}));
    return RefusalId(
        [&] { ReadModel(folder.path / "model" / "m.onnx").graph.initializers[0].Get(); });
  };
  CHECK(error(proto("data.bin", "0", 3000)) == "");
  CHECK(error(proto("./data.bin", "8000", 1000)) == "");
  CHECK(error(proto("data.bin", "8004", 1000)) == "external-data");
  CHECK(error(proto("data.bin", "-4", 1)) == "external-data");
  CHECK(error(proto("missing.bin", "0", 1)) == "external-data");
  CHECK(error(proto("../secret.bin", "0", 1)) == "external-data");
  CHECK(error(proto((folder.path / "secret.bin").string(), "0", 1)) == "external-data");
  CHECK(error(proto("link.bin", "0", 1)) == "external-data");
  CHECK(error(proto("", "0", 1)) == "external-data");
  CHECK(InitializerError(proto("data.bin", "0", 1)) == "external-data");  // a model in memory
}

TEST_CASE("onnx: damaged files are refused or read in part") {
  std::string good = Model({Node("Relu", {"x"}, {"y"})}, {Info("x", 1, {1})}, {Info("y")},
                           {Proto<float>("w", {2}, {1, 2})});
  auto looks_like_onnx = [](const std::string& text) {
    ByteWindow bytes = AsBytes(text);
    return LooksLikeOnnx(bytes);
  };
  CHECK(looks_like_onnx(good));
  for (size_t size = 0; size < good.size();
       ++size)  // a truncated file is an error or a smaller model
    CHECK_NOTHROW([&] {
      try {
        Read(good.substr(0, size));
      } catch (const Error&) {
      }
    }());
  CHECK(RefusalId([&] { Read(good.substr(0, 10)); }) == "bad-file");
  CHECK(RefusalId([&] { Read(""); }) == "bad-file");
  CHECK(RefusalId([&] { Read("not a model"); }) == "bad-file");
  CHECK(RefusalId([&] { Read(Number(1, 8)); }) == "bad-file");
  CHECK_FALSE(looks_like_onnx("not a model"));
  CHECK_FALSE(looks_like_onnx(""));
}

TEST_CASE("onnx: too deeply nested subgraphs are refused") {
  std::string graph = Graph({}, {}, {});
  for (int i = 0; i < 200; ++i)
    graph = Graph({Node("If", {"c"}, {"y"}, {GraphAttribute("then_branch", graph)})}, {}, {});
  CHECK(RefusalId([&] { Read(ModelOf(graph)); }) == "resource-limit");
}

TEST_CASE("onnx: a file with a single TensorProto") {
  Folder folder;
  folder.Write("input_0.pb", Proto<int64_t>("x", {2}, {5, 6}));
  CHECK(ReadOnnxTensor(folder.path / "input_0.pb").Ints() == std::vector<int64_t>{5, 6});
  folder.Write("bad.pb", "\x0A\xFF");
  CHECK(RefusalId([&] { ReadOnnxTensor(folder.path / "bad.pb"); }) == "bad-file");
}

}  // namespace
}  // namespace mlc::test
