// backends/coreml/weights.h - the weight file: collects constants, finds equal ones, lays them out
// and streams them to disk.
//
// Constants are not held in memory: equality is decided by samples and, where those agree, by a hash
// of the content; the bytes are read, converted and written in blocks by several threads. Only what is
// computed from the same bytes of a file as the constant before it, such as the scales beside the
// integers of quantised weights, waits for its turn in memory, so that nothing is read twice: 48 MB at
// most beside each constant. The file is the same whatever the thread count.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ir/tensor.h"

namespace mlc {

class WeightPlan {
 public:
  // A constant of a type that BlobDataType knows, and its name for people. `place` is called by Layout with the offset of
  // its record.
  void Add(Tensor tensor, std::string_view name, std::function<void(uint64_t)> place);

  // Decides which constants share a record and where each stands, in order of Add.
  void Layout(int threads);

  bool empty() const { return entries_.empty(); }
  uint64_t file_bytes() const { return file_bytes_; }  // after Layout
  size_t records() const { return records_.size(); }   // after Layout

  // Writes the whole file through the open descriptor. `in_order` sees every byte of it once, from
  // the first to the last, in pieces, one call at a time. Throws Error "file-io".
  //
  // `passed`, if any, hears of source bytes that have just been read and are in the cache: those of
  // a file up to `end`, or a little less where they were read in another order. One call at a time,
  // in the file's order only if the constants are.
  using PassedFn = std::function<void(const MappedFile& file, uint64_t end)>;
  void Write(int descriptor, int threads,
             const std::function<void(std::span<const std::byte>)>& in_order,
             const PassedFn& passed = {});
  // A constant that stands in the program itself, where NotFinite is to name it, too.
  void CheckSmall(const Tensor& tensor, std::string_view name);
  // After Write: the names of fp16 and fp32 constants that hold NaN or infinity, in the order of Add;
  // small ones come first.
  std::vector<std::string> NotFinite() const;

 private:
  struct Entry {
    Tensor tensor;
    std::string name;
    std::function<void(uint64_t)> place;
  };
  struct Record {
    Tensor tensor;
    uint64_t offset;  // of the metadata
    std::string name;
    bool finite = true;
  };
  std::vector<Entry> entries_;
  std::vector<Record> records_;
  std::vector<std::string> not_finite_;  // of small ones
  uint64_t file_bytes_ = 0;
};

}  // namespace mlc
