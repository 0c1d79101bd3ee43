#include "lib/support/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "lib/support/error.h"

namespace mlc {

std::shared_ptr<const MappedFile> MappedFile::Open(const std::filesystem::path& path) {
  auto fail = [&](const char* what) {
    return Error("file-io",
                 fmt::format("cannot {} \"{}\": {}", what, path.string(), strerror(errno)));
  };
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe would block here
  if (fd < 0) throw fail("open");
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd);
    throw Error("file-io", fmt::format("\"{}\" is {}", path.string(),
                                       S_ISDIR(info.st_mode) ? "a folder" : "no regular file"))
        .Expected("a file that can be mapped into memory");
  }
  size_t size = static_cast<size_t>(info.st_size);
  void* data = nullptr;
  if (size > 0) {
    data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
      Error error = fail("map");
      close(fd);
      throw error;
    }
  }
  close(fd);
  return std::shared_ptr<const MappedFile>(
      new MappedFile(path, static_cast<const std::byte*>(data), size));
}

MappedFile::~MappedFile() {
  if (size_ > 0) munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::Release(size_t offset, size_t size) const {
  static const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  size_t begin = (offset + page - 1) / page * page, end = (offset + size) / page * page;
  if (begin < end) madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_DONTNEED);
}

}  // namespace mlc
