// tools/driver/input_files.h - reads the files that users supply: tensors, pictures, sounds and raw elements.
#pragma once

#include <filesystem>

#include "lib/ir/program.h"
#include "lib/media/picture.h"
#include "lib/support/error.h"

namespace mlc::driver {

// Reads a tensor from .npy, an .npz with one array, .pb (onnx.TensorProto), a picture
// (lib/media/picture.h) or a sound (lib/media/sound.h), whatever the file is called. Error
// "unknown-format" says how to convert a file of another known format.
Tensor ReadTensor(const std::filesystem::path& path);

// Reads samples along the first dimension: a tensor as it is, a picture or a sound as one sample, and
// a folder of these as several of one size, in the order of their names. Error "bad-input" for
// samples of different sizes and for other files in the folder.
Tensor ReadSampleArray(const std::filesystem::path& path);

// Whether files of this extension are read from folders of inputs.
bool HasInputName(const std::filesystem::path& path);
// Whether it is that of a picture or a sound.
bool HasMediaName(const std::filesystem::path& path);

// Reads a file as an input of a function. Beside what ReadTensor reads, .raw and .bin files hold the
// elements of the input in its declared type, little-endian, in C order.
//
// An image input accepts pictures, gray ones also in colour; another input accepts them only if it
// has uint8 elements [height, width, channels] or [height, width]. A sound takes the shape of an
// input with one dimension for its samples. `fit` brings pictures to the size of the input, and cuts
// sounds or fills them with silence at the end; without it, another size is the Error "bad-input".
Tensor ReadInput(const std::filesystem::path& path, const Port& port, const Value& value,
                 media::Fit fit = media::Fit::kNone);

// Returns the Error "usage" for a picture that a function without an image input is given: what it takes
// instead, and what the folder of a source model lacks.
Error NoImageInput(const std::filesystem::path& model, const Function& function);

// Reads the samples of a sound of one channel, or the mean of all channels. Error "bad-input" for a
// sound of another rate.
std::vector<float> ReadMonoSound(const std::filesystem::path& path, int64_t rate);

}  // namespace mlc::driver
