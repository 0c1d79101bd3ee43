#include "frontends/onnx/library_versions.h"

#include <fmt/format.h>
#include <google/protobuf/stubs/common.h>
#include <onnx/common/version.h>

namespace mlc::onnx {

std::vector<LibraryVersion> OnnxLibraries() {
  // 3021012 means 3.21.12. Protobuf checks at process start that the loaded library matches these
  // headers.
  constexpr int kPart = 1000, kVersion = GOOGLE_PROTOBUF_VERSION;
  return {{"protobuf",
           fmt::format("{}.{}.{}", kVersion / kPart / kPart, kVersion / kPart % kPart,
                       kVersion % kPart),
           ""},
          {"onnx", ::ONNX_NAMESPACE::LAST_RELEASE_VERSION, ""}};
}

}  // namespace mlc::onnx
