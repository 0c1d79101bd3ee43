// The ONNX reader and importer: any bytes give a well-formed Program or an Error.
#include "frontends/onnx/onnx.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  mlc::Diagnostics diagnostics;
  try {
    mlc::Program program = mlc::onnx::ImportOnnx(std::as_bytes(std::span(data, size)),
                                                 mlc::ImportOptions(), diagnostics);
    mlc::Verify(program);
  } catch (const mlc::Error&) {
  } catch (const mlc::Errors&) {
  }
  return 0;
}
