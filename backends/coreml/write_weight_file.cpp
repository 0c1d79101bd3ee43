// Implements WeightPlan::Write.
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <mutex>

#include "backends/coreml/weight_file.h"
#include "lib/coreml/weight_blob.h"
#include "lib/support/atomic_install.h"
#include "lib/support/error.h"
#include "lib/support/regular_file.h"
#include "lib/support/threads.h"
#include "lib/support/work_scope.h"

namespace mlc::coreml {

namespace {

constexpr int64_t kBlockBytes = 1 << 20;
constexpr size_t kMostAside = size_t{48} << 20;

// Returns elements [first, first + count) as bytes, without a copy if possible, else in `buffer`.
std::span<const std::byte> Fetch(const Tensor& tensor, int64_t first, int64_t count,
                                 std::vector<std::byte>& buffer) {
  tensor.MapIn(first, count);
  if (std::span<const std::byte> bytes = tensor.InPlace(first, count); !bytes.empty()) return bytes;
  size_t size = ByteCount(tensor.dtype(), count);
  buffer.resize(std::max(buffer.size(), size));
  tensor.Read(first, count, buffer.data());
  return {buffer.data(), size};
}

void WriteAll(int descriptor, std::span<const std::byte> head, std::span<const std::byte> body,
              uint64_t offset) {
  while (!head.empty() || !body.empty()) {
    iovec parts[2] = {{const_cast<std::byte*>(head.data()), head.size()},
                      {const_cast<std::byte*>(body.data()), std::min(body.size(), kMostAtOnce)}};
    ssize_t written = pwritev(descriptor, parts, 2, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EFAULT) Touch(body);
    if (written <= 0)
      throw Error("file-io", "cannot write the weight file: {}", std::strerror(errno));
    offset += static_cast<uint64_t>(written);
    size_t of_head = std::min(head.size(), static_cast<size_t>(written));
    head = head.subspan(of_head);
    body = body.subspan(static_cast<size_t>(written) - of_head);
  }
}

// Reports the progress of reading the file behind a tensor, in proportion to the elements read.
void Pass(const Tensor& tensor, int64_t end, const WeightPlan::PassedFn& passed) {
  Tensor::FileView view = tensor.Behind(0, tensor.size());
  if (!view.file) return;
  double share = static_cast<double>(end) / static_cast<double>(tensor.size());
  passed(*view.file, view.offset + static_cast<uint64_t>(share * static_cast<double>(view.size)));
}

// A record computed from the same slice of a file as another one, such as the scales of
// block-quantised weights. It is built in memory while the other record is written, block by block,
// so that the slice is read only once.
struct Aside {
  const Tensor* tensor;
  int64_t ratio;  // elements of the leader per element of this record
  std::once_flag made = {};
  std::unique_ptr<std::byte[]> bytes = {};

  // Reads the elements that correspond to elements [first, first + count) of the leader.
  void Read(int64_t first, int64_t count) {
    std::call_once(made, [&] { bytes.reset(new std::byte[tensor->byte_size()]); });
    const int64_t begin = first / ratio, end = (first + count) / ratio;
    tensor->Read(begin, end - begin, bytes.get() + ByteCount(tensor->dtype(), begin));
  }
};

// Returns whether `other` can accompany `leader` in blocks of `step` elements: both must be
// byte-aligned at every block boundary.
bool FitsAside(const Tensor& leader, const Tensor& other, int64_t step) {
  if (other.size() == 0 || leader.size() % other.size() != 0) return false;
  if (step % (leader.size() / other.size() * 8) != 0) return false;
  const Tensor::FileView mine = leader.Behind(0, leader.size()),
                         its = other.Behind(0, other.size());
  return mine.file && mine.file == its.file && mine.offset == its.offset && mine.size == its.size;
}

// Returns whether all elements are finite; NaN and infinity have all bits of the exponent set.
template <class Word>
bool AllBelow(std::span<const std::byte> bytes, Word infinity) {
  constexpr auto kMagnitude = static_cast<Word>(std::numeric_limits<Word>::max() >> 1);
  Word greatest = 0;
  for (size_t i = 0; i < bytes.size() / sizeof(Word); ++i) {
    Word word;
    std::memcpy(&word, bytes.data() + i * sizeof(Word), sizeof(Word));
    greatest = std::max(greatest, static_cast<Word>(word & kMagnitude));
  }
  return greatest < infinity;
}
bool AllFinite(DType dtype, std::span<const std::byte> bytes) {
  if (dtype == DType::kFp16) return AllBelow<uint16_t>(bytes, 0x7C00);
  return dtype != DType::kFp32 || AllBelow<uint32_t>(bytes, 0x7F800000);
}

// Runs work in block order, although threads finish blocks in any order: a thread that is early
// leaves its work, with the buffer, to the thread whose turn it is.
class Queue {
 public:
  using Buffer = std::vector<std::byte>;
  using Work = std::function<void()>;

  explicit Queue(size_t most) : most_(most) {}

  // Returns an unused buffer, possibly that of an earlier block.
  Buffer Take() {
    std::lock_guard lock(mutex_);
    if (free_.empty()) return {};
    Buffer buffer = std::move(free_.back());
    free_.pop_back();
    return buffer;
  }

  // Waits while too much work is queued. Returns false if some thread failed.
  bool Do(size_t index, Buffer buffer, Work work) {
    std::unique_lock lock(mutex_);
    left_.emplace(index, Left{std::move(buffer), std::move(work)});
    while (!busy_ && !stopped_ && left_.begin()->first == next_) {
      busy_ = true;
      Left turn = std::move(left_.begin()->second);
      left_.erase(left_.begin());
      lock.unlock();
      turn.work();  // an exception stops all threads
      lock.lock();
      free_.push_back(std::move(turn.buffer));
      busy_ = false;
      ++next_;
      changed_.notify_all();
      if (left_.empty()) break;
    }
    changed_.wait(lock, [&] { return stopped_ || left_.size() <= most_; });
    return !stopped_;
  }
  void Stop() {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }

 private:
  struct Left {
    Buffer buffer;
    Work work;
  };
  const size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<size_t, Left> left_;
  std::vector<Buffer> free_;
  size_t next_ = 0;
  bool busy_ = false, stopped_ = false;
};

}  // namespace

void WeightPlan::Write(int descriptor, int threads,
                       const std::function<void(std::span<const std::byte>)>& in_order,
                       const PassedFn& passed) {
  struct Block {
    Record* record;
    int64_t first, count;
    std::vector<std::byte> head = {};  // bytes in the file between the previous block and this one
    uint64_t offset = 0;               // position of the head
    Aside* own = nullptr;              // holds the elements when it is this block's turn
    std::span<Aside* const> asides = {};  // read together with this block
  };
  std::vector<Block> blocks;
  std::deque<Aside> all_asides;
  std::deque<std::vector<Aside*>> groups;
  uint64_t end = 0;
  for (size_t r = 0; r < records_.size(); ++r) {
    Record& record = records_[r];
    const Tensor& tensor = record.tensor;
    int64_t step = tensor.BlockElements(kBlockBytes);
    Aside* own = nullptr;
    if (!groups.empty())
      for (Aside* aside : groups.back())
        if (aside->tensor == &tensor) own = aside;
    std::vector<Aside*>* group = nullptr;
    if (!own && tensor.size() > step && tensor.is_lazy()) {
      group = &groups.emplace_back();
      size_t bytes = 0;
      for (size_t next = r + 1; next < records_.size(); ++next) {
        const Tensor& other = records_[next].tensor;
        bytes += other.byte_size();
        if (bytes > kMostAside || !FitsAside(tensor, other, step)) break;
        group->push_back(&all_asides.emplace_back(&other, tensor.size() / other.size()));
      }
    }
    std::vector<std::byte> head;
    if (blocks.empty()) {
      BlobBlock header = BlobHeader(static_cast<uint32_t>(records_.size()));
      head.assign(header.begin(), header.end());
    }
    head.resize(record.offset - end);
    BlobBlock metadata = BlobMetadata(tensor.dtype(), tensor.size(), record.offset);
    head.insert(head.end(), metadata.begin(), metadata.end());
    for (int64_t first = 0; first < tensor.size(); first += step) {
      int64_t count = std::min(step, tensor.size() - first);
      blocks.push_back({&record, first, count, std::move(head), end, own});
      if (group) blocks.back().asides = *group;
      end += blocks.back().head.size() + ByteCount(tensor.dtype(), count);
      head.clear();
    }
  }
  MLC_CHECK(end == file_bytes_, "weight layout of {} bytes, blocks of {}", file_bytes_, end);

#ifdef __linux__
  // Detects a full disk early. File systems without fallocate skip the check.
  if (fallocate(descriptor, 0, 0, static_cast<off_t>(end)) != 0 && errno == ENOSPC)
    throw Error("file-io", "not enough disk space for {} bytes of weights", end);
#endif
  auto put = [&](std::span<const std::byte> head, std::span<const std::byte> body,
                 uint64_t offset) {
    WriteAll(descriptor, head, body, offset);
#ifdef __linux__
    // Starts writing to disk now instead of at the final fsync.
    sync_file_range(descriptor, static_cast<off_t>(offset),
                    static_cast<off_t>(head.size() + body.size()), SYNC_FILE_RANGE_WRITE);
#endif
  };
  std::atomic<size_t> next = 0;
  int workers =
      static_cast<int>(std::min<size_t>(static_cast<size_t>(std::max(threads, 1)), blocks.size()));
  Queue queue(static_cast<size_t>(workers));
  ParallelFor(static_cast<size_t>(workers), workers, [&](size_t) {
    try {
      for (size_t i = next++; i < blocks.size(); i = next++) {
        ThrowIfCancelled();
        Block& block = blocks[i];
        const Tensor& tensor = block.record->tensor;
        std::vector<std::byte> buffer = queue.Take();
        std::span<const std::byte> bytes;
        if (!block.own) {
          bytes = Fetch(tensor, block.first, block.count, buffer);
          for (Aside* aside : block.asides) aside->Read(block.first, block.count);
          put(block.head, bytes, block.offset);
        }
        const bool finite = AllFinite(tensor.dtype(), bytes);
        // `bytes` points into the source, or into the buffer, whose storage does not move with it.
        bool go_on = queue.Do(i, std::move(buffer), [&, bytes, finite] {
          if (block.own) {  // complete at this point
            const std::byte* begin =
                block.own->bytes.get() + ByteCount(tensor.dtype(), block.first);
            std::span<const std::byte> its(begin, ByteCount(tensor.dtype(), block.count));
            block.record->finite &= AllFinite(tensor.dtype(), its);
            put(block.head, its, block.offset);
            if (!block.head.empty()) in_order(block.head);
            in_order(its);
            if (block.first + block.count == tensor.size()) block.own->bytes.reset();
            return;
          }
          block.record->finite &= finite;
          if (!block.head.empty()) in_order(block.head);
          in_order(bytes);
          if (passed) Pass(tensor, block.first + block.count, passed);
          tensor.Release(block.first, block.count);
        });
        if (!go_on) return;
      }
    } catch (...) {
      queue.Stop();
      throw;
    }
  });
}

}  // namespace mlc::coreml
