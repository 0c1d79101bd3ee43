#include "frontends/safetensors/tied_tensors.h"

namespace mlc::safetensors {

bool TiedTensors::Differ(const std::string& tied, const std::string& source) {
  if (tied.empty() || source.empty() || folder_.stored_name(tied) == folder_.stored_name(source))
    return false;
  // An adapter changed one of them alone.
  if (folder_.is_changed(tied) || folder_.is_changed(source)) return true;
  auto [known, first] = known_.try_emplace({tied, source}, false);
  if (!first) return known->second;
  const Tensor one = folder_.tensor(tied), other = folder_.tensor(source);
  known->second = !one.SameBytes(other);
  one.Release(0, one.size());
  other.Release(0, other.size());
  if (known->second)
    diagnostics_.Warn(Error("bad-tensor",
                            "\"{}\" differs from \"{}\", to which it should be tied; it "
                            "is used as stored",
                            tied, source)
                          .At({folder_.config().file(), "key \"tie_word_embeddings\""})
                          .Expected("equal tensors, or one alone")
                          .Help("set tie_word_embeddings to false if both are meant"));
  return known->second;
}

}  // namespace mlc::safetensors
