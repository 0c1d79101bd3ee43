// stored.npz and deflated.npz were written by numpy.savez and numpy.savez_compressed:
//   x = arange(300, dtype="<i2").reshape(3, 100)
//   y = asfortranarray(arange(6, dtype=">f4").reshape(2, 3))
//   b = [True, False, True]    s = 2.5 (rank 0)    e = zeros((0, 4), "u1")    h = [1.5, -2] (float16)
#include "lib/ir/npy.h"

#include <unistd.h>

#include <fstream>
#include <numeric>
#include <random>

#include "lib/support/error.h"
#include "test/catch.h"
#include "test/paths.h"

namespace mlc {
namespace {

namespace fs = std::filesystem;

std::string Contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A temporary file with these contents, removed with the object.
struct TempFile {
  fs::path path = fs::temp_directory_path() / ("npy_test_" + std::to_string(getpid()));
  explicit TempFile(const std::string& bytes = "") {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  ~TempFile() { fs::remove(path); }
};

std::string Npy(const std::string& header, const std::string& data = "") {
  std::string length{static_cast<char>(header.size() & 0xFF),
                     static_cast<char>(header.size() >> 8)};
  return std::string("\x93NUMPY\1\0", 8) + length + header + data;
}

TEST_CASE("npy: stored and deflated archives written by NumPy") {
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    CAPTURE(name);
    auto arrays = ReadNpz(test::SourcePath("test/lib/ir/npy") / name);
    REQUIRE(arrays.size() == 6);
    std::vector<int64_t> x(300);
    std::iota(x.begin(), x.end(), 0);
    CHECK(arrays["x"].dims() == Dims{3, 100});
    CHECK(arrays["x"].dtype() == DType::kInt16);
    CHECK(arrays["x"].Ints() == x);
    CHECK(arrays["y"].dims() == Dims{2, 3});
    CHECK(arrays["y"].Doubles() == std::vector<double>{0, 1, 2, 3, 4, 5});
    CHECK(arrays["b"].dtype() == DType::kBool);
    CHECK(arrays["b"].Ints() == std::vector<int64_t>{1, 0, 1});
    CHECK(arrays["s"].rank() == 0);
    CHECK(arrays["s"].Double(0) == 2.5);
    CHECK(arrays["e"].dims() == Dims{0, 4});
    CHECK(arrays["h"].dtype() == DType::kFp16);
    CHECK(arrays["h"].Doubles() == std::vector<double>{1.5, -2});
  }
}

TEST_CASE("npy: output is identical to NumPy's") {
  TempFile file;
  WriteNpy(file.path, Tensor::Vector<float>({1, 2}));
  CHECK(Contents(file.path) == Npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }" +
                                       std::string(60, ' ') + "\n",
                                   std::string("\0\0\x80\x3f\0\0\0\x40", 8)));
}

TEST_CASE("npy: strings are written as fixed-width Unicode") {
  TempFile file;
  WriteNpy(file.path, Tensor::Strings({2}, {"a", "\u00e9\u20ac"}));
  CHECK(Contents(file.path) == Npy("{'descr': '<U2', 'fortran_order': False, 'shape': (2,), }" +
                                       std::string(60, ' ') + "\n",
                                   std::string("a\0\0\0\0\0\0\0\xe9\0\0\0\xac\x20\0\0", 16)));
  WriteNpy(file.path, Tensor::String("\xff"));  // not UTF-8
  CHECK(Contents(file.path).ends_with(std::string("\xfd\xff\0\0", 4)));
}

TEST_CASE("npy: round trip of every dtype, widened if NumPy lacks it") {
  for (int i = 1; i < kDTypeCount; ++i) {
    auto dtype = static_cast<DType>(i);
    if (dtype == DType::kString) continue;
    CAPTURE(Name(dtype));
    for (const Dims& dims : {Dims{}, Dims{1}, Dims{1, 0, 2}, Dims{100, 70}}) {
      TempFile file;
      Tensor tensor = Tensor::Full(dtype, dims, 1);
      WriteNpy(file.path, tensor);
      Tensor back = ReadNpy(file.path);
      CHECK(back.dims() == dims);
      CHECK(Contents(file.path).size() % 64 == back.byte_size() % 64);
      if (Bits(dtype) >= 8 && dtype != DType::kBf16 && !Name(dtype).starts_with("fp8"))
        CHECK(back.SameBytes(tensor));
      CHECK(back.Ints() == tensor.Ints());
    }
  }
  CHECK_THROWS_WITH(WriteNpy("/nowhere/at/all.npy", Tensor::Scalar<float>(1)),
                    ContainsSubstring("file-io"));
}

TEST_CASE("npy: booleans are normalised to 0 or 1") {
  TempFile file(
      Npy("{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}", std::string("\0\1\7", 3)));
  CHECK(ReadNpy(file.path).bytes()[2] == std::byte{1});
}

TEST_CASE("npy: malformed headers are rejected with a reason") {
  struct Row {
    std::string bytes, message;
  };
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  for (const Row& row : std::vector<Row>{
           {"", "start"},
           {"\x93NUMPY\1", "start"},
           {std::string("\x93NUMPY\4\0\1\0{", 11), "version 4"},
           {std::string("\x93NUMPY\2\0\xff\xff\xff\xff", 12), "inside its header"},
           {Npy(good, "1234567"), "truncated"},
           {Npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 4), }"),
            "truncated"},
           {Npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }"), "tuple of sizes"},
           {Npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }"),
            "tuple of sizes"},
           {Npy("{'descr': '<f4', 'fortran_order': False, }"), "lacks"},
           {Npy("{'descr': '<f4', 'descr': '<f4'}"), "repeated"},
           {Npy("{'descr': '<f4"), "unterminated string"},
           {Npy("{'descr': '|O', 'fortran_order': False, 'shape': (2,), }"), "unsupported-dtype"},
           {Npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }"),
            "structured dtype"},
           {Npy("{'descr': '', 'fortran_order': False, 'shape': (2,), }"), "unsupported-dtype"},
           {Npy("{'descr': '<f4', 'fortran_order': 0, 'shape': (2,), }"), "False"}}) {
    CAPTURE(row.bytes);
    TempFile file(row.bytes);
    CHECK_THROWS_WITH(ReadNpy(file.path), ContainsSubstring(row.message));
  }
  // The tensor is empty: the zero dimension makes the large ones harmless.
  TempFile empty(
      Npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 0), }"));
  CHECK(ReadNpy(empty.path).size() == 0);
}

TEST_CASE("npy: damaged archives never crash") {
  std::mt19937 random(5);
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    const std::string whole = Contents(test::SourcePath("test/lib/ir/npy") / name);
    int errors = 0;
    for (int round = 0; round < 1500; ++round) {
      std::string bytes = whole;
      if (round % 3 == 0) bytes.resize(random() % bytes.size());
      for (int k = 0; k < 3 && !bytes.empty() && round % 3; ++k)
        bytes[random() % bytes.size()] = static_cast<char>(random() % 2 ? 0xFF : random());
      TempFile file(bytes);
      try {
        for (const auto& [key, tensor] : ReadNpz(file.path)) (void)tensor.bytes();
      } catch (const Error&) {
        ++errors;
      }
    }
    CHECK(errors > 900);
  }
}

}  // namespace
}  // namespace mlc
