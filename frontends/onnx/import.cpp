#include <fmt/ranges.h>

#include <algorithm>

#include "frontends/onnx/row.h"
#include "frontends/onnx/scope.h"
#include "lib/ir/arithmetic.h"
#include "lib/ir/input_conversion.h"
#include "lib/ir/shape_tensors.h"
#include "lib/lower/convert.h"
#include "lib/lower/image_input.h"
#include "lib/ops/row.h"
#include "lib/support/edit_distance.h"

namespace mlc::onnx {

namespace {

// Imports the graph's inputs with their shapes, its outputs, and the options that name them.
class Importer {
 public:
  Importer(const Model& model, const ImportOptions& options, Diagnostics& diagnostics,
           std::string file, NarrowedSizes& narrowed)
      : options_(options),
        program_(&Ops()),
        main_(program_.Add("main")),
        builder_(main_->body, diagnostics),
        import_{.model = model,
                .options = options,
                .diagnostics = diagnostics,
                .program = program_,
                .file = std::move(file),
                .narrowed = narrowed,
                .replaced = std::vector<bool>(options.replacements.size())},
        graph_(model.graph),
        scope_(import_, nullptr, builder_, model.opsets) {}

  Program Run() {
    CheckNames();
    for (const auto& [name, tensor] : options_.constants)
      overriding_[name] = {name, tensor, nullptr};
    for (const Constant& constant : graph_.initializers)
      if (!overriding_.contains(constant.name) && !initializers_.insert(constant.name).second)
        throw Error("bad-graph", "duplicate initializer name \"{}\"", constant.name);
    for (const Constant& constant : graph_.initializers)
      if (!overriding_.contains(constant.name)) scope_.Declare(constant);
    CollectFixedSymbols();
    for (const ValueInfo& input : graph_.inputs)
      if (!Collect([&] { BindInput(input); })) scope_.Bind(input.name, {});
    for (const Constant& constant : graph_.initializers)
      if (overriding_.contains(constant.name) && !constant_inputs_.contains(constant.name))
        Collect([&] { BindConstant({constant.name}, constant.tensor.dtype()); });

    std::vector<std::string> outputs = options_.outputs;
    if (outputs.empty())
      for (const ValueInfo& output : graph_.outputs) {
        CheckTensor("output", output);
        outputs.push_back(output.name);
      }
    if (outputs.empty()) throw Error("bad-graph", "the graph has no outputs");
    std::set<std::string_view> names;
    for (const std::string& output : outputs)
      if (!names.insert(output).second)
        throw Error("bad-graph", "duplicate output name \"{}\"", output);
    const Symbols open = main_->symbols;  // lowering may narrow these and create others
    scope_.Lower(graph_.nodes, outputs);
    builder_.SetLocation(nullptr);
    for (const std::string& output : outputs) Collect([&] { BindOutput(output); });
    main_->body.SetOutputs(results_);
    if (!options_.outputs.empty()) DropUnusedInputs();
    for (size_t i = 0; i < options_.replacements.size(); ++i)
      if (!import_.replaced[i])
        throw Error("bad-name", "option 'replace' {}.{}: no {} node is needed for the outputs",
                    options_.replacements[i].op, options_.replacements[i].attribute,
                    options_.replacements[i].op);
    import_.diagnostics.ThrowIfErrors();
    if (!std::equal(open.begin(), open.end(), main_->symbols.begin(), main_->symbols.end(),
                    [](const auto& a, const auto& b) {
                      return a.first == b.first && a.second.low == b.second.low &&
                             a.second.high == b.second.high &&
                             a.second.enumerated == b.second.enumerated;
                    }))
      main_->SimplifySizes();
    return std::move(program_);
  }

 private:
  // Runs f and returns whether it succeeds. Errors are reported at the end, together with those of
  // nodes.
  template <class F>
  bool Collect(F&& f) {
    try {
      f();
      return true;
    } catch (Error& error) {
      import_.diagnostics.Add(std::move(error.At({import_.file, error.location().where})));
      return false;
    }
  }

  // Erases inputs that are not needed for the requested outputs, including their conversions.
  void DropUnusedInputs() {
    for (size_t i = main_->body.inputs.size(); i-- > 0;) {
      Value* input = main_->body.inputs[i].get();
      while (input->users.size() == 1) {
        Operation* last = input->users.front();
        while (last->result()->users.size() == 1) last = last->result()->users.front();
        if (last->results.size() != 1 || last->result()->has_uses()) break;
        main_->body.Erase(last);
      }
      if (input->has_uses()) continue;
      SetAbsent(main_->inputs[i].source_name, {});
      main_->ReleaseName(input->name);
      main_->body.inputs.erase(main_->body.inputs.begin() + static_cast<ptrdiff_t>(i));
      main_->inputs.erase(main_->inputs.begin() + static_cast<ptrdiff_t>(i));
    }
  }

  // Records a model input that the function does not have, either because it is constant (`value`)
  // or because nothing depends on it. Inputs with a default value in the model are not counted.
  void SetAbsent(const std::string& name, const Tensor& value) {
    AbsentInput input{.source_name = name};
    for (const ValueInfo& other : graph_.inputs) {
      if (other.name == name) break;
      input.place += initializers_.contains(other.name) ? 0 : 1;
    }
    if (value) {
      input.dtype = value.dtype();
      input.dims = value.dims();
      input.hash = value.hash();
    }
    auto after = std::ranges::find_if(main_->absent_inputs,
                                      [&](const AbsentInput& a) { return a.place > input.place; });
    main_->absent_inputs.insert(after, std::move(input));
  }

  // The name for --dim of a dimension that is unnamed in the model.
  static std::string NameOf(const ValueInfo& input, size_t axis) {
    return LegalName(fmt::format("{}_dim{}", input.name, axis));
  }

  // Checks that every name in the options exists in the model.
  void CheckNames() const {
    std::vector<std::string> inputs, symbols;
    std::set<std::string> initializers, values;
    for (const Constant& constant : graph_.initializers) initializers.insert(constant.name);
    for (const ValueInfo& input : graph_.inputs) {
      if (!initializers.contains(input.name)) inputs.push_back(input.name);
      values.insert(input.name);
      std::vector<Dimension> dims = input.shape.value_or(std::vector<Dimension>());
      for (size_t i = 0; i < dims.size(); ++i)
        if (!dims[i].symbol.empty())
          symbols.push_back(dims[i].symbol);
        else if (dims[i].value.value_or(-1) == -1)
          symbols.push_back(NameOf(input, i));
    }
    std::vector<std::string> all_symbols = symbols;
    for (const std::string& symbol : symbols) all_symbols.push_back(LegalName(symbol));
    if (!options_.outputs.empty())
      for (const NodeDef& node : graph_.nodes)
        values.insert(node.outputs.begin(), node.outputs.end());
    values.erase("");
    auto known = [](const std::vector<std::string>& names, const std::string& name) {
      return std::ranges::find(names, name) != names.end();
    };
    for (const auto& [name, dims] : options_.shapes)
      if (!known(inputs, name))
        throw Error("bad-name", "option 'shape' {}: the model has no input with this name{}", name,
                    DidYouMean(inputs, name))
            .Expected(Quoted(inputs));
    for (const auto& [name, symbol] : options_.dims)
      if (!known(all_symbols, name))
        throw Error("bad-name", "option 'dim' {}: no input has a dimension with this name{}", name,
                    DidYouMean(symbols, name))
            .Expected(symbols.empty() ? "no dimension, because the model has no flexible ones; "
                                        "option 'shape' sets sizes of inputs"
                                      : Quoted(symbols));
    for (const auto& [name, tensor] : options_.constants)
      if (!known(inputs, name) && !initializers.contains(name))
        throw Error("bad-name", "option 'const' {}: the model has no input with this name{}", name,
                    DidYouMean(inputs, name))
            .Expected(Quoted(inputs));
    for (const std::string& name : options_.outputs)
      if (!values.contains(name) && !initializers.contains(name))
        throw Error("bad-name", "option 'outputs' {}: the graph has no value with this name{}",
                    name, DidYouMean(values, name))
            .Expected("one of {} names; similar ones: {}", values.size(),
                      Quoted(NearNames(values, name)));
    for (const auto& [name, image] : options_.images)
      if (!known(inputs, name))
        throw Error("bad-name", "option 'image' {}: the model has no input with this name{}", name,
                    DidYouMean(inputs, name))
            .Expected(Quoted(inputs));
  }

  // Finds the --dim option of a dimension, by its name in the model or its name in the program.
  auto DimOption(const std::string& name) const {
    auto option = options_.dims.find(name);
    return option != options_.dims.end() ? option : options_.dims.find(LegalName(name));
  }

  // Throws if `flag` gives a dimension of an input another size than --dim does.
  void CheckDimOptions(std::string_view flag, const ValueInfo& input, const Dims& dims) const {
    for (size_t i = 0; input.shape && i < input.shape->size() && i < dims.size(); ++i) {
      const Dimension& dim = (*input.shape)[i];
      if (dim.symbol.empty() && dim.value.value_or(-1) != -1) continue;
      auto option = DimOption(dim.symbol.empty() ? NameOf(input, i) : dim.symbol);
      if (option == options_.dims.end()) continue;
      const Symbol& given = option->second;
      if (given.low == dims[i] && given.high == dims[i]) continue;
      std::string sizes = !given.enumerated.empty()
                              ? fmt::format("{}", fmt::join(given.enumerated, ","))
                          : given.low == given.high ? fmt::format("{}", given.low)
                                                    : fmt::format("{}..{}", given.low, given.high);
      throw Error("usage",
                  "{} {} and option 'dim' {}={} disagree on dimension {} of the "
                  "input, which the first sets to {}",
                  flag, input.name, option->first, sizes, i, dims[i])
          .Help("remove one of the two options");
    }
  }

  // A --shape option also fixes the named dimensions of its input for all other inputs, unless two
  // options disagree.
  void CollectFixedSymbols() {
    std::set<std::string> disputed;
    for (const ValueInfo& input : graph_.inputs) {
      auto it = options_.shapes.find(input.name);
      if (it == options_.shapes.end() || !input.shape || input.shape->size() != it->second.size())
        continue;
      CheckDimOptions("option 'shape'", input, it->second);
      for (size_t i = 0; i < input.shape->size(); ++i) {
        const std::string& symbol = (*input.shape)[i].symbol;
        if (symbol.empty()) continue;
        auto [known, added] = fixed_.emplace(symbol, it->second[i]);
        if (!added && known->second != it->second[i]) disputed.insert(symbol);
      }
    }
    for (const std::string& symbol : disputed) fixed_.erase(symbol);
  }

  // Returns a symbolic dimension, with the range from --dim if given. --dim accepts its name in the
  // model and its name in the program.
  Dim OpenDim(std::string name) {
    const auto& same = import_.narrowed.same;
    for (auto it = same.find(name); it != same.end(); it = same.find(name)) name = it->second;
    auto it = dims_.find(name);
    return it != dims_.end() ? it->second : dims_[name] = NewDim(name);
  }

  Dim NewDim(const std::string& name) {
    auto option = DimOption(name);
    Symbol sizes = option == options_.dims.end() ? Symbol() : option->second;
    if (auto it = import_.narrowed.sizes.find(name); it != import_.narrowed.sizes.end())
      sizes = it->second;
    if (sizes.low == sizes.high) return sizes.low;
    std::string symbol = main_->FreshSymbol(name, sizes);
    import_.open[symbol] = name;
    return Dim::Symbol(symbol);
  }

  Dim NamedDim(const std::string& name) {
    if (auto it = fixed_.find(name); it != fixed_.end()) return it->second;
    return OpenDim(name);
  }

  [[noreturn]] static void BadShape(const ValueInfo& input, const std::string& text) {
    throw Error("input-shape", "input \"{}\" {}", input.name, text)
        .Help("pass option 'shape' {}=DIMS", input.name);
  }

  Shape ShapeOf(const ValueInfo& input) {
    if (auto it = options_.shapes.find(input.name); it != options_.shapes.end()) {
      if (input.shape && input.shape->size() != it->second.size())
        throw Error("input-shape",
                    "option 'shape' gives input \"{}\" {} dimensions, but it has {} in the model",
                    input.name, it->second.size(), input.shape->size());
      for (int64_t dim : it->second)
        if (dim < 1 || dim > INT32_MAX)
          throw Error("input-shape", "option 'shape' {}: {} is not a valid dimension", input.name,
                      dim)
              .Expected("1 to {}", INT32_MAX);
      return ToShape(it->second);
    }
    if (!input.shape) BadShape(input, "has neither a shape nor a rank in the model");
    Shape shape;
    for (size_t i = 0; i < input.shape->size(); ++i) {
      const Dimension& dim = (*input.shape)[i];
      int64_t value = dim.value.value_or(-1);
      if (value < -1 || value > INT32_MAX)
        BadShape(input, fmt::format("has an invalid dimension {}", value));
      if (value >= 0) {
        shape.emplace_back(value);
      } else if (!dim.symbol.empty()) {
        shape.push_back(NamedDim(dim.symbol));
      } else {
        shape.push_back(OpenDim(NameOf(input, i)));
      }
    }
    return shape;
  }

  // Applies --const: binds the tensor in the type that the model declares.
  void BindConstant(const ValueInfo& input, DType declared) {
    Constant& constant = overriding_.at(input.name);
    if (declared != DType::kNone)
      constant.tensor =
          ConvertInput(constant.tensor, declared,
                       {"bad-constant", fmt::format("option 'const' {}", input.name)});
    const Dims& dims = constant.tensor.dims();
    bool fits = !input.shape || input.shape->size() == dims.size();
    for (size_t i = 0; fits && input.shape && i < dims.size(); ++i) {
      int64_t value = (*input.shape)[i].value.value_or(-1);
      fits = value < 0 || value == dims[i];
    }
    if (!fits)
      throw Error("bad-constant",
                  "option 'const' {}: the shape {} of the file is not the shape of the input",
                  input.name, ToString(ToShape(dims)));
    CheckDimOptions("option 'const'", input, dims);
    scope_.Declare(constant);
    constant_inputs_.insert(input.name);
  }

  // The type of a program input or output whose ONNX type is `dtype`. Core ML has no bool inputs or
  // outputs.
  DType BorderType(DType dtype) const {
    DType inside = lower::RuntimeType(dtype);
    if (inside == DType::kBool) return DType::kInt32;
    if (IsFloat(inside) && options_.io != DType::kNone) return options_.io;
    return dtype == DType::kFp16 ? dtype : inside;
  }

  // An image is fp32 [1, channels, height, width] with pixels from 0 to 255; height and width may
  // be flexible. Returns the value that the model declares, of shape `shape` and type `dtype`.
  Value* BindImage(const ValueInfo& input, const ImportOptions::Image& image, const Shape& shape,
                   DType dtype) {
    int64_t channels = image.feature == Port::Feature::kImageGray ? 1 : 3;
    bool first = shape.size() == 4 && shape[1] == Dim(channels);
    bool last = !first && shape.size() == 4 && shape[3] == Dim(channels);
    if ((!first && !last) || shape[0] != Dim(1))
      throw Error("input-shape", "option 'image' {}: the input has shape {}", input.name,
                  ToString(shape))
          .Expected("[1, {0}, height, width] or [1, height, width, {0}]", channels)
          .Help("fix dynamic dimensions with option 'dim' or option 'shape' {}=DIMS", input.name);
    Value* value =
        lower::AddImageInput(builder_, *main_, input.name,
                             first ? shape : Shape{1, channels, shape[1], shape[2]}, image);
    Value* port = main_->body.inputs.back().get();
    if (last) value = Transposed(builder_, value, {0, 2, 3, 1});
    value = lower::Convert(builder_, value, DType::kFp32, dtype);
    import_.named.insert({port, value});
    return value;
  }

  static void CheckTensor(std::string_view which, const ValueInfo& info) {
    if (info.kind != "a tensor")
      throw Error("unsupported-dtype", "{} \"{}\" is {}; Core ML supports only tensors", which,
                  info.name, info.kind);
  }

  void BindInput(const ValueInfo& input) {
    if (overriding_.contains(input.name)) {
      BindConstant(input, ToDType(input.data_type));
      return SetAbsent(input.name, overriding_.at(input.name).tensor);
    }
    if (initializers_.contains(input.name)) return;  // a default value, which becomes a constant
    CheckTensor("input", input);
    DType dtype = ToDType(input.data_type), inside = lower::RuntimeType(dtype);
    if (inside == DType::kNone)
      throw Error("unsupported-dtype", "input \"{}\" has the unsupported element type {}",
                  input.name, DataTypeName(input.data_type));
    Shape shape = ShapeOf(input);
    if (std::ranges::find(shape, Dim(0)) != shape.end() && IsStatic(shape)) {
      // An empty input has only one possible value.
      import_.diagnostics.Note(fmt::format("input \"{}\" is empty and was removed", input.name));
      Tensor empty = Tensor::Full(dtype, StaticDims(shape), 0);
      SetAbsent(input.name, empty);
      return scope_.Bind(input.name, {builder_.Const(empty, input.name), dtype});
    }
    if (std::ranges::find(shape, Dim(0)) != shape.end())
      throw Error("empty-tensor", "input \"{}\" has a dimension of size 0", input.name);
    Value* value = nullptr;
    if (auto image = options_.images.find(input.name); image != options_.images.end()) {
      value = BindImage(input, image->second, shape, dtype);
    } else {
      value = main_->AddInput(input.name,
                              Type::Tensor(BorderType(dtype), shape.empty() ? Shape{1} : shape));
      import_.named.insert(value);
      main_->inputs.push_back({.name = value->name});
      builder_.SetName(value->name + "_in");
      // Core ML has no inputs of rank 0.
      if (shape.empty()) value = Squeezed(builder_, value, {0});
      if (inside == DType::kBool)
        value = lower::Convert(builder_, value, DType::kInt32, DType::kBool);
      if (IsFloat(inside)) value = builder_.Cast(value, inside);
      import_.named.insert(value);
    }
    Port& port = main_->inputs.back();
    port.source_name = input.name;
    port.source_dtype = dtype;
    port.source_shape = shape;
    scope_.Bind(input.name, {value, dtype});
  }

  void BindOutput(const std::string& name) {
    Bound bound;
    try {
      bound = scope_.Find(name);
    } catch (const Skipped&) {
      return;
    }
    if (!bound.value)
      throw Error("unsupported-dtype", "output \"{}\" is {}; Core ML supports only tensors", name,
                  bound.kind());
    DType inside = lower::RuntimeType(bound.dtype);
    bool below_a_byte =
        IsInteger(bound.dtype) && Bits(bound.dtype) < 8;  // not storable in files of arrays
    if (inside == DType::kNone || below_a_byte)
      throw Error("unsupported-dtype", "output \"{}\" has the unsupported element type {}", name,
                  Name(bound.dtype));
    Value* value = bound.value;
    for (const Dim& dim : value->type.shape)
      if (dim == Dim(0)) throw Error("empty-tensor", "output \"{}\" is empty", name);
    Port port{.source_name = name, .source_dtype = bound.dtype, .source_shape = value->type.shape};
    DType border = BorderType(bound.dtype);

    builder_.SetName(name);
    std::string legal = LegalName(name);
    auto is_output = [&] { return is_result_.contains(value); };
    auto make = [&](auto&& f) {  // the last operation takes the output's name
      if (value->def && value->name == legal && !is_output())
        main_->Rename(value, legal + "_" + std::string(Name(value->type.dtype)));
      value = f();
    };
    if (value->is_constant()) {
      make([&] { return builder_.Const(NarrowForMil(value->constant(), border)); });
    } else if (value->type.dtype != border) {
      make([&] { return builder_.Cast(value, border); });
    }
    if (value->type.shape.empty()) make([&] { return Expanded(builder_, value, {0}); });
    // An output needs an operation of its own: it cannot be an input, a constant or another output.
    if (!value->def || value->is_constant() || is_output()) make([&] { return Copy(value, name); });
    if (value->name != legal) TakeName(value, name);
    port.name = value->name;
    main_->outputs.push_back(std::move(port));
    results_.push_back(value);
    is_result_.insert(value);
  }

  // Gives an output its ONNX name. An intermediate value that holds this name is renamed.
  void TakeName(Value* output, const std::string& name) {
    std::string legal = LegalName(name);
    if (main_->Claim(legal)) {  // the name is free
      main_->ReleaseName(legal);
      return main_->Rename(output, legal);
    }
    for (const Value* other : results_)
      if (other->name == legal) return;
    for (const auto& input : main_->body.inputs)
      if (input->name == legal) return;
    auto move_away = [&](Value* value) {
      if (value->name == legal) main_->Rename(value, legal + "_1");
    };
    ForEachOperation(*main_, [&](Operation* op) {
      for (const std::unique_ptr<Value>& result : op->results) move_away(result.get());
      for (const std::unique_ptr<Block>& block : op->blocks)
        for (const std::unique_ptr<Value>& input : block->inputs) move_away(input.get());
    });
    main_->Rename(output, legal);
  }

  // Makes an `identity` that is not folded.
  Value* Copy(Value* value, const std::string& name) {
    auto op = std::make_unique<Operation>();
    op->def = &program_.ops->At("identity");
    auto result = std::make_unique<Value>();
    result->name = main_->UniqueName(name);
    result->type = value->type;
    result->elements = ElementsOf(value);
    result->def = op.get();
    op->name = result->name;
    op->SetArg("x", {value});
    op->results.push_back(std::move(result));
    return main_->body.Insert(std::move(op), nullptr)->result();
  }

  const ImportOptions& options_;
  Program program_;
  Function* main_;
  Builder builder_;
  ImportState import_;
  const Graph& graph_;
  Scope scope_;
  std::map<std::string, Constant> overriding_;  // values of --const
  std::set<std::string> initializers_, constant_inputs_;
  std::map<std::string, int64_t> fixed_;  // symbols that a --shape option fixes
  std::map<std::string, Dim> dims_;       // symbolic dimensions of the model, by name
  std::vector<Value*> results_;
  std::unordered_set<const Value*> is_result_;
};

Program Import(const Model& model, const ImportOptions& options, Diagnostics& diagnostics,
               const std::string& file) {
  constexpr int64_t kNewestOpset =
      28;  // the newest version of the ai.onnx operator set that the table of operators covers
  if (auto onnx = model.opsets.find(""); onnx != model.opsets.end() && onnx->second > kNewestOpset)
    diagnostics.Note(
        fmt::format("opset {} is newer than {}, the newest supported opset; operators are imported "
                    "with their semantics in the latter",
                    onnx->second, kNewestOpset));
  NarrowedSizes narrowed;
  while (true) {
    Diagnostics attempt;
    auto report = [&] {
      for (const NarrowedSizes::Note& note : narrowed.notes) {
        diagnostics.Note(fmt::format("the package is valid only for {}: {}", note.what, note.why));
        diagnostics.Decide("shape", note.what, note.why);
      }
      diagnostics.Append(std::move(attempt));
    };
    narrowed.again = false;
    try {
      Program program = Importer(model, options, attempt, file, narrowed).Run();
      if (narrowed.again) continue;
      report();
      return program;
    } catch (Error& error) {
      if (narrowed.again) continue;
      report();
      if (error.location().file.empty()) error.At({file, error.location().where});
      throw;
    } catch (const Errors&) {
      if (narrowed.again) continue;
      report();
      throw;
    }
  }
}

void Count(const std::vector<NodeDef>& nodes, std::map<std::string, int64_t>& counts) {
  for (const NodeDef& node : nodes) {
    ++counts[node.domain.empty() ? node.op : node.domain + "::" + node.op];
    for (const Attribute& attribute : node.attributes)
      for (const auto& graph : attribute.graphs) Count(graph->nodes, counts);
  }
}

OnnxFacts FactsOf(const Model& model) {
  OnnxFacts facts{model.ir_version, model.producer, model.opsets, {}, {}, {}};
  for (const ValueInfo& input : model.graph.inputs) facts.inputs.push_back(input.name);
  Count(model.graph.nodes, facts.operators);
  for (const FunctionDef& function : model.functions) Count(function.nodes, facts.operators);
  for (const auto& [name, path] : model.data) facts.data.push_back({name, path});
  return facts;
}
}  // namespace

Program ImportOnnx(const std::filesystem::path& path, const ImportOptions& options,
                   Diagnostics& diagnostics, OnnxFacts* facts) {
  Model model = ReadModel(path, options.data_root);
  if (facts) *facts = FactsOf(model);
  return Import(model, options, diagnostics, path.filename().string());
}

Program ImportOnnx(std::span<const std::byte> bytes, const ImportOptions& options,
                   Diagnostics& diagnostics) {
  return Import(ReadModel(bytes), options, diagnostics, "");
}

OnnxFacts ReadOnnxFacts(const std::filesystem::path& path, const std::filesystem::path& data_root) {
  return FactsOf(ReadModel(path, data_root, false));
}

}  // namespace mlc::onnx
