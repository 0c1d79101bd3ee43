// The architectures that GGUF and Hugging Face rows name are rows of
// lib/networks/architectures.cpp.
#include "frontends/gguf/decoder_rows.h"

#include "frontends/safetensors/decoder_rows.h"
#include "lib/networks/architectures.h"
#include "test/catch.h"

namespace mlc::test {
namespace {

TEST_CASE("every decoder of a frontend has flags", "[networks]") {
  for (const std::string& name : gguf::GgufDecoderNames())
    CHECK_NOTHROW(networks::DecoderFlags(gguf::FindGgufDecoder(name)->architecture));
  for (const std::string& type : safetensors::DecoderModelTypes())
    CHECK_NOTHROW(networks::DecoderFlags(safetensors::FindDecoderRow(type)->architecture));
  CHECK_THROWS(networks::DecoderFlags("no such architecture"));
}

}  // namespace
}  // namespace mlc::test
