#include "lib/ir/source_facts.h"

#include <algorithm>

namespace fs = std::filesystem;

namespace mlc {

void SourceFacts::Add(const fs::path& model, const fs::path& file) {
  std::error_code ignored;
  if (file == model || fs::equivalent(file, model, ignored) ||
      std::ranges::any_of(files, [&](const File& known) { return known.path == file; }))
    return;
  const fs::path folder = fs::is_directory(model, ignored) ? model : model.parent_path();
  files.push_back({file.lexically_relative(folder).generic_string(), file});
}

}  // namespace mlc
