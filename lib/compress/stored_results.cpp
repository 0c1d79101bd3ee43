// A file has a line with a magic word and a version, a line of JSON, the elements of the tensors in
// order of their occurrence in it, and the hash of everything before it.
#include "lib/compress/stored_results.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "lib/ir/encoding.h"
#include "lib/support/atomic_install.h"
#include "lib/support/error.h"
#include "lib/support/hash.h"
#include "lib/support/json_text.h"

namespace fs = std::filesystem;

namespace mlc::compress {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kMagic = "mlc-weight 1\n";
constexpr size_t kHashDigits = 32;

// The tensors of an encoding, by name.
struct Part {
  std::string_view name;
  Tensor Encoding::*tensor;
};
constexpr Part kParts[] = {{"data", &Encoding::data},     {"scale", &Encoding::scale},
                           {"offset", &Encoding::offset}, {"bias", &Encoding::bias},
                           {"table", &Encoding::table},   {"mask", &Encoding::mask}};

std::string KeyOf(const Tensor& weight, const Request& request, const std::string& version) {
  Xxh3 hash;
  hash.Update(version + "\n");
  const InputStatistics& inputs = *request.inputs;
  hash.Update(fmt::format("{}{} {} {} {} {} {} {} {} {} {} {} {} {} {}", kMagic, weight.hash(),
                          Name(weight.dtype()), fmt::join(weight.dims(), ","), Text(request.scheme),
                          request.axes.output, request.axes.input, request.axes.batch, request.half,
                          static_cast<int>(request.target), request.bias, request.estimate,
                          inputs.sets, inputs.columns, inputs.count));
  for (const std::vector<float>* part : {&inputs.mean, &inputs.square, &inputs.products})
    hash.Update(std::as_bytes(std::span(*part)));
  return hash.Hex();
}

// Describes a tensor, and appends its elements to `bytes`.
Json Written(const Tensor& tensor, std::vector<std::byte>& bytes) {
  Json json{{"dtype", Name(tensor.dtype())}};
  if (const Encoding* e = tensor.encoding()) {
    json["form"] = static_cast<int>(e->form);
    json["values"] = Name(e->dtype);
    json["vector_axis"] = e->vector_axis;
    for (const Part& part : kParts)
      if (const Tensor& one = e->*part.tensor) json[part.name] = Written(one, bytes);
    return json;
  }
  json["dims"] = tensor.dims();
  const Pin<std::byte> elements = tensor.bytes();
  bytes.insert(bytes.end(), elements.begin(), elements.end());
  return json;
}

DType TypeOf(const Json& json) {
  const std::optional<DType> dtype = ParseDType(json.get<std::string>());
  if (!dtype) throw Error("bad-input", "unknown type");
  return *dtype;
}

Tensor TensorFrom(const Json& json, std::span<const std::byte>& bytes) {
  const DType dtype = TypeOf(json.at("dtype"));
  if (!json.contains("form")) {
    const Dims dims = json.at("dims");
    const size_t size = ByteCount(dtype, ElementCount(dims));
    if (size > bytes.size()) throw Error("bad-input", "elements are missing");
    const std::span<const std::byte> own = bytes.first(size);
    bytes = bytes.subspan(size);
    return Tensor::Owned(dtype, dims, {own.begin(), own.end()});
  }
  Encoding e{.form = static_cast<Encoding::Form>(json.at("form").get<int>()),
             .dtype = TypeOf(json.at("values")),
             .vector_axis = json.at("vector_axis")};
  for (const Part& part : kParts)
    if (json.contains(part.name)) e.*part.tensor = TensorFrom(json[part.name], bytes);
  return Tensor::Encoded(std::move(e)).Cast(dtype);
}

void Write(const fs::path& path, const Quantised& made) {
  std::vector<std::byte> bytes;
  const Json header{{"tensor", Written(made.tensor, bytes)},
                    {"used", Text(made.used)},
                    {"stepped", made.stepped},
                    {"refused", made.refused},
                    {"error", made.error},
                    {"energy", made.energy},
                    {"output_error", made.output_error},
                    {"output_energy", made.output_energy},
                    {"bias", Written(Tensor::Vector(made.bias), bytes)},
                    {"bytes", made.bytes}};
  std::string text = fmt::format("{}{}\n", kMagic, JsonText(header));
  text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  Xxh3 hash;
  hash.Update(text);
  WriteFile(path, text + hash.Hex());
}

Quantised Read(const fs::path& path) try {
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const size_t end = text.find('\n', std::min(kMagic.size(), text.size()));
  if (!text.starts_with(kMagic) || end == std::string::npos || text.size() < end + 1 + kHashDigits)
    throw Error("bad-input", "the file is cut off");
  const std::string_view content = std::string_view(text).substr(0, text.size() - kHashDigits);
  Xxh3 hash;
  hash.Update(content);
  if (hash.Hex() != std::string_view(text).substr(content.size()))
    throw Error("bad-input", "its hash differs");
  const Json json = ParseJson(content.substr(kMagic.size(), end - kMagic.size()));
  std::span<const std::byte> bytes = std::as_bytes(std::span(content.substr(end + 1)));
  Quantised made{.tensor = TensorFrom(json.at("tensor"), bytes),
                 .used = ParseScheme(json.at("used").get<std::string>()),
                 .stepped = json.at("stepped"),
                 .refused = json.at("refused"),
                 .error = json.at("error"),
                 .energy = json.at("energy"),
                 .output_error = json.at("output_error"),
                 .output_energy = json.at("output_energy"),
                 .bytes = json.at("bytes")};
  const Pin<float> bias = TensorFrom(json.at("bias"), bytes).data<float>();
  made.bias.assign(bias.begin(), bias.end());
  return made;
} catch (const std::exception& error) {
  throw Error("bad-input", "the stored result is damaged: {}", error.what())
      .At({path.string(), ""})
      .Help("delete the file");
}

}  // namespace

StoredResults::StoredResults(fs::path folder, std::string version)
    : folder_(std::move(folder)), version_(std::move(version)) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error)
    throw Error("file-io", "cannot create the folder \"{}\": {}", folder_.string(),
                error.message());
}

Quantised StoredResults::Quantise(const Tensor& weight, const Request& request) {
  const bool quick = !request.inputs || request.inputs->products.empty() || request.estimate;
  if (quick) return compress::Quantise(weight, request);
  const std::string name = KeyOf(weight, request, version_) + ".weight";
  const fs::path path = folder_ / name;
  const bool exists = fs::exists(path);
  Quantised made = exists ? Read(path) : compress::Quantise(weight, request);
  if (!exists) Write(path, made);
  const std::lock_guard lock(mutex_);
  if (!exists)
    written_.insert(name);
  else if (!written_.contains(name))
    found_.insert(name);
  return made;
}

int64_t StoredResults::found() const {
  const std::lock_guard lock(mutex_);
  return std::ssize(found_);
}

}  // namespace mlc::compress
