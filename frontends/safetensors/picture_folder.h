// frontends/safetensors/picture_folder.h - what folders of networks for pictures have in common: the
// size of a picture, the number of labels, the head.
#pragma once

#include <deque>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/safetensors/folder_weights.h"
#include "frontends/safetensors/image_processor.h"
#include "lib/ir/import_options.h"
#include "lib/networks/picture_network.h"

namespace mlc::safetensors {

// Rows of names that are made at run time; rows refer to the list, which must outlive them.
class TensorNameList {
 public:
  void Add(std::string ours, std::string theirs) {
    rows_.push_back({Kept(std::move(ours)), Kept(std::move(theirs))});
  }
  const std::vector<TensorName>& rows() const { return rows_; }

 private:
  std::string_view Kept(std::string text) { return texts_.emplace_back(std::move(text)); }
  std::deque<std::string> texts_;  // whose strings stay where they are
  std::vector<TensorName> rows_;
};

// A folder while it is imported.
class PictureFolder {
 public:
  // `defaults`: members of config.json that folders leave out, a JSON object. `read` receives the
  // files that were read in addition to those of the folder; null: they are not reported.
  PictureFolder(const Folder& folder, const ImportOptions& options, Diagnostics& diagnostics,
                std::vector<std::filesystem::path>* read, std::string_view defaults);

  const Folder& folder() const { return folder_; }
  const Config& json() const { return json_; }
  Diagnostics& diagnostics() const { return diagnostics_; }

  // Returns which of these suffixes `architectures` has ("ForImageClassification"): the head of the
  // network; -1 if it ends with "Model" or "Backbone". Error "unsupported-architecture" for others.
  int HeadOf(std::initializer_list<std::string_view> suffixes) const;
  bool HasHead(std::string_view suffix) const { return HeadOf({suffix}) == 0; }
  // Returns the number of entries of id2label; 2 without it.
  int64_t Labels() const;
  // Returns the size of pictures by config.json or the class of the model.
  networks::GridSize OwnSize() const;
  // Returns the input of the model (image_processor.h), which has the size OwnSize() unless the image
  // processor or an option gives another one.
  networks::PictureInput Picture() const;
  networks::PictureInput Picture(const std::optional<ImageProcessor>& processor,
                                 networks::GridSize own, int64_t channels) const {
    return PictureInputOf(processor, own, channels, options_);
  }
  std::optional<ImageProcessor> Processor() const {
    return ReadImageProcessor(folder_.path(), read_);
  }
  const std::vector<std::string>& outputs() const { return options_.outputs; }
  networks::Activation Activation(const std::string& key = "hidden_act") const;

 private:
  const Folder& folder_;
  const ImportOptions& options_;
  Diagnostics& diagnostics_;
  std::vector<std::filesystem::path>* read_;
  const Config json_;
};

}  // namespace mlc::safetensors
