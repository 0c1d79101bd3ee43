#include "tools/driver/editable_model.h"

#include <algorithm>

#include "backends/coreml/write_package.h"
#include "frontends/onnx/onnx_file.h"
#include "lib/ir/program_part.h"
#include "lib/support/atomic_install.h"
#include "tools/driver/frontends.h"
#include "tools/driver/import.h"
#include "tools/driver/run_passes.h"

namespace fs = std::filesystem;

namespace mlc::driver {

namespace {

class EditableOnnx : public EditableModel {
 public:
  EditableOnnx(onnx::OnnxFile model, fs::path path, fs::path data_root)
      : model_(std::move(model)), path_(std::move(path)), data_root_(std::move(data_root)) {}
  std::vector<std::string> functions() const override { return {"main"}; }
  size_t default_function() const override { return 0; }
  int64_t operation_count() const override { return model_.node_count(); }
  ModelGraph Graph(size_t) const override { return model_.Graph(); }
  std::string ValueNamed(size_t, const std::string& name) const override { return name; }
  // Imports the model with these values as outputs where ONNX's shape inference fails.
  Pointer Typed(const std::vector<std::string>& values) const override {
    std::map<std::string, Type> types;
    int imports = 0;
    AppendImportedTypes(model_.Untyped(values), types, imports);
    return Edited(model_.WithTypes(types));
  }
  Pointer Part(size_t, const ModelPart& part) const override { return Edited(model_.Part(part)); }
  Pointer WithFunctions(const std::set<size_t>&) const override { return Edited(model_); }
  size_t PlacesToSimplify(size_t, Simplification how) const override {
    return model_.PlacesToSimplify(how);
  }
  Pointer Simplified(size_t, Simplification how, const std::set<size_t>& places) const override {
    return Edited(model_.Simplified(how, places));
  }
  void Write(const fs::path& path, bool, Diagnostics&) const override { model_.Write(path); }

 private:
  Pointer Edited(onnx::OnnxFile model) const {
    return std::make_shared<EditableOnnx>(std::move(model), path_, data_root_);
  }
  // A value that cannot be an output is found by halving, within a few imports.
  void AppendImportedTypes(const std::vector<std::string>& values,
                           std::map<std::string, Type>& types, int& imports) const {
    constexpr int kMostImports = 12;
    if (values.empty() || ++imports > kMostImports) return;
    try {
      Diagnostics ignored;
      ImportOptions options;
      options.outputs = values;
      options.data_root = data_root_;
      const Program program = Import(path_, options, ignored);
      for (const Port& port : program.main()->outputs)
        types[port.source_name] = Type::Tensor(port.source_dtype, port.source_shape);
    } catch (const std::exception&) {
      if (values.size() == 1) return;
      const auto middle = values.begin() + std::ssize(values) / 2;
      AppendImportedTypes({values.begin(), middle}, types, imports);
      AppendImportedTypes({middle, values.end()}, types, imports);
    }
  }
  onnx::OnnxFile model_;
  fs::path path_, data_root_;
};

class EditableProgram : public EditableModel {
 public:
  explicit EditableProgram(Program program) : program_(std::move(program)) {}
  std::vector<std::string> functions() const override {
    std::vector<std::string> names;
    for (const auto& function : program_.functions) names.push_back(function->name);
    return names;
  }
  size_t default_function() const override {
    size_t index = 0;
    while (program_.functions[index].get() != program_.main()) ++index;
    return index;
  }
  int64_t operation_count() const override { return OperationCount(program_); }
  ModelGraph Graph(size_t function) const override {
    return GraphOf(*program_.functions[function]);
  }
  std::string ValueNamed(size_t index, const std::string& name) const override {
    const Function& function = *program_.functions[index];
    for (const auto* ports : {&function.inputs, &function.outputs})
      for (const Port& port : *ports)
        if (port.name == name) return name;
    for (const auto* ports : {&function.inputs, &function.outputs})
      for (const Port& port : *ports)
        if (port.source_name == name) return port.name;
    return name;
  }
  Pointer Typed(const std::vector<std::string>&) const override {
    return Edited([](Program&) {});
  }
  Pointer Part(size_t function, const ModelPart& part) const override {
    return Edited([&](Program& program) { TakePart(*program.functions[function], part); });
  }
  Pointer WithFunctions(const std::set<size_t>& kept) const override {
    return Edited([&](Program& program) {
      size_t index = 0;
      std::erase_if(program.functions, [&](const auto&) { return !kept.contains(index++); });
      Interface& interface = program.interface;
      const auto exists = [&](const std::string& name) {
        return std::any_of(program.functions.begin(), program.functions.end(),
                           [&](const auto& function) { return function->name == name; });
      };
      if (!exists(interface.default_function))
        interface.default_function = program.functions.at(0)->name;
      std::erase_if(interface.function_order,
                    [&](const std::string& name) { return !exists(name); });
    });
  }
  size_t PlacesToSimplify(size_t function, Simplification how) const override {
    return mlc::PlacesToSimplify(*program_.functions[function], how);
  }
  Pointer Simplified(size_t function, Simplification how,
                     const std::set<size_t>& places) const override {
    return Edited([&](Program& program) { Simplify(*program.functions[function], how, places); });
  }
  void Write(const fs::path& path, bool force, Diagnostics& diagnostics) const override {
    Program program = Clone(program_);
    if (path.extension() == ".mlpackage")
      for (const auto& function : program.functions) ConvertPortsForCoreml(*function);
    Verify(program);
    WriteProgram(program, path, force, diagnostics);
  }

 private:
  template <class Edit>
  Pointer Edited(Edit edit) const {
    Program program = Clone(program_);
    edit(program);
    return std::make_shared<EditableProgram>(std::move(program));
  }
  Program program_;
};

bool IsOnnx(const fs::path& model) {
  const Frontend& frontend = FrontendOf(model);
  if (frontend.name == "onnx") return true;
  if (frontend.IsSource())
    throw Error("usage", "{} cannot be edited", frontend.what)
        .At({model.string(), ""})
        .Expected("an ONNX model, a package or MIL text")
        .Help("compile it first, and edit the package");
  return false;
}

}  // namespace

EditableModel::Pointer ReadEditable(const fs::path& model, const fs::path& data_root,
                                    Diagnostics& diagnostics) {
  if (IsOnnx(model))
    return std::make_shared<EditableOnnx>(onnx::OnnxFile::Read(model, data_root), model, data_root);
  Program program = Import(model, {}, diagnostics);
  Verify(program);
  return std::make_shared<EditableProgram>(std::move(program));
}

void CheckEditableOutput(const fs::path& model, const fs::path& output, bool force) {
  const fs::path ending = output.extension();
  const bool onnx = IsOnnx(model);
  if (onnx ? ending != ".onnx" : ending != ".mil" && ending != ".mlpackage")
    throw Error("usage", "-o: \"{}\" does not end in {}", output.string(),
                onnx ? ".onnx" : ".mlpackage or .mil")
        .Help("the format of the model is kept: to convert it, use mlc compile");
  if (ending == ".mlpackage")
    coreml::CheckPackageTarget(output, force);
  else
    Staging(output, Staging::kFile);  // reports conflicts early
}

}  // namespace mlc::driver
