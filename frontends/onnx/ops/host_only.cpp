// Operators that the host must run: strings and image files.
#include "frontends/onnx/row.h"

namespace mlc::onnx {

namespace {

constexpr std::string_view kStrings = "Core ML does not support strings";

constexpr NodeRow kHostOnlyRows[] = {
    NodeRow("ImageDecoder", 20)
        .Never("Core ML cannot decode an image file; the application must do so"),
    NodeRow("RegexFullMatch", 20).Never(kStrings),
    NodeRow("StringConcat", 20).Never(kStrings),
    NodeRow("StringNormalizer", 10).Never(kStrings),
    NodeRow("StringSplit", 20).Never(kStrings),
};

}  // namespace

std::span<const NodeRow> HostOnlyRows() { return kHostOnlyRows; }

}  // namespace mlc::onnx
