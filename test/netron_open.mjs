// Opens models with Netron's own sources, headless, and prints what it shows as JSON lines:
//   node netron_open.mjs NETRON_DIR MODEL...
// NETRON_DIR is a checkout of github.com/lutzroeder/netron. Its tests' `Target` loads a model, validates what the view would
// read (types, values of tensors, attributes) and draws the graph on a document without a browser.
import { pathToFileURL } from 'node:url';
import path from 'node:path';

const [folder, ...models] = process.argv.slice(2);
const { Target } = await import(pathToFileURL(path.join(folder, 'test', 'worker.js')));

for (const model of models) {
    const answer = { model };
    // Weights of a package may be decoded while the graph is validated; "quantization" and "validation" are Netron's names.
    const target = new Target({ name: model, targets: [model], tags: ['quantization', 'validation'] });
    target.folder = path.dirname(model);
    target.targets = [path.basename(model)];
    target.download = async () => {};
    try {
        await target.execute();
        const shown = target.model;
        answer.format = shown.format;
        const graphs = [...(shown.modules || []), ...(shown.functions || [])];
        answer.graphs = graphs.map((graph) => ({
            name: graph.name,
            inputs: graph.inputs.map((input) => [input.name, String(input.value[0]?.type ?? '')]),
            outputs: graph.outputs.map((output) => [output.name, String(output.value[0]?.type ?? '')]),
            operators: graph.nodes.map((node) => node.type.name).sort()
        }));
        answer.tensors = graphs.flatMap((graph) => graph.nodes.flatMap((node) => node.inputs.flatMap((input) =>
            input.value.filter((value) => value && value.initializer).map((value) => [node.type.name, input.name, String(value.initializer.type)]))));
    } catch (error) {
        answer.error = error.message;
        answer.stack = String(error.stack).split('\n').slice(0, 6);
        if (error.cause) answer.cause = error.cause.message;
    }
    console.log(JSON.stringify(answer));
}
process.exit(0);
