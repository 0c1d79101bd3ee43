#include "tools/driver/diff.h"

#include "tools/driver/import.h"

namespace mlc::driver {

DiffResult Diff(const std::filesystem::path& a, const std::filesystem::path& b,
                Diagnostics& diagnostics) {
  DiffResult result;
  result.a = std::make_shared<Program>(Import(a, {}, diagnostics));
  result.b = std::make_shared<Program>(Import(b, {}, diagnostics));
  result.found = verify::Diff(*result.a, *result.b);
  return result;
}

}  // namespace mlc::driver
