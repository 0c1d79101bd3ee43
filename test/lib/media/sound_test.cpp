// The files and the expected values were made by SciPy and Python (make_files.py).
#include "lib/media/sound.h"

#include <fstream>

#include "lib/ir/npy.h"
#include "lib/support/error.h"
#include "lib/support/mapped_file.h"
#include "lib/support/temporary_folder.h"
#include "test/catch.h"
#include "test/paths.h"

namespace mlc::media {
namespace {

std::filesystem::path File(const std::string& name) {
  return test::SourcePath("test/lib/media/files") / name;
}

std::string BytesOf(const std::string& name) {
  const auto file = MappedFile::Open(File(name));
  return {reinterpret_cast<const char*>(file->bytes().data()), file->size()};
}

}  // namespace

TEST_CASE("sounds are read as by SciPy", "[media]") {
  for (const char* name :
       {"uint8.wav", "int16.wav", "int24.wav", "int32.wav", "float32.wav", "float64.wav"}) {
    INFO(name);
    const Sound sound = ReadSound(File(name));
    const Tensor expected = ReadNpy(File(std::string(name) + ".npy"));
    REQUIRE(sound.samples.dims() == expected.dims());
    CHECK(sound.samples.Doubles() == expected.Doubles());
    CHECK(sound.rate == (name == std::string_view("int24.wav") ? 8000 : 16000));
  }
}

TEST_CASE("sounds of unknown length are read to the end", "[media]") {
  const TemporaryFolder folder;
  std::string bytes = BytesOf("int16.wav");
  const size_t size = bytes.find("data") + 4;
  for (const char* open : {"\xff\xff\xff\xff", "\0\0\0\0"}) {
    bytes.replace(size, 4, open, 4);
    std::ofstream(folder.path / "open.wav", std::ios::binary) << bytes;
    CHECK(ReadSound(folder.path / "open.wav").samples.dims() == Dims{2, 50});
  }
}

TEST_CASE("damaged sounds are refused", "[media]") {
  const TemporaryFolder folder;
  const std::string whole = BytesOf("int16.wav");
  for (size_t size = 0; size < whole.size(); ++size) {
    INFO(size);
    std::ofstream(folder.path / "cut.wav", std::ios::binary) << whole.substr(0, size);
    CHECK_THROWS_AS(ReadSound(folder.path / "cut.wav"), Error);
  }
  std::string coded = whole;
  coded[20] = 2;  // ADPCM
  std::ofstream(folder.path / "coded.wav", std::ios::binary) << coded;
  CHECK_THROWS_WITH(ReadSound(folder.path / "coded.wav"), ContainsSubstring("codec 2"));
}

}  // namespace mlc::media
