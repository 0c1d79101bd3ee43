#include "tools/mlc/model.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fstream>

#include "frontends/coreml/import.h"
#include "lib/analysis/open_sizes.h"
#include "lib/ir/builder.h"
#include "lib/ir/given.h"
#include "lib/ir/npy.h"
#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "lib/support/percent.h"
#include "tools/mlc/picture.h"

namespace fs = std::filesystem;

namespace mlc {

std::string_view Name(Format format) {
  switch (format) {
    case Format::kOnnx:
      return "onnx";
    case Format::kPackage:
      return "mlpackage";
    case Format::kBundle:
      return "mlmodelc";
    case Format::kMlmodel:
      return "mlmodel";
    case Format::kMilText:
      return "mil";
  }
  return "";
}

namespace {

// Formats that are known but not read: what stands at their beginning, or behind the first four
// bytes (FlatBuffers), what they are, the way out.
struct ForeignRow {
  std::string_view magic, what, help;
};
constexpr std::string_view kExportTorch =
    "load the model in PyTorch and export it: torch.onnx.export(model, example, \"model.onnx\")";
constexpr ForeignRow kForeign[] = {
    {"GGUF", "a GGUF model", "this version reads ONNX; GGUF comes with a later one"},
    {"\x89HDF", "an HDF5 file, perhaps Keras",
     "convert it: python -m tf2onnx.convert --keras model.h5 --output model.onnx"},
    {"\x80\x02", "a Python pickle", kExportTorch},
    {"\x80\x03", "a Python pickle", kExportTorch},
    {"\x80\x04", "a Python pickle", kExportTorch},
    {"\x80\x05", "a Python pickle", kExportTorch},
    {"TFL3", "a TensorFlow Lite model",
     "convert it: python -m tf2onnx.convert --tflite model.tflite --output model.onnx"},
    {"ORTM", "an ORT-format model", "use the .onnx file that it was made from"},
};

// Archives, by a name in them; the last row is any.
constexpr std::string_view kZip = "PK\x03\x04";
constexpr ForeignRow kArchives[] = {
    {"constants.pkl", "a TorchScript archive",
     "export it: torch.onnx.export(torch.jit.load(\"FILE\"), example, \"model.onnx\")"},
    {"data.pkl", "a PyTorch checkpoint, which holds weights without a network", kExportTorch},
    {"model.weights.h5", "a Keras archive",
     "export it: keras.models.load_model(\"FILE\").export(\"model.onnx\", format=\"onnx\")"},
    {"Manifest.json", "a zip archive of a .mlpackage", "unpack it"},
    {"coremldata.bin", "a zip archive of a .mlmodelc", "unpack it"},
    {".onnx", "a zip archive of an ONNX model", "unpack it"},
    {".npy", "an archive of NumPy arrays", "it belongs to --reference, not where a model is"},
    {"", "a zip archive", "unpack it"},
};

// Folders of other tools, by a file in them.
constexpr ForeignRow kFolders[] = {
    {"saved_model.pb", "a TensorFlow SavedModel",
     "convert it: python -m tf2onnx.convert --saved-model FOLDER --output model.onnx"},
    {"config.json", "a Hugging Face model",
     "export it: optimum-cli export onnx --model FOLDER out"},
    {"Data/com.apple.CoreML", "a .mlpackage without its Manifest.json", "copy the whole folder"},
    {"model.mil", "a .mlmodelc without its coremldata.bin", "copy the whole folder"},
};

[[noreturn]] void Refuse(const fs::path& path, const ForeignRow& row) {
  throw Error("unknown-format", fmt::format("this is {}, which mlc does not read", row.what))
      .At({path.string(), ""})
      .Help(std::string(row.help));
}

bool Contains(std::span<const std::byte> bytes, size_t offset, std::string_view text) {
  return bytes.size() >= offset + text.size() &&
         std::memcmp(bytes.data() + offset, text.data(), text.size()) == 0;
}

}  // namespace

Format DetectFormat(const fs::path& path) {
  std::error_code error;
  fs::file_status status = fs::status(path, error);
  if (!fs::exists(status))
    throw Error("file-io", fmt::format("there is no file \"{}\"", path.string()))
        .Help("check the path");
  if (fs::is_directory(status)) {
    CoremlFormat format = DetectCoreml(path);
    if (format == CoremlFormat::kPackage) return Format::kPackage;
    if (format == CoremlFormat::kBundle) return Format::kBundle;
    for (const ForeignRow& row : kFolders)
      if (fs::exists(path / row.magic, error)) Refuse(path, row);
    throw Error("unknown-format", "this folder is no .mlpackage or .mlmodelc")
        .At({path.string(), ""})
        .Expected("a folder with a Manifest.json or a coremldata.bin, or a model file");
  }
  std::shared_ptr<const MappedFile> file = MappedFile::Open(path);
  std::span<const std::byte> bytes = file->bytes();
  if (bytes.empty())
    throw Error("bad-file", "the file is empty")
        .At({path.string(), ""})
        .Help("download or export the model again");
  for (const ForeignRow& row : kForeign)
    if (Contains(bytes, 0, row.magic) || (row.magic.size() == 4 && Contains(bytes, 4, row.magic)))
      Refuse(path, row);
  if (Contains(bytes, 0, kZip)) {
    // The names stand at the end, in the archive's directory.
    constexpr size_t kDirectory = 1 << 20;
    std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (text.size() > kDirectory) text.remove_prefix(text.size() - kDirectory);
    for (const ForeignRow& row : kArchives)
      if (text.find(row.magic) != std::string_view::npos) Refuse(path, row);
  }
  if (Contains(bytes, 8, "{\"") && static_cast<unsigned char>(bytes[7]) == 0)
    throw Error("unknown-format",
                "this is a safetensors file, which holds weights without a network")
        .At({path.string(), ""})
        .Help("export the model to ONNX");
  if (IsMilText({reinterpret_cast<const char*>(bytes.data()), bytes.size()}))
    return Format::kMilText;
  if (DetectCoreml(path) == CoremlFormat::kModel) return Format::kMlmodel;
  if (LooksLikeOnnx(bytes)) return Format::kOnnx;
  throw Error("unknown-format", "this is no model that mlc knows")
      .At({path.string(), ""})
      .Expected("ONNX, a .mlpackage or .mlmodelc folder, a .mlmodel or MIL text");
}

const std::vector<Flag>& ImportFlags() {
  static const std::vector<Flag> flags = {
      {"--shape", "INPUT=1,3,224,224", "fix the shape of an input", false, true},
      {"--dim", "SYMBOL=4|1..8|1,2,4",
       "fix, bound or enumerate a dimension that the model leaves open", false, true},
      {"--const", "INPUT=FILE", "bind an input to the constant in a .npy or .pb file", false, true},
      {"--outputs", "A,B", "compile only what these values need"},
      {"--replace", "OP.ATTR=V",
       "change an attribute of every operator of this kind (changes results)", false, true},
      {"--image", "INPUT=rgb,SCALE,BIAS",
       "an input is an image (rgb, bgr or gray) and the model gets pixel * SCALE + BIAS; one "
       "number "
       "for all channels or one for each, 1/255 too; or INPUT=rgb,mean=M,std=S for (pixel / 255 - "
       "M) "
       "/ S, without the 255 where M or S are above 1",
       false, true},
      {"--data-root", "DIR",
       "where external data is that is not in the model's folder, or that links lead to"},
  };
  return flags;
}

OnnxOptions ImportOptions(const Invocation& invocation) {
  OnnxOptions options;
  auto once = [](std::string_view flag, const std::string& name, const auto& given) {
    if (given.contains(name))
      throw Error("usage", fmt::format("{}: \"{}\" is given twice", flag, name));
  };
  for (const std::string& text : invocation.all("--shape")) {
    auto [name, dims] = Invocation::KeyValue("--shape", text);
    once("--shape", name, options.shapes);
    options.shapes[name] = Invocation::IntList("--shape", dims);
  }
  for (const std::string& text : invocation.all("--dim")) {
    auto [name, value] = Invocation::KeyValue("--dim", text);
    once("--dim", name, options.dims);
    Symbol symbol;
    if (size_t dots = value.find(".."); dots != std::string::npos) {
      std::vector<int64_t> low = Invocation::IntList("--dim", value.substr(0, dots)),
                           high = Invocation::IntList("--dim", value.substr(dots + 2));
      if (low.size() != 1 || high.size() != 1)
        throw Error("usage", fmt::format("--dim: \"{}\" lacks a bound", text))
            .Expected("SYMBOL=LOW..HIGH, e.g. N=1..8");
      symbol.low = low[0];
      symbol.high = high[0];
    } else {
      symbol.enumerated = Invocation::IntList("--dim", value);
      if (symbol.enumerated.empty())
        throw Error("usage", fmt::format("--dim: \"{}\" has no value", text));
      std::sort(symbol.enumerated.begin(), symbol.enumerated.end());
      symbol.low = symbol.enumerated.front();
      symbol.high = symbol.enumerated.back();
      if (symbol.enumerated.size() == 1) symbol.enumerated.clear();
    }
    if (symbol.low < 1 || symbol.high < symbol.low || symbol.high > INT32_MAX)
      throw Error("usage", fmt::format("--dim: \"{}\" is no range of sizes", text))
          .Expected(fmt::format("sizes from 1 to {}, in order", INT32_MAX));
    options.dims[name] = std::move(symbol);
  }
  for (const std::string& text : invocation.all("--const")) {
    auto [name, file] = Invocation::KeyValue("--const", text);
    once("--const", name, options.constants);
    options.constants[name] = ReadTensor(file);
  }
  std::string outputs = invocation.get("--outputs");
  for (size_t begin = 0; begin < outputs.size();) {
    size_t comma = std::min(outputs.find(',', begin), outputs.size());
    options.outputs.push_back(outputs.substr(begin, comma - begin));
    begin = comma + 1;
  }
  for (const std::string& text : invocation.all("--replace")) {
    auto [key, value] = Invocation::KeyValue("--replace", text);
    size_t dot = key.rfind('.');
    if (dot == std::string::npos)
      throw Error("usage", fmt::format("--replace: \"{}\" has no OP.ATTR form", text));
    options.replacements.push_back({key.substr(0, dot), key.substr(dot + 1), value});
  }
  for (const std::string& text : invocation.all("--image")) {
    auto [name, image] = ParseImageOption(text);
    once("--image", name, options.images);
    options.images[name] = std::move(image);
  }
  options.data_root = invocation.get("--data-root");
  if (invocation.has("--data-root") && !fs::is_directory(options.data_root))
    throw Error("usage",
                fmt::format("--data-root: \"{}\" is no folder", options.data_root.string()));
  return options;
}

Program ImportModel(const fs::path& path, const OnnxOptions& options, Diagnostics& diagnostics,
                    OnnxFacts* facts) {
  Format format = DetectFormat(path);
  if (format == Format::kOnnx) {
    Program program = ImportOnnx(path, options, diagnostics, facts);
    for (const auto& function : program.functions) NarrowOpenSizes(*function, diagnostics);
    return program;
  }
  if (!options.shapes.empty() || !options.dims.empty() || !options.constants.empty() ||
      !options.outputs.empty() || !options.replacements.empty() || !options.images.empty() ||
      !options.data_root.empty())
    throw Error(
        "usage",
        fmt::format("--shape, --dim, --const, --outputs, --replace, --image and --data-root "
                    "need a source model, this is a .{}",
                    Name(format)));
  return ImportCoreml(path, diagnostics);
}

Tensor ReadTensor(const fs::path& path) {
  std::shared_ptr<const MappedFile> file = MappedFile::Open(path);
  if (Contains(file->bytes(), 0, "\x93NUMPY")) return ReadNpy(path);
  if (IsPicture(file->bytes())) return ReadPicture(path);
  return ReadOnnxTensor(path);
}

namespace {

std::string Flattened(std::string_view name) {
  std::string out;
  for (unsigned char c : name)
    out += std::isalnum(c) || c == '.' || c == '_' || c == '-' ? static_cast<char>(c) : '_';
  return out;
}

// Whether files are numbered as those of ONNX's test sets: WORD_0, WORD_1, ... for every port, and
// no port beyond. Then numbers are places, even where a port is called so.
bool AreNumbered(const std::vector<std::string>& stems, std::string_view word, size_t ports) {
  for (size_t i = 0; i < ports; ++i)
    if (std::find(stems.begin(), stems.end(), fmt::format("{}_{}", word, i)) == stems.end())
      return false;
  return true;
}

// Index of the port that a file stem names: NAME, PREFIX_NAME, PREFIX_<k>_NAME, or WORD_<k>; -1
// when none.
int FindPort(const std::vector<Port>& ports, std::string stem, std::string_view prefix,
             std::string_view word, bool numbered) {
  auto by_name = [&](std::string_view text) {
    for (size_t i = 0; i < ports.size(); ++i)
      if (text == ports[i].source_name || text == ports[i].name ||
          text == FileStem(ports[i].source_name) || text == FileStem(ports[i].name) ||
          text == Flattened(ports[i].source_name))
        return static_cast<int>(i);
    return -1;
  };
  bool place = numbered && stem.size() > word.size() + 1 && stem.starts_with(word) &&
               stem[word.size()] == '_' &&
               stem.find_first_not_of("0123456789", word.size() + 1) == std::string::npos;
  if (int i = place ? -1 : by_name(stem); i >= 0) return i;
  auto number = [&](std::string_view text, size_t& end) {
    end = 0;
    while (end < text.size() && end < 6 && std::isdigit(static_cast<unsigned char>(text[end])))
      ++end;
    return end ? std::stoi(std::string(text.substr(0, end))) : -1;
  };
  size_t end = 0;
  if (std::string head = fmt::format("{}_", word); stem.starts_with(head)) {
    int k = number(std::string_view(stem).substr(head.size()), end);
    if (k >= 0 && head.size() + end == stem.size() && k < static_cast<int>(ports.size())) return k;
  }
  if (std::string head = fmt::format("{}_", prefix); stem.starts_with(head)) {
    std::string_view rest = std::string_view(stem).substr(head.size());
    if (int i = by_name(rest); i >= 0) return i;
    int k = number(rest, end);
    if (k >= 0 && end < rest.size() && rest[end] == '_') {
      if (int i = by_name(rest.substr(end + 1)); i >= 0) return i;
    }
  }
  return -1;
}

std::string PortNames(const std::vector<Port>& ports) {
  std::string names;
  for (const Port& port : ports) names += (names.empty() ? "" : ", ") + port.source_name;
  return names;
}

// The given tensor in the type of the program's value.
Tensor ToInputType(const Tensor& given, const Value& input, const Port& port) {
  if (port.feature != Port::Feature::kMultiArray) return ToPixels(given, input, port);
  DType declared = port.source_dtype == DType::kNone ? input.type.dtype : port.source_dtype;
  Tensor converted = TakeGiven(
      given, declared, input.type.dtype,
      {"bad-input",
       fmt::format("input \"{}\"", port.source_name.empty() ? port.name : port.source_name)});
  // A scalar of the source is described as [1] in a package.
  if (converted.rank() == 0 && input.type.rank() == 1) converted = converted.Reshaped({1});
  return converted;
}

}  // namespace

std::vector<const Value*> InputValues(const Function& function) {
  std::vector<const Value*> values;
  for (const auto& input : function.body.inputs)
    if (input->type.kind != Type::Kind::kState) values.push_back(input.get());
  return values;
}

bool IsAbsent(const Function& function, std::string_view name, const Tensor& given) {
  auto input = std::find_if(function.absent_inputs.begin(), function.absent_inputs.end(),
                            [&](const AbsentInput& a) { return a.source_name == name; });
  if (input == function.absent_inputs.end()) return false;
  if (IsValueOf(*input, given)) return true;
  Error error(
      "bad-input",
      fmt::format("input \"{}\" was fixed when the model was compiled, and is given another "
                  "value, {} of shape {}",
                  name, Name(given.dtype()), ToString(ToShape(given.dims()))));
  error.Expected(fmt::format("the value of then, {} of shape {}, or nothing", Name(input->dtype),
                             ToString(ToShape(input->dims))));
  if (std::count(input->dims.begin(), input->dims.end(), 0) == 0)
    error.Help(fmt::format("compile the model with --const {}=FILE of the new value", name));
  throw error;
}

std::map<std::string, Tensor> MakeInputs(const Function& function,
                                         const std::map<std::string, Tensor>& given,
                                         const MadeUpOptions& options,
                                         std::map<std::string, InputRange>* made) {
  std::vector<const Value*> values = InputValues(function);
  std::map<std::string, Tensor> inputs;
  std::vector<bool> used(function.inputs.size());
  for (const auto& [name, tensor] : given) {
    int index = -1;
    for (size_t i = 0; i < function.inputs.size(); ++i)
      if (function.inputs[i].source_name == name || function.inputs[i].name == name)
        index = static_cast<int>(i);
    if (index < 0 && IsAbsent(function, name, tensor)) continue;
    if (index < 0)
      throw Error("bad-input", fmt::format("the model has no input \"{}\"", name))
          .Expected(PortNames(function.inputs));
    const Value& value = *values[index];
    // What nothing reads may have any value: data of another shape do no harm.
    if (!value.has_uses() && ToShape(tensor.dims()) != value.type.shape) continue;
    inputs[value.name] = ToInputType(tensor, value, function.inputs[index]);
    used[index] = true;
  }
  MadeUpInputs made_up = MakeUpInputs(function, inputs, options);
  inputs.merge(made_up.tensors);
  if (made) *made = std::move(made_up.ranges);
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    const std::vector<Dims>& shapes = function.inputs[i].enumerated_shapes;
    const Dims& dims = inputs.at(values[i]->name).dims();
    // A size that no shape has is the engine's business.
    bool possible = used[i];
    for (size_t d = 0; possible && d < dims.size(); ++d)
      possible = std::any_of(shapes.begin(), shapes.end(), [&](const Dims& shape) {
        return shape.size() == dims.size() && shape[d] == dims[d];
      });
    if (!possible || std::count(shapes.begin(), shapes.end(), dims) > 0) continue;
    std::string listed;
    for (const Dims& shape : shapes)
      listed += fmt::format("{}[{}]", listed.empty() ? "" : ", ", fmt::join(shape, ", "));
    throw Error("bad-input", fmt::format("input \"{}\" has shape [{}]",
                                         function.inputs[i].source_name, fmt::join(dims, ", ")))
        .Expected("one of the shapes that the package lists: " + listed);
  }
  return inputs;
}

namespace {
std::vector<fs::path> TensorFiles(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".npy" || entry.path().extension() == ".pb")
      files.push_back(entry.path());
  if (error)
    throw Error("file-io", fmt::format("cannot list \"{}\": {}", folder.string(), error.message()));
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> Stems(const std::vector<fs::path>& files) {
  std::vector<std::string> stems;
  for (const fs::path& file : files) stems.push_back(file.stem().string());
  return stems;
}
}  // namespace

std::map<std::string, Tensor> ReadInputFolder(const Function& function, const fs::path& folder) {
  std::map<std::string, Tensor> inputs;
  std::vector<fs::path> files = TensorFiles(folder);
  // Numbers count the inputs of the source, where there are files for all of them.
  std::vector<Port> ports = function.inputs;
  for (const AbsentInput& absent : function.absent_inputs)
    ports.insert(ports.begin() + static_cast<ptrdiff_t>(std::min(absent.place, ports.size())),
                 {.name = absent.source_name, .source_name = absent.source_name});
  bool numbered = AreNumbered(Stems(files), "input", ports.size());
  if (!numbered && AreNumbered(Stems(files), "input", function.inputs.size())) {
    ports = function.inputs;
    numbered = true;
  }
  for (const fs::path& file : files) {
    std::string stem = file.stem().string();
    int index = FindPort(ports, stem, "in", "input", numbered);
    if (index >= 0) {
      Tensor given = ReadTensor(file);
      const std::string& name = ports[index].source_name;
      if (!IsAbsent(function, name, given)) inputs[name] = given;
    } else if (!stem.starts_with("out")) {
      throw Error("bad-input",
                  fmt::format("\"{}\" fits no input of the model", file.filename().string()))
          .Expected(PortNames(ports));
    }
  }
  return inputs;
}

const Function& FindFunction(const Program& program, const std::string& name, bool only_is_fine) {
  std::string names;
  for (const auto& function : program.functions) {
    if (function->name == name || (only_is_fine && program.functions.size() == 1)) return *function;
    names += (names.empty() ? "" : ", ") + function->name;
  }
  throw Error("bad-name", fmt::format("there is no function \"{}\"", name)).Expected(names);
}

fs::path FunctionFolder(const fs::path& folder, const Function& function, bool several) {
  return several && fs::is_directory(folder / function.name) ? folder / function.name : folder;
}

std::vector<fs::path> StepFolders(const fs::path& folder) {
  std::vector<fs::path> folders;
  while (fs::is_directory(folder / std::to_string(folders.size())))
    folders.push_back(folder / std::to_string(folders.size()));
  return folders.empty() ? std::vector{folder} : folders;
}

namespace {
// The tensors that have the names of ports, in the order of these; `read` makes them of `found`.
// `word`: of ONNX's numbered files.
template <class Found, class Read>
NamedTensors InOrder(const std::vector<Port>& ports, const std::map<std::string, Found>& found,
                     std::string_view word, bool numbered, Read&& read) {
  NamedTensors named;
  for (const Port& port : ports) named.emplace_back(UserName(port), Tensor());
  for (const auto& [name, what] : found)
    if (int index = FindPort(ports, name, "out", word, numbered); index >= 0)
      named[index].second = WithBfloat16(read(what), ports[index].source_dtype);
  return named;
}

NamedTensors ReadInOrder(const std::vector<Port>& ports, const fs::path& folder,
                         std::string_view word) {
  std::vector<fs::path> listed;
  if (fs::is_directory(folder)) listed = TensorFiles(folder);
  std::map<std::string, fs::path> files;
  for (const fs::path& file : listed) files[file.stem().string()] = file;
  return InOrder(ports, files, word, AreNumbered(Stems(listed), word, ports.size()), ReadTensor);
}
}  // namespace

std::vector<StepResults> ReadReferences(const Function& function, const fs::path& path) {
  std::vector<StepResults> steps;
  if (fs::is_directory(path)) {
    for (const fs::path& folder : StepFolders(path))
      steps.push_back({ReadInOrder(function.outputs, folder, "output"),
                       ReadInOrder(function.states, folder / "states", "state")});
  } else {
    std::map<std::string, Tensor> arrays = ReadNpz(path);
    if (arrays.size() == 1 && function.outputs.size() == 1)
      arrays = {{UserName(function.outputs[0]), arrays.begin()->second}};
    auto as_it_is = [](const Tensor& tensor) { return tensor; };
    steps.push_back({InOrder(function.outputs, arrays, "output", false, as_it_is),
                     InOrder(function.states, arrays, "state", false, as_it_is)});
  }
  auto known = [](const auto& entry) { return static_cast<bool>(entry.second); };
  for (const StepResults& step : steps)
    if (std::any_of(step.outputs.begin(), step.outputs.end(), known) ||
        std::any_of(step.states.begin(), step.states.end(), known))
      return steps;
  throw Error("bad-input",
              fmt::format("\"{}\" holds no output of {}", path.string(),
                          function.program->functions.size() > 1 ? "function " + function.name
                                                                 : "the model"))
      .Expected(PortNames(function.outputs));
}

Tensor ToSourceType(const Tensor& tensor, const Port& port) {
  Tensor out = tensor;
  if (port.source_dtype == DType::kNone || tensor.dtype() == DType::kString) return out;
  if (port.source_dtype != tensor.dtype() && port.source_dtype != DType::kString)
    out = tensor.Cast(port.source_dtype);
  // A scalar is [1] in a package; what a classifier's dictionary holds is a vector.
  if (out.rank() == 1 && IsStatic(port.source_shape) &&
      Product(port.source_shape) == Dim(out.size()))
    out = out.Reshaped(StaticDims(port.source_shape));
  return out;
}

}  // namespace mlc
