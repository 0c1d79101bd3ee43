#include "frontends/gguf/imatrix.h"

#include <cmath>

#include "frontends/gguf/file.h"
#include "lib/support/error.h"

namespace mlc::gguf {

namespace {

constexpr std::string_view kSums = ".in_sum2", kCounts = ".counts";

}  // namespace

bool IsImatrix(const std::filesystem::path& path) {
  try {
    return GgufFile::Open(path).String("general.type", "") == "imatrix";
  } catch (const std::exception&) {
    return false;
  }
}

Imatrix ReadImatrix(const std::filesystem::path& path) {
  const GgufFile file = GgufFile::Open(path);
  Imatrix imatrix{.chunks = file.Int("imatrix.chunk_count", 0)};
  for (const GgufTensor& tensor : file.tensors()) {
    if (!tensor.name.ends_with(kSums)) continue;
    const std::string name = tensor.name.substr(0, tensor.name.size() - kSums.size());
    auto fail = [&](std::string what) {
      return Error("bad-file", "the importance of \"{}\": {}", name, what)
          .At({path.string(), fmt::format("tensor \"{}\"", tensor.name)})
          .Expected(
              "{}{} with a row of sums of squares for each matrix, and {}{} with as many counts",
              name, kSums, name, kCounts);
    };
    const GgufTensor* counted = file.FindTensor(name + std::string(kCounts));
    if (!counted) throw fail("there are no counts");
    Importance importance{.columns = tensor.dims.empty() ? 0 : tensor.dims.back()};
    if (importance.columns < 1) throw fail("there are no sums");
    importance.matrices = tensor.elements() / importance.columns;
    if (counted->elements() != importance.matrices)
      throw fail(
          fmt::format("{} counts for {} matrices", counted->elements(), importance.matrices));
    const Tensor sums = file.Constant(tensor), counts = file.Constant(*counted);
    if (!IsFloat(sums.dtype()) || !IsFloat(counts.dtype())) throw fail("they are not floats");
    for (int64_t m = 0; m < importance.matrices; ++m) {
      const double count = counts.Double(m);
      if (!(count >= 0) || count > 0x1p53) throw fail(fmt::format("a count is {}", count));
      importance.counts.push_back(static_cast<int64_t>(count));
      for (int64_t c = 0; c < importance.columns; ++c) {
        const double sum = sums.Double(m * importance.columns + c);
        if (!(sum >= 0) || !std::isfinite(sum)) throw fail(fmt::format("a sum is {}", sum));
        // An expert that saw nothing has no preference.
        importance.squares.push_back(count > 0 ? static_cast<float>(sum / count) : 1.0F);
      }
    }
    imatrix.tensors.emplace(name, std::move(importance));
  }
  if (imatrix.tensors.empty())
    throw Error("bad-file", "the importance matrix has no tensors").At({path.string(), ""});
  return imatrix;
}

}  // namespace mlc::gguf
