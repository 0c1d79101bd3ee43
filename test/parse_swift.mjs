// Parses Swift files with tree-sitter's grammar and prints where each has a syntax error, one JSON line for a file:
//   node parse_swift.mjs FOLDER FILE...
// FOLDER is one with `npm install --ignore-scripts web-tree-sitter@0.20.8 tree-sitter-wasms`.
import { createRequire } from 'node:module';
import fs from 'node:fs';
import path from 'node:path';

const [folder, ...files] = process.argv.slice(2);
const Parser = createRequire(path.join(path.resolve(folder), 'package.json'))('web-tree-sitter');
await Parser.init();
const parser = new Parser();
parser.setLanguage(await Parser.Language.load(path.join(folder, 'node_modules/tree-sitter-wasms/out/tree-sitter-swift.wasm')));
for (const file of files) {
    const errors = [];
    const walk = (node) => {
        if (node.type === 'ERROR' || node.isMissing()) errors.push(`line ${node.startPosition.row + 1}: ${node.text.slice(0, 80)}`);
        else node.children.forEach(walk);
    };
    walk(parser.parse(fs.readFileSync(file, 'utf8')).rootNode);
    console.log(JSON.stringify({ file, errors }));
}
