/* three_things.c - what every binding's example does: reads digits, continues a text, and builds, runs and
 * writes a graph with a loop.
 *
 *     cc three_things.c $(pkg-config --cflags --libs mlc) -o three_things
 *     ./three_things digits.onnx images.f32 speaker.gguf b loop.mlpackage
 *
 * images.f32 has 8x8 pixels of fp32 for each image. */
#include <mlc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program if a call failed. */
static void check(int32_t code, mlc_error* error) {
  if (code == MLC_OK) return;
  fprintf(stderr, "%s\n", mlc_error_text(error));
  mlc_error_free(error);
  exit(1);
}

static mlc_tensor tensor(void* data, int32_t dtype, int32_t rank, const int64_t* dims) {
  mlc_tensor made = {sizeof(mlc_tensor), data, dtype, rank, dims, NULL, NULL};
  return made;
}

static void read_digits(const char* path, const char* images) {
  mlc_error* error = NULL;
  mlc_model* model = NULL;
  float image[64], scores[10];
  const int64_t image_dims[] = {1, 1, 8, 8}, score_dims[] = {1, 10};
  const mlc_tensor x = tensor(image, MLC_FP32, 4, image_dims);
  const mlc_tensor y = tensor(scores, MLC_FP32, 2, score_dims);
  const mlc_tensor *inputs[] = {&x}, *outputs[] = {&y};
  const char *input_names[] = {"image"}, *output_names[] = {"probabilities"};
  FILE* file = fopen(images, "rb");
  check(mlc_model_load(NULL, path, NULL, &model, &error), error);
  printf("digits:");
  while (file && fread(image, sizeof image, 1, file) == 1) {
    int best = 0, i;
    check(mlc_predict(model, NULL, 1, input_names, inputs, 1, output_names, outputs, 0, NULL, &error),
          error);
    for (i = 1; i < 10; ++i)
      if (scores[i] > scores[best]) best = i;
    printf(" %d", best);
  }
  printf("\n");
  if (file) fclose(file);
  mlc_model_free(model);
}

static void speak(const char* path, const char* prompt) {
  mlc_error* error = NULL;
  mlc_model* model = NULL;
  mlc_tokenizer* tokenizer = NULL;
  mlc_generator* generator = NULL;
  int32_t done = 0;
  check(mlc_model_load(NULL, path, NULL, &model, &error), error);
  check(mlc_tokenizer_load(NULL, path, &tokenizer, &error), error);
  check(mlc_generator_new(model, tokenizer, NULL, &generator, &error), error);
  check(mlc_generator_feed(generator, prompt, strlen(prompt), &error), error);
  printf("text: %s", prompt);
  while (!done) {
    const char* piece = NULL;
    check(mlc_generator_next(generator, NULL, &piece, &done, &error), error);
    printf("%s", piece);
  }
  printf("\n");
  mlc_generator_free(generator);
  mlc_tokenizer_free(tokenizer);
  mlc_model_free(model);
}

/* Finishes an operation with one result. */
static mlc_value finish(mlc_op* op) {
  mlc_error* error = NULL;
  mlc_value value = -1;
  check(mlc_op_finish(op, 1, &value, NULL, &error), error);
  mlc_op_free(op);
  return value;
}

static mlc_op* begin(mlc_block* block, const char* op_name, const char* name) {
  mlc_error* error = NULL;
  mlc_op* op = NULL;
  check(mlc_op_new(block, op_name, name, &op, &error), error);
  return op;
}

static mlc_value binary(mlc_block* block, const char* op_name, mlc_value x, mlc_value y) {
  mlc_error* error = NULL;
  mlc_op* op = begin(block, op_name, NULL);
  check(mlc_op_arg(op, "x", x, &error), error);
  check(mlc_op_arg(op, "y", y, &error), error);
  return finish(op);
}

static mlc_value constant(mlc_block* block, int32_t number) {
  mlc_error* error = NULL;
  mlc_value value = -1;
  const mlc_tensor scalar = tensor(&number, MLC_INT32, 0, NULL);
  check(mlc_block_constant(block, NULL, &scalar, &value, &error), error);
  return value;
}

/* sum = 0 + 1 + ... + (n - 1) */
static void loop(const char* package) {
  mlc_error* error = NULL;
  mlc_program* program = NULL;
  mlc_block *body = NULL, *nested[2];
  mlc_op* op;
  mlc_value n, limit, zero, variables[2], inner[2][2], results[2], sum;
  mlc_model* model = NULL;
  const int64_t one[] = {1}, axes[] = {0};
  int32_t in = 5, out = 0, i;
  const mlc_tensor x = tensor(&in, MLC_INT32, 1, one), y = tensor(&out, MLC_INT32, 1, one);
  const mlc_tensor *inputs[] = {&x}, *outputs[] = {&y};
  const char *input_names[] = {"n"}, *output_names[] = {"sum"};
  char* text = NULL;

  check(mlc_program_new(NULL, &program, &error), error);
  check(mlc_function_add(program, "main", &body, &error), error);
  check(mlc_block_input(body, "n", MLC_INT32, 1, one, &n, &error), error);
  op = begin(body, "squeeze", "limit");
  check(mlc_op_arg(op, "x", n, &error), error);
  limit = finish(op);
  zero = constant(body, 0);
  variables[0] = variables[1] = zero;
  op = begin(body, "while_loop", "loop");
  check(mlc_op_args(op, "loop_vars", 2, variables, &error), error);
  for (i = 0; i < 2; ++i) {
    check(mlc_op_block(op, i, &nested[i], &error), error);
    check(mlc_block_input(nested[i], "i", MLC_INT32, 0, NULL, &inner[i][0], &error), error);
    check(mlc_block_input(nested[i], "s", MLC_INT32, 0, NULL, &inner[i][1], &error), error);
  }
  check(mlc_block_output(nested[0], NULL, binary(nested[0], "less", inner[0][0], limit), &error),
        error);
  check(mlc_block_output(nested[1], NULL,
                         binary(nested[1], "add", inner[1][0], constant(nested[1], 1)), &error),
        error);
  check(mlc_block_output(nested[1], NULL, binary(nested[1], "add", inner[1][1], inner[1][0]), &error),
        error);
  check(mlc_op_finish(op, 2, results, NULL, &error), error);
  mlc_op_free(op);
  op = begin(body, "expand_dims", "sum");
  check(mlc_op_arg(op, "x", results[1], &error), error);
  check(mlc_op_ints(op, "axes", 1, axes, &error), error);
  sum = finish(op);
  check(mlc_block_output(body, "sum", sum, &error), error);

  check(mlc_program_load(NULL, program, NULL, &model, &error), error);
  printf("loop:");
  for (in = 0; in <= 5; ++in) {
    check(mlc_predict(model, NULL, 1, input_names, inputs, 1, output_names, outputs, 0, NULL, &error),
          error);
    printf(" %d", (int)out);
  }
  printf("\n");
  mlc_model_free(model);
  check(mlc_program_write(NULL, program, package, NULL, NULL, &error), error);
  mlc_program_free(program);
  check(mlc_model_load(NULL, package, NULL, &model, &error), error);
  check(mlc_model_placements(model, &text, &error), error);
  printf("package: %s\n", strstr(text, "while_loop") ? "while_loop" : "no loop");
  mlc_string_free(text);
  mlc_model_free(model);
}

int main(int argc, char** argv) {
  mlc_error* error = NULL;
  if (argc != 6) return 2;
  check(mlc_require(MLC_ABI_VERSION, &error), error);
  read_digits(argv[1], argv[2]);
  speak(argv[3], argv[4]);
  loop(argv[5]);
  return 0;
}
