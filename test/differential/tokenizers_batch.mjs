// tokenizers_batch.mjs DIR <CASES.json - what Hugging Face's tokenizers makes of texts: [[tokenizer.json's path, [text ...]] ...]
// on stdin, lists of lists of ids on stdout. DIR is where npm put @anush008/tokenizers, which is that library for Node.
import { createRequire } from 'module';
import fs from 'fs';

const { Tokenizer } = createRequire(process.argv[2] + '/x.js')('@anush008/tokenizers');
const answers = [];
for (const [file, texts] of JSON.parse(fs.readFileSync(0))) {
  const tokenizer = Tokenizer.fromFile(file);
  const lists = [];
  for (const text of texts) lists.push((await tokenizer.encode(text, null, { addSpecialTokens: false })).getIds());
  answers.push(lists);
}
process.stdout.write(JSON.stringify(answers));
