// Pictures and sounds: any bytes give a picture or a sound whose size agrees with its elements, or an Error.
#include "lib/media/picture.h"
#include "lib/media/sound.h"
#include "lib/support/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  try {
    const mlc::Tensor picture = mlc::media::DecodePicture(bytes);
    MLC_CHECK(picture.rank() == 2 || (picture.rank() == 3 && picture.dims()[2] == 3),
              "a picture has neither one nor three channels");
    constexpr int64_t kSmall = 1 << 16;
    if (picture.size() < kSmall) mlc::media::Scaled(picture, 7, 5);
  } catch (const mlc::Error&) {
  }
  try {
    const mlc::media::Sound sound = mlc::media::DecodeSound(bytes);
    MLC_CHECK(sound.samples.size() > 0, "a sound has no samples");
  } catch (const mlc::Error&) {
  }
  return 0;
}
