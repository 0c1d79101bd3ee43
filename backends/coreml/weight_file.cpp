#include "backends/coreml/weight_file.h"

#include <map>
#include <tuple>

#include "lib/coreml/dtypes.h"
#include "lib/coreml/weight_blob.h"
#include "lib/support/error.h"
#include "lib/support/hash.h"
#include "lib/support/threads.h"

namespace mlc::coreml {

namespace {

constexpr int64_t kSampleBytes = 4096;

// The number of elements in `bytes`: a multiple of 8, so that blocks of sub-byte types are
// byte-aligned.
int64_t ElementsIn(int64_t bytes, DType dtype) { return bytes * 8 / Bits(dtype) / 8 * 8; }

std::string HashOf(const Tensor& tensor,
                   std::initializer_list<std::pair<int64_t, int64_t>> ranges) {
  Xxh3 hasher;
  std::vector<std::byte> buffer;
  for (auto [begin, end] : ranges) {
    buffer.resize(ByteCount(tensor.dtype(), end - begin));
    tensor.Read(begin, end - begin, buffer.data());
    hasher.Update(buffer);
    tensor.Release(begin, end - begin);
  }
  return hasher.Hex();
}

// Hashes the beginning, the middle and the end of the tensor, or all of it if it is small.
std::string Sample(const Tensor& lazy, bool& whole) {
  auto [tensor, plan] = lazy.origin();
  int64_t part = ElementsIn(kSampleBytes, tensor.dtype()), size = tensor.size();
  whole = plan.empty() && size <= 3 * part;
  if (size <= 3 * part) return HashOf(tensor, {{0, size}}) + plan;
  int64_t middle = size / 2 / 8 * 8, end = (size - part) / 8 * 8;
  std::string hash = HashOf(tensor, {{0, part}, {middle, middle + part}, {end, size}});
  tensor.Release(0, size);  // the system maps more pages than were read
  return hash + plan;
}

// The known identity of a constant's contents. Contents are read only if another constant has the
// same type and size.
struct Identity {
  DType dtype;
  size_t bytes;
  std::string content;         // hash of a sample, later of everything
  const void* file = nullptr;  // equal slices of a file are equal without reading
  uint64_t offset = 0;
  auto Size() const { return std::tuple(dtype, bytes); }
  auto Place() const { return std::tuple(dtype, bytes, file, offset); }
  auto Content() const { return std::tuple(dtype, bytes, content); }
};

}  // namespace

void WeightPlan::Add(Tensor tensor, std::string_view name, std::function<void(uint64_t)> place) {
  MLC_CHECK(BlobDataType(tensor.dtype()), "weight records cannot hold {}", Name(tensor.dtype()));
  entries_.push_back({std::move(tensor), std::string(name), std::move(place)});
}

void WeightPlan::CheckSmall(const Tensor& tensor, std::string_view name) {
  if (IsFloat(tensor.dtype()) && !tensor.range().finite()) not_finite_.emplace_back(name);
}

std::vector<std::string> WeightPlan::NotFinite() const {
  std::vector<std::string> names = not_finite_;
  for (const Record& record : records_)
    if (!record.finite) names.push_back(record.name);
  return names;
}

void WeightPlan::Layout(int threads) {
  std::vector<Identity> identities;
  std::map<decltype(identities[0].Size()), int> same_size;
  for (const Entry& entry : entries_) {
    Tensor::FileView view = entry.tensor.file_view();
    identities.push_back(
        {entry.tensor.dtype(), entry.tensor.byte_size(), {}, view.file, view.offset});
  }
  // The first entry for a slice of a file represents all others.
  std::map<decltype(identities[0].Place()), size_t> first_slice;
  std::vector<size_t> leader(entries_.size());
  for (size_t i = 0; i < entries_.size(); ++i) {
    leader[i] = i;
    if (identities[i].file) leader[i] = first_slice.emplace(identities[i].Place(), i).first->second;
    if (leader[i] == i) ++same_size[identities[i].Size()];
  }
  std::vector<size_t> candidates;
  for (size_t i = 0; i < entries_.size(); ++i)
    if (leader[i] == i && same_size[identities[i].Size()] > 1) candidates.push_back(i);
  std::vector<char> whole(entries_.size());
  ParallelFor(std::ssize(candidates), threads, [&](int64_t k) {
    bool all = false;
    identities[candidates[k]].content = Sample(entries_[candidates[k]].tensor, all);
    whole[candidates[k]] = all;
  });
  std::map<decltype(identities[0].Content()), int> same_sample;
  for (size_t i : candidates) ++same_sample[identities[i].Content()];
  std::erase_if(candidates,
                [&](size_t i) { return whole[i] || same_sample[identities[i].Content()] == 1; });
  ParallelFor(std::ssize(candidates), threads, [&](int64_t k) {
    identities[candidates[k]].content = entries_[candidates[k]].tensor.hash();
  });

  uint64_t offset = kBlobMetadataBytes, end = kBlobMetadataBytes;
  std::map<decltype(identities[0].Content()), uint64_t> placed;
  std::vector<uint64_t> offsets(entries_.size());
  for (size_t i = 0; i < entries_.size(); ++i) {
    bool unique_size = same_size[identities[i].Size()] == 1;
    if (leader[i] != i) {
      offsets[i] = offsets[leader[i]];
    } else if (auto it = placed.find(identities[i].Content()); !unique_size && it != placed.end()) {
      offsets[i] = it->second;
    } else {
      offsets[i] = offset;
      placed.emplace(identities[i].Content(), offset);
      records_.push_back({entries_[i].tensor, offset, entries_[i].name});
      end = offset + kBlobMetadataBytes + identities[i].bytes;
      offset = AlignBlob(end);
    }
    entries_[i].place(offsets[i]);
  }
  file_bytes_ = end;
}

}  // namespace mlc::coreml
