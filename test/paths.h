// test/paths.h - where a test finds its data and the tools that were built with it. Absolute paths.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace mlc::test {

// A file of the repository, e.g. SourcePath("manifests/digits.json").
std::filesystem::path SourcePath(const std::string& relative);

// A folder or file of the corpus, e.g. Corpus("mlmodelc"): of ../shared/corpus, or of where
// MLC_CORPUS says. Where it is missing, prints that `title` was skipped.
std::optional<std::filesystem::path> Corpus(const std::string& relative, const std::string& title);

// A tool of this build, e.g. ToolPath("mlc"). It need not exist.
std::filesystem::path ToolPath(const std::string& name);

}  // namespace mlc::test
