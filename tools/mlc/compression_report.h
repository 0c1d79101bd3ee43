// tools/mlc/compression_report.h - what compression did to weights, for the terminal and --json.
#pragma once

#include <string>

#include "lib/compress/compression.h"

namespace mlc::driver {

// A few lines: totals, the weights with the lowest signal-to-noise ratios, and every weight that
// has another scheme than its rule says.
std::string CompressionText(const compress::Compression& compression);

// The rules of --compress, for --help.
std::string CompressionHelp();

}  // namespace mlc::driver
