#include "tools/driver/supplied_tensors.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <unordered_map>

#include "lib/ir/input_conversion.h"
#include "lib/ir/npy.h"
#include "lib/ir/port_index.h"
#include "lib/support/edit_distance.h"
#include "lib/support/percent_encoding.h"
#include "tools/driver/image_inputs.h"
#include "tools/driver/input_files.h"

namespace fs = std::filesystem;

namespace mlc::driver {

namespace {

std::string Flattened(std::string_view name) {
  std::string out;
  for (unsigned char c : name)
    out += std::isalnum(c) || c == '.' || c == '_' || c == '-' ? static_cast<char>(c) : '_';
  return out;
}

// Returns whether files are numbered like those of ONNX's test sets: WORD_0, WORD_1, ... for every
// port and no others. In this case numbers are positions, even if a port has such a name.
bool AreNumbered(const std::set<std::string>& stems, std::string_view word, size_t ports) {
  for (size_t i = 0; i < ports; ++i)
    if (!stems.contains(fmt::format("{}_{}", word, i))) return false;
  return true;
}

// Finds ports by the stems of their files: NAME, PREFIX_NAME, PREFIX_<k>_NAME, or WORD_<k>.
class PortFiles {
 public:
  PortFiles(const std::vector<Port>& ports, std::string_view prefix, std::string_view word,
            bool numbered)
      : count_(static_cast<int>(ports.size())),
        prefix_(fmt::format("{}_", prefix)),
        word_(fmt::format("{}_", word)),
        numbered_(numbered) {
    for (int i = 0; i < count_; ++i)
      for (const std::string& name :
           {ports[i].source_name, ports[i].name, FileStem(ports[i].source_name),
            FileStem(ports[i].name), Flattened(ports[i].source_name)})
        by_name_.emplace(name, i);
  }

  // Returns the index of the port, or -1 if there is none.
  int Find(const std::string& stem) const {
    size_t end = 0;
    const int place = stem.starts_with(word_) ? Number(stem.substr(word_.size()), end) : -1;
    const bool is_place = place >= 0 && word_.size() + end == stem.size();
    if (int i = is_place && numbered_ ? -1 : ByName(stem); i >= 0) return i;
    if (is_place && place < count_) return place;
    if (!stem.starts_with(prefix_)) return -1;
    const std::string rest = stem.substr(prefix_.size());
    if (int i = ByName(rest); i >= 0) return i;
    const bool counts = Number(rest, end) >= 0 && end < rest.size() && rest[end] == '_';
    return counts ? ByName(rest.substr(end + 1)) : -1;
  }

 private:
  int ByName(const std::string& name) const {
    auto it = by_name_.find(name);
    return it == by_name_.end() ? -1 : it->second;
  }

  // Returns the leading number of up to six digits, or -1 if there is none.
  static int Number(const std::string& text, size_t& end) {
    end = 0;
    while (end < text.size() && end < 6 && std::isdigit(static_cast<unsigned char>(text[end])))
      ++end;
    return end ? std::stoi(text.substr(0, end)) : -1;
  }

  int count_;
  std::string prefix_, word_;
  bool numbered_;
  std::unordered_map<std::string, int> by_name_;
};

std::vector<std::string> PortNames(const std::vector<Port>& ports) {
  std::vector<std::string> names;
  for (const Port& port : ports) names.push_back(port.source_name);
  return names;
}

// Returns the minimum and maximum value that an input can hold.
std::pair<double, double> ValuesOf(const Port& port, DType dtype) {
  if (port.feature != Port::Feature::kMultiArray) return {0, 255};
  if (dtype == DType::kBool) return {0, 1};
  if (IsFloat(dtype)) {
    double most = dtype == DType::kFp16 ? 65504 : std::numeric_limits<float>::max();
    return {-most, most};
  }
  bool is_signed = Name(dtype).starts_with("int");
  double span = std::ldexp(1.0, std::min(Bits(dtype), 32));
  return is_signed ? std::pair{-span / 2, span / 2 - 1} : std::pair{0.0, span - 1};
}

void CheckRange(const Port& port, const Value& value, const std::string& name, double low,
                double high) {
  DType dtype = port.source_dtype == DType::kNone ? value.type.dtype : port.source_dtype;
  bool whole = !IsFloat(dtype) || port.feature != Port::Feature::kMultiArray;
  auto [least, greatest] = ValuesOf(port, dtype);
  if (low < least || high > greatest ||
      (whole && (low != std::floor(low) || high != std::floor(high))))
    throw Error("usage", "--input-range: \"{}={}..{}\" is not a range of {} values", name, low,
                high, Name(dtype))
        .Expected("{}numbers from {:.10g} to {:.10g}", whole ? "whole " : "", least, greatest);
}

std::vector<fs::path> TensorFiles(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    if (HasInputName(entry.path())) files.push_back(entry.path());
  if (error) throw Error("file-io", "cannot list \"{}\": {}", folder.string(), error.message());
  std::ranges::sort(files);
  return files;
}

std::set<std::string> Stems(const std::vector<fs::path>& files) {
  std::set<std::string> stems;
  for (const fs::path& file : files) stems.insert(file.stem().string());
  return stems;
}

// Returns the tensors named like the ports, in the order of the ports; `read` creates them from
// `found`. `word`: prefix of numbered files in ONNX's test sets.
template <class Found, class Read>
verify::NamedTensors InOrder(const std::vector<Port>& ports,
                             const std::map<std::string, Found>& found, std::string_view word,
                             bool numbered, Read&& read) {
  verify::NamedTensors named;
  for (const Port& port : ports) named.emplace_back(verify::UserName(port), Tensor());
  const PortFiles port_files(ports, "out", word, numbered);
  for (const auto& [name, what] : found)
    if (int index = port_files.Find(name); index >= 0)
      named[index].second = WithBfloat16(read(what), ports[index].source_dtype);
  return named;
}

verify::NamedTensors ReadInOrder(const std::vector<Port>& ports, const fs::path& folder,
                                 std::string_view word) {
  std::vector<fs::path> listed;
  if (fs::is_directory(folder)) listed = TensorFiles(folder);
  std::map<std::string, fs::path> files;
  for (const fs::path& file : listed) files[file.stem().string()] = file;
  return InOrder(ports, files, word, AreNumbered(Stems(listed), word, ports.size()), ReadTensor);
}

// Reads the tensors of `ports`. Those that are missing are read again by the names that the other
// model gives them (`others`).
template <class Read>
verify::NamedTensors ByEitherName(const std::vector<Port>& ports, const std::vector<Port>& others,
                                  Read&& read) {
  verify::NamedTensors named = read(ports);
  std::vector<Port> renamed = ports;
  const PortIndex by_user(others, verify::UserName);
  for (Port& port : renamed)
    if (const Port* other = by_user.Find(verify::UserName(port))) {
      port.source_name = verify::UserName(port);
      port.name = other->name;
    }
  const verify::NamedTensors more = read(renamed);
  for (size_t i = 0; i < named.size(); ++i)
    if (!named[i].second) named[i].second = more[i].second;
  return named;
}

}  // namespace

std::vector<const Value*> InputValues(const Function& function) {
  std::vector<const Value*> values;
  for (const auto& input : function.body.inputs)
    if (input->type.kind != Type::Kind::kState) values.push_back(input.get());
  return values;
}

std::vector<InputPort> InputPorts(const Function& function) {
  std::vector<InputPort> ports;
  for (const Value* value : InputValues(function))
    ports.push_back({function.inputs[ports.size()], *value});
  return ports;
}

bool IsAbsent(const Function& function, std::string_view name, const Tensor& given) {
  auto input = std::ranges::find(function.absent_inputs, name, &AbsentInput::source_name);
  if (input == function.absent_inputs.end()) return false;
  if (IsValueOf(*input, given)) return true;
  Error error("bad-input",
              "input \"{}\" was fixed when the model was compiled, but a different value "
              "is given, {} of shape {}",
              name, Name(given.dtype()), ToString(ToShape(given.dims())));
  error.Expected("the value that was compiled in, {} of shape {}, or none", Name(input->dtype),
                 ToString(ToShape(input->dims)));
  if (std::ranges::count(input->dims, 0) == 0)
    error.Help("compile the model with the new value: --const {}=FILE", name);
  throw error;
}

Tensor ToInputType(const Tensor& given, const Value& input, const Port& port) {
  if (port.feature != Port::Feature::kMultiArray) return ToPixels(given, input, port);
  DType declared = port.source_dtype == DType::kNone ? input.type.dtype : port.source_dtype;
  Tensor converted =
      ConvertInput(given, declared, input.type.dtype,
                   {"bad-input", fmt::format("input \"{}\"", verify::UserName(port))});
  // Packages declare a scalar of the source as [1].
  if (converted.rank() == 0 && input.type.rank() == 1) converted = converted.Reshaped({1});
  return converted;
}

void CheckListedShape(const Port& port, const Dims& dims) {
  const std::vector<Dims>& shapes = port.enumerated_shapes;
  // A size that occurs in none of the shapes is reported by the engine.
  bool possible = true;
  for (size_t d = 0; possible && d < dims.size(); ++d)
    possible = std::ranges::any_of(shapes, [&](const Dims& shape) {
      return shape.size() == dims.size() && shape[d] == dims[d];
    });
  if (!possible || std::ranges::count(shapes, dims) > 0) return;
  std::string listed;
  for (const Dims& shape : shapes)
    listed += fmt::format("{}[{}]", listed.empty() ? "" : ", ", fmt::join(shape, ", "));
  throw Error("bad-input", "input \"{}\" has shape [{}]", port.source_name, fmt::join(dims, ", "))
      .Expected("one of the shapes that the package lists: " + listed);
}

std::map<std::string, Tensor> MakeInputs(const Function& function,
                                         const std::map<std::string, Tensor>& given,
                                         const analysis::GeneratedInputOptions& options,
                                         std::map<std::string, analysis::InputRange>* made) {
  std::vector<const Value*> values = InputValues(function);
  std::map<std::string, Tensor> inputs;
  std::vector<bool> used(function.inputs.size());
  const PortIndex by_source(function.inputs, &Port::source_name), by_name(function.inputs);
  for (const auto& [name, tensor] : given) {
    const Port* port = by_source.Find(name);
    if (!port) port = by_name.Find(name);
    if (!port && IsAbsent(function, name, tensor)) continue;
    if (!port)
      throw Error("bad-input", "the model has no input \"{}\"{}", name,
                  DidYouMean(PortNames(function.inputs), name))
          .Expected("{}", fmt::join(PortNames(function.inputs), ", "));
    const auto index = static_cast<size_t>(port - function.inputs.data());
    const Value& value = *values[index];
    // Unused inputs accept tensors of any shape; those that do not fit are ignored.
    if (!value.has_uses() && ToShape(tensor.dims()) != value.type.shape) continue;
    inputs[value.name] = ToInputType(tensor, value, *port);
    used[index] = true;
  }
  analysis::GeneratedInputs generated = analysis::GenerateInputs(function, inputs, options);
  inputs.merge(generated.tensors);
  if (made) *made = std::move(generated.ranges);
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    if (used[i]) CheckListedShape(function.inputs[i], inputs.at(values[i]->name).dims());
  }
  return inputs;
}

void CheckRanges(const analysis::GeneratedInputOptions& options, const Program& program) {
  std::set<std::string> known;
  std::vector<std::string> names;
  for (const auto& function : program.functions) {
    for (const auto& [port, value] : InputPorts(*function)) {
      names.push_back(verify::UserName(port));
      for (const auto& [name, range] : options.ranges) {
        if (port.source_name != name && port.name != name) continue;
        known.insert(name);
        CheckRange(port, value, name, range.first, range.second);
      }
    }
  }
  for (const auto& [name, range] : options.ranges)
    if (!known.contains(name))
      throw Error("usage", "--input-range: the model has no input \"{}\"{}", name,
                  DidYouMean(names, name))
          .Expected("{}", fmt::join(names, ", "));
}

namespace {

// A tensor that a file or an array of an archive holds. `read` gets the input that it is for, or null
// if the function lacks it.
struct Source {
  std::string name, file;
  std::function<Tensor(const InputPort* input)> read;
};

std::vector<Source> SourcesIn(const fs::path& path, media::Fit fit) {
  std::vector<Source> sources;
  if (fs::is_directory(path)) {
    for (const fs::path& file : TensorFiles(path))
      sources.push_back(
          {file.stem().string(), file.filename().string(), [file, fit](const InputPort* input) {
             return input ? ReadInput(file, input->port, input->value, fit) : ReadTensor(file);
           }});
    return sources;
  }
  for (auto& [name, tensor] : ReadNpz(path))
    sources.push_back({name, name, [tensor](const InputPort*) { return tensor; }});
  return sources;
}

// The inputs that are named by sources. Numbers are positions among the inputs of the source,
// including absent ones, if there is a file for each.
class SourceNames {
 public:
  SourceNames(const Function& function, const std::vector<Source>& sources)
      : ports_(function.inputs) {
    std::set<std::string> names;
    for (const Source& source : sources) names.insert(source.name);
    std::vector<Port> all = function.inputs;
    for (const AbsentInput& absent : function.absent_inputs)
      all.insert(all.begin() + static_cast<ptrdiff_t>(std::min(absent.place, all.size())),
                 {.name = absent.source_name, .source_name = absent.source_name});
    bool numbered = AreNumbered(names, "input", all.size());
    if (numbered || !AreNumbered(names, "input", ports_.size()))
      ports_ = std::move(all);
    else
      numbered = true;
    files_.emplace(ports_, "in", "input", numbered);
  }

  // Null if the source names no input.
  const Port* Find(const Source& source) const {
    const int index = files_->Find(source.name);
    return index < 0 ? nullptr : &ports_[index];
  }
  const std::vector<Port>& ports() const { return ports_; }

 private:
  std::vector<Port> ports_;
  std::optional<PortFiles> files_;
};

}  // namespace

std::map<std::string, Tensor> ReadInputFolder(const Function& function, const fs::path& folder,
                                              media::Fit fit) {
  const std::vector<Source> sources = SourcesIn(folder, fit);
  const SourceNames names(function, sources);
  const std::vector<InputPort> own = InputPorts(function);
  std::map<std::string, Tensor> inputs;
  for (const Source& source : sources) {
    const Port* port = names.Find(source);
    if (!port && source.name.starts_with("out")) continue;
    if (!port)
      throw Error("bad-input", "\"{}\" matches no input of the model{}", source.file,
                  DidYouMean(PortNames(names.ports()), source.name))
          .Expected("{}", fmt::join(PortNames(names.ports()), ", "));
    const std::string& name = port->source_name;
    const auto input = std::ranges::find_if(
        own, [&](const InputPort& one) { return one.port.source_name == name; });
    Tensor given = source.read(input == own.end() ? nullptr : &*input);
    if (!IsAbsent(function, name, given)) inputs[name] = std::move(given);
  }
  return inputs;
}

std::vector<std::map<std::string, Tensor>> ReadSamples(const Function& function,
                                                       const fs::path& folder, bool several,
                                                       media::Fit fit) {
  std::vector<std::map<std::string, Tensor>> samples;
  const fs::path own = FunctionFolder(folder, function, several);
  const std::vector<fs::path> steps = StepFolders(own);
  if (steps == std::vector{own} && function.inputs.size() == 1 && fs::is_directory(own)) {
    const std::vector<Source> sources = SourcesIn(own, fit);
    const SourceNames names(function, sources);
    if (std::ranges::all_of(sources, [&](const Source& source) {
          return HasMediaName(source.file) && !names.Find(source);
        })) {
      const std::vector<InputPort> ports = InputPorts(function);
      for (const Source& source : sources)
        samples.push_back({{ports[0].port.source_name, source.read(&ports[0])}});
      if (!samples.empty()) return samples;
    }
  }
  for (const fs::path& step : steps) samples.push_back(ReadInputFolder(function, step, fit));
  return samples;
}

const Function& FindFunction(const Program& program, const std::string& name, bool only_is_fine) {
  std::vector<std::string> names;
  for (const auto& function : program.functions) {
    if (function->name == name || (only_is_fine && program.functions.size() == 1)) return *function;
    names.push_back(function->name);
  }
  throw Error("bad-name", "the model has no function \"{}\"{}", name, DidYouMean(names, name))
      .Expected("{}", fmt::join(names, ", "));
}

fs::path FunctionFolder(const fs::path& folder, const Function& function, bool several) {
  return several && fs::is_directory(folder / function.name) ? folder / function.name : folder;
}

std::vector<fs::path> StepFolders(const fs::path& folder) {
  std::set<std::string> numbered;
  if (fs::is_directory(folder))
    for (const fs::directory_entry& entry : fs::directory_iterator(folder))
      if (std::string name = entry.path().filename().string();
          entry.is_directory() && name.find_first_not_of("0123456789") == std::string::npos)
        numbered.insert(std::move(name));
  std::vector<fs::path> folders;
  while (numbered.erase(std::to_string(folders.size())))
    folders.push_back(folder / std::to_string(folders.size()));
  if (!numbered.empty())
    throw Error("bad-input", "\"{}\" has a folder \"{}\", but no \"{}\"", folder.string(),
                *numbered.begin(), folders.size())
        .Expected("folders 0, 1, ... without gaps");
  return folders.empty() ? std::vector{folder} : folders;
}

std::vector<verify::StepResults> ReadReferences(const Function& function, const Function& package,
                                                const fs::path& path) {
  std::vector<verify::StepResults> steps;
  if (fs::is_directory(path)) {
    for (const fs::path& folder : StepFolders(path))
      steps.push_back(
          {ByEitherName(function.outputs, package.outputs,
                        [&](const std::vector<Port>& ports) {
                          return ReadInOrder(ports, folder, "output");
                        }),
           ByEitherName(function.states, package.states, [&](const std::vector<Port>& ports) {
             return ReadInOrder(ports, folder / "states", "state");
           })});
  } else {
    std::map<std::string, Tensor> arrays = ReadNpz(path);
    if (arrays.size() == 1 && function.outputs.size() == 1)
      arrays = {{verify::UserName(function.outputs[0]), arrays.begin()->second}};
    auto read = [&](std::string_view word) {
      return [&arrays, word](const std::vector<Port>& ports) {
        return InOrder(ports, arrays, word, false, [](const Tensor& tensor) { return tensor; });
      };
    };
    steps.push_back({ByEitherName(function.outputs, package.outputs, read("output")),
                     ByEitherName(function.states, package.states, read("state"))});
  }
  auto known = [](const auto& entry) { return static_cast<bool>(entry.second); };
  for (const verify::StepResults& step : steps)
    if (std::ranges::any_of(step.outputs, known) || std::ranges::any_of(step.states, known))
      return steps;
  throw Error("bad-input", "\"{}\" contains no output of {}", path.string(),
              function.program->functions.size() > 1 ? "function " + function.name : "the model")
      .Expected("{}", fmt::join(PortNames(function.outputs), ", "));
}

Tensor ToSourceType(const Tensor& tensor, const Port& port) {
  Tensor out = tensor;
  if (port.source_dtype == DType::kNone || tensor.dtype() == DType::kString) return out;
  if (port.source_dtype != tensor.dtype() && port.source_dtype != DType::kString)
    out = tensor.Cast(port.source_dtype);
  // Packages declare a scalar as [1], and return a classifier's dictionary as a vector.
  if (out.rank() == 1 && IsStatic(port.source_shape) &&
      Product(port.source_shape) == Dim(out.size()))
    out = out.Reshaped(StaticDims(port.source_shape));
  return out;
}

}  // namespace mlc::driver
