/* mlc.h - the C interface of libmlc: compiles models to Core ML packages, runs them, and builds
 * programs operation by operation.
 *
 *     mlc_error* error = NULL;
 *     mlc_model* model = NULL;
 *     if (mlc_model_load(NULL, "digits.mlpackage", NULL, &model, &error) != MLC_OK) {
 *       fprintf(stderr, "%s\n", mlc_error_text(error));
 *       mlc_error_free(error);
 *       return 1;
 *     }
 *
 * Core ML runs the models on Apple's systems, the reference engine of mlc everywhere else. The
 * library is linked with `pkg-config --cflags --libs mlc`, or mlc::libmlc of find_package(libmlc).
 *
 * RESULTS. A function that can fail returns int32_t: MLC_OK (0), or the class of the error. Its
 * last parameter receives an error record, which the caller frees; it may be NULL. On success
 * *error is set to NULL. Output parameters are only written on success. NULL for a handle or a
 * pointer that is required is an error, not a crash.
 *
 * OWNERSHIP. Each function states it in a line "Ownership:".
 *   caller    The caller frees the results with the function named there; NULL does nothing.
 *   lent      The result belongs to the handle that was asked, and is valid as long as stated.
 *   none      Nothing changes hands: arguments are only used during the call.
 * Handles keep what they need, so that the order of freeing is free: a model may be freed before
 * its states. Arguments are copied unless the function says otherwise.
 *
 * THREADS. Each function states it in a line "Threads:".
 *   any            Any thread at any time, also several threads with the same handle.
 *   one at a time  Any thread, but calls with the same handle must not overlap.
 *   while running  Any thread, also while another call with the same handle is running.
 * There is no setting of the process and no result per thread. Callbacks are only called on the
 * thread that called the library, during the call.
 *
 * TEXT is UTF-8 and ends with a NUL, except where a size is given. Paths are UTF-8, too.
 *
 * OPTIONS are a JSON object, or NULL for the defaults. Its fields are the options of the command
 * line without the dashes ("mlc compile --help" lists them):
 *
 *     {"precision": "fp32", "dim": {"batch": "1..8"}, "shape": {"x": [1, 3, 224, 224]},
 *      "no-manifest": true, "fp32-ops": ["softmax"]}
 *
 * An option NAME=VALUE is an object, a switch is true or false, a list is an array, and every
 * value may also be a string as on the command line. Unknown fields are errors. mlc_options lists
 * the options of a function.
 *
 * RESULTS AS JSON are those of the command line with --json.
 *
 * STABILITY. Functions are added, never changed or removed, within a major version; each has the
 * symbol version of the release that added it. mlc_abi_supports and mlc_require tell what a
 * library has. JSON results may gain fields.
 *
 * The library prints nothing, never ends the process, installs no signal handlers and changes
 * neither the environment nor the locale. Its exceptions do not leave it. Files that it reads are
 * not mapped, so that a file which another process truncates is an error. dlclose leaves the
 * library loaded, because protobuf cannot register its messages twice. Long calls use a thread of
 * their own, so that a small stack suffices; only predictions without a time limit run on the
 * stack of the caller, which must have 128 kB.
 */
#ifndef MLC_H
#define MLC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef MLC_API
#define MLC_API
#endif

/* ---- Version ------------------------------------------------------------------------------- */

/* The version of this header: major << 16 | minor. */
#define MLC_ABI_VERSION 1

/* Returns the version of the library, e.g. "0.9.0".
 * Ownership: lent, valid as long as the library is loaded.
 * Threads: any. */
MLC_API const char* mlc_version(void);

/* Returns the version of the interface of the library, to compare with MLC_ABI_VERSION.
 * Ownership: none.
 * Threads: any. */
MLC_API int32_t mlc_abi_version(void);

/* Returns 1 if the library has the function of this name, otherwise 0.
 * Ownership: none.
 * Threads: any. */
MLC_API int32_t mlc_abi_supports(const char* function);

typedef struct mlc_error mlc_error;

/* Lists the options of a function of this name, e.g. "mlc_compile": {"options": [{"name", "type",
 * "value", "choices", "default", "required", "doc"}]}. The type is "boolean", "number", "string",
 * "array" or "object"; "value" describes the value, and "default" is there if it is a fixed one.
 * Ownership: the caller frees *result with mlc_string_free, *error with mlc_error_free.
 * Threads: any. */
MLC_API int32_t mlc_options(const char* function, char** result, mlc_error** error);

/* Fails if a program that was compiled with MLC_ABI_VERSION `header` cannot use this library. The
 * error says which of the two is older, and where the library was loaded from.
 * Ownership: the caller frees *error with mlc_error_free.
 * Threads: any. */
MLC_API int32_t mlc_require(int32_t header, mlc_error** error);

/* ---- Errors -------------------------------------------------------------------------------- */

/* Classes of errors:
 *   INPUT        the model or a tensor is invalid: types, shapes, names, damaged files
 *   USAGE        options, or arguments of a function, are invalid
 *   CHECK        a budget or a limit that an option sets was exceeded
 *   TIMEOUT      the time limit was exceeded
 *   UNSUPPORTED  a valid model that mlc, the target or this system does not support
 *   FILE         the operating system refused to read or write
 *   LIMIT        a limit on memory, depth, number of elements or size of a file was exceeded
 *   CANCELLED    mlc_context_cancel, or a callback, ended the call
 *   RUNTIME      Core ML failed, or its results contradict the model
 *   INTERNAL     a bug in mlc */
#define MLC_OK 0
#define MLC_ERROR_INPUT 1
#define MLC_ERROR_USAGE 2
#define MLC_ERROR_CHECK 3
#define MLC_ERROR_TIMEOUT 4
#define MLC_ERROR_UNSUPPORTED 5
#define MLC_ERROR_FILE 6
#define MLC_ERROR_LIMIT 7
#define MLC_ERROR_CANCELLED 8
#define MLC_ERROR_RUNTIME 9
#define MLC_ERROR_INTERNAL 70

/* Returns the class of the error, MLC_OK for NULL.
 * Ownership: none.
 * Threads: any. */
MLC_API int32_t mlc_error_code(const mlc_error* error);

/* Returns the stable id, e.g. "bad-name".
 * Ownership: lent, valid until the error is freed.
 * Threads: any. */
MLC_API const char* mlc_error_id(const mlc_error* error);

/* Returns what is wrong, on one line.
 * Ownership: lent, valid until the error is freed.
 * Threads: any. */
MLC_API const char* mlc_error_message(const mlc_error* error);

/* Returns the file and the node, tensor or line, "" if there is none.
 * Ownership: lent, valid until the error is freed.
 * Threads: any. */
MLC_API const char* mlc_error_location(const mlc_error* error);

/* Returns what was expected and what would help, one per line, "" if there is nothing.
 * Ownership: lent, valid until the error is freed.
 * Threads: any. */
MLC_API const char* mlc_error_hint(const mlc_error* error);

/* Returns id, message, location and hints of all errors, as the command line prints them.
 * Ownership: lent, valid until the error is freed.
 * Threads: any. */
MLC_API const char* mlc_error_text(const mlc_error* error);

/* Returns {"errors": [{"id", "text", "location", "notes"}]}.
 * Ownership: lent, valid until the error is freed.
 * Threads: any. */
MLC_API const char* mlc_error_json(const mlc_error* error);

/* Returns the number of errors in the record: an import reports all bad nodes. The functions above
 * describe the first.
 * Ownership: none.
 * Threads: any. */
MLC_API int32_t mlc_error_count(const mlc_error* error);

/* Returns an error of the record, NULL if the index is out of range.
 * Ownership: lent, valid until `error` is freed.
 * Threads: any. */
MLC_API const mlc_error* mlc_error_at(const mlc_error* error, int32_t index);

/* Frees an error record.
 * Ownership: takes `error`, which may be NULL.
 * Threads: one at a time. */
MLC_API void mlc_error_free(mlc_error* error);

/* Frees a text that a function returned through a char**.
 * Ownership: takes `text`, which may be NULL.
 * Threads: one at a time. */
MLC_API void mlc_string_free(char* text);

/* ---- Context ------------------------------------------------------------------------------- */

/* The settings of long calls, which can be cancelled. Functions accept NULL for the defaults. One
 * context serves one call at a time. */
typedef struct mlc_context mlc_context;

#define MLC_NOTE 1
#define MLC_WARNING 2

/* Receives notes and warnings of a call (MLC_NOTE, MLC_WARNING) before it returns. `id` is "" for
 * a note. The texts are valid during the call of the function. */
typedef void (*mlc_log_function)(int32_t level, const char* id, const char* text, void* user);

/* Receives how much of a step is done, from 0 to 1, which never falls within a call; several steps
 * can alternate. A result other than 0 cancels the call, and only that one. */
typedef int32_t (*mlc_progress_function)(const char* step, double share, void* user);

/* Creates a context. Options: "threads", the maximum number of threads of a call;
 * "temporary-folder", for temporary files, and "cache-folder", for models that Core ML compiled,
 * instead of those of the environment. The memory of a call is limited by the process only.
 * Ownership: the caller frees *context with mlc_context_free, *error with mlc_error_free.
 * Threads: any. */
MLC_API int32_t mlc_context_new(const char* options, mlc_context** context, mlc_error** error);

/* Sets the receiver of notes and warnings; NULL: none.
 * Ownership: none; `user` must remain valid until it is replaced or the context is freed.
 * Threads: one at a time. */
MLC_API void mlc_context_set_log(mlc_context* context, mlc_log_function log, void* user);

/* Sets the receiver of progress; NULL: none.
 * Ownership: none; `user` must remain valid until it is replaced or the context is freed.
 * Threads: one at a time. */
MLC_API void mlc_context_set_progress(mlc_context* context, mlc_progress_function progress,
                                      void* user);

/* Ends the call that uses the context with MLC_ERROR_CANCELLED as soon as possible, and each later
 * one until mlc_context_reset. What was half written is removed.
 * Ownership: none.
 * Threads: while running. */
MLC_API void mlc_context_cancel(mlc_context* context);

/* Lets the next calls run again.
 * Ownership: none.
 * Threads: while running. */
MLC_API void mlc_context_reset(mlc_context* context);

/* Frees a context that no call uses.
 * Ownership: takes `context`, which may be NULL.
 * Threads: one at a time. */
MLC_API void mlc_context_free(mlc_context* context);

/* ---- Compiling and examining models -------------------------------------------------------- */

/* Compiles a model (ONNX, GGUF, a Hugging Face folder) to a .mlpackage or .mlmodelc. `result`,
 * which may be NULL, receives a JSON object: package, target, precision, operations, weight_bytes,
 * inputs, outputs, decisions and so on. A manifest and, for language models, the tokenizer are
 * written beside the output. An output that mlc has written before is replaced, any other only with
 * the option "force". Options: those of mlc compile.
 * Ownership: the caller frees *result with mlc_string_free, *error with mlc_error_free.
 * Threads: any, each with its own context. */
MLC_API int32_t mlc_compile(mlc_context* context, const char* model, const char* output,
                            const char* options, char** result, mlc_error** error);

/* Compiles a model file whose bytes are in memory. `folder`, which may be NULL, contains its
 * external data. The bytes are copied to a temporary file, which is removed before the call
 * returns.
 * Ownership: the caller frees *result with mlc_string_free, *error with mlc_error_free.
 * Threads: any, each with its own context. */
MLC_API int32_t mlc_compile_memory(mlc_context* context, const void* bytes, size_t size,
                                   const char* folder, const char* output, const char* options,
                                   char** result, mlc_error** error);

/* Describes a model of any format: interface, operators, weights. As mlc inspect --ops --json.
 * Options: those that concern the import ("dim", "shape", ...), and "weights" to list the
 * constants.
 * Ownership: the caller frees *result with mlc_string_free, *error with mlc_error_free.
 * Threads: any, each with its own context. */
MLC_API int32_t mlc_inspect(mlc_context* context, const char* model, const char* options,
                            char** result, mlc_error** error);

/* Lists the operators of an ONNX model, those that are not supported, and why.
 * Ownership: the caller frees *result with mlc_string_free, *error with mlc_error_free.
 * Threads: any, each with its own context. */
MLC_API int32_t mlc_operators(mlc_context* context, const char* model, const char* options,
                              char** result, mlc_error** error);

/* Explains which operations a compute unit can run. Options: those of mlc explain.
 * Ownership: the caller frees *result with mlc_string_free, *error with mlc_error_free.
 * Threads: any, each with its own context. */
MLC_API int32_t mlc_explain(mlc_context* context, const char* model, const char* options,
                            char** result, mlc_error** error);

/* Finds what is likely to fail or to be slow in an app.
 * Ownership: the caller frees *result with mlc_string_free, *error with mlc_error_free.
 * Threads: any, each with its own context. */
MLC_API int32_t mlc_doctor(mlc_context* context, const char* model, const char* options,
                           char** result, mlc_error** error);

/* Describes this machine, the library and the runtime: chip, devices, compute units, missing
 * features with the reasons.
 * Ownership: the caller frees *result with mlc_string_free, *error with mlc_error_free.
 * Threads: any, each with its own context. */
MLC_API int32_t mlc_system(mlc_context* context, char** result, mlc_error** error);

/* Lists the differences between two models.
 * Ownership: the caller frees *result with mlc_string_free, *error with mlc_error_free.
 * Threads: any, each with its own context. */
MLC_API int32_t mlc_diff(mlc_context* context, const char* first, const char* second, char** result,
                         mlc_error** error);

/* Compares a package with its source model. Options: those of mlc verify. A failed comparison is
 * no error: "ok" and "verdict" of the result state it.
 * Ownership: the caller frees *result with mlc_string_free, *error with mlc_error_free.
 * Threads: any, each with its own context. */
MLC_API int32_t mlc_verify(mlc_context* context, const char* source, const char* package,
                           const char* options, char** result, mlc_error** error);

/* Writes the compiled bundle of a package. Options: those of mlc precompile.
 * Ownership: the caller frees *result with mlc_string_free, *error with mlc_error_free.
 * Threads: any, each with its own context. */
MLC_API int32_t mlc_precompile(mlc_context* context, const char* package, const char* output,
                               const char* options, char** result, mlc_error** error);

/* Lists the operators that the builder knows: {"operators": [{"name", "class", "summary",
 * "parameters": [{"name", "required", ...}]}]}. The class is "direct" for the operators of MIL,
 * which also have "since", the target that they require, and "decomposed" for operators of ONNX
 * that become several, such as "onnx.Einsum", perhaps under a "condition". All other names of MIL
 * and ONNX have the class "never" and the reason, "why".
 * Ownership: the caller frees *result with mlc_string_free, *error with mlc_error_free.
 * Threads: any. */
MLC_API int32_t mlc_capabilities(char** result, mlc_error** error);

/* ---- Tensors ------------------------------------------------------------------------------- */

/* Element types. Types below 8 bits are packed, least significant bits first. Models have inputs
 * of MLC_BOOL to MLC_UINT16 with at most five dimensions, and outputs of these types and
 * MLC_STRING. The probabilities of a classifier are an output of MLC_FP64 with a number for each
 * label. The other types occur in constants. A bool is one byte, 0 or 1. Strings are only read, with
 * mlc_results_string: a tensor of MLC_STRING that is passed to the library is an error. */
#define MLC_BOOL 1
#define MLC_FP16 2
#define MLC_FP32 3
#define MLC_INT8 4
#define MLC_INT16 5
#define MLC_INT32 6
#define MLC_UINT8 7
#define MLC_UINT16 8
#define MLC_STRING 9
#define MLC_FP64 10
#define MLC_BF16 11
#define MLC_INT64 12
#define MLC_UINT32 13
#define MLC_UINT64 14
#define MLC_FP8_E4M3FN 15
#define MLC_FP8_E5M2 16
#define MLC_INT4 17
#define MLC_UINT1 18
#define MLC_UINT2 19
#define MLC_UINT3 20
#define MLC_UINT4 21
#define MLC_UINT6 22

/* A tensor in memory of the caller. The library uses it only during the call that receives it,
 * also if a time limit expires, except for mlc_block_constant_borrowed. Set struct_size to
 * sizeof(mlc_tensor) and `reserved` to NULL. */
typedef struct mlc_tensor {
  size_t struct_size;
  void* data; /* the first element; not modified in inputs and constants */
  int32_t dtype;
  int32_t rank;
  const int64_t* dims;    /* `rank` sizes; may be NULL if rank is 0 */
  const int64_t* strides; /* in elements, may be 0 or negative; NULL: dense, row-major */
  void* reserved;
} mlc_tensor;

/* ---- Models -------------------------------------------------------------------------------- */

/* A function of a model that is loaded and ready to predict. */
typedef struct mlc_model mlc_model;

/* Kinds of ports. */
#define MLC_PORT_INPUT 0
#define MLC_PORT_OUTPUT 1
#define MLC_PORT_STATE 2

/* Loads a package, a compiled bundle, MIL text or a source model. Options: those of mlc run that
 * concern loading: "units", "function", "arithmetic", "timeout", "load-timeout", "dim", "shape",
 * "low-precision", "reshapes", "specialization"; "threads", of the reference engine; "trace", for
 * mlc_model_trace; and
 * "circuit-breaker": true, which refuses predictions for five seconds or longer, with
 * MLC_ERROR_RUNTIME, after more than 5 % of the last 100 have failed; so do "p99-budget" and
 * "memory-mark". Times are in milliseconds.
 * Ownership: the caller frees *model with mlc_model_free, *error with mlc_error_free.
 * Threads: any, each with its own context. */
MLC_API int32_t mlc_model_load(mlc_context* context, const char* path, const char* options,
                               mlc_model** model, mlc_error** error);

/* Loads another function of the same model, which shares the weights.
 * Ownership: the caller frees *other with mlc_model_free, *error with mlc_error_free.
 * Threads: any. */
MLC_API int32_t mlc_model_load_function(mlc_model* model, const char* function, mlc_model** other,
                                        mlc_error** error);

/* Returns the number of functions of the model that this function belongs to, 0 for NULL.
 * Ownership: none.
 * Threads: any. */
MLC_API int32_t mlc_model_function_count(const mlc_model* model);

/* Returns the name of a function, NULL if the index is out of range.
 * Ownership: lent, valid until the model is freed.
 * Threads: any. */
MLC_API const char* mlc_model_function_name(const mlc_model* model, int32_t index);

/* Returns the interface as JSON: inputs, outputs, states, symbols of open sizes, labels.
 * Ownership: lent, valid until the model is freed; NULL for NULL.
 * Threads: any. */
MLC_API const char* mlc_model_schema(const mlc_model* model);

/* Returns the number of inputs, outputs or states, -1 for an unknown kind.
 * Ownership: none.
 * Threads: any. */
MLC_API int32_t mlc_model_port_count(const mlc_model* model, int32_t kind);

/* Returns the name in the package, which is also the name in predictions. Predictions accept the
 * name in the source model, too. NULL if there is no such port.
 * Ownership: lent, valid until the model is freed.
 * Threads: any. */
MLC_API const char* mlc_model_port_name(const mlc_model* model, int32_t kind, int32_t index);

/* Returns the element type that the library delivers, 0 if there is no such port.
 * Ownership: none.
 * Threads: any. */
MLC_API int32_t mlc_model_port_dtype(const mlc_model* model, int32_t kind, int32_t index);

/* Returns the number of dimensions, -1 if there is no such port.
 * Ownership: none.
 * Threads: any. */
MLC_API int32_t mlc_model_port_rank(const mlc_model* model, int32_t kind, int32_t index);

/* Returns the sizes, -1 for one that is open. NULL if there is no such port, or its rank is 0.
 * Ownership: lent, valid until the model is freed.
 * Threads: any. */
MLC_API const int64_t* mlc_model_port_dims(const mlc_model* model, int32_t kind, int32_t index);

/* Describes the machine, and what was asked for and what the model runs on: chip, os, devices,
 * units_requested, units_actual, ane_available, dtypes, missing features.
 * Ownership: the caller frees *result with mlc_string_free, *error with mlc_error_free.
 * Threads: any. */
MLC_API int32_t mlc_model_capabilities(mlc_model* model, char** result, mlc_error** error);

/* Lists for each operation the device that it is planned for.
 * Ownership: the caller frees *result with mlc_string_free, *error with mlc_error_free.
 * Threads: any. */
MLC_API int32_t mlc_model_placements(mlc_model* model, char** result, mlc_error** error);

/* Returns statistics of the predictions so far: counts, latencies, failures by kind, memory, and
 * the state of the circuit breaker.
 * Ownership: the caller frees *result with mlc_string_free, *error with mlc_error_free.
 * Threads: any. */
MLC_API int32_t mlc_model_telemetry(mlc_model* model, char** result, mlc_error** error);

/* Writes the predictions of all functions of the model so far, and the operations in them as far as
 * the runtime tells their times, as a file for chrome://tracing and ui.perfetto.dev. The model must
 * have been loaded with the option "trace": true, which costs time and memory, at most for a million
 * events.
 * Ownership: the caller frees *error with mlc_error_free.
 * Threads: any. */
MLC_API int32_t mlc_model_trace(mlc_model* model, const char* path, mlc_error** error);

/* Frees a model. States, requests and generators that use it remain valid.
 * Ownership: takes `model`, which may be NULL.
 * Threads: one at a time. */
MLC_API void mlc_model_free(mlc_model* model);

/* ---- States -------------------------------------------------------------------------------- */

/* The values that a model keeps between predictions. */
typedef struct mlc_state mlc_state;

/* Creates states of zeros. Error MLC_ERROR_USAGE if the model has none.
 * Ownership: the caller frees *state with mlc_state_free, *error with mlc_error_free.
 * Threads: any. */
MLC_API int32_t mlc_state_new(mlc_model* model, mlc_state** state, mlc_error** error);

/* Copies the value of a state into a tensor of its type and shape.
 * Ownership: the caller frees *error with mlc_error_free.
 * Threads: one at a time. */
MLC_API int32_t mlc_state_read(mlc_state* state, const char* name, const mlc_tensor* tensor,
                               mlc_error** error);

/* Replaces the value of a state.
 * Ownership: the caller frees *error with mlc_error_free.
 * Threads: one at a time. */
MLC_API int32_t mlc_state_write(mlc_state* state, const char* name, const mlc_tensor* tensor,
                                mlc_error** error);

/* Sets all states to zero, also after a failed prediction, which leaves them undefined.
 * Ownership: the caller frees *error with mlc_error_free.
 * Threads: one at a time. */
MLC_API int32_t mlc_state_reset(mlc_state* state, mlc_error** error);

/* Creates a copy, e.g. of a prompt that several answers continue.
 * Ownership: the caller frees *copy with mlc_state_free, *error with mlc_error_free.
 * Threads: one at a time. */
MLC_API int32_t mlc_state_copy(mlc_state* state, mlc_state** copy, mlc_error** error);

/* Frees states.
 * Ownership: takes `state`, which may be NULL.
 * Threads: one at a time. */
MLC_API void mlc_state_free(mlc_state* state);

/* ---- Predictions --------------------------------------------------------------------------- */

/* The outputs of a prediction, in memory of the library. */
typedef struct mlc_results mlc_results;

/* Predicts. `input_names` and `inputs` have `input_count` entries, one for every input that is not
 * optional. Inputs may have any type that represents their values exactly in the type of the
 * model. `output_names` and `outputs` name outputs to be copied into memory of the caller, which
 * has the type and the sizes of the results. `results`, which may be NULL, receives all outputs.
 * `state` may be NULL: states are zero, and forgotten. `timeout_ms`: 0 for the limit of the model
 * (option "timeout"), if it has one; otherwise the shorter of the two.
 *
 * If the time limit expires, the call returns MLC_ERROR_TIMEOUT and nothing of the caller's is
 * used afterwards, although the prediction may still be running.
 * Ownership: the caller frees *results with mlc_results_free, *error with mlc_error_free.
 * Threads: any, each with its own state. */
MLC_API int32_t mlc_predict(mlc_model* model, mlc_state* state, int32_t input_count,
                            const char* const* input_names, const mlc_tensor* const* inputs,
                            int32_t output_count, const char* const* output_names,
                            const mlc_tensor* const* outputs, int64_t timeout_ms,
                            mlc_results** results, mlc_error** error);

/* Returns the number of outputs, 0 for NULL.
 * Ownership: none.
 * Threads: any. */
MLC_API int32_t mlc_results_count(const mlc_results* results);

/* Returns the name of an output, NULL if the index is out of range.
 * Ownership: lent, valid until the results are freed.
 * Threads: any. */
MLC_API const char* mlc_results_name(const mlc_results* results, int32_t index);

/* Returns the index of an output by its name in the package or the source, -1 if there is none.
 * Ownership: none.
 * Threads: any. */
MLC_API int32_t mlc_results_find(const mlc_results* results, const char* name);

/* Fills in `tensor`, whose struct_size is set, with the dense elements of an output. Outputs of
 * strings have no data.
 * Ownership: lent, data and dims are valid until the results are freed; the caller frees *error
 * with mlc_error_free.
 * Threads: any. */
MLC_API int32_t mlc_results_tensor(const mlc_results* results, int32_t index, mlc_tensor* tensor,
                                   mlc_error** error);

/* Returns an element of an output of strings, e.g. a class label; NULL if there is none.
 * Ownership: lent, valid until the results are freed.
 * Threads: any. */
MLC_API const char* mlc_results_string(const mlc_results* results, int32_t index, int64_t element);

/* Returns {"marshal_in_ms", "predict_ms", "marshal_out_ms", "fallback"}.
 * Ownership: lent, valid until the results are freed; NULL for NULL.
 * Threads: any. */
MLC_API const char* mlc_results_timings(const mlc_results* results);

/* Frees results.
 * Ownership: takes `results`, which may be NULL.
 * Threads: one at a time. */
MLC_API void mlc_results_free(mlc_results* results);

/* A prediction that is prepared by one call per tensor, for languages whose garbage collector
 * forbids arrays of pointers to its memory. It can run several times. */
typedef struct mlc_request mlc_request;

/* Creates a request without inputs.
 * Ownership: the caller frees *request with mlc_request_free, *error with mlc_error_free.
 * Threads: any. */
MLC_API int32_t mlc_request_new(mlc_model* model, mlc_request** request, mlc_error** error);

/* Sets an input, whose elements are copied; NULL for the tensor removes it.
 * Ownership: the caller frees *error with mlc_error_free.
 * Threads: one at a time. */
MLC_API int32_t mlc_request_set_input(mlc_request* request, const char* name,
                                      const mlc_tensor* tensor, mlc_error** error);

/* Sets the states; NULL: zeros.
 * Ownership: none, the request keeps the states alive; the caller frees *error with
 * mlc_error_free.
 * Threads: one at a time. */
MLC_API int32_t mlc_request_set_state(mlc_request* request, mlc_state* state, mlc_error** error);

/* Predicts, as mlc_predict does. The inputs stay for the next run.
 * Ownership: the caller frees *results with mlc_results_free, *error with mlc_error_free.
 * Threads: one at a time. */
MLC_API int32_t mlc_request_run(mlc_request* request, int64_t timeout_ms, mlc_results** results,
                                mlc_error** error);

/* Frees a request.
 * Ownership: takes `request`, which may be NULL.
 * Threads: one at a time. */
MLC_API void mlc_request_free(mlc_request* request);

/* Several instances of a model that serve one queue: predictions run at the same time, each on one
 * instance, in the order in which they were asked for. */
typedef struct mlc_pool mlc_pool;

/* Creates a pool, whose instances share the weights where the runtime allows it. Options: "instances"
 * (default 2), "queue", how many predictions may wait (default 16).
 * Ownership: the caller frees *pool with mlc_pool_free, *error with mlc_error_free.
 * Threads: any. */
MLC_API int32_t mlc_pool_new(mlc_model* model, const char* options, mlc_pool** pool,
                             mlc_error** error);

/* Predicts on the next free instance, and returns when that is done. If the queue is full, the call
 * waits for room if `wait` is not 0, and fails with MLC_ERROR_LIMIT otherwise. The time limit includes
 * the time in the queue; a prediction that exceeds it is started nevertheless, and its result is
 * dropped. The request must not have states. It is only read, so that several calls can use it.
 * Ownership: the caller frees *results with mlc_results_free, *error with mlc_error_free.
 * Threads: any. */
MLC_API int32_t mlc_pool_run(mlc_pool* pool, const mlc_request* request, int32_t wait,
                             int64_t timeout_ms, mlc_results** results, mlc_error** error);

/* Returns {"instances", "queue", "submitted", "finished", "rejected", "blocked", "queue_high_water",
 * "waited_p50_ms", "waited_p99_ms"}.
 * Ownership: the caller frees *result with mlc_string_free, *error with mlc_error_free.
 * Threads: any. */
MLC_API int32_t mlc_pool_statistics(mlc_pool* pool, char** result, mlc_error** error);

/* Frees a pool that no call uses, after the predictions that it has begun.
 * Ownership: takes `pool`, which may be NULL.
 * Threads: one at a time. */
MLC_API void mlc_pool_free(mlc_pool* pool);

/* ---- Text ---------------------------------------------------------------------------------- */

/* Converts text to token ids and back. */
typedef struct mlc_tokenizer mlc_tokenizer;

/* Loads the tokenizer of a GGUF file, a Hugging Face folder or a tokenizer.json, or that
 * beside a package.
 * Ownership: the caller frees *tokenizer with mlc_tokenizer_free, *error with mlc_error_free.
 * Threads: any, each with its own context. */
MLC_API int32_t mlc_tokenizer_load(mlc_context* context, const char* path,
                                   mlc_tokenizer** tokenizer, mlc_error** error);

/* Encodes `size` bytes of text. Writes at most `capacity` ids to `ids`, and the number of all ids
 * to *count: if it is larger than `capacity`, call again with more room. `add_special` adds the
 * tokens that the model expects around a text, `parse_special` recognises special tokens in the
 * text.
 * Ownership: the caller frees *error with mlc_error_free.
 * Threads: any. */
MLC_API int32_t mlc_tokenizer_encode(const mlc_tokenizer* tokenizer, const char* text, size_t size,
                                     int32_t add_special, int32_t parse_special, int32_t* ids,
                                     size_t capacity, size_t* count, mlc_error** error);

/* Decodes ids. *text has *size bytes and a NUL behind them; `size` may be NULL. `special` also
 * spells out special tokens.
 * Ownership: the caller frees *text with mlc_string_free, *error with mlc_error_free.
 * Threads: any. */
MLC_API int32_t mlc_tokenizer_decode(const mlc_tokenizer* tokenizer, const int32_t* ids,
                                     size_t count, int32_t special, char** text, size_t* size,
                                     mlc_error** error);

/* Formats a conversation with the chat template of the tokenizer's model. `variables` is a JSON
 * object: "messages", a list of {"role", "content"}, and further variables of the template, such as
 * "tools" and "add_generation_prompt" (default true). *text has *size bytes and a NUL behind them;
 * `size` may be NULL. It is a text for mlc_generator_feed, or to be encoded with add_special and
 * parse_special: special tokens are recognised in messages, too.
 * Ownership: the caller frees *text with mlc_string_free, *error with mlc_error_free.
 * Threads: any. */
MLC_API int32_t mlc_tokenizer_chat(const mlc_tokenizer* tokenizer, const char* variables,
                                   char** text, size_t* size, mlc_error** error);

/* Returns the number of tokens, 0 for NULL.
 * Ownership: none.
 * Threads: any. */
MLC_API int32_t mlc_tokenizer_vocabulary(const mlc_tokenizer* tokenizer);

/* Returns the id of a token by its spelling ("<|im_end|>"), or of a role ("bos", "eos", "eot",
 * "unk", "sep", "cls", "pad", "mask"), -1 if there is none. A spelling takes precedence.
 * Ownership: none.
 * Threads: any. */
MLC_API int32_t mlc_tokenizer_find(const mlc_tokenizer* tokenizer, const char* token);

/* Returns 1 if the token ends an answer, otherwise 0.
 * Ownership: none.
 * Threads: any. */
MLC_API int32_t mlc_tokenizer_ends(const mlc_tokenizer* tokenizer, int32_t id);

/* Frees a tokenizer.
 * Ownership: takes `tokenizer`, which may be NULL.
 * Threads: one at a time. */
MLC_API void mlc_tokenizer_free(mlc_tokenizer* tokenizer);

/* Continues texts with a language model, one token per call. To stop, do not call again. */
typedef struct mlc_generator mlc_generator;

/* Creates a generator on a loaded language model. Options: those of mlc run for prompts that
 * choose tokens: "temperature", "top-k", "top-p", "min-p", "repetition-penalty", "seed", "stop".
 * Without a temperature, the most likely token is chosen; equal seeds give equal texts. Without a
 * tokenizer (NULL), only ids can be appended, and there is no text. A generator has states of its own.
 * Ownership: the caller frees *generator with mlc_generator_free, *error with mlc_error_free.
 * Threads: any. */
MLC_API int32_t mlc_generator_new(mlc_model* model, mlc_tokenizer* tokenizer, const char* options,
                                  mlc_generator** generator, mlc_error** error);

/* Appends a text to what the model has read. Special tokens in it are recognised. The first text
 * gets the tokens that the model expects at the beginning. Nothing is appended if the tokens exceed
 * the context.
 * Ownership: the caller frees *error with mlc_error_free.
 * Threads: one at a time. */
MLC_API int32_t mlc_generator_feed(mlc_generator* generator, const char* text, size_t size,
                                   mlc_error** error);

/* Appends tokens. Nothing is appended if one of them is not in the vocabulary of the model, or if
 * they exceed the context.
 * Ownership: the caller frees *error with mlc_error_free.
 * Threads: one at a time. */
MLC_API int32_t mlc_generator_feed_ids(mlc_generator* generator, const int32_t* ids, size_t count,
                                       mlc_error** error);

/* Chooses the next token. *piece is the text that became certain: whole characters, without what
 * may begin a stop text. *done is 1 when the answer has ended, by a token, a stop text or the end
 * of the context; *id is then -1 and *piece the rest of the text.
 * Ownership: *piece is lent, valid until the next call; the caller frees *error with
 * mlc_error_free.
 * Threads: one at a time. */
MLC_API int32_t mlc_generator_next(mlc_generator* generator, int32_t* id, const char** piece,
                                   int32_t* done, mlc_error** error);

/* Returns {"prompt_tokens", "tokens", "context", "finish", "why"}.
 * Ownership: the caller frees *result with mlc_string_free, *error with mlc_error_free.
 * Threads: one at a time. */
MLC_API int32_t mlc_generator_stats(mlc_generator* generator, char** result, mlc_error** error);

/* Copies the states of the model after the tokens that it has processed, whose number *count
 * receives; `count` may be NULL. Those that were appended since the last mlc_generator_next are not
 * processed yet.
 * Ownership: the caller frees *state with mlc_state_free, *error with mlc_error_free.
 * Threads: one at a time. */
MLC_API int32_t mlc_generator_state(mlc_generator* generator, mlc_state** state, size_t* count,
                                    mlc_error** error);

/* Forgets everything, and continues as if the model had read these tokens: `state`, which is
 * copied, has the states after them, e.g. of a prompt that several answers continue. At least one
 * more token must be appended before mlc_generator_next.
 * Ownership: none; the caller frees *error with mlc_error_free.
 * Threads: one at a time. */
MLC_API int32_t mlc_generator_start(mlc_generator* generator, mlc_state* state, const int32_t* ids,
                                    size_t count, mlc_error** error);

/* Forgets everything that the model has read.
 * Ownership: the caller frees *error with mlc_error_free.
 * Threads: one at a time. */
MLC_API int32_t mlc_generator_reset(mlc_generator* generator, mlc_error** error);

/* Frees a generator.
 * Ownership: takes `generator`, which may be NULL.
 * Threads: one at a time. */
MLC_API void mlc_generator_free(mlc_generator* generator);

/* ---- Programs ------------------------------------------------------------------------------ */

/* A program under construction: functions of MIL operations.
 *
 *     mlc_program_new(NULL, &program, &error);
 *     mlc_function_add(program, "main", &block, &error);
 *     mlc_block_input(block, "x", MLC_FP32, 2, dims, &x, &error);
 *     mlc_op_new(block, "relu", "y", &op, &error);
 *     mlc_op_arg(op, "x", x, &error);
 *     mlc_op_finish(op, 1, &y, NULL, &error);
 *     mlc_op_free(op);
 *     mlc_block_output(block, "y", y, &error);
 *     mlc_program_write(NULL, program, "relu.mlpackage", NULL, NULL, &error);
 */
typedef struct mlc_program mlc_program;

/* The body of a function, or a block of cond and while_loop. It belongs to its program: it is not
 * freed, and must not be used after mlc_program_free. */
typedef struct mlc_block mlc_block;

/* An operation under construction. */
typedef struct mlc_op mlc_op;

/* A value of a program: an input, a constant or the result of an operation. A value of another
 * program, or of a block that is not around the operation that uses it, is an error, which numbers
 * the programs of the process in the order of their creation. Passes end the lifetime of all
 * values. */
typedef int64_t mlc_value;

/* Creates an empty program. Options: "target", the deployment target ("iOS17"), below which the
 * program is never written.
 * Ownership: the caller frees *program with mlc_program_free, *error with mlc_error_free.
 * Threads: any. */
MLC_API int32_t mlc_program_new(const char* options, mlc_program** program, mlc_error** error);

/* Imports a model of any format as a program, e.g. to replace its weights. Options: those of the
 * import. Its functions cannot get further operations, but it can get further functions.
 * Ownership: the caller frees *program with mlc_program_free, *error with mlc_error_free.
 * Threads: any, each with its own context. */
MLC_API int32_t mlc_program_open(mlc_context* context, const char* model, const char* options,
                                 mlc_program** program, mlc_error** error);

/* Adds a function. The first one is the default function of the model.
 * Ownership: *body is lent, valid until the program is freed; the caller frees *error with
 * mlc_error_free.
 * Threads: one at a time per program. */
MLC_API int32_t mlc_function_add(mlc_program* program, const char* name, mlc_block** body,
                                 mlc_error** error);

/* Adds a size that is known at run time: from `low` to `high`, at least 1. *dim is a negative
 * number that stands for it in the dims of inputs of this function.
 * Ownership: the caller frees *error with mlc_error_free.
 * Threads: one at a time per program. */
MLC_API int32_t mlc_block_symbol(mlc_block* body, const char* name, int64_t low, int64_t high,
                                 int64_t* dim, mlc_error** error);

/* Adds a size that is one of `count` sizes.
 * Ownership: the caller frees *error with mlc_error_free.
 * Threads: one at a time per program. */
MLC_API int32_t mlc_block_symbol_sizes(mlc_block* body, const char* name, int32_t count,
                                       const int64_t* sizes, int64_t* dim, mlc_error** error);

/* Adds an input: of the model to the body of a function, or a variable to a block of while_loop.
 * Each of `dims` is a size or a symbol. Types that only constants have, and more than five
 * dimensions, are errors.
 * Ownership: the caller frees *error with mlc_error_free.
 * Threads: one at a time per program. */
MLC_API int32_t mlc_block_input(mlc_block* block, const char* name, int32_t dtype, int32_t rank,
                                const int64_t* dims, mlc_value* value, mlc_error** error);

/* Adds a state to the body of a function, which read_state and write_state use (iOS18).
 * Ownership: the caller frees *error with mlc_error_free.
 * Threads: one at a time per program. */
MLC_API int32_t mlc_block_state(mlc_block* body, const char* name, int32_t dtype, int32_t rank,
                                const int64_t* dims, mlc_value* value, mlc_error** error);

/* Makes an input of [1, channels, height, width] an image: `space` is "rgb", "bgr" or "gray". The
 * function receives pixels from 0 to 255.
 * Ownership: the caller frees *error with mlc_error_free.
 * Threads: one at a time per program. */
MLC_API int32_t mlc_block_image(mlc_block* body, mlc_value input, const char* space,
                                mlc_error** error);

/* Adds a constant, whose elements are copied. `name` may be NULL; a name that the function has already
 * gets a suffix, as those of operations do (mlc_value_name).
 * Ownership: the caller frees *error with mlc_error_free.
 * Threads: one at a time per program. */
MLC_API int32_t mlc_block_constant(mlc_block* block, const char* name, const mlc_tensor* tensor,
                                   mlc_value* value, mlc_error** error);

/* Called once when borrowed memory is no longer used, on the thread whose call ended the use. */
typedef void (*mlc_release_function)(void* user);

/* Adds a constant without copying its elements, which must be dense and stay unchanged until
 * `release` is called. Models that were loaded from the program may use them longer than the
 * program. If the call fails, `release` is not called.
 * Ownership: the data of `tensor` is borrowed until `release` (may be NULL) is called; the caller
 * frees *error with mlc_error_free.
 * Threads: one at a time per program. */
MLC_API int32_t mlc_block_constant_borrowed(mlc_block* block, const char* name,
                                            const mlc_tensor* tensor, mlc_release_function release,
                                            void* user, mlc_value* value, mlc_error** error);

/* Adds a constant whose dense elements stay in a file, from a byte offset.
 * Ownership: the caller frees *error with mlc_error_free; the file must stay unchanged as long as
 * the program.
 * Threads: one at a time per program. */
MLC_API int32_t mlc_block_constant_file(mlc_block* block, const char* name, const char* path,
                                        uint64_t offset, int32_t dtype, int32_t rank,
                                        const int64_t* dims, mlc_value* value, mlc_error** error);

/* Adds an output: of the model, with this name, or a result of a block of cond or while_loop,
 * whose name may be NULL.
 * Ownership: the caller frees *error with mlc_error_free.
 * Threads: one at a time per program. */
MLC_API int32_t mlc_block_output(mlc_block* block, const char* name, mlc_value value,
                                 mlc_error** error);

/* Begins an operation of MIL, e.g. "conv", or one that becomes several, e.g. "onnx.ScatterND":
 * mlc_capabilities lists the operators with their parameters. `name`, which may be NULL, names the
 * result.
 * Ownership: the caller frees *op with mlc_op_free, *error with mlc_error_free.
 * Threads: one at a time per program. */
MLC_API int32_t mlc_op_new(mlc_block* block, const char* op_name, const char* name, mlc_op** op,
                           mlc_error** error);

/* Sets an argument to a value.
 * Ownership: the caller frees *error with mlc_error_free.
 * Threads: one at a time per program. */
MLC_API int32_t mlc_op_arg(mlc_op* op, const char* parameter, mlc_value value, mlc_error** error);

/* Sets an argument that takes several values, such as "values" of concat.
 * Ownership: the caller frees *error with mlc_error_free.
 * Threads: one at a time per program. */
MLC_API int32_t mlc_op_args(mlc_op* op, const char* parameter, int32_t count,
                            const mlc_value* values, mlc_error** error);

/* Sets an argument to a constant. A number gets the element type of the operands that the
 * parameter must agree with, or else the one that the parameter takes.
 * Ownership: the caller frees *error with mlc_error_free.
 * Threads: one at a time per program. */
MLC_API int32_t mlc_op_int(mlc_op* op, const char* parameter, int64_t number, mlc_error** error);

/* Sets an argument to a floating-point number, as mlc_op_int does.
 * Ownership: the caller frees *error with mlc_error_free.
 * Threads: one at a time per program. */
MLC_API int32_t mlc_op_float(mlc_op* op, const char* parameter, double number, mlc_error** error);

/* Sets an argument to false (0) or true.
 * Ownership: the caller frees *error with mlc_error_free.
 * Threads: one at a time per program. */
MLC_API int32_t mlc_op_bool(mlc_op* op, const char* parameter, int32_t flag, mlc_error** error);

/* Sets an argument to a string.
 * Ownership: the caller frees *error with mlc_error_free.
 * Threads: one at a time per program. */
MLC_API int32_t mlc_op_string(mlc_op* op, const char* parameter, const char* text,
                              mlc_error** error);

/* Sets an argument to a vector of integers, as mlc_op_int does.
 * Ownership: the caller frees *error with mlc_error_free.
 * Threads: one at a time per program. */
MLC_API int32_t mlc_op_ints(mlc_op* op, const char* parameter, int32_t count,
                            const int64_t* numbers, mlc_error** error);

/* Sets an argument to a vector of floating-point numbers, as mlc_op_int does.
 * Ownership: the caller frees *error with mlc_error_free.
 * Threads: one at a time per program. */
MLC_API int32_t mlc_op_floats(mlc_op* op, const char* parameter, int32_t count,
                              const double* numbers, mlc_error** error);

/* Returns a nested block, which is empty at first: of cond the branches for true (0) and false
 * (1), of while_loop the condition (0) and the body (1), which have one input for each loop
 * variable.
 * Ownership: *block is lent, valid until the program is freed; the caller frees *error with
 * mlc_error_free.
 * Threads: one at a time per program. */
MLC_API int32_t mlc_op_block(mlc_op* op, int32_t index, mlc_block** block, mlc_error** error);

/* Adds the operation at the end of its block. Types and shapes of the results are inferred here;
 * the error of an operation that is not valid names the operator, the argument and the rule. Such
 * an operation remains unfinished, and can be corrected. Writes at most `capacity` values to
 * `results` and their number to *count, which may be NULL.
 * Ownership: the caller frees *error with mlc_error_free.
 * Threads: one at a time per program. */
MLC_API int32_t mlc_op_finish(mlc_op* op, int32_t capacity, mlc_value* results, int32_t* count,
                              mlc_error** error);

/* Frees the handle of an operation. A finished operation stays in the program; an unfinished one
 * is dropped with its blocks.
 * Ownership: takes `op`, which may be NULL.
 * Threads: one at a time per program. */
MLC_API void mlc_op_free(mlc_op* op);

/* Returns the name of a value in the program, NULL for an unknown value.
 * Ownership: lent, valid until the next change of the program.
 * Threads: one at a time per program. */
MLC_API const char* mlc_value_name(const mlc_program* program, mlc_value value);

/* Returns the element type, 0 for an unknown value and for a list.
 * Ownership: none.
 * Threads: one at a time per program. */
MLC_API int32_t mlc_value_dtype(const mlc_program* program, mlc_value value);

/* Returns the number of dimensions, -1 for an unknown value.
 * Ownership: none.
 * Threads: one at a time per program. */
MLC_API int32_t mlc_value_rank(const mlc_program* program, mlc_value value);

/* Writes the sizes of a value, which has mlc_value_rank of them, to `dims`; -1 for a size that is
 * not known before run time.
 * Ownership: the caller frees *error with mlc_error_free.
 * Threads: one at a time per program. */
MLC_API int32_t mlc_value_dims(const mlc_program* program, mlc_value value, int64_t* dims,
                               mlc_error** error);

/* Sets a text of the package: "author", "license", "description", "version", or a key of the user.
 * Ownership: the caller frees *error with mlc_error_free.
 * Threads: one at a time per program. */
MLC_API int32_t mlc_program_set_metadata(mlc_program* program, const char* key, const char* text,
                                         mlc_error** error);

/* Makes the model a classifier with these labels: the only output with as many elements gives the
 * probabilities. Ends the lifetime of all values.
 * Ownership: the caller frees *error with mlc_error_free.
 * Threads: one at a time per program. */
MLC_API int32_t mlc_program_set_labels(mlc_program* program, int32_t count,
                                       const char* const* labels, mlc_error** error);

/* Runs passes on the program: those of the option "passes" ("fuse-conv,dead-code"), or else the
 * default ones. Options: those of mlc opt, e.g. "precision" (default: fp32) and "compress".
 * `result`, which may be NULL, receives {"changed", "passes"}. Ends the lifetime of all values.
 * Ownership: the caller frees *result with mlc_string_free, *error with mlc_error_free.
 * Threads: one at a time per program. */
MLC_API int32_t mlc_program_optimise(mlc_context* context, mlc_program* program,
                                     const char* options, char** result, mlc_error** error);

/* Writes the program as it is to a .mlpackage, for the lowest target that supports it, or to a
 * .mil text. Options: "force". `result`, which may be NULL, receives {"package"}.
 * Ownership: the caller frees *result with mlc_string_free, *error with mlc_error_free.
 * Threads: one at a time per program. */
MLC_API int32_t mlc_program_write(mlc_context* context, mlc_program* program, const char* output,
                                  const char* options, char** result, mlc_error** error);

/* Compiles the program as mlc_compile compiles a source model, which includes the narrowing to
 * fp16. The program stays as it is. No manifest is written, because there is no source file.
 * Ownership: the caller frees *result with mlc_string_free, *error with mlc_error_free.
 * Threads: one at a time per program. */
MLC_API int32_t mlc_program_compile(mlc_context* context, mlc_program* program, const char* output,
                                    const char* options, char** result, mlc_error** error);

/* Loads the program as it is, without a file, as mlc_model_load does. Later changes of the program
 * do not affect the model. The reference engine computes in fp32 by default ("arithmetic":
 * "exact").
 * Ownership: the caller frees *model with mlc_model_free, *error with mlc_error_free.
 * Threads: one at a time per program. */
MLC_API int32_t mlc_program_load(mlc_context* context, mlc_program* program, const char* options,
                                 mlc_model** model, mlc_error** error);

/* Returns the program as MIL text.
 * Ownership: the caller frees *text with mlc_string_free, *error with mlc_error_free.
 * Threads: one at a time per program. */
MLC_API int32_t mlc_program_text(mlc_program* program, char** text, mlc_error** error);

/* Lists the weights: {"weights": [{"name", "source", "function", "dtype", "shape", "settable",
 * "why"}]}. Names are those of the program: legal identifiers, in which other characters became
 * "_"; "source" is the name in the source model. A weight can be set if it is a tensor of the
 * source, perhaps rounded to another type or reshaped. One that is compressed, or that was computed
 * from tensors of the source (fused, transposed), cannot; "why" states the reason. A package that
 * mlc did not write, and a program that was built, count as their own source.
 * Ownership: the caller frees *result with mlc_string_free, *error with mlc_error_free.
 * Threads: one at a time per program. */
MLC_API int32_t mlc_program_weights(mlc_program* program, char** result, mlc_error** error);

/* Copies a weight, decoded, into a tensor of its type and shape.
 * Ownership: the caller frees *error with mlc_error_free.
 * Threads: one at a time per program. */
MLC_API int32_t mlc_program_get_weight(mlc_program* program, const char* name,
                                       const mlc_tensor* tensor, mlc_error** error);

/* Replaces a weight, given by its name in the program or in the source, by a tensor of the same
 * shape, which is copied and, between floating-point types, rounded. In all functions that have
 * the same tensor of the source, or a weight of this name with the same elements.
 * Ownership: the caller frees *error with mlc_error_free.
 * Threads: one at a time per program. */
MLC_API int32_t mlc_program_set_weight(mlc_program* program, const char* name,
                                       const mlc_tensor* tensor, mlc_error** error);

/* Adds scale * up * down, of low rank, to a weight of linear or conv operations (LoRA): `down` is [rank,
 * inputs], of a convolution [rank, inputs, kernel ...], and `up` is [outputs, rank].
 * Ownership: the caller frees *error with mlc_error_free.
 * Threads: one at a time per program. */
MLC_API int32_t mlc_program_merge_lora(mlc_program* program, const char* weight,
                                       const mlc_tensor* down, const mlc_tensor* up, double scale,
                                       mlc_error** error);

/* Keeps such a pair apart, so that it can be changed at run time: adds the inputs "WEIGHT_lora_down" and
 * "WEIGHT_lora_up", in the type of the weight, and operations that add scale * up * (down * x) to the
 * result of each layer. Ends the lifetime of all values.
 * Ownership: the caller frees *error with mlc_error_free.
 * Threads: one at a time per program. */
MLC_API int32_t mlc_program_add_lora_inputs(mlc_program* program, const char* weight, int64_t rank,
                                            double scale, mlc_error** error);

/* Frees a program with its blocks. Models that were loaded from it remain valid.
 * Ownership: takes `program`, which may be NULL.
 * Threads: one at a time. */
MLC_API void mlc_program_free(mlc_program* program);

#ifdef __cplusplus
}
#endif

#endif /* MLC_H */
