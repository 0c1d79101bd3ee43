// ort_batch.mjs LIST.jsonl - computes many ONNX models with onnxruntime-node in one process. ORT_DIR: where it is installed.
//
// A line of LIST: {"model": FILE, "inputs": {NAME: FILE.npy}, "out": DIR}. Writes DIR/K.npy for the output number K, or
// DIR/error.txt. Graph optimisations are off, so that every node is computed by its own kernel.
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';

const ort = createRequire(process.env.ORT_DIR + '/')('onnxruntime-node');
const types = {
  '<f4': ['float32', Float32Array], '<f8': ['float64', Float64Array], '<i8': ['int64', BigInt64Array],
  '<i4': ['int32', Int32Array], '|u1': ['uint8', Uint8Array], '|i1': ['int8', Int8Array], '|b1': ['bool', Uint8Array], '<u2': ['uint16', Uint16Array], '<i2': ['int16', Int16Array],
  '<u4': ['uint32', Uint32Array],
};

function readNpy(file) {
  const bytes = fs.readFileSync(file);
  const length = bytes.readUInt16LE(8);
  const header = bytes.toString('latin1', 10, 10 + length);
  const [type, array] = types[/'descr':\s*'([^']+)'/.exec(header)[1]];
  const dims = [.../'shape':\s*\(([^)]*)\)/.exec(header)[1].matchAll(/\d+/g)].map((m) => Number(m[0]));
  const body = new Uint8Array(bytes.subarray(10 + length));
  return new ort.Tensor(type, new array(body.buffer), dims);
}

function writeNpy(file, tensor) {
  const descr = Object.keys(types).find((d) => types[d][0] === tensor.type);
  if (!descr) throw new Error(`no NumPy type for ${tensor.type}`);
  const shape = `(${tensor.dims.join(', ')}${tensor.dims.length === 1 ? ',' : ''})`;
  let header = `{'descr': '${descr}', 'fortran_order': False, 'shape': ${shape}, }`;
  header += ' '.repeat((64 - ((10 + header.length + 1) % 64)) % 64) + '\n';
  const prefix = Buffer.from([0x93, 78, 85, 77, 80, 89, 1, 0, header.length & 255, header.length >> 8]);
  const { buffer, byteOffset, byteLength } = tensor.data;
  fs.writeFileSync(file, Buffer.concat([prefix, Buffer.from(header, 'latin1'), Buffer.from(buffer, byteOffset, byteLength)]));
}

for (const line of fs.readFileSync(process.argv[2], 'utf8').split('\n').filter(Boolean)) {
  const { model, inputs, out } = JSON.parse(line);
  try {
    const session = await ort.InferenceSession.create(model, {
      graphOptimizationLevel: 'disabled', intraOpNumThreads: 1, interOpNumThreads: 1, logSeverityLevel: 4,
    });
    const feeds = Object.fromEntries(Object.entries(inputs).map(([name, file]) => [name, readNpy(file)]));
    const results = await session.run(feeds);
    session.outputNames.forEach((name, i) => writeNpy(path.join(out, `${i}.npy`), results[name]));
    await session.release();
  } catch (error) {
    fs.writeFileSync(path.join(out, 'error.txt'), String(error.message || error));
  }
}
