// The architectures that GGUF and Hugging Face rows name are rows of
// lib/networks/architectures.cpp.
#include "frontends/gguf/decoder_rows.h"

#include "frontends/safetensors/config_defaults.h"
#include "frontends/safetensors/decoder_rows.h"
#include "lib/networks/architectures.h"
#include "test/catch.h"

namespace mlc::test {
namespace {

TEST_CASE("every decoder of a frontend has flags, defaults and names", "[networks]") {
  for (const std::string& name : gguf::GgufDecoderNames())
    CHECK_NOTHROW(networks::DecoderFlags(gguf::FindGgufDecoder(name)->architecture));
  for (const std::string& type : safetensors::DecoderModelTypes()) {
    INFO(type);
    const std::string_view architecture = safetensors::FindDecoderRow(type)->architecture;
    REQUIRE_NOTHROW(networks::DecoderFlags(architecture));
    CHECK(safetensors::FindFamily(type));
    if (!networks::DecoderFlags(architecture).post_norms) continue;
    CHECK(safetensors::FindHuggingFaceName(type, networks::Role::kPostAttentionNorm));
    CHECK(safetensors::FindHuggingFaceName(type, networks::Role::kPostFeedForwardNorm));
  }
  CHECK_THROWS(networks::DecoderFlags("no such architecture"));
}

}  // namespace
}  // namespace mlc::test
