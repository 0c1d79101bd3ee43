// The files and the expected values were made by Pillow (make_files.py).
#include "lib/media/picture.h"

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

void RequireEqual(const Tensor& picture, const Tensor& expected) {
  REQUIRE(picture.dims() == expected.dims());
  REQUIRE(picture.dtype() == DType::kUint8);
  CHECK(picture.Ints() == expected.Ints());
}

}  // namespace

TEST_CASE("pictures are read as by Pillow", "[media]") {
  for (const char* name : {"colours.png", "gray.png", "two-levels.png", "palette.png", "opaque.png",
                           "colours.jpg", "progressive.jpg", "gray.jpg"}) {
    INFO(name);
    RequireEqual(ReadPicture(File(name)), ReadNpy(File(std::string(name) + ".npy")));
  }
}

TEST_CASE("pictures of cameras are upright", "[media]") {
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const std::string name = fmt::format("orientation-{}.jpg", orientation);
    INFO(name);
    RequireEqual(ReadPicture(File(name)), ReadNpy(File(name + ".npy")));
  }
}

TEST_CASE("pictures that are refused say what to do", "[media]") {
  CHECK_THROWS_WITH(ReadPicture(File("transparent.png")), ContainsSubstring("transparent pixels"));
  CHECK_THROWS_WITH(ReadPicture(File("sixteen-bits.png")), ContainsSubstring("16 bits"));
  CHECK_THROWS_WITH(ReadPicture(File("cmyk.jpg")), ContainsSubstring("CMYK"));
  CHECK_THROWS_WITH(ReadPicture(File("int16.wav")), ContainsSubstring("no picture"));
}

TEST_CASE("pictures that are cut short are refused", "[media]") {
  const TemporaryFolder folder;
  for (const char* name : {"colours.png", "colours.jpg", "progressive.jpg"}) {
    const auto file = MappedFile::Open(File(name));
    const std::string_view whole(reinterpret_cast<const char*>(file->bytes().data()), file->size());
    for (size_t size = 0; size < whole.size() - 20; size += 7) {
      INFO(name << " " << size);
      const auto path = folder.path / "cut";
      std::ofstream(path, std::ios::binary) << whole.substr(0, size);
      CHECK_THROWS_AS(ReadPicture(path), Error);
    }
  }
}

TEST_CASE("pictures are scaled as by Pillow", "[media]") {
  const Tensor colours = ReadPicture(File("colours.png"));
  for (const auto& [height, width] : {std::pair{9, 6}, std::pair{40, 31}, std::pair{24, 5}}) {
    INFO(height << " x " << width);
    RequireEqual(Scaled(colours, height, width),
                 ReadNpy(File(fmt::format("scaled-{}x{}.npy", height, width))));
  }
  RequireEqual(Scaled(ReadPicture(File("gray.png")), 8, 8), ReadNpy(File("scaled-gray.npy")));
}

TEST_CASE("pictures are fitted only when that is asked for", "[media]") {
  const Tensor colours = ReadPicture(File("colours.png"));  // 24 x 17
  RequireEqual(Fitted(colours, 24, 17, Fit::kNone), colours);
  CHECK_THROWS_WITH(Fitted(colours, 24, 24, Fit::kNone), ContainsSubstring("17 x 24 pixels"));
  RequireEqual(Fitted(colours, 9, 6, Fit::kStretch), Scaled(colours, 9, 6));
  // Covering 12 x 12 takes 17 x 12; five rows are left over.
  const Tensor covering = Scaled(colours, 17, 12);
  const std::vector<int64_t> rows = covering.Ints();
  CHECK(Fitted(colours, 12, 12, Fit::kCrop).Ints() ==
        std::vector<int64_t>(rows.begin() + 2 * 12 * 3, rows.begin() + 14 * 12 * 3));
}

TEST_CASE("pictures are written", "[media]") {
  const TemporaryFolder folder;
  for (const char* name : {"colours.png", "gray.png"}) {
    const Tensor picture = ReadPicture(File(name));
    for (const char* extension : {"png", picture.rank() == 3 ? "ppm" : "pgm", "JPG"}) {
      const auto path = folder.path / fmt::format("{}.{}", name, extension);
      WritePicture(path, picture);
      const Tensor read = ReadPicture(path);
      REQUIRE(read.dims() == picture.dims());
      int64_t worst = 0;
      for (int64_t i = 0; i < picture.size(); ++i)
        worst = std::max(worst, std::abs(read.Ints()[i] - picture.Ints()[i]));
      CHECK(worst <= (extension == std::string_view("JPG") ? 20 : 0));
    }
  }
  CHECK_THROWS_WITH(WritePicture(folder.path / "x.gif", ReadPicture(File("gray.png"))),
                    ContainsSubstring(".png"));
}

}  // namespace mlc::media
