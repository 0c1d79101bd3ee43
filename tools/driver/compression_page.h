// tools/driver/compression_page.h - the report of compression as a file.
#pragma once

#include <filesystem>
#include <string>

#include "lib/compress/compression.h"

namespace mlc::driver {

// Writes what was compressed and what it cost: a page (.html), Markdown (.md) or text (.txt); a
// picture of the curve of auto (.svg); or the report of the manifest (.json). Error "usage" for
// other endings, and for a picture if there is no curve.
void WriteCompressionReport(const std::filesystem::path& file, const std::string& title,
                            const compress::Compression& compression);
// Error "usage" for a path that the function above would refuse for any report.
void CheckCompressionReport(const std::filesystem::path& file);

}  // namespace mlc::driver
