// Operators that the host must run: strings and image files.
#include "frontends/onnx/row.h"

namespace mlc::onnx {

namespace {

constexpr std::string_view kStrings = "Core ML has no strings";

constexpr NodeRow kRows[] = {
    NodeRow("ImageDecoder", 20).Never("decoding an image file is the host's work"),
    NodeRow("RegexFullMatch", 20).Never(kStrings),
    NodeRow("StringConcat", 20).Never(kStrings),
    NodeRow("StringNormalizer", 10).Never(kStrings),
    NodeRow("StringSplit", 20).Never(kStrings),
};

}  // namespace

std::span<const NodeRow> StringRows() { return kRows; }

}  // namespace mlc::onnx
