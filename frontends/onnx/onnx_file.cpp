#include "frontends/onnx/onnx_file.h"

#include <onnx/onnx_pb.h>
#include <onnx/shape_inference/implementation.h>

#include <algorithm>
#include <climits>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "frontends/onnx/model/model.h"
#include "frontends/onnx/tensor_elements.h"
#include "lib/ir/tensor.h"
#include "lib/support/atomic_install.h"
#include "lib/support/error.h"
#include "lib/support/mapped_file.h"

namespace fs = std::filesystem;

namespace mlc::onnx {

namespace {

using ::onnx::AttributeProto;
using ::onnx::GraphProto;
using ::onnx::ModelProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;
using ::onnx::TypeProto;
using ::onnx::ValueInfoProto;
using Types = std::unordered_map<std::string, TypeProto>;
using Tensors = std::vector<std::shared_ptr<const TensorProto>>;
using Names = std::set<std::string>;

// Tensors of at least this size are stored in external data if there is any. Smaller ones may be
// shapes, which inference reads.
constexpr uint64_t kLargeBytes = 1024;

bool IsConstantNode(const NodeProto& node) {
  return node.op_type() == "Constant" && (node.domain().empty() || node.domain() == "ai.onnx");
}

// Calls visit(GraphProto) for each subgraph of a node; for constant and for mutable nodes.
template <class Node, class Visit>
void ForEachSubgraph(Node& node, Visit&& visit) {
  if constexpr (std::is_const_v<Node>) {
    for (const AttributeProto& attribute : node.attribute()) {
      if (attribute.has_g()) visit(attribute.g());
      for (const GraphProto& graph : attribute.graphs()) visit(graph);
    }
  } else {
    for (AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) visit(*attribute.mutable_g());
      for (GraphProto& graph : *attribute.mutable_graphs()) visit(graph);
    }
  }
}

Names DefinedIn(const GraphProto& graph) {
  Names names;
  for (const ValueInfoProto& input : graph.input()) names.insert(input.name());
  for (const TensorProto& tensor : graph.initializer()) names.insert(tensor.name());
  for (const auto& tensor : graph.sparse_initializer()) names.insert(tensor.values().name());
  for (const NodeProto& node : graph.node())
    for (const std::string& output : node.output()) names.insert(output);
  return names;
}

// Appends the values that a node reads, also in its subgraphs, from outside the node.
void AppendReads(const NodeProto& node, std::vector<std::string>& reads) {
  for (const std::string& input : node.input())
    if (!input.empty()) reads.push_back(input);
  ForEachSubgraph(node, [&](const GraphProto& graph) {
    const Names own = DefinedIn(graph);
    std::vector<std::string> inner;
    for (const NodeProto& nested : graph.node()) AppendReads(nested, inner);
    for (const ValueInfoProto& output : graph.output()) inner.push_back(output.name());
    for (std::string& name : inner)
      if (!own.contains(name)) reads.push_back(std::move(name));
  });
}

void RenameReads(NodeProto& node, const std::map<std::string, std::string>& names) {
  if (names.empty()) return;
  const auto rename = [&](std::string& name) {
    if (const auto found = names.find(name); found != names.end()) name = found->second;
  };
  for (std::string& input : *node.mutable_input()) rename(input);
  ForEachSubgraph(node, [&](GraphProto& graph) {
    const Names own = DefinedIn(graph);
    std::map<std::string, std::string> outer = names;
    std::erase_if(outer, [&](const auto& entry) { return own.contains(entry.first); });
    for (NodeProto& nested : *graph.mutable_node()) RenameReads(nested, outer);
    // An output of a subgraph must be computed in it.
    for (ValueInfoProto& output : *graph.mutable_output())
      if (const auto found = outer.find(output.name()); found != outer.end()) {
        NodeProto* identity = graph.add_node();
        identity->set_op_type("Identity");
        identity->add_input(found->second);
        identity->add_output(output.name());
      }
  });
}

void AppendNested(const GraphProto& graph, std::set<std::string>& names) {
  names.merge(DefinedIn(graph));
  for (const NodeProto& node : graph.node())
    ForEachSubgraph(node, [&](const GraphProto& inner) { AppendNested(inner, names); });
}

int64_t CountNodes(const GraphProto& graph) {
  int64_t count = 0;
  for (const NodeProto& node : graph.node()) {
    count += !IsConstantNode(node);
    ForEachSubgraph(node, [&](const GraphProto& inner) { count += CountNodes(inner); });
  }
  return count;
}

// Keeps the elements of a repeated field for which keep(element) is true.
template <class Field, class Keep>
void Filter(Field* field, Keep&& keep) {
  Field kept;
  for (auto& element : *field)
    if (keep(element)) *kept.Add() = std::move(element);
  field->Swap(&kept);
}

// --- types

TypeProto TypeOf(const TensorProto& tensor) {
  TypeProto type;
  auto* tensor_type = type.mutable_tensor_type();
  tensor_type->set_elem_type(tensor.data_type());
  for (int64_t dim : tensor.dims()) tensor_type->mutable_shape()->add_dim()->set_dim_value(dim);
  tensor_type->mutable_shape();
  return type;
}

bool IsKnown(const TypeProto& type) {
  return type.has_tensor_type() && type.tensor_type().elem_type() != 0 &&
         type.tensor_type().has_shape();
}

// A text that equal types share; empty if the type is not completely known.
std::string KeyOf(const Types& types, const std::string& name) {
  const auto found = types.find(name);
  if (found == types.end() || !IsKnown(found->second)) return "";
  std::string key = std::to_string(found->second.tensor_type().elem_type());
  for (const auto& dim : found->second.tensor_type().shape().dim()) {
    if (!dim.has_dim_value() && dim.dim_param().empty()) return "";
    key += "," + (dim.has_dim_value() ? std::to_string(dim.dim_value()) : dim.dim_param());
  }
  return key;
}

Types InferTypes(const ModelProto& model, const Tensors& initializers) {
  ModelProto typed = model;
  for (const auto& tensor : initializers) {
    TensorProto* copy = typed.mutable_graph()->add_initializer();
    if (tensor->ByteSizeLong() < kLargeBytes) {
      *copy = *tensor;
    } else {
      copy->set_name(tensor->name());
      copy->set_data_type(tensor->data_type());
      *copy->mutable_dims() = tensor->dims();
    }
  }
  try {
    ::onnx::shape_inference::InferShapes(typed, ::onnx::OpSchemaRegistry::Instance(),
                                         ::onnx::ShapeInferenceOptions(false, 0, true));
  } catch (const std::exception&) {
    // Contradictory declarations: those of the file are used.
  }
  Types types;
  const GraphProto& graph = typed.graph();
  for (const auto* infos : {&graph.value_info(), &graph.input(), &graph.output()})
    for (const ValueInfoProto& info : *infos)
      if (info.has_type()) types[info.name()] = info.type();
  for (const auto& tensor : initializers) types[tensor->name()] = TypeOf(*tensor);
  return types;
}

// --- tensors

struct Slice {
  fs::path file;
  uint64_t offset = 0, size = 0;
};

uint64_t ParseNumber(const std::string& text) {
  if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != std::string::npos)
    throw Error("external-data", "\"{}\" is not a valid offset or length", text);
  return std::stoull(text);
}

Slice SliceOf(const TensorProto& tensor, const fs::path& model, const fs::path& data_root) {
  std::string location;
  Slice slice;
  bool has_size = false;
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") slice.offset = ParseNumber(entry.value());
    if (entry.key() == "length") slice.size = ParseNumber(entry.value()), has_size = true;
  }
  slice.file = FindExternalData(model, data_root, location);
  const uint64_t bytes = fs::file_size(slice.file);
  if (!has_size && slice.offset <= bytes) slice.size = bytes - slice.offset;
  if (slice.offset > bytes || slice.size > bytes - slice.offset)
    throw Error(
        "external-data",
        "external data file \"{}\" has {} bytes, but tensor \"{}\" refers to bytes {} to {}",
        location, bytes, tensor.name(), slice.offset, slice.offset + slice.size);
  return slice;
}

void Embed(TensorProto& tensor, const fs::path& model, const fs::path& data_root) {
  if (!IsExternal(tensor)) return;
  const Slice slice = SliceOf(tensor, model, data_root);
  std::string bytes(slice.size, '\0');
  MappedFile::Open(slice.file)->Read(slice.offset, std::as_writable_bytes(std::span(bytes)));
  tensor.clear_external_data();
  tensor.clear_data_location();
  tensor.set_raw_data(std::move(bytes));
}

// Calls visit(TensorProto) for every tensor of a graph, its nodes and their subgraphs.
void ForEachTensor(GraphProto& graph, const std::function<void(TensorProto&)>& visit) {
  for (TensorProto& tensor : *graph.mutable_initializer()) visit(tensor);
  for (NodeProto& node : *graph.mutable_node())
    for (AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_t()) visit(*attribute.mutable_t());
      for (TensorProto& tensor : *attribute.mutable_tensors()) visit(tensor);
      if (attribute.has_g()) ForEachTensor(*attribute.mutable_g(), visit);
      for (GraphProto& inner : *attribute.mutable_graphs()) ForEachTensor(inner, visit);
    }
}

std::string FunctionKey(const std::string& domain, const std::string& name) {
  return domain + ":" + name;
}

void AppendCalls(const google::protobuf::RepeatedPtrField<NodeProto>& nodes, Names& calls) {
  for (const NodeProto& node : nodes) {
    calls.insert(FunctionKey(node.domain(), node.op_type()));
    ForEachSubgraph(node, [&](const GraphProto& graph) { AppendCalls(graph.node(), calls); });
  }
}

// Drops the model-local functions that nothing calls.
void DropUnusedFunctions(ModelProto& model) {
  Names calls;
  AppendCalls(model.graph().node(), calls);
  for (size_t known = 0; known != calls.size();) {
    known = calls.size();
    for (const auto& function : model.functions())
      if (calls.contains(FunctionKey(function.domain(), function.name())))
        AppendCalls(function.node(), calls);
  }
  Filter(model.mutable_functions(), [&](const auto& function) {
    return calls.contains(FunctionKey(function.domain(), function.name()));
  });
}

}  // namespace

struct OnnxFile::State {
  ModelProto model;  // without initializers
  Tensors initializers;
  std::shared_ptr<const Types> types;
  fs::path path, data_root;

  // The constants: initializers by index, then Constant nodes by index. The function receives
  // (tensor, index of the initializer or -1, index of the node).
  void ForEachConstant(const std::function<void(const TensorProto&, int, int)>& visit) const {
    for (size_t i = 0; i < initializers.size(); ++i)
      visit(*initializers[i], static_cast<int>(i), -1);
    for (int i = 0; i < model.graph().node_size(); ++i)
      if (const NodeProto& node = model.graph().node(i); IsConstantNode(node))
        for (const AttributeProto& attribute : node.attribute())
          if (attribute.has_t()) visit(attribute.t(), -1, i);
  }
  Names InitializerNames() const {
    Names names;
    for (const auto& tensor : initializers) names.insert(tensor->name());
    return names;
  }
  // The attributes that may be removed, as (node, attribute).
  std::vector<std::pair<int, int>> Attributes() const {
    std::vector<std::pair<int, int>> found;
    for (int i = 0; i < model.graph().node_size(); ++i) {
      const NodeProto& node = model.graph().node(i);
      for (int a = 0; a < node.attribute_size(); ++a)
        if (!IsConstantNode(node) && !node.attribute(a).has_g()) found.emplace_back(i, a);
    }
    return found;
  }
  // The dimensions of inputs that are numbers above 1, as (input, dimension).
  std::vector<std::pair<int, int>> InputSizes() const {
    std::vector<std::pair<int, int>> found;
    for (int i = 0; i < model.graph().input_size(); ++i) {
      const auto& shape = model.graph().input(i).type().tensor_type().shape();
      for (int d = 0; d < shape.dim_size(); ++d)
        if (shape.dim(d).dim_value() > 1) found.emplace_back(i, d);
    }
    return found;
  }
  int64_t SizeAt(std::pair<int, int> place) const {
    return model.graph()
        .input(place.first)
        .type()
        .tensor_type()
        .shape()
        .dim(place.second)
        .dim_value();
  }
  std::vector<int64_t> DistinctInputSizes() const {
    std::set<int64_t> sizes;
    for (const auto& place : InputSizes()) sizes.insert(SizeAt(place));
    return {sizes.begin(), sizes.end()};
  }
  void SetSizeToOne(std::pair<int, int> place) {
    model.mutable_graph()
        ->mutable_input(place.first)
        ->mutable_type()
        ->mutable_tensor_type()
        ->mutable_shape()
        ->mutable_dim(place.second)
        ->set_dim_value(1);
  }
  // Infers all types again after sizes of inputs changed.
  void InferAgain() {
    GraphProto& graph = *model.mutable_graph();
    graph.clear_value_info();
    for (ValueInfoProto& output : *graph.mutable_output())
      if (output.type().has_tensor_type())
        output.mutable_type()->mutable_tensor_type()->clear_shape();
    types = std::make_shared<const Types>(InferTypes(model, initializers));
    for (ValueInfoProto& output : *graph.mutable_output())
      if (const auto found = types->find(output.name()); found != types->end())
        *output.mutable_type() = found->second;
  }
};

OnnxFile OnnxFile::Read(const fs::path& path, const fs::path& data_root) {
  const auto file = MappedFile::Open(path);
  if (file->size() > INT_MAX)
    throw Error("too-large", "the file has 2 GiB or more")
        .At({path.string(), ""})
        .Help("store its weights as external data");
  auto state = std::make_shared<State>();
  const std::span<const std::byte> bytes = file->bytes();
  if (!state->model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    throw Error("bad-file", "not a valid ONNX file: its protobuf fields do not match a ModelProto")
        .At({path.string(), ""});
  if (!state->model.has_graph())
    throw Error("bad-file", "not a valid ONNX file: it has no graph").At({path.string(), ""});
  state->path = path;
  state->data_root = data_root;
  GraphProto& graph = *state->model.mutable_graph();
  for (TensorProto& tensor : *graph.mutable_initializer())
    state->initializers.push_back(std::make_shared<const TensorProto>(std::move(tensor)));
  graph.clear_initializer();
  state->model.clear_training_info();
  state->types = std::make_shared<const Types>(InferTypes(state->model, state->initializers));
  return OnnxFile(std::move(state));
}

ModelGraph OnnxFile::Graph() const {
  ModelGraph graph;
  const GraphProto& proto = state_->model.graph();
  graph.constants = state_->InitializerNames();
  for (const auto& tensor : proto.sparse_initializer())
    graph.constants.insert(tensor.values().name());
  for (const ValueInfoProto& input : proto.input())
    if (!graph.constants.contains(input.name())) graph.inputs.push_back(input.name());
  for (const ValueInfoProto& output : proto.output()) graph.outputs.push_back(output.name());
  for (const NodeProto& node : proto.node()) {
    ForEachSubgraph(node, [&](const GraphProto& inner) { AppendNested(inner, graph.nested); });
    if (IsConstantNode(node)) {
      graph.constants.insert(node.output().begin(), node.output().end());
      continue;
    }
    GraphNode& added = graph.nodes.emplace_back();
    AppendReads(node, added.operands);
    for (const std::string& output : node.output()) {
      if (output.empty()) continue;
      added.results.push_back(output);
      std::string& stand_in = added.stand_ins.emplace_back();
      const std::string key = KeyOf(*state_->types, output);
      for (const std::string& input : node.input())
        if (stand_in.empty() && !key.empty() && !graph.constants.contains(input) &&
            KeyOf(*state_->types, input) == key)
          stand_in = input;
    }
  }
  return graph;
}

std::vector<std::string> OnnxFile::Untyped(const std::vector<std::string>& values) const {
  std::vector<std::string> untyped;
  for (const std::string& name : values)
    if (const auto found = state_->types->find(name);
        found == state_->types->end() || !IsKnown(found->second))
      untyped.push_back(name);
  return untyped;
}

OnnxFile OnnxFile::WithTypes(const std::map<std::string, Type>& types) const {
  auto next = std::make_shared<State>(*state_);
  Types known = *state_->types;
  for (const auto& [name, type] : types) {
    auto& tensor = *known[name].mutable_tensor_type();
    for (int number = 1; tensor.elem_type() == 0 && number < 32; ++number)
      if (ToDType(number) == type.dtype) tensor.set_elem_type(number);
    tensor.clear_shape();
    for (const Dim& dim : type.shape) {
      auto* added = tensor.mutable_shape()->add_dim();
      if (dim.is_constant())
        added->set_dim_value(dim.constant());
      else if (const auto symbol = dim.symbol())
        added->set_dim_param(*symbol);
    }
    tensor.mutable_shape();
  }
  next->types = std::make_shared<const Types>(std::move(known));
  return OnnxFile(std::move(next));
}

int64_t OnnxFile::node_count() const { return CountNodes(state_->model.graph()); }

OnnxFile OnnxFile::Part(const ModelPart& part) const {
  auto next = std::make_shared<State>(*state_);
  GraphProto& graph = *next->model.mutable_graph();
  std::unordered_map<std::string, int> producers;
  for (int i = 0, n = 0; i < graph.node_size(); ++i) {
    NodeProto& node = *graph.mutable_node(i);
    if (!IsConstantNode(node) && part.removed.contains(static_cast<size_t>(n++))) continue;
    RenameReads(node, part.replaced);
    for (const std::string& output : node.output())
      if (!output.empty()) producers.emplace(output, i);
  }

  // The values and nodes that the outputs need.
  const Names available(part.inputs.begin(), part.inputs.end());
  Names used;
  std::set<int> needed;
  std::vector<std::string> open = part.outputs;
  while (!open.empty()) {
    const std::string name = std::move(open.back());
    open.pop_back();
    if (!used.insert(name).second || available.contains(name)) continue;
    if (const auto producer = producers.find(name); producer != producers.end())
      if (needed.insert(producer->second).second) AppendReads(graph.node(producer->second), open);
  }

  std::map<std::string, ValueInfoProto> declared;
  for (const auto* infos : {&graph.input(), &graph.output(), &graph.value_info()})
    for (const ValueInfoProto& info : *infos) declared.emplace(info.name(), info);
  const auto info_of = [&](const std::string& name) {
    ValueInfoProto info;
    if (const auto found = declared.find(name); found != declared.end()) info = found->second;
    info.set_name(name);
    if (const auto found = state_->types->find(name); found != state_->types->end())
      *info.mutable_type() = found->second;
    return info;
  };
  const Names initializers = state_->InitializerNames();
  google::protobuf::RepeatedPtrField<ValueInfoProto> inputs;
  Names before;
  for (const ValueInfoProto& input : graph.input()) {
    before.insert(input.name());
    // Before version 4 of the format, initializers are inputs too.
    if (initializers.contains(input.name()) && used.contains(input.name()) &&
        !available.contains(input.name()))
      *inputs.Add() = input;
  }
  for (const std::string& name : part.inputs) {
    if (!used.contains(name)) continue;
    ValueInfoProto info = info_of(name);
    if (!before.contains(name) && !IsKnown(info.type()))
      throw Error("bad-name", "the {} of value \"{}\" is unknown, so it cannot become an input",
                  info.type().tensor_type().elem_type() ? "shape" : "type", name)
          .Help("begin the part at another value, or export the model with shapes (value_info)");
    *inputs.Add() = std::move(info);
  }
  google::protobuf::RepeatedPtrField<ValueInfoProto> outputs;
  for (const std::string& name : part.outputs) *outputs.Add() = info_of(name);
  graph.mutable_input()->Swap(&inputs);
  graph.mutable_output()->Swap(&outputs);

  int index = 0;
  Names produced;
  Filter(graph.mutable_node(), [&](const NodeProto& node) {
    if (!needed.contains(index++)) return false;
    produced.insert(node.output().begin(), node.output().end());
    return true;
  });
  for (const std::string& name : part.outputs) produced.erase(name);
  const auto is_kept = [&](const std::string& name) {
    return used.contains(name) && !available.contains(name);
  };
  std::erase_if(next->initializers, [&](const auto& tensor) { return !is_kept(tensor->name()); });
  Filter(graph.mutable_sparse_initializer(),
         [&](const auto& tensor) { return is_kept(tensor.values().name()); });
  Filter(graph.mutable_value_info(),
         [&](const ValueInfoProto& info) { return produced.contains(info.name()); });
  Filter(graph.mutable_quantization_annotation(),
         [&](const auto& annotation) { return used.contains(annotation.tensor_name()); });
  DropUnusedFunctions(next->model);
  return OnnxFile(std::move(next));
}

size_t OnnxFile::PlacesToSimplify(Simplification how) const {
  switch (how) {
    case Simplification::kUniform:
    case Simplification::kZero:
    case Simplification::kOne: {
      size_t count = 0;
      state_->ForEachConstant(
          [&](const TensorProto& tensor, int, int) { count += CanSimplify(tensor, how); });
      return count;
    }
    case Simplification::kAttributes:
      return state_->Attributes().size();
    case Simplification::kSizes:
      return state_->DistinctInputSizes().size();
    case Simplification::kInputSizes:
      return state_->InputSizes().size();
  }
  return 0;
}

OnnxFile OnnxFile::Simplified(Simplification how, const std::set<size_t>& places) const {
  auto next = std::make_shared<State>(*state_);
  GraphProto& graph = *next->model.mutable_graph();
  // Replaces a constant by edit(constant).
  const auto edit = [&](const TensorProto& tensor, int initializer, int node,
                        const std::function<void(TensorProto&)>& change) {
    TensorProto copy = tensor;
    change(copy);
    if (initializer >= 0)
      next->initializers[static_cast<size_t>(initializer)] =
          std::make_shared<const TensorProto>(std::move(copy));
    else
      for (AttributeProto& attribute : *graph.mutable_node(node)->mutable_attribute())
        if (attribute.has_t()) *attribute.mutable_t() = copy;
  };
  switch (how) {
    case Simplification::kUniform:
    case Simplification::kZero:
    case Simplification::kOne: {
      size_t place = 0;
      state_->ForEachConstant([&](const TensorProto& tensor, int initializer, int node) {
        if (!CanSimplify(tensor, how) || !places.contains(place++)) return;
        edit(tensor, initializer, node, [&](TensorProto& copy) {
          Embed(copy, state_->path, state_->data_root);
          Simplify(copy, how);
        });
      });
      break;
    }
    case Simplification::kAttributes: {
      const std::vector<std::pair<int, int>> all = state_->Attributes();
      for (auto place = places.rbegin(); place != places.rend(); ++place)
        graph.mutable_node(all.at(*place).first)
            ->mutable_attribute()
            ->DeleteSubrange(all.at(*place).second, 1);
      break;
    }
    case Simplification::kSizes: {
      const std::vector<int64_t> all = state_->DistinctInputSizes();
      std::set<int64_t> sizes;
      for (size_t place : places) sizes.insert(all.at(place));
      for (const auto& place : state_->InputSizes())
        if (sizes.contains(state_->SizeAt(place))) next->SetSizeToOne(place);
      state_->ForEachConstant([&](const TensorProto& tensor, int initializer, int node) {
        edit(tensor, initializer, node, [&](TensorProto& copy) { Shrink(copy, sizes); });
      });
      next->InferAgain();
      break;
    }
    case Simplification::kInputSizes: {
      const std::vector<std::pair<int, int>> all = state_->InputSizes();
      for (size_t place : places) next->SetSizeToOne(all.at(place));
      next->InferAgain();
      break;
    }
  }
  return OnnxFile(std::move(next));
}

void OnnxFile::Write(const fs::path& path, uint64_t external_above) const {
  const fs::path &source = state_->path, &data_root = state_->data_root;
  uint64_t total = 0;
  for (const auto& tensor : state_->initializers)
    total +=
        IsExternal(*tensor) ? SliceOf(*tensor, source, data_root).size : tensor->ByteSizeLong();
  ModelProto model = state_->model;
  GraphProto& graph = *model.mutable_graph();
  ForEachTensor(graph, [&](TensorProto& tensor) { Embed(tensor, source, data_root); });

  std::optional<Staging> data;
  if (total > external_above) {
    fs::path name = path.filename();
    name += ".data";
    data.emplace(path.parent_path() / name, Staging::kFile);
    OutputFile file(data->path());
    uint64_t at = 0;
    for (const auto& tensor : state_->initializers) {
      TensorProto* added = graph.add_initializer();
      const bool is_large = IsExternal(*tensor) || tensor->ByteSizeLong() >= kLargeBytes;
      if (!is_large || tensor->data_type() == TensorProto::STRING) {
        *added = *tensor;
        continue;
      }
      if (IsExternal(*tensor)) {
        added->set_name(tensor->name());
        added->set_data_type(tensor->data_type());
        *added->mutable_dims() = tensor->dims();
      } else {
        *added = *tensor;
        if (!added->has_raw_data()) {
          if (!IsFloatTensor(*added) && added->data_type() != TensorProto::INT64) continue;
          MakeRaw(*added);
        }
      }
      constexpr uint64_t kAlignment = 4096;
      const uint64_t begin = (at + kAlignment - 1) / kAlignment * kAlignment;
      file.Write(std::string(begin - at, '\0'));
      at = begin;
      if (IsExternal(*tensor)) {
        const Slice slice = SliceOf(*tensor, source, data_root);
        const auto from = MappedFile::Open(slice.file);
        std::vector<std::byte> buffer(std::min<uint64_t>(slice.size, uint64_t{16} << 20));
        for (uint64_t done = 0; done < slice.size;) {
          const std::span part =
              std::span(buffer).first(std::min<uint64_t>(buffer.size(), slice.size - done));
          from->Read(slice.offset + done, part);
          file.Write(part);
          done += part.size();
        }
        at += slice.size;
      } else {
        file.Write(added->raw_data());
        at += added->raw_data().size();
        added->clear_raw_data();
      }
      added->set_data_location(TensorProto::EXTERNAL);
      const auto add = [&](const char* key, const std::string& value) {
        auto* entry = added->add_external_data();
        entry->set_key(key);
        entry->set_value(value);
      };
      add("location", name.string());
      add("offset", std::to_string(begin));
      add("length", std::to_string(at - begin));
    }
    file.Close();
  } else {
    for (const auto& tensor : state_->initializers) {
      TensorProto* added = graph.add_initializer();
      *added = *tensor;
      Embed(*added, source, data_root);
    }
  }
  if (model.ByteSizeLong() > INT_MAX)
    throw Error("too-large", "the part has 2 GiB or more besides external data");
  std::string bytes;
  if (!model.SerializeToString(&bytes))
    throw Error("bad-file", "the model cannot be written").At({source.string(), ""});
  if (data) data->Commit();
  WriteFile(path, bytes);
}

}  // namespace mlc::onnx
