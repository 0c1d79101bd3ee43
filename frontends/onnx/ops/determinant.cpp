// Det and Inverse.
#include "frontends/onnx/row.h"
#include "lib/lower/gaussian_elimination.h"

namespace mlc::onnx {

namespace {

template <Value* (*kOf)(Builder&, Value*)>
void OfSquare(Node& node) {
  node.SetAlike(kOf(node, node.In(0)));
}

constexpr char kSquare[] = "square matrices of constant size, up to 64";

constexpr NodeRow kDeterminantRows[] = {
    NodeRow("Det", OfSquare<lower::Determinant>, 11).When(kSquare),
    Microsoft("Inverse", OfSquare<lower::Inverse>).When(kSquare),
};

}  // namespace

std::span<const NodeRow> DeterminantRows() { return kDeterminantRows; }

}  // namespace mlc::onnx
