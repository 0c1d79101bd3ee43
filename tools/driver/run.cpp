#include "tools/driver/run.h"

#include <fmt/ranges.h>

#include <set>

#include "lib/ir/concat_slice.h"
#include "lib/ir/npy.h"
#include "lib/support/atomic_install.h"
#include "lib/support/input_registry.h"
#include "lib/support/milliseconds.h"
#include "lib/support/percent_encoding.h"
#include "tools/driver/input_files.h"
#include "tools/driver/language_model.h"
#include "tools/driver/supplied_tensors.h"
#include "tools/driver/verify.h"

namespace fs = std::filesystem;

namespace mlc::driver {

namespace {

using Clock = std::chrono::steady_clock;

// Returns all names of the function's inputs, in the program and in the source.
std::set<std::string> InputNames(const Function& function) {
  std::set<std::string> names;
  for (const Port& port : function.inputs) names.insert({port.source_name, port.name});
  for (const AbsentInput& absent : function.absent_inputs) names.insert(absent.source_name);
  return names;
}

// Both names and paths may contain '='; the longest matching name is used.
void AddFile(const std::string& text, const Function& function, media::Fit fit,
             std::map<std::string, Tensor>& inputs) {
  const std::set<std::string> names = InputNames(function);
  size_t equals = text.find('=');
  for (size_t at = equals; at != std::string::npos; at = text.find('=', at + 1))
    if (names.contains(text.substr(0, at))) equals = at;
  if (equals == std::string::npos)
    throw Error("usage", "--input: \"{}\" is not of the form NAME=FILE", text);
  const std::string name = text.substr(0, equals), file = text.substr(equals + 1);
  const std::vector<InputPort> ports = InputPorts(function);
  const auto input = std::ranges::find_if(ports, [&](const InputPort& one) {
    return one.port.source_name == name || one.port.name == name;
  });
  Tensor given =
      input == ports.end() ? ReadTensor(file) : ReadInput(file, input->port, input->value, fit);
  if (!inputs.emplace(name, std::move(given)).second)
    throw Error("usage", "--input: \"{}\" is given twice", name);
}

// Reads the picture for the only image input.
void AddPicture(const fs::path& model, const fs::path& path, const Function& function,
                media::Fit fit, std::map<std::string, Tensor>& inputs) {
  std::vector<InputPort> images;
  for (const InputPort& input : InputPorts(function))
    if (input.port.feature != Port::Feature::kMultiArray) images.push_back(input);
  if (images.empty()) throw NoImageInput(model, function);
  if (images.size() > 1) {
    std::vector<std::string> names;
    for (const InputPort& image : images) names.push_back(verify::UserName(image.port));
    throw Error("usage", "--picture: the model has {} image inputs: {}", images.size(),
                fmt::join(names, ", "))
        .Expected("exactly one")
        .Help("--input NAME=FILE names the input");
  }
  const std::string name = verify::UserName(images[0].port);
  Tensor picture = ReadInput(path, images[0].port, images[0].value, fit);
  if (inputs.contains(images[0].port.name) || !inputs.emplace(name, std::move(picture)).second)
    throw Error("usage", "--picture: the image input \"{}\" is given twice", name);
}

std::string NameOf(const Port& port, bool tokens) {
  return tokens ? NameForTokens(port) : verify::UserName(port);
}

// Returns the output file: for packages it has the name that an app must use.
fs::path PlaceOf(const fs::path& folder, const Port& port, const std::string& name, bool source) {
  return folder / (FileStem(source || name != verify::UserName(port) ? name : port.name) + ".npy");
}

// Reports conflicts with output files before the run.
void CheckOutputs(const fs::path& folder, const Function& function, bool tokens, bool source) {
  std::error_code error;
  for (const Port& port : function.outputs)
    if (fs::path path = PlaceOf(folder, port, NameOf(port, tokens), source);
        fs::exists(folder, error))
      Staging(path, Staging::kFile);
    else
      InputRegistry::CheckTarget(path);
}

void WriteOutputs(const fs::path& folder, std::vector<RunOutput>& outputs, bool source) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw Error("file-io", "cannot create folder \"{}\": {}", folder.string(), error.message());
  for (RunOutput& output : outputs) {
    output.file = PlaceOf(folder, *output.port, output.name, source);
    WriteNpy(output.file, output.tensor);
  }
}

}  // namespace

void CheckRunOptions(const RunOptions& options) {
  if (options.step && options.tokens.empty()) throw Error("usage", "--step requires --tokens");
  if (options.text.pair && !options.text.text)
    throw Error("usage", "--text-pair requires --text, the first text of the pair");
  if (options.text.given() && !options.tokens.empty())
    throw Error("usage", "--text cannot be combined with --tokens");
  if (options.text.given() && !options.picture.empty())
    throw Error("usage", "--text cannot be combined with --picture");
  if (options.by_tokens() && !(options.inputs.empty() && options.input_files.empty()))
    throw Error("usage", "{} cannot be combined with --input",
                options.text.given() ? "--text" : "--tokens");
}

RunTensors::RunTensors(Model& model, const RunOptions& options)
    : model_(model), options_(options), given_(options.inputs) {
  const Function& function = model.function();
  const bool by_tokens = options.by_tokens();
  for (const std::string& text : options.input_files) AddFile(text, function, options.fit, given_);
  if (!options.picture.empty() && !by_tokens)
    AddPicture(model.path(), options.picture, function, options.fit, given_);
  if (!options.output_folder.empty())
    CheckOutputs(options.output_folder, function, by_tokens, model.is_source());
  for (const std::string& text : options.output_files)
    output_files_.push_back(ParseOutputFile(text, function));
  CheckRanges(options.make_up, *model.program());
  if (options.text.given()) {
    const auto& [text, pair, tokenizer] = options.text;
    text_ = TextEncoder(function, model.path(), tokenizer, "--text")
                .Encode(*text, pair ? &*pair : nullptr);
    tokens_ = text_->tokens;
  } else if (by_tokens) {
    CheckTokens(function, options.tokens, options.step);
    tokens_.ids = options.tokens;
    if (!options.picture.empty()) picture_ = ReadPictureTokens(model, options.picture, options.fit);
  } else {
    for (auto& [name, tensor] : MakeInputs(function, given_, options.make_up, &generated_))
      if (generated_.contains(name)) given_[name] = tensor;
  }
}

void RunTensors::Describe(RunResult& result) const {
  result.program = model_.program();
  result.function = &model_.function();
  result.units = model_.units();
  result.arithmetic = model_.arithmetic();
  result.generated = generated_;
  result.text = text_;
}

std::map<std::string, Tensor> RunTensors::Inputs() const {
  return MakeInputs(model_.function(), given_);
}

RunTensors::Once RunTensors::Converted(const runtime::Prediction& prediction) const {
  const Clock::time_point begin = Clock::now();
  Once once{
      .timings = prediction.timings, .fallback = prediction.fallback, .ticket = prediction.ticket};
  for (const Port& port : model_.function().outputs)
    once.outputs.push_back(
        {&port, ToSourceType(prediction.outputs.at(port.name), port), verify::UserName(port)});
  once.timings.marshal_out_ms += Milliseconds(begin, Clock::now());
  return once;
}

RunTensors::Once RunTensors::Predict(runtime::GuardedModel& model) const {
  if (options_.by_tokens()) return PredictTokens(model);
  const Clock::time_point begin = Clock::now();
  const std::map<std::string, Tensor> inputs = Inputs();
  const Clock::time_point ready = Clock::now();
  const runtime::Prediction prediction = model.Run(inputs);
  Once once = Converted(prediction);
  once.timings.marshal_in_ms += Milliseconds(begin, ready);
  return once;
}

RunTensors::Once RunTensors::PredictTokens(runtime::GuardedModel& model) const {
  const Function& function = model_.function();
  Once once;
  const std::unique_ptr<runtime::ModelState> state = model.NewState();
  const driver::Predict predict = [&](const std::map<std::string, Tensor>& inputs) {
    const Clock::time_point start = Clock::now();
    runtime::Prediction prediction = model.Run(inputs, state.get());
    once.timings.marshal_in_ms += prediction.timings.marshal_in_ms;
    once.timings.predict_ms += prediction.timings.predict_ms;
    once.timings.marshal_out_ms += prediction.timings.marshal_out_ms;
    once.fallback = once.fallback || prediction.fallback;
    if (options_.step) once.token_ms.push_back(Milliseconds(start, Clock::now()));
    return std::move(prediction.outputs);
  };
  auto with_picture = [&] {
    LanguageModel language(model_.program(), function,
                           std::shared_ptr<runtime::GuardedModel>(std::shared_ptr<void>(), &model),
                           "--tokens");
    language.Show(model_, *picture_);
    const std::vector<int32_t> ids =
        WithRowsOf(*picture_, std::vector<int32_t>(options_.tokens.begin(), options_.tokens.end()));
    if (!options_.step) return language.Append(ids);
    std::vector<Tensor> rows;
    for (size_t i = 0; i < ids.size(); ++i)
      rows.push_back(language.Append(std::span(ids).subspan(i, 1)));
    return Join(rows, 0).InMemory();
  };
  std::vector<Tensor> found =
      picture_ ? std::vector{with_picture()}
      : IsEncoder(function)
          ? RunEncoder(predict, function, tokens_)
          : std::vector{RunTokens(predict, function, options_.tokens, options_.step)};
  const Clock::time_point done = Clock::now();
  for (size_t k = 0; k < found.size(); ++k) {
    const Port& port = function.outputs[k];
    once.outputs.push_back({&port, std::move(found[k]), NameForTokens(port)});
  }
  once.timings.marshal_out_ms += Milliseconds(done, Clock::now());
  return once;
}

void RunTensors::Finish(RunResult& result) const {
  constexpr int64_t kMostNext = 5;
  if (!result.outputs.empty() && !options_.tokens.empty() && IsLanguageModel(model_.function()))
    result.next = LikelyNext(result.outputs[0].tensor, kMostNext);
  if (!options_.output_folder.empty())
    WriteOutputs(options_.output_folder, result.outputs, model_.is_source());
  for (const OutputToFile& file : output_files_)
    for (RunOutput& output : result.outputs)
      if (output.port == file.port) {
        Write(file, output.tensor);
        output.file = file.path;
      }
}

RunResult Run(const fs::path& path, const RunOptions& options, Diagnostics& diagnostics) {
  CheckRunOptions(options);
  Model model(path, ForPicture(options, options.picture), diagnostics);
  const RunTensors tensors(model, options);
  RunResult result;
  tensors.Describe(result);
  result.outputs = tensors.Predict(*model.Load()).outputs;
  tensors.Finish(result);
  return result;
}

}  // namespace mlc::driver
