// lib/gradients/gradients.h - the function that computes how the loss of a function changes with its
// weights (reverse-mode differentiation).
//
// MIL to MIL: the result computes the values of the function, and then, in reverse order, the
// gradient of the loss with respect to each of them, with the derivatives of derivatives.h. The
// engine runs it like any other function.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "lib/ir/program.h"

namespace mlc::gradients {

struct Request {
  const Function& function;
  // The sizes of the inputs, by name: sizes that are not fixed have no gradients.
  std::map<std::string, Dims> input_dims;
  // Constants of the function, of floats. Those that several operations use have one gradient.
  std::vector<const Value*> weights;
  // Outputs that count, and those of them that hold scores of the next token.
  std::set<std::string> outputs, logits;
};

// A program with one function. It has the inputs of the function, without its states, which are
// zero, and further ones in fp32:
//   - each weight;
//   - for each output, its reference, and how much its squared error counts: the loss is the sum of
//     squared differences times that number, over the outputs;
//   - for scores of the next token, only the reference: the loss is the mean over the positions of
//     the divergence of the distributions, up to a constant.
// Its outputs are the loss and the gradient of each weight, which has the shape of the weight.
struct Differentiated {
  Program program;
  std::vector<std::string> weights, gradients;  // names of inputs and outputs, as Request::weights
  struct Reference {
    std::string reference, importance;  // names of inputs; no importance for scores
  };
  std::map<std::string, Reference> references;  // by output
  std::string loss;
};

// Throws Error "unsupported-operator", which lists the operators without a derivative that a weight
// reaches, and the errors of type inference for sizes that do not fit.
Differentiated Differentiate(const Request& request, Diagnostics& diagnostics);

}  // namespace mlc::gradients
