#include "frontends/safetensors/picture_nets.h"

#include <algorithm>

#include "lib/support/edit_distance.h"

namespace mlc::safetensors {

namespace {

const PictureNetRow* FindPictureNetRow(const Config& config) {
  const std::string type = config.Text("model_type", "");
  for (auto rows : {ConvolutionNetRows(), MapNetRows(), DetectorRows(), SamRows()})
    for (const PictureNetRow& row : rows)
      if (row.model_type == type) return &row;
  return nullptr;
}

}  // namespace

void SelectOutputs(Program& program, const std::vector<std::string>& names) {
  if (names.empty()) return;
  Function& main = *program.main();
  std::vector<std::string> known;
  for (const Port& port : main.outputs) known.push_back(port.source_name);
  std::vector<Port> ports;
  std::vector<Value*> values;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(known, name);
    if (found == known.end())
      throw Error("bad-name", "option 'outputs' {}: the model has no output with this name{}", name,
                  DidYouMean(known, name))
          .Expected(Quoted(known));
    const auto at = static_cast<size_t>(found - known.begin());
    if (std::ranges::find(values, main.body.outputs()[at]) != values.end())
      throw Error("usage", "option 'outputs' {}: the output is listed twice", name);
    ports.push_back(main.outputs[at]);
    values.push_back(main.body.outputs()[at]);
  }
  main.outputs = std::move(ports);
  main.body.SetOutputs(std::move(values));
}

bool IsPictureNet(const Config& config) { return FindPictureNetRow(config) != nullptr; }

std::set<std::string> PictureNetModelTypes() {
  std::set<std::string> types;
  for (auto rows : {ConvolutionNetRows(), MapNetRows(), DetectorRows(), SamRows()})
    for (const PictureNetRow& row : rows) types.emplace(row.model_type);
  return types;
}

Program ImportPictureNet(const Folder& folder, const ImportOptions& options,
                         Diagnostics& diagnostics, std::vector<std::filesystem::path>* read) {
  const PictureNetRow* row = FindPictureNetRow(folder.config());
  MLC_CHECK(row, "no row for {}", folder.model_type());
  return row->import(PictureFolder(folder, options, diagnostics, read, row->defaults));
}

}  // namespace mlc::safetensors
