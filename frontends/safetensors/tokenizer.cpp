#include "frontends/safetensors/tokenizer.h"
#include "lib/support/error.h"
namespace mlc {
TokenizerSpec ReadHuggingFaceTokenizer(const std::filesystem::path&, std::vector<std::filesystem::path>*) { throw Error("unsupported-tokenizer", "not yet"); }
}
