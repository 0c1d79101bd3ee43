// backends/coreml/weight_file.h - the weight file: collects constants, deduplicates them, lays them
// out and streams them to disk.
//
// Constants are not held in memory. Equality is decided by samples and, if these agree, by a hash
// of the contents. The bytes are read, converted and written in blocks by several threads. Only
// constants that are computed from the same bytes of a file as their predecessor, such as the
// scales of quantised weights, wait in memory, at most 48 MB for each leading constant, so that
// nothing is read twice. The file does not depend on the number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ir/tensor.h"
#include "lib/support/mapped_file.h"

namespace mlc::coreml {

class WeightPlan {
 public:
  // Adds a constant of a type that BlobDataType supports; `name` is for messages. Layout calls
  // `place` with the offset of its record.
  void Add(Tensor tensor, std::string_view name, std::function<void(uint64_t)> place);

  // Decides which constants share a record, and the offsets of records, in the order of Add.
  void Layout(int threads);

  bool empty() const { return entries_.empty(); }
  uint64_t file_bytes() const { return file_bytes_; }  // valid after Layout
  size_t records() const { return records_.size(); }   // valid after Layout

  // Writes the whole file through the open descriptor. `in_order` receives every byte exactly once,
  // in order, in pieces, one call at a time. Error "file-io".
  //
  // `passed`, if set, is told about source bytes that were just read and are in the page cache:
  // those of a file up to `end`, or slightly fewer if they were read out of order. Calls do not
  // overlap, and follow the order of the file if the constants do.
  using PassedFn = std::function<void(const MappedFile& file, uint64_t end)>;
  void Write(int descriptor, int threads,
             const std::function<void(std::span<const std::byte>)>& in_order,
             const PassedFn& passed = {});
  // Checks a constant that is stored in the program, so that NotFinite includes it.
  void CheckSmall(const Tensor& tensor, std::string_view name);
  // The names of fp16 and fp32 constants that hold NaN or infinity: first those stored in the
  // program (CheckSmall), then those in the weight file, in the order of Add. Valid after Write.
  std::vector<std::string> NotFinite() const;

 private:
  struct Entry {
    Tensor tensor;
    std::string name;
    std::function<void(uint64_t)> place;
  };
  struct Record {
    Tensor tensor;
    uint64_t offset;  // position of the metadata
    std::string name;
    bool finite = true;
  };
  std::vector<Entry> entries_;
  std::vector<Record> records_;
  std::vector<std::string> not_finite_;  // names of constants stored in the program
  uint64_t file_bytes_ = 0;
};

}  // namespace mlc::coreml
