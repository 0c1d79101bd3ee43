#include "backends/coreml/weight_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <mutex>

#include "lib/coreml/weight_blob.h"
#include "lib/support/mapped_file.h"
#include "lib/support/work_scope.h"
#include "test/catch.h"
#include "test/expected_error.h"

namespace fs = std::filesystem;

namespace mlc::test {
using namespace coreml;
namespace {

// Blocks of two bytes and 16 bytes in a file, as in quantised weights, and the constants computed
// from them: the 16 bytes as 32 elements of 4 bits, and the two bytes as one fp16 number.
class InBlocks {
 public:
  explicit InBlocks(int64_t blocks)
      : folder_(fs::temp_directory_path() / ("weights_test_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
    source_.resize(static_cast<size_t>(blocks) * 18);
    for (size_t i = 0; i < source_.size(); ++i) source_[i] = static_cast<char>(i * i >> 3 ^ i >> 9);
    std::ofstream(folder_ / "source", std::ios::binary) << source_;
    slice_ = Tensor::FileSlice(MappedFile::Open(folder_ / "source"), 0, DType::kUint8,
                               {std::ssize(source_)});
    integers = Made(DType::kUint4, blocks * 32, 32, 2, 16);
    scales = Made(DType::kFp16, blocks, 1, 0, 2);
  }
  ~InBlocks() { fs::remove_all(folder_); }

  // Returns bytes [at, at + size) of every block.
  std::string Part(size_t at, size_t size) const {
    std::string part;
    for (size_t i = 0; i < source_.size(); i += 18) part += source_.substr(i + at, size);
    return part;
  }
  // Returns the weight file of `tensors` and checks that `in_order` received the same bytes.
  std::string Written(const std::vector<Tensor>& tensors, int threads) {
    WeightPlan plan;
    for (const Tensor& tensor : tensors) plan.Add(tensor, "w", [](uint64_t) {});
    plan.Layout(threads);
    std::string seen;
    int file = open((folder_ / "weights").c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    plan.Write(
        file, threads,
        [&](std::span<const std::byte> bytes) {
          seen.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        },
        [&](const MappedFile&, uint64_t end) { passed.push_back(end); });
    std::string all(plan.file_bytes(), '\0');
    CHECK(pread(file, all.data(), all.size(), 0) == std::ssize(all));
    close(file);
    CHECK((seen == all));
    return all;
  }

  Tensor integers, scales;
  std::vector<int64_t> read;     // the block at which each read began
  std::vector<uint64_t> passed;  // reported ends in the source

 private:
  Tensor Made(DType dtype, int64_t count, int64_t each, size_t at, size_t size) {
    return Tensor::Lazy(
        dtype, {count},
        [this, each, at, size](int64_t first, int64_t n, std::byte* out) {
          std::lock_guard lock(mutex_);
          read.push_back(first / each);
          for (int64_t i = first / each; i < (first + n) / each; ++i, out += size)
            std::memcpy(out, source_.data() + i * 18 + at, size);
        },
        slice_);
  }

  fs::path folder_;
  std::string source_;
  Tensor slice_;
  std::mutex mutex_;
};

}  // namespace

TEST_CASE("weights: constants computed from the same bytes are written correctly") {
  InBlocks made(300'001);
  const std::string integers = made.Part(2, 16), scales = made.Part(0, 2);
  for (int threads : {1, 2, 5}) {
    CAPTURE(threads);
    const std::string all = made.Written({made.integers, made.scales}, threads);
    const size_t first = 2 * kBlobMetadataBytes, second = AlignBlob(first + integers.size());
    CHECK((all.substr(first, integers.size()) == integers));
    CHECK((all.substr(second + kBlobMetadataBytes) == scales));
    CHECK((made.Written({made.scales, made.integers}, threads).substr(first, scales.size()) ==
           scales));
  }
}

TEST_CASE("weights: writing ends between blocks when it is cancelled") {
  const Tensor zeros = Tensor::Full(DType::kFp32, {64, 1 << 20}, 0);
  for (int threads : {1, 3}) {
    WeightPlan plan;
    plan.Add(zeros, "w", [](uint64_t) {});
    plan.Layout(threads);
    std::atomic<bool> cancelled = false;
    const WorkScope scope({.cancelled = &cancelled});
    size_t seen = 0;
    const int file = open("/dev/null", O_WRONLY);
    CHECK(RefusalId([&] {
            plan.Write(file, threads,
                       [&](std::span<const std::byte> bytes) {
                         seen += bytes.size();
                         cancelled = true;
                       },
                       {});
          }) == "cancelled");
    close(file);
    CHECK((seen > 0 && seen < plan.file_bytes() / 2));
  }
}

TEST_CASE("weights: bytes shared by several computed constants are read once") {
  InBlocks made(300'001);
  made.Written({made.integers, made.scales}, 1);
  CHECK(made.read.size() > 6);
  CHECK(std::ranges::is_sorted(made.read));  // scales are not read a second time
}

TEST_CASE("weights: NotFinite lists constants with NaN or infinity") {
  const fs::path path = fs::temp_directory_path() / fmt::format("mlc-not-finite-{}", getpid());
  WeightPlan plan;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr int64_t kMany = 3 << 20;  // several blocks, a partial last one
  auto add = [&](const char* name, DType dtype, double last) {
    std::vector<double> values(kMany, -1);
    values.back() = last;
    plan.Add(Tensor::Vector(values).Cast(dtype), name, [](uint64_t) {});
  };
  add("greatest of fp16", DType::kFp16, 65504);
  add("beyond fp16", DType::kFp16, 65520);
  add("greatest of fp32", DType::kFp32, std::numeric_limits<float>::max());
  add("infinity", DType::kFp32, -kInfinity);
  add("NaN in fp16", DType::kFp16, std::nan(""));
  add("NaN in fp32", DType::kFp32, std::nan(""));
  add("integers", DType::kInt8, -1);
  plan.Layout(3);
  int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  plan.Write(file, 3, [](std::span<const std::byte>) {});
  close(file);
  fs::remove(path);
  CHECK(plan.NotFinite() ==
        std::vector<std::string>{"beyond fp16", "infinity", "NaN in fp16", "NaN in fp32"});
}

TEST_CASE("weights: progress of reading the source of computed constants is reported") {
  InBlocks made(300'001);
  made.Written({made.integers, made.scales}, 2);
  CHECK(made.passed.size() > 3);
  CHECK(std::ranges::is_sorted(made.passed));
  CHECK(!made.passed.empty());
  CHECK((made.passed.empty() || made.passed.back() == 300'001 * 18));
}

}  // namespace mlc::test
