// What is the host's work: strings and image files.
#include "frontends/onnx/row.h"

namespace mlc::onnx {

namespace {

constexpr std::string_view kStrings = "Core ML has no strings";

constexpr Row kRows[] = {
    Row("ImageDecoder", 20).Never("decoding an image file is the host's work"),
    Row("RegexFullMatch", 20).Never(kStrings),
    Row("StringConcat", 20).Never(kStrings),
    Row("StringNormalizer", 10).Never(kStrings),
    Row("StringSplit", 20).Never(kStrings),
};

}  // namespace

std::span<const Row> HostRows() { return kRows; }

}  // namespace mlc::onnx
