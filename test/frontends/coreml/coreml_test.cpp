#include "frontends/coreml/coreml.h"

#include <functional>

#include "backends/coreml/write_package.h"
#include "lib/ir/text.h"
#include "proto/model.pb.h"
#include "test/backends/coreml/package_files.h"
#include "test/backends/coreml/sample_programs.h"
#include "test/catch.h"
#include "test/expected_error.h"
#include "test/paths.h"

using namespace mlc;
using namespace mlc::coreml;
using namespace mlc::test;
namespace fs = std::filesystem;
namespace mil = mlc::schema::mil;

namespace {

constexpr const char* kModel = "Data/com.apple.CoreML/model.mlmodel";
constexpr const char* kWeights = "Data/com.apple.CoreML/weights/weight.bin";

Program Import(const fs::path& path) {
  Diagnostics diagnostics;
  return ImportCoreml(path, diagnostics);
}

void Put(const fs::path& path, const std::string& bytes) {
  fs::remove(path);  // some file systems sync to disk when a file is rewritten in place
  std::ofstream(path, std::ios::binary) << bytes;
}

// A package of SmallNetwork whose model a test changes.
class Damaged {
 public:
  Damaged() {
    Diagnostics diagnostics;
    WritePackage(SmallNetwork(), path, {}, diagnostics);
    model = ContentsOf(path / kModel);
    weights = ContentsOf(path / kWeights);
  }
  std::string Refusal(const std::function<void(mlc::schema::Model&)>& change) {
    mlc::schema::Model message;
    REQUIRE(message.ParseFromString(model));
    change(message);
    Put(path / kModel, message.SerializeAsString());
    return mlc::test::Refusal([&] { Import(path); });
  }
  // Changes one operation of the given type.
  std::string RefusalOf(const std::string& type,
                        const std::function<void(mil::Operation&)>& change) {
    return Refusal([&](mlc::schema::Model& message) {
      for (mil::Operation& op : *BlockOf(message).mutable_operations())
        if (op.type() == type) return change(op);
      FAIL("no " + type);
    });
  }
  static mil::Block& BlockOf(mlc::schema::Model& message) {
    return *message.mutable_mlprogram()
                ->mutable_functions(0)
                ->mutable_value()
                ->mutable_block_specializations(0)
                ->mutable_value();
  }

  ScratchFolder folder;
  fs::path path = folder / "a.mlpackage";
  std::string model, weights;
};

mil::Value& Attribute(mil::Operation& op, const std::string& key) {
  for (mil::ValueEntry& entry : *op.mutable_attributes())
    if (entry.key() == key) return *entry.mutable_value();
  throw std::logic_error("no attribute " + key);
}

mil::Argument& Input(mil::Operation& op, const std::string& key) {
  for (mil::ArgumentEntry& entry : *op.mutable_inputs())
    if (entry.key() == key) return *entry.mutable_value();
  throw std::logic_error("no input " + key);
}

}  // namespace

TEST_CASE("damaged programs are refused with an error id and a location") {
  Damaged damaged;
  auto check = [&](const std::string& refusal, const char* id, const char* text) {
    CHECK_THAT(refusal, ContainsSubstring(id));
    CHECK_THAT(refusal, ContainsSubstring(text));
  };
  check(damaged.RefusalOf("conv", [](mil::Operation& op) { op.set_type("convolve"); }),
        "unsupported-operator", "convolve");
  check(damaged.RefusalOf("conv",
                          [](mil::Operation& op) { op.mutable_inputs(0)->set_key("strange"); }),
        "unsupported-attribute", "no input \"strange\"");
  check(damaged.RefusalOf(
            "conv", [](mil::Operation& op) { op.mutable_inputs(0)->set_key(op.inputs(1).key()); }),
        "bad-file", "duplicate");
  check(damaged.RefusalOf("conv",
                          [](mil::Operation& op) { op.mutable_inputs()->DeleteSubrange(0, 1); }),
        "bad-operand", "required input");
  check(damaged.RefusalOf(
            "conv",
            [](mil::Operation& op) { Input(op, "x").mutable_arguments(0)->set_name("later"); }),
        "bad-graph", "\"later\" is used before it is defined");
  // A cycle appears as a use before the definition.
  check(damaged.RefusalOf(
            "conv",
            [](mil::Operation& op) { Input(op, "x").mutable_arguments(0)->set_name("relu"); }),
        "bad-graph", "\"relu\"");
  check(damaged.RefusalOf("conv", [](mil::Operation& op) { Input(op, "x").clear_arguments(); }),
        "bad-file", "bound to 0 values");
  check(damaged.RefusalOf(
            "conv", [](mil::Operation& op) { Input(op, "x").add_arguments()->set_name("x"); }),
        "bad-file", "bound to 2 values");
  check(damaged.RefusalOf("conv",
                          [](mil::Operation& op) { Input(op, "x").mutable_arguments(0)->Clear(); }),
        "bad-file", "empty binding");
  check(damaged.RefusalOf("conv", [](mil::Operation& op) { op.mutable_outputs(0)->set_name("x"); }),
        "bad-graph", "duplicate");
  check(damaged.RefusalOf("conv", [](mil::Operation& op) { *op.add_outputs() = op.outputs(0); }),
        "bad-", "");
  check(damaged.RefusalOf("conv",
                          [](mil::Operation& op) {
                            op.mutable_outputs(0)
                                ->mutable_type()
                                ->mutable_tensortype()
                                ->mutable_dimensions(1)
                                ->mutable_constant()
                                ->set_size(5);
                          }),
        "bad-file", "is declared as fp32 [1, 5, 6, 6], but the inferred type is fp32 [1, 4, 6, 6]");
  check(
      damaged.RefusalOf("const", [](mil::Operation& op) { op.mutable_attributes()->RemoveLast(); }),
      "bad-constant", "has no value");
  check(damaged.RefusalOf("const",
                          [](mil::Operation& op) {
                            Attribute(op, "val").mutable_blobfilevalue()->set_offset(96);
                          }),
        "bad-file", "invalid offset of the weight file");
  check(damaged.RefusalOf("const",
                          [](mil::Operation& op) {
                            Attribute(op, "val").mutable_blobfilevalue()->set_filename(
                                "@model_path/../x");
                          }),
        "bad-file", "\"@model_path/../x\"");
  check(damaged.RefusalOf("const",
                          [](mil::Operation& op) {
                            Attribute(op, "val")
                                .mutable_type()
                                ->mutable_tensortype()
                                ->mutable_dimensions(0)
                                ->mutable_constant()
                                ->set_size(UINT64_MAX);
                          }),
        "bad-file", "invalid dimension");
  check(damaged.RefusalOf("const",
                          [](mil::Operation& op) {
                            Attribute(op, "val")
                                .mutable_type()
                                ->mutable_tensortype()
                                ->mutable_dimensions(0)
                                ->mutable_constant()
                                ->set_size(INT64_MAX);
                          }),
        "resource-limit", "");
  check(
      damaged.RefusalOf("conv",
                        [](mil::Operation& op) {
                          op.mutable_outputs(0)->mutable_type()->mutable_tensortype()->set_rank(-1);
                        }),
      "bad-file", "rank -1");
}

TEST_CASE("wrong descriptions and versions are refused") {
  Damaged damaged;
  using Model = mlc::schema::Model;
  auto check = [&](const std::function<void(Model&)>& change, const char* text) {
    CHECK_THAT(damaged.Refusal(change), ContainsSubstring(text));
  };
  check([](Model& model) { model.set_specificationversion(99); }, "specification version 99");
  check([](Model& model) { model.clear_mlprogram(); }, "not an ML Program");
  check([](Model& model) { model.mutable_mlprogram()->set_version(2); }, "program version 2");
  check(
      [](Model& model) {
        model.mutable_mlprogram()->mutable_functions(0)->mutable_value()->set_opset("CoreML99");
      },
      "CoreML99");
  check(
      [](Model& model) {
        *model.mutable_mlprogram()->add_functions() = model.mlprogram().functions(0);
      },
      "more than one function");
  check([](Model& model) { model.mutable_description()->clear_input(); }, "the input is missing");
  check([](Model& model) { model.mutable_description()->mutable_input(0)->set_name("other"); },
        "the description");
  check([](Model& model) { model.mutable_description()->clear_output(); },
        "is missing from the description");
  check([](Model& model) { model.mutable_description()->set_predictedfeaturename("label"); },
        "classifier");
  check([](Model& model) { Damaged::BlockOf(model).set_outputs(0, "nowhere"); }, "\"nowhere\"");
  check(
      [](Model& model) {
        model.mutable_description()
            ->mutable_input(0)
            ->mutable_type()
            ->mutable_multiarraytype()
            ->set_datatype(mlc::schema::ArrayFeatureType::INT32);
      },
      "element type int32");
  check(
      [](Model& model) {
        auto* entry = model.mutable_description()->mutable_metadata()->add_userdefined();
        entry->set_key("mlc.interface");
        entry->set_value("{\"version\": 1}");
      },
      "mlc.interface is malformed");
}

TEST_CASE("unknown protobuf fields are named in the error") {
  Damaged damaged;
  std::string refusal = damaged.Refusal([](mlc::schema::Model& model) {
    auto* image =
        model.mutable_description()->mutable_input(0)->mutable_type()->mutable_imagetype();
    image->GetReflection()->MutableUnknownFields(image)->AddLengthDelimited(22, "");
  });
  CHECK_THAT(refusal, ContainsSubstring("unsupported-field"));
  CHECK_THAT(refusal, ContainsSubstring("Model.description.input[0].type.imageType: field 22"));
  refusal = damaged.RefusalOf("conv", [](mil::Operation& op) {
    op.mutable_outputs(0)->mutable_type()->mutable_tensortype()->set_datatype(
        static_cast<mil::DataType>(99));
  });
  CHECK_THAT(refusal, ContainsSubstring("unknown DataType 99"));
}

TEST_CASE("too deeply nested messages are refused") {
  Damaged damaged;
  CHECK_THAT(damaged.RefusalOf("conv",
                               [](mil::Operation& op) {
                                 mil::ValueType* type = op.mutable_outputs(0)->mutable_type();
                                 for (int i = 0; i < 2000; ++i)
                                   type = type->mutable_listtype()->mutable_type();
                               }),
             ContainsSubstring("bad-file"));
}

TEST_CASE("damaged weight files are refused") {
  Damaged damaged;
  auto check = [&](size_t offset, char byte, const char* text) {
    std::string bytes = damaged.weights;
    bytes[offset] = byte;
    Put(damaged.path / kWeights, bytes);
    CHECK_THAT(Refusal([&] { Import(damaged.path); }), ContainsSubstring(text));
  };
  check(4, 7, "version 2");
  check(64, 0, "sentinel");
  check(68, 1, "has fp16, but the program declares fp32");
  check(68, 77, "type 77");
  check(72, 1, "bytes, but the program declares");
  check(86, 1, "bad-file");  // data offset far beyond the end of the file
  Put(damaged.path / kWeights, damaged.weights.substr(0, damaged.weights.size() - 1));
  CHECK_THAT(Refusal([&] { Import(damaged.path); }), ContainsSubstring("bad-file"));
  Put(damaged.path / kWeights, "");
  CHECK_THAT(Refusal([&] { Import(damaged.path); }), ContainsSubstring("bad-file"));
  fs::remove(damaged.path / kWeights);
  CHECK_THAT(Refusal([&] { Import(damaged.path); }), ContainsSubstring("file-io"));
}

TEST_CASE("damaged package manifests are refused") {
  Damaged damaged;
  for (const char* text : {"", "{", "[]", "{\"rootModelIdentifier\": 1}",
                           "{\"rootModelIdentifier\": \"a\", \"itemInfoEntries\": {}}",
                           "{\"rootModelIdentifier\": \"a\", \"itemInfoEntries\": {\"a\": "
                           "{\"path\": \"../../../x\"}}}",
                           "{\"rootModelIdentifier\": \"a\", \"itemInfoEntries\": {\"a\": "
                           "{\"path\": \"/etc/passwd\"}}}"}) {
    Put(damaged.path / "Manifest.json", text);
    CHECK_THAT(Refusal([&] { Import(damaged.path); }), ContainsSubstring("bad-file"));
  }
  fs::remove(damaged.path / "Manifest.json");
  CHECK_THAT(Refusal([&] { Import(damaged.path); }), ContainsSubstring("file-io"));
}

TEST_CASE("models with flipped bytes or a missing tail cause at most an error") {
  Damaged damaged;
  for (size_t i = 0; i < damaged.model.size(); ++i) {
    for (int bit : {0, 3, 6, 7}) {
      std::string bytes = damaged.model;
      bytes[i] = static_cast<char>(bytes[i] ^ 1 << bit);
      Put(damaged.path / kModel, bytes);
      Refusal([&] { Import(damaged.path); });
    }
    if (i % 16 == 0) {
      Put(damaged.path / kModel, damaged.model.substr(0, i));
      Refusal([&] { Import(damaged.path); });
    }
  }
}

TEST_CASE("packages of coremltools are read, verified and written back unchanged") {
  std::optional<fs::path> corpus = Corpus("coremltools-packages", "packages of coremltools");
  if (!corpus) return;
  int read = 0, refused = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(*corpus)) {
    if (DetectCoreml(entry.path()) != CoremlFormat::kPackage) continue;
    INFO(entry.path());
    ScratchFolder folder;
    Diagnostics diagnostics;
    try {
      Program program = Import(entry.path());
      Verify(program);
      WritePackage(program, folder / "back.mlpackage", {.target = program.main()->opset},
                   diagnostics);
      Program back = Import(folder / "back.mlpackage");
      CHECK(PrintText(back) == PrintText(program));
      CHECK(back.interface.metadata == program.interface.metadata);
      CHECK(back.build_info == program.build_info);
      ++read;
    } catch (const Error& error) {
      CHECK(error.id() == "unsupported-operator");
      printf("# refused: %s: %s\n", entry.path().filename().c_str(), error.text().c_str());
      ++refused;
    }
  }
  printf("# coremltools packages: %d read and written back, %d refused\n", read, refused);
  CHECK(read >= 19);
}
