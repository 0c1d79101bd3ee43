// lib/compress/stored_results.h - results of quantising weights in a folder, so that an interrupted
// run continues where it ended.
//
// Choosing integers and indices for the inputs of a weight can take minutes, which a killed process
// would lose. A result is a file whose name is the hash of everything that it depends on: the
// elements of the weight, the scheme, the target, the statistics of its inputs and the version of
// mlc. It appears when it is complete, so that several processes can share a folder; a file is
// never wrong, only unused, and the folder may be deleted at any time.
#pragma once

#include <filesystem>
#include <mutex>
#include <set>
#include <string>

#include "lib/compress/quantise.h"

namespace mlc::compress {

class StoredResults {
 public:
  // Creates the folder if it does not exist. Error "file-io" if that fails. Results of other versions
  // are not used, because their quantisers may differ.
  StoredResults(std::filesystem::path folder, std::string version);

  // As Quantise. Results that take long, because the inputs of the weight are known, are read from the
  // folder or written to it. Error "bad-input" for a damaged file, "file-io". Thread-safe.
  Quantised Quantise(const Tensor& weight, const Request& request);

  const std::filesystem::path& folder() const { return folder_; }
  int64_t found() const;  // results that were read, and that this object has not written

 private:
  const std::filesystem::path folder_;
  const std::string version_;
  mutable std::mutex mutex_;
  std::set<std::string> written_, found_;  // names
};

}  // namespace mlc::compress
