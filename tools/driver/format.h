// tools/driver/format.h - what a file or folder is that a user names.
#pragma once

#include <filesystem>
#include <string_view>

namespace mlc {

enum class Format { kOnnx, kGguf, kHuggingFace, kPackage, kBundle, kMlmodel, kMilText };
// By content. Error "unknown-format" says what the file looks like and the way out.
Format DetectFormat(const std::filesystem::path& path);
// Whether it is what packages are made of.
bool IsSource(Format format);
std::string_view Name(
    Format format);  // "onnx", "gguf", "safetensors", "mlpackage", "mlmodelc", "mlmodel", "mil"

// The folder that "@model_path" means in a Core ML model of any format.
std::filesystem::path ModelFolder(const std::filesystem::path& path);

}  // namespace mlc
