// tokenizers_batch.mjs DIR <CASES.json - what Hugging Face's tokenizers makes of texts: [[tokenizer.json's path, [text ...]] ...]
// on stdin, lists of lists of ids on stdout, or a text for what cannot be read or used. --add-special: with what the template puts
// around a text. DIR is where npm put @anush008/tokenizers, which is that library for Node.
import { createRequire } from 'module';
import fs from 'fs';

const { Tokenizer } = createRequire(process.argv[2] + '/x.js')('@anush008/tokenizers');
const addSpecialTokens = process.argv.includes('--add-special');
const answers = [];
for (const [file, texts] of JSON.parse(fs.readFileSync(0))) {
  try {
    const tokenizer = Tokenizer.fromFile(file);
    const lists = [];
    for (const text of texts) lists.push((await tokenizer.encode(text, null, { addSpecialTokens })).getIds());
    answers.push(lists);
  } catch (error) {
    answers.push(String(error));
  }
}
process.stdout.write(JSON.stringify(answers));
