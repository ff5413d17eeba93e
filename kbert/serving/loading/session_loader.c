/* Loads a SavedModel and runs it without Python, by the session loader that TF Serving uses.
 *
 *   session_loader EXPORT [LIBRARY ...]
 *
 * EXPORT is a version folder with saved_model.pb. Each LIBRARY is a shared object that registers ops
 * (tensorflow-text ships some). Requests come on standard input, answers go to standard output, and
 * the program ends when its input ends. Numbers are in the machine's own byte order:
 *
 *   name    := int32 bytes, then the bytes
 *   tensor  := int32 type (TF_DataType), int32 rank, rank times int64 dimension, then
 *              the elements, or for TF_STRING for each element: int64 bytes, then the bytes
 *   request := int32 inputs, that many times (name, tensor); int32 outputs, that many times name
 *   answer  := int32 status (TF_Code), then
 *              when it is TF_OK the tensors in the order of the request's outputs, else a name
 *              that holds the message
 *
 * Names are tensor names such as "serving_default_text:0", as the SignatureDef gives them. One answer
 * without tensors comes first: whether the SavedModel was loaded.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/tf_tstring.h"

#define MAX_RANK 16
#define MAX_TENSORS 4096

static void die(const char *message) {
  fprintf(stderr, "session_loader: %s\n", message);
  exit(2);
}

static void *allocate(size_t bytes) {
  void *memory = malloc(bytes ? bytes : 1);
  if (!memory) die("out of memory");
  return memory;
}

/* --- reading ----------------------------------------------------------------------------------- */

static void read_bytes(void *to, size_t bytes) {
  if (bytes && fread(to, 1, bytes, stdin) != bytes) die("the request ends too early");
}

static int32_t read_count(int32_t largest) {
  int32_t count;
  read_bytes(&count, sizeof count);
  if (count < 0 || count > largest) die("a count of the request is out of range");
  return count;
}

static char *read_name(void) {
  int32_t bytes = read_count(1 << 20);
  char *name = allocate((size_t)bytes + 1);
  read_bytes(name, (size_t)bytes);
  name[bytes] = '\0';
  return name;
}

static void read_strings(TF_TString *strings, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    int64_t bytes;
    read_bytes(&bytes, sizeof bytes);
    if (bytes < 0) die("a string of the request has a negative length");
    char *text = allocate((size_t)bytes);
    read_bytes(text, (size_t)bytes);
    TF_StringInit(&strings[i]);
    TF_StringCopy(&strings[i], text, (size_t)bytes);
    free(text);
  }
}

static TF_Tensor *read_tensor(void) {
  int32_t type = read_count(1 << 20);
  int32_t rank = read_count(MAX_RANK);
  int64_t dimensions[MAX_RANK], count = 1;
  read_bytes(dimensions, (size_t)rank * sizeof *dimensions);
  for (int32_t i = 0; i < rank; ++i) {
    if (dimensions[i] < 0) die("a dimension of the request is negative");
    if (__builtin_mul_overflow(count, dimensions[i], &count)) die("a tensor is too large");
  }
  size_t size = type == TF_STRING ? sizeof(TF_TString) : TF_DataTypeSize((TF_DataType)type);
  size_t bytes;
  if (!size) die("a tensor's type must be a string or of a fixed size");
  if (__builtin_mul_overflow((size_t)count, size, &bytes)) die("a tensor is too large");
  TF_Tensor *tensor = TF_AllocateTensor((TF_DataType)type, dimensions, rank, bytes);
  if (!tensor) die("out of memory");
  if (type == TF_STRING) {
    read_strings(TF_TensorData(tensor), count);
  } else {
    read_bytes(TF_TensorData(tensor), bytes);
  }
  return tensor;
}

/* --- writing ----------------------------------------------------------------------------------- */

static void write_bytes(const void *from, size_t bytes) {
  if (bytes && fwrite(from, 1, bytes, stdout) != bytes) die("the answer cannot be written");
}

static void write_int32(int32_t number) { write_bytes(&number, sizeof number); }

static void write_status(const TF_Status *status) {
  write_int32((int32_t)TF_GetCode(status));
  if (TF_GetCode(status) != TF_OK) {
    const char *message = TF_Message(status);
    write_int32((int32_t)strlen(message));
    write_bytes(message, strlen(message));
  }
}

static void write_tensor(const TF_Tensor *tensor) {
  TF_DataType type = TF_TensorType(tensor);
  int rank = TF_NumDims(tensor);
  write_int32((int32_t)type);
  write_int32(rank);
  for (int i = 0; i < rank; ++i) {
    int64_t dimension = TF_Dim(tensor, i);
    write_bytes(&dimension, sizeof dimension);
  }
  if (type != TF_STRING) {
    if (!TF_DataTypeSize(type)) die("an output's type must be a string or of a fixed size");
    write_bytes(TF_TensorData(tensor), TF_TensorByteSize(tensor));
    return;
  }
  const TF_TString *strings = TF_TensorData(tensor);
  for (int64_t i = 0; i < TF_TensorElementCount(tensor); ++i) {
    int64_t bytes = (int64_t)TF_StringGetSize(&strings[i]);
    write_bytes(&bytes, sizeof bytes);
    write_bytes(TF_StringGetDataPointer(&strings[i]), (size_t)bytes);
  }
}

/* --- running ----------------------------------------------------------------------------------- */

/* "name:index" -> the output of an operation; a name that is not there sets the status. */
static TF_Output find(TF_Graph *graph, char *name, TF_Status *status) {
  TF_Output output = {NULL, 0};
  char *colon = strrchr(name, ':');
  if (colon) {
    output.index = atoi(colon + 1);
    *colon = '\0';
  }
  output.oper = TF_GraphOperationByName(graph, name);
  if (!output.oper || output.index < 0 || output.index >= TF_OperationNumOutputs(output.oper)) {
    if (TF_GetCode(status) == TF_OK) TF_SetStatus(status, TF_NOT_FOUND, name);
  }
  return output;
}

static TF_Output read_output(TF_Graph *graph, TF_Status *status) {
  char *name = read_name();
  TF_Output output = find(graph, name, status);
  free(name);
  return output;
}

static void answer_request(TF_Session *session, TF_Graph *graph, int32_t num_inputs) {
  TF_Status *status = TF_NewStatus();
  if (num_inputs < 0 || num_inputs > MAX_TENSORS) die("a count of the request is out of range");
  TF_Output *inputs = allocate((size_t)num_inputs * sizeof *inputs);
  TF_Tensor **fed = allocate((size_t)num_inputs * sizeof *fed);
  for (int32_t i = 0; i < num_inputs; ++i) {
    inputs[i] = read_output(graph, status);
    fed[i] = read_tensor();
  }
  int32_t num_outputs = read_count(MAX_TENSORS);
  TF_Output *outputs = allocate((size_t)num_outputs * sizeof *outputs);
  TF_Tensor **fetched = allocate((size_t)num_outputs * sizeof *fetched);
  for (int32_t i = 0; i < num_outputs; ++i) {
    outputs[i] = read_output(graph, status);
    fetched[i] = NULL;
  }
  if (TF_GetCode(status) == TF_OK) {
    TF_SessionRun(session, NULL, inputs, fed, num_inputs, outputs, fetched, num_outputs, NULL, 0,
                  NULL, status);
  }
  write_status(status);
  for (int32_t i = 0; i < num_outputs; ++i) {
    if (TF_GetCode(status) == TF_OK) write_tensor(fetched[i]);
    if (fetched[i]) TF_DeleteTensor(fetched[i]);
  }
  if (fflush(stdout)) die("the answer cannot be written");
  for (int32_t i = 0; i < num_inputs; ++i) TF_DeleteTensor(fed[i]);
  free(fetched), free(outputs), free(fed), free(inputs);
  TF_DeleteStatus(status);
}

static TF_Session *load(int count, char **arguments, TF_Graph *graph, TF_Status *status) {
  static const char *const tags[] = {"serve"};
  for (int i = 2; i < count && TF_GetCode(status) == TF_OK; ++i) {
    TF_LoadLibrary(arguments[i], status);
  }
  if (TF_GetCode(status) != TF_OK) return NULL;
  TF_SessionOptions *options = TF_NewSessionOptions();
  TF_Session *session = TF_LoadSessionFromSavedModel(options, NULL, arguments[1], tags, 1, graph,
                                                     NULL, status);
  TF_DeleteSessionOptions(options);
  return session;
}

int main(int count, char **arguments) {
  if (count < 2) die("usage: session_loader EXPORT [LIBRARY ...]");
  TF_Status *status = TF_NewStatus();
  TF_Graph *graph = TF_NewGraph();
  TF_Session *session = load(count, arguments, graph, status);
  write_status(status);
  if (fflush(stdout)) die("the answer cannot be written");
  if (TF_GetCode(status) != TF_OK) return 1;

  int32_t num_inputs;
  size_t got;
  while ((got = fread(&num_inputs, 1, sizeof num_inputs, stdin)) == sizeof num_inputs) {
    answer_request(session, graph, num_inputs);
  }
  if (got) die("the request ends too early");
  TF_CloseSession(session, status);
  TF_DeleteSession(session, status);
  TF_DeleteGraph(graph);
  TF_DeleteStatus(status);
  return 0;
}
