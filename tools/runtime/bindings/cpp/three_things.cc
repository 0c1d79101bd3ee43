// three_things.cc - what every binding's example does (bindings/README.md).
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>

#include "mlc.hpp"

static void ReadDigits(const char* path, const char* images) {
  const mlc::Model model(path);
  std::vector<float> image(64), scores(10);
  std::ifstream file(images, std::ios::binary);
  std::cout << "digits:";
  while (file.read(reinterpret_cast<char*>(image.data()), 256)) {
    model.Predict({{"image", mlc::Tensor(image.data(), {1, 1, 8, 8})}},
                  {{"probabilities", mlc::Tensor(scores.data(), {1, 10})}});
    std::cout << " " << std::max_element(scores.begin(), scores.end()) - scores.begin();
  }
  std::cout << "\n";
}

static void Speak(const char* path, const char* prompt) {
  const mlc::Model model(path);
  const mlc::Tokenizer tokenizer(path);
  mlc::Generator generator(model, tokenizer);
  generator.Feed(prompt);
  std::string text = prompt;
  while (generator.Next(text)) {
  }
  std::cout << "text: " << text << "\n";
}

// sum = 0 + 1 + ... + (n - 1)
static void Loop(const char* package) {
  mlc::Program program;
  mlc::Block body = program.AddFunction("main");
  const mlc::Value n = body.Input("n", MLC_INT32, {1});
  const mlc::Value limit = body.Begin("squeeze", "limit").Arg("x", n).Finish();
  const int32_t numbers[] = {0, 1};
  const mlc::Value zero = body.Constant("", mlc::Tensor(&numbers[0], {}));
  mlc::Op loop = body.Begin("while_loop", "loop");
  loop.Args("loop_vars", {zero, zero});
  mlc::Block condition = loop.Nested(0), step = loop.Nested(1);
  const mlc::Value counter = condition.Input("i", MLC_INT32, {});
  condition.Input("s", MLC_INT32, {});
  condition.Output("", condition.Begin("less").Arg("x", counter).Arg("y", limit).Finish());
  const mlc::Value i = step.Input("i", MLC_INT32, {}), s = step.Input("s", MLC_INT32, {});
  const mlc::Value one = step.Constant("", mlc::Tensor(&numbers[1], {}));
  step.Output("", step.Begin("add").Arg("x", i).Arg("y", one).Finish());
  step.Output("", step.Begin("add").Arg("x", s).Arg("y", i).Finish());
  const std::vector<mlc::Value> results = loop.FinishAll();
  body.Output("sum", body.Begin("expand_dims", "sum").Arg("x", results[1]).Ints("axes", {0}).Finish());

  const mlc::Model model = program.Load();
  std::cout << "loop:";
  for (int32_t in = 0; in <= 5; ++in) {
    int32_t out = 0;
    model.Predict({{"n", mlc::Tensor(&in, {1})}}, {{"sum", mlc::Tensor(&out, {1})}});
    std::cout << " " << out;
  }
  program.Write(package);
  const bool has_loop = mlc::Model(package).placements().find("while_loop") != std::string::npos;
  std::cout << "\npackage: " << (has_loop ? "while_loop" : "no loop") << "\n";
}

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  try {
    ReadDigits(argv[1], argv[2]);
    Speak(argv[3], argv[4]);
    Loop(argv[5]);
  } catch (const mlc::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
