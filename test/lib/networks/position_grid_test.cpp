#include "lib/networks/position_grid.h"

#include "test/catch.h"

namespace mlc::test {
using namespace networks;
namespace {

std::vector<float> Resize(GridSize from, GridSize to, std::vector<float> rows, Resizing resizing) {
  const Tensor table = Tensor::Of<float>({from.count(), 1}, rows);
  const Pin<float> data = ResizedGrid(table, from, to, resizing).data<float>();
  return {data.begin(), data.end()};
}

void CheckClose(const std::vector<float>& values, const std::vector<double>& expected) {
  REQUIRE(values.size() == expected.size());
  for (size_t i = 0; i < values.size(); ++i) CHECK(values[i] == Approx(expected[i]));
}

// The expected values were calculated by hand from the kernels.
TEST_CASE("Positions are resized as by torch.nn.functional.interpolate") {
  const std::vector<float> pair = {0, 1}, ramp = {0, 1, 2, 3};
  const std::vector<double> cubic = {-0.10546875, 0.2265625, 0.7734375, 1.10546875};
  CheckClose(Resize({1, 2}, {1, 4}, pair, Resizing::kBicubic), cubic);
  CheckClose(Resize({2, 1}, {4, 1}, pair, Resizing::kBicubic), cubic);
  CheckClose(Resize({1, 2}, {1, 4}, pair, Resizing::kBilinear), {0, 0.25, 0.75, 1});
  CheckClose(Resize({1, 4}, {1, 2}, ramp, Resizing::kBilinear), {0.5, 2.5});
  // When it shrinks, antialiasing takes more elements: (0.75 * 1 + 0.25 * 2) / 1.75.
  CheckClose(Resize({1, 4}, {1, 2}, ramp, Resizing::kBilinearAntialias),
             {1.25 / 1.75, 3 - 1.25 / 1.75});
  CHECK(Resize({2, 2}, {2, 2}, ramp, Resizing::kBicubicAntialias) == ramp);
}

}  // namespace
}  // namespace mlc::test
