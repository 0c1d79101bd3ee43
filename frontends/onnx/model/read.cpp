// Converts the protobuf classes of ONNX to plain structs. Besides, only onnx_file.cpp includes
// these classes.
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cctype>
#include <climits>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "frontends/onnx/model/model.h"
#include "frontends/onnx/onnx.h"
#include "lib/support/byte_window.h"
#include "lib/support/hash.h"
#include "lib/support/mapped_file.h"
#include "lib/support/utf8.h"

namespace fs = std::filesystem;

namespace mlc::onnx {

namespace {

// Data of at least this size stays in the file.
constexpr uint64_t kSliceBytes = 4096;

struct DataTypeRow {
  int number;
  std::string_view name;
  DType dtype;
};
// Values of TensorProto::DataType, including some that are newer than Debian's ONNX library.
constexpr DataTypeRow kDataTypes[] = {
    {0, "undefined", DType::kNone},       {1, "float", DType::kFp32},
    {2, "uint8", DType::kUint8},          {3, "int8", DType::kInt8},
    {4, "uint16", DType::kUint16},        {5, "int16", DType::kInt16},
    {6, "int32", DType::kInt32},          {7, "int64", DType::kInt64},
    {8, "string", DType::kString},        {9, "bool", DType::kBool},
    {10, "float16", DType::kFp16},        {11, "double", DType::kFp64},
    {12, "uint32", DType::kUint32},       {13, "uint64", DType::kUint64},
    {14, "complex64", DType::kNone},      {15, "complex128", DType::kNone},
    {16, "bfloat16", DType::kBf16},       {17, "float8e4m3fn", DType::kFp8E4M3FN},
    {18, "float8e4m3fnuz", DType::kNone}, {19, "float8e5m2", DType::kFp8E5M2},
    {20, "float8e5m2fnuz", DType::kNone}, {21, "uint4", DType::kUint4},
    {22, "int4", DType::kInt4},           {23, "float4e2m1", DType::kNone},
    {24, "float8e8m0", DType::kNone},     {25, "uint2", DType::kUint2},
    {26, "int2", DType::kNone},
};

// Element types without an equivalent here. Their constants are converted to a type that represents
// all their values.
struct WidenedRow {
  int number, bits;
  DType to;
  double (*value)(int bits);
};

// Decodes a float with the given exponent and mantissa bits, without infinities, whose only NaN is
// minus zero.
double Finite(int bits, int exponent, int mantissa, int bias) {
  int sign = bits >> (exponent + mantissa), power = bits >> mantissa & ((1 << exponent) - 1);
  int fraction = bits & ((1 << mantissa) - 1);
  if (sign && power == 0 && fraction == 0) return std::numeric_limits<double>::quiet_NaN();
  double size = power > 0 ? std::ldexp((1 << mantissa) + fraction, power - bias - mantissa)
                          : std::ldexp(fraction, 1 - bias - mantissa);
  return sign ? -size : size;
}

constexpr WidenedRow kWidened[] = {
    {18, 8, DType::kFp16, [](int bits) { return Finite(bits, 4, 3, 8); }},   // float8e4m3fnuz
    {20, 8, DType::kFp16, [](int bits) { return Finite(bits, 5, 2, 16); }},  // float8e5m2fnuz
    {23, 4, DType::kFp16,                                                    // float4e2m1
     [](int bits) { return bits == 8 ? -0.0 : Finite(bits, 2, 1, 1); }},
    {24, 8, DType::kFp32,  // float8e8m0
     [](int bits) {
       return bits == 255 ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1, bits - 127);
     }},
    {26, 2, DType::kInt4, [](int bits) { return bits < 2 ? double(bits) : bits - 4.0; }},  // int2
};

std::string NormalDomain(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

template <class T>
std::vector<std::byte> BytesOf(const T& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(values[0]));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// Narrows the elements of int32_data or uint64_data, each of which holds one integer or the bits of
// one `dtype`; some writers sign-extend the bits.
template <class To, class From>
std::vector<std::byte> Narrowed(const From& values, DType dtype) {
  const bool bits = !IsInteger(dtype) || Bits(dtype) < 8;
  const int64_t span = int64_t{1} << (8 * sizeof(To));
  const int64_t low = bits || IsSigned(dtype) ? -span / 2 : 0;
  const int64_t high = !bits && IsSigned(dtype) ? span / 2 - 1 : span - 1;
  std::vector<To> narrow;
  for (auto value : values) {
    if (std::cmp_less(value, low) || std::cmp_greater(value, high))
      throw Error("bad-constant", "element {} has the value {}, which is out of range for type {}",
                  narrow.size(), value, Name(dtype));
    narrow.push_back(static_cast<To>(value));
  }
  return BytesOf(narrow);
}

class Reader {
 public:
  // `file` is null when the model is in memory.
  Reader(ByteWindow bytes, std::shared_ptr<const MappedFile> file,
         std::filesystem::path data_root = {}, bool check_data = true)
      : bytes_(std::move(bytes)),
        file_(std::move(file)),
        data_root_(std::move(data_root)),
        check_data_(check_data) {}

  Model Read() {
    std::string stripped = StripRawData(bytes_);
    if (stripped.size() > INT_MAX)
      throw Error("too-large", "the model has 2 GiB or more besides raw tensor data")
          .Help("store its tensors in raw_data fields or as external data");
    ::onnx::ModelProto proto;
    if (!proto.ParseFromArray(stripped.data(), static_cast<int>(stripped.size())))
      throw Error("bad-file",
                  "not a valid ONNX file: its protobuf fields do not match a ModelProto");
    stripped = {};
    if (!proto.has_graph()) throw Error("bad-file", "not a valid ONNX file: it has no graph");
    Model model;
    model.ir_version = proto.ir_version();
    model.producer = proto.producer_name();
    if (!proto.producer_version().empty()) model.producer += " " + proto.producer_version();
    model.opsets = ReadOpsets(proto.opset_import());
    for (const ::onnx::FunctionProto& function : proto.functions())
      model.functions.push_back(ReadFunction(function));
    model.graph = ReadGraph(proto.graph());
    for (const auto* infos : {&model.graph.inputs, &model.graph.outputs})
      for (const ValueInfo& info : *infos) RequireText(info);
    for (const auto& [name, external] : external_)
      if (external.file)
        model.data[std::filesystem::path(name).lexically_normal().generic_string()] =
            external.file->path();
    return model;
  }

  Tensor ReadTensor() {
    std::string stripped = StripRawData(bytes_, true);
    ::onnx::TensorProto proto;
    if (stripped.size() > INT_MAX || !proto.ParseFromString(stripped))
      throw Error("bad-file", "not a valid ONNX tensor");
    try {
      return ToTensor(proto);
    } catch (const BadFile& bad) {
      throw Error(*bad.error);
    }
  }

 private:
  // An external data file, or the error that opening it gave.
  struct ExternalFile {
    std::shared_ptr<const MappedFile> file;
    std::shared_ptr<const Error> error;
    std::string sha1;  // computed on first use
  };
  struct BadFile {
    std::shared_ptr<const Error> error;
  };

  template <class List>
  Opsets ReadOpsets(const List& list) {
    Opsets opsets;
    for (const auto& entry : list) opsets[NormalDomain(entry.domain())] = entry.version();
    return opsets;
  }

  Graph ReadGraph(const ::onnx::GraphProto& proto) {
    Graph graph;
    graph.name = proto.name();
    for (const ::onnx::TensorProto& tensor : proto.initializer()) {
      Constant& constant = graph.initializers.emplace_back(ReadTensor(tensor));
      constant.tensor = constant.tensor.From({{constant.name}, true});
    }
    for (const ::onnx::SparseTensorProto& sparse : proto.sparse_initializer())
      graph.initializers.push_back(ReadSparse(sparse));
    for (const ::onnx::NodeProto& node : proto.node()) graph.nodes.push_back(ReadNode(node));
    for (const ::onnx::ValueInfoProto& info : proto.input()) graph.inputs.push_back(ReadInfo(info));
    for (const ::onnx::ValueInfoProto& info : proto.output())
      graph.outputs.push_back(ReadInfo(info));
    return graph;
  }

  FunctionDef ReadFunction(const ::onnx::FunctionProto& proto) {
    FunctionDef function;
    function.name = proto.name();
    function.domain = NormalDomain(proto.domain());
    function.inputs.assign(proto.input().begin(), proto.input().end());
    function.outputs.assign(proto.output().begin(), proto.output().end());
    function.attributes.assign(proto.attribute().begin(), proto.attribute().end());
    function.opsets = ReadOpsets(proto.opset_import());
    for (const ::onnx::NodeProto& node : proto.node()) function.nodes.push_back(ReadNode(node));
    // FunctionProto fields of IR versions 9 and 10, which older ONNX libraries lack.
    std::string bytes = proto.SerializeAsString();
    for (std::string_view field : FieldBytes(bytes, 11)) {  // attribute_proto
      ::onnx::AttributeProto attribute;
      if (!attribute.ParseFromArray(field.data(), static_cast<int>(field.size())))
        throw Error("bad-file", "function \"{}\" has a malformed default attribute", function.name);
      function.defaults.push_back(ReadAttribute(attribute));
    }
    function.overload = TextField(proto, 13);
    return function;
  }

  // Reads a string field that older ONNX libraries lack.
  static std::string TextField(const google::protobuf::Message& message, int number) {
    const google::protobuf::Reflection& reflection = *message.GetReflection();
    if (const auto* field = message.GetDescriptor()->FindFieldByNumber(number))
      return reflection.GetString(message, field);
    std::string text;
    const google::protobuf::UnknownFieldSet& unknown = reflection.GetUnknownFields(message);
    for (int i = 0; i < unknown.field_count(); ++i)
      if (const auto& field = unknown.field(i);
          field.number() == number &&
          field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED)
        text = field.length_delimited();
    return text;
  }

  NodeDef ReadNode(const ::onnx::NodeProto& proto) {
    NodeDef node;
    node.name = proto.name();
    node.op = proto.op_type();
    node.domain = NormalDomain(proto.domain());
    node.overload = TextField(proto, 8);
    node.inputs.assign(proto.input().begin(), proto.input().end());
    node.outputs.assign(proto.output().begin(), proto.output().end());
    for (const ::onnx::AttributeProto& attribute : proto.attribute())
      node.attributes.push_back(ReadAttribute(attribute));
    return node;
  }

  Attribute ReadAttribute(const ::onnx::AttributeProto& proto) {
    using Kind = Attribute::Kind;
    Attribute attribute;
    attribute.name = proto.name();
    attribute.reference = proto.ref_attr_name();
    attribute.kind = static_cast<Kind>(proto.type());
    if (attribute.kind == Kind::kNone) {  // IR version 1 has no attribute type
      attribute.kind = proto.has_f()          ? Kind::kFloat
                       : proto.has_i()        ? Kind::kInt
                       : proto.has_s()        ? Kind::kString
                       : proto.has_t()        ? Kind::kTensor
                       : proto.has_g()        ? Kind::kGraph
                       : proto.floats_size()  ? Kind::kFloats
                       : proto.ints_size()    ? Kind::kInts
                       : proto.strings_size() ? Kind::kStrings
                       : proto.tensors_size() ? Kind::kTensors
                       : proto.graphs_size()  ? Kind::kGraphs
                                              : Kind::kNone;
    }
    switch (attribute.kind) {
      case Kind::kFloat:
        attribute.floats = {proto.f()};
        break;
      case Kind::kInt:
        attribute.ints = {proto.i()};
        break;
      case Kind::kString:
        attribute.strings = {proto.s()};
        break;
      case Kind::kTensor:
        attribute.tensors = {ReadTensor(proto.t())};
        break;
      case Kind::kGraph:
        attribute.graphs = {std::make_shared<Graph>(ReadGraph(proto.g()))};
        break;
      case Kind::kSparse:
        attribute.tensors = {ReadSparse(proto.sparse_tensor())};
        break;
      case Kind::kFloats:
        attribute.floats.assign(proto.floats().begin(), proto.floats().end());
        break;
      case Kind::kInts:
        attribute.ints.assign(proto.ints().begin(), proto.ints().end());
        break;
      case Kind::kStrings:
        attribute.strings.assign(proto.strings().begin(), proto.strings().end());
        break;
      case Kind::kTensors:
        for (const auto& tensor : proto.tensors()) attribute.tensors.push_back(ReadTensor(tensor));
        break;
      case Kind::kGraphs:
        for (const auto& graph : proto.graphs())
          attribute.graphs.push_back(std::make_shared<Graph>(ReadGraph(graph)));
        break;
      default:
        break;
    }
    return attribute;
  }

  static std::string_view KindOf(const ::onnx::TypeProto& type) {
    switch (type.value_case()) {
      case ::onnx::TypeProto::kTensorType:
      case ::onnx::TypeProto::VALUE_NOT_SET:
        return "a tensor";
      case ::onnx::TypeProto::kSequenceType:
        return "a sequence";
      case ::onnx::TypeProto::kOptionalType:
        return "an optional";
      case ::onnx::TypeProto::kMapType:
        return "a map";
      case ::onnx::TypeProto::kSparseTensorType:
        return "a sparse tensor";
      default:
        return "an opaque value";
    }
  }

  ValueInfo ReadInfo(const ::onnx::ValueInfoProto& proto) {
    ValueInfo info;
    info.name = proto.name();
    if (!proto.has_type()) return info;
    info.kind = KindOf(proto.type());
    const auto& tensor = proto.type().tensor_type();
    info.data_type = tensor.elem_type();
    if (!tensor.has_shape()) return info;
    info.shape.emplace();
    for (const auto& dim : tensor.shape().dim()) {
      Dimension& dimension = info.shape->emplace_back();
      if (dim.has_dim_value()) dimension.value = dim.dim_value();
      dimension.symbol = dim.dim_param();
    }
    return info;
  }

  // Names of inputs, outputs and their dimensions are written to packages and must be valid text.
  static void RequireText(const ValueInfo& info) {
    RequireUtf8(info.name, "bad-file", "the name of an input or output");
    if (info.shape)
      for (const Dimension& dimension : *info.shape)
        RequireUtf8(dimension.symbol, "bad-file",
                    fmt::format("the name of a dimension of \"{}\"", info.name));
  }

  Constant ReadSparse(const ::onnx::SparseTensorProto& proto) {
    Constant constant;
    constant.name = proto.values().name();
    constant.error = std::make_shared<Error>(
        Error("unsupported-field",
              constant.name.empty()
                  ? "sparse tensors are not supported"
                  : fmt::format("tensor \"{}\" is sparse, which is not supported", constant.name))
            .Help("store it as a dense tensor"));
    return constant;
  }

  Constant ReadTensor(const ::onnx::TensorProto& proto) {
    Constant constant;
    constant.name = proto.name();
    try {
      constant.tensor = ToTensor(proto);
    } catch (const BadFile& bad) {
      constant.error = bad.error;
    } catch (const Error& error) {
      Error named(error.id(), constant.name.empty()  // unnamed: the tensor of an attribute
                                  ? error.text()
                                  : fmt::format("tensor \"{}\": {}", constant.name, error.text()));
      for (const std::string& note : error.notes()) named.Note(note);
      constant.error = std::make_shared<Error>(std::move(named));
    }
    return constant;
  }

  Tensor ToTensor(const ::onnx::TensorProto& proto) {
    DType dtype = ToDType(proto.data_type());
    if (proto.has_segment())
      throw Error("unsupported-field", "segmented tensors are not supported");
    Dims dims(proto.dims().begin(), proto.dims().end());
    for (int64_t dim : dims)
      if (dim < 0) throw Error("bad-constant", "dimension {} is negative", dim);
    for (const WidenedRow& row : kWidened)
      if (row.number == proto.data_type()) return Widened(proto, row, dims);
    if (dtype == DType::kNone)
      throw Error("unsupported-dtype", "unsupported element type {}",
                  DataTypeName(proto.data_type()));
    return Elements(proto, dtype, std::move(dims));
  }

  // Elements are packed starting at the low bits.
  Tensor Widened(const ::onnx::TensorProto& proto, const WidenedRow& row, const Dims& dims) {
    int64_t count = ElementCount(dims), each = 8 / row.bits;
    Tensor packed = Elements(proto, DType::kUint8, {count / each + (count % each != 0)});
    std::vector<double> values(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      int64_t byte = packed.Int(i / each);
      values[i] =
          row.value(static_cast<int>(byte >> (i % each * row.bits)) & ((1 << row.bits) - 1));
    }
    return Tensor::Of(dims, values).Cast(row.to);
  }

  Tensor Elements(const ::onnx::TensorProto& proto, DType dtype, Dims dims) {
    int64_t count = ElementCount(dims);
    if (dtype == DType::kString) {
      if (proto.string_data_size() != count) Mismatch(count, proto.string_data_size());
      return Tensor::Strings(std::move(dims),
                             {proto.string_data().begin(), proto.string_data().end()});
    }
    if (proto.data_location() == ::onnx::TensorProto::EXTERNAL)
      return External(proto, dtype, std::move(dims));
    if (proto.has_raw_data()) {
      uint64_t slice[2];
      if (proto.raw_data().size() != sizeof slice)
        throw Error("bad-file", "malformed raw_data field");
      std::memcpy(slice, proto.raw_data().data(), sizeof slice);
      CheckBytes(ByteCount(dtype, count), slice[1]);
      return Slice(bytes_, file_, slice[0], dtype, std::move(dims));
    }
    std::vector<std::byte> data = TypedData(proto, dtype);
    CheckBytes(ByteCount(dtype, count), data.size());
    return Tensor::Owned(dtype, std::move(dims), std::move(data));
  }

  // The elements in float_data, int32_data ... of each element type (onnx.proto, TensorProto).
  static std::vector<std::byte> TypedData(const ::onnx::TensorProto& proto, DType dtype) {
    switch (dtype) {
      case DType::kFp32:
        return BytesOf(proto.float_data());
      case DType::kFp64:
        return BytesOf(proto.double_data());
      case DType::kInt64:
        return BytesOf(proto.int64_data());
      case DType::kUint64:
        return BytesOf(proto.uint64_data());
      case DType::kUint32:
        return Narrowed<uint32_t>(proto.uint64_data(), dtype);
      case DType::kInt32:
        return BytesOf(proto.int32_data());
      case DType::kBool: {
        std::vector<std::byte> bytes;
        for (int32_t value : proto.int32_data()) bytes.push_back(std::byte(value != 0));
        return bytes;
      }
      default:
        return Bits(dtype) == 16
                   ? Narrowed<uint16_t>(proto.int32_data(), dtype)
                   : Narrowed<uint8_t>(proto.int32_data(),
                                       dtype);  // 8-bit elements, or two 4-bit elements each
    }
  }

  static void Mismatch(int64_t expected, int64_t found) {
    throw Error("bad-constant", "its shape requires {} elements, but the file has {}", expected,
                found);
  }
  static void CheckBytes(uint64_t expected, uint64_t found) {
    if (expected != found)
      throw Error("bad-constant", "its shape and type require {} bytes, but the file has {}",
                  expected, found);
  }

  // Returns bytes[offset, ...) as a tensor. The caller has checked the range.
  static Tensor Slice(ByteWindow& bytes, const std::shared_ptr<const MappedFile>& file,
                      uint64_t offset, DType dtype, Dims dims) {
    bool is_bool = dtype == DType::kBool;  // every nonzero byte is true
    if (is_bool) dtype = DType::kUint8;
    uint64_t size = ByteCount(dtype, ElementCount(dims));
    Tensor tensor;
    if (file && size >= kSliceBytes) {
      tensor = Tensor::FileSlice(file, offset, dtype, std::move(dims));
    } else {
      std::span<const std::byte> part = bytes.At(offset, size);
      tensor = Tensor::Owned(dtype, std::move(dims), {part.begin(), part.end()});
    }
    return is_bool ? tensor.Cast(DType::kBool) : tensor;
  }

  Tensor External(const ::onnx::TensorProto& proto, DType dtype, Dims dims) {
    std::string location, checksum;
    uint64_t offset = 0, size = ByteCount(dtype, ElementCount(dims));
    for (const auto& entry : proto.external_data()) {
      if (entry.key() == "location") location = entry.value();
      if (entry.key() == "checksum") checksum = entry.value();
      if (entry.key() == "offset") offset = Number(entry.value());
      if (entry.key() == "length" && Number(entry.value()) != size)
        throw Error("external-data",
                    "its shape and type require {} bytes, but external_data declares {}", size,
                    entry.value());
    }
    std::shared_ptr<const MappedFile> file = OpenExternal(location, checksum);
    if (offset > file->size() || size > file->size() - offset) {
      external_[location].error = std::make_shared<Error>(
          Error("external-data",
                "external data file \"{}\" has {} bytes, but the model refers to bytes {} to {}",
                location, file->size(), offset, offset + size)
              .Help("the file is truncated or belongs to another model: download the model and its "
                    "data again, together"));
      throw BadFile{external_[location].error};
    }
    ByteWindow bytes(*file);
    return Slice(bytes, file, offset, dtype, std::move(dims));
  }

  static uint64_t Number(const std::string& text) {
    if (text.empty() || text.size() > 18 ||
        !std::ranges::all_of(text, [](unsigned char c) { return c >= '0' && c <= '9'; }))
      throw Error("external-data", "\"{}\" is not a valid offset or length", text);
    return std::stoull(text);
  }

  std::shared_ptr<const MappedFile> OpenExternal(const std::string& location,
                                                 const std::string& checksum) {
    if (!file_) throw Error("external-data", "a model in memory cannot have external data");
    auto [it, is_new] = external_.try_emplace(location);
    ExternalFile& external = it->second;
    try {
      if (is_new)
        external.file = MappedFile::Open(FindExternalData(file_->path(), data_root_, location));
      if (!external.error && check_data_ && !checksum.empty()) {
        if (external.sha1.empty()) external.sha1 = Sha1OfFile(external.file->path());
        CheckSum(location, checksum, external.sha1);
      }
    } catch (const Error& error) {
      external.error = std::make_shared<Error>(error);
    }
    if (external.error) throw BadFile{external.error};
    return external.file;
  }

  static void CheckSum(const std::string& location, std::string wanted, const std::string& found) {
    for (char& c : wanted) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (wanted == found) return;
    throw Error(
        "external-data",
        "external data file \"{}\" does not match the checksum in the model: its SHA-1 is {}",
        location, found)
        .Expected("{}, the checksum in the model", wanted)
        .Help("download the model and its data again, together");
  }

  ByteWindow bytes_;
  std::shared_ptr<const MappedFile> file_;
  std::filesystem::path data_root_;
  bool check_data_;
  std::map<std::string, ExternalFile> external_;
};

}  // namespace

fs::path FindExternalData(const fs::path& path_of_model, const fs::path& data_root,
                          const std::string& location) {
  std::error_code ignored;
  fs::path model = fs::absolute(path_of_model), name = fs::path(location).lexically_normal();
  auto refuse = [&](const fs::path& found) {
    Error error("external-data", "external data location \"{}\" is outside the model's folder",
                location);
    if (!found.empty()) error.Note("it is a symbolic link to \"{}\"", found.string());
    return error.Help(
        "if you trust these files, pass their folder with option 'data-root', or copy them into "
        "the model's folder");
  };
  if (location.empty() || location.find('\0') != std::string::npos || name.is_absolute() ||
      *name.begin() == "..")
    throw refuse({});
  std::vector<fs::path> roots = {model.parent_path()};
  if (!data_root.empty()) roots.push_back(data_root);
  fs::path path;
  for (const fs::path& root : roots)
    if (path.empty() && fs::exists(root / name, ignored))
      path = fs::weakly_canonical(root / name, ignored);
  if (path.empty() || !fs::is_regular_file(path, ignored)) {
    Error error("external-data", "external data file \"{}\" is missing", location);
    for (const fs::path& root : roots) error.Expected((root / name).string());
    throw error.Help("copy the file there, or pass its folder with option 'data-root'");
  }
  roots.push_back(fs::canonical(model, ignored).parent_path());
  for (const fs::path& root : roots) {
    fs::path folder = fs::weakly_canonical(root, ignored);
    if (folder.filename().empty()) folder = folder.parent_path();  // the path ends in a slash
    auto [end, unused] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
    if (!folder.empty() && end == folder.end()) return path;
  }
  throw refuse(path);
}

DType ToDType(int data_type) {
  for (const DataTypeRow& row : kDataTypes)
    if (row.number == data_type) return row.dtype;
  return DType::kNone;
}

std::string DataTypeName(int data_type) {
  for (const DataTypeRow& row : kDataTypes)
    if (row.number == data_type) return std::string(row.name);
  return fmt::format("number {}", data_type);
}

const Tensor& Constant::Get() const {
  if (error) throw Error(*error);
  return tensor;
}

Model ReadModel(const std::filesystem::path& path, const std::filesystem::path& data_root,
                bool check_data) {
  std::shared_ptr<const MappedFile> file = MappedFile::Open(path);
  try {
    return Reader(ByteWindow(*file), file, data_root, check_data).Read();
  } catch (Error& error) {
    throw error.At({path.string(), error.location().where});
  }
}

Model ReadModel(std::span<const std::byte> bytes) { return Reader(bytes, nullptr).Read(); }

Tensor ReadOnnxTensor(const std::filesystem::path& path) {
  std::shared_ptr<const MappedFile> file = MappedFile::Open(path);
  try {
    return Reader(ByteWindow(*file), file).ReadTensor();
  } catch (Error& error) {
    throw error.At({path.string(), error.location().where});
  }
}

}  // namespace mlc::onnx
